"""Errors in the words of a command: they name what a person typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from statewise.errors import StatewiseError

_OR_NONE = ", or None"
_SHOWN = 8  # entries of a list


@contextmanager
def naming_options(options: Mapping[str, str], remedies: Mapping[str, str] | None = None) -> Iterator[None]:
    """A region whose errors name the option that was typed, not the field of a class that it became.

    The error is of the same type. Where a class wants something "or None", an option is left out.

    Args:
        options: the option by the ``where`` of an error; all other errors pass as they are.
        remedies: what to do, by option, where the error itself does not say it.

    >>> from statewise.errors import ArgumentError
    >>> with naming_options({"Trial.lr": "--rates"}, {"--rates": "Leave it out for 1e-3."}):
    ...     raise ArgumentError(where="Trial.lr", got=(0.1, -1.0), wanted="numbers above 0, or None")
    Traceback (most recent call last):
        ...
    statewise.errors.ArgumentError: --rates: got 0.1 -1, wanted numbers above 0. Leave it out for 1e-3.
    """
    try:
        yield
    except StatewiseError as error:
        option = options.get(error.where)
        if option is None:
            raise
        got = typed(error.got) if isinstance(error.got, list | tuple | float) else error.got
        remedy = error.remedy or (remedies or {}).get(option, "")
        raise type(error)(where=option, got=got, wanted=error.wanted.removesuffix(_OR_NONE), remedy=remedy) from None


def typed(value: Any) -> str:
    """A value as a person types it; of a long list the ends.

    Args:
        value: of an option.

    >>> typed([1e-4, 0.5, 2.0]), typed(None), typed(tuple(range(0, 1001, 50)))
    ('0.0001 0.5 2', 'none', '0 50 100 150 ... 1000 (21 of them)')
    """
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return str(value)
    words = [typed(each) for each in value]
    if len(words) <= _SHOWN:
        return " ".join(words)
    return f"{' '.join(words[: _SHOWN // 2])} ... {words[-1]} ({len(words)} of them)"
