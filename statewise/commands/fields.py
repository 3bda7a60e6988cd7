"""The fields of a dataclass as flat options, each with the sentence of the class's docstring as its help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_args, get_type_hints

from jsonargparse import ArgumentParser

from statewise.errors import ArgumentError

Made = TypeVar("Made")
NOTHING = ("none", "null", "off")


def add_fields(parser: ArgumentParser, kind: type, *, title: str, defaults: Mapping[str, Any]) -> None:
    """Add ``--name VALUE`` for every field; what is not given is absent, so that it can come from elsewhere.

    Args:
        parser: gets the options.
        kind: the dataclass.
        title: of the group in the help.
        defaults: those that differ from the dataclass's own; they are only told here, :func:`from_fields` applies them.
    """
    group = parser.add_argument_group(title)
    told = _sentences(kind)
    types = get_type_hints(kind)
    for entry in fields(kind):
        default = defaults.get(entry.name, entry.default)
        group.add_argument(
            f"--{entry.name.replace('_', '-')}",
            type=str,
            metavar=_metavar(types[entry.name]),
            help=f"{told[entry.name].rstrip('.')} (default: {_shown(default)})",
        )


def from_fields(kind: type[Made], given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given, as the dataclass wants them.

    Args:
        kind: the dataclass.
        given: texts by field; None for what was not given.

    >>> from statewise.train.settings import TrainingSettings
    >>> from_fields(TrainingSettings, {"lr": "20", "clip": "none", "epochs": None})
    {'lr': 20.0, 'clip': None}
    """
    types = get_type_hints(kind)
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    present = {name: given[name] for name in names if given.get(name) is not None}
    return {name: _converted(name, text, types[name]) for name, text in present.items()}


def _converted(name: str, text: str, wanted: Any) -> Any:
    parts = get_args(wanted)
    if type(None) in parts:
        if text.lower() in NOTHING:
            return None
        wanted = next(part for part in parts if part is not type(None))
    convert, said = _CONVERSIONS[wanted]
    try:
        return convert(text)
    except ValueError:
        option = f"--{name.replace('_', '-')}"
        raise ArgumentError(where=option, got=text, wanted=said) from None


def _widths(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _truth(text: str) -> bool:
    if text.lower() in ("true", "yes", "on", "1"):
        return True
    if text.lower() in ("false", "no", "off", "0"):
        return False
    raise ValueError(text)


_CONVERSIONS: Mapping[Any, tuple[Callable[[str], Any], str]] = {
    int: (int, "a whole number"),
    float: (float, "a number"),
    str: (str, "a word"),
    bool: (_truth, "true or false"),
    tuple[int, ...]: (_widths, "whole numbers with commas, such as 200,200"),
}


def _sentences(kind: type) -> dict[str, str]:
    """What the docstring says of each field, under ``Args:``; of what it does not mention, that of a base."""
    told: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        section = inspect.cleandoc(each.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
        found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, flags=re.MULTILINE)
        told |= {name: _plain(" ".join(text.split())) for name, text in found}
    return told


def _plain(text: str) -> str:
    """A sentence without the marks of a docstring.

    >>> _plain("around ``bptt``; see :class:`~statewise.Noise`, or None")
    'around bptt; see Noise, or none'
    """
    return re.sub(r":\w+:`~?[\w.]*?(\w+)`", r"\1", text).replace("``", "").replace("None", "none")


def _metavar(wanted: Any) -> str:
    names = {int: "N", float: "X", bool: "true|false", tuple[int, ...]: "N,N"}
    return next((names[part] for part in (wanted, *get_args(wanted)) if part in names), "WORD")


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    if default is None or isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)
