"""Whole numbers as arguments: what else is given is named, and numpy's become Python's own."""

from __future__ import annotations

from operator import index
from typing import Any

from statewise.errors import ArgumentError


def whole(value: Any, *, where: str, least: int = 1, most: int | None = None) -> int:
    """A whole number in its range, as one of Python's.

    Those of numpy end at 64 bits and begin again at the other end without a word, which makes bounds false.

    Args:
        value: what was given.
        where: the argument, for errors.
        least: it must be no less.
        most: it must be no more; None if there is no end.

    >>> import numpy as np
    >>> whole(np.int64(4), where="here") ** 50 == 4**50
    True
    """
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        wanted = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ArgumentError(where=where, got=value, wanted=f"a whole number {wanted}")
    return number


def wholes(where: str, **values: Any) -> list[int]:
    """Several whole numbers of at least 1, in the order in which they were given.

    Args:
        where: what was asked, for errors.
        values: by the names of the arguments.

    >>> inputs, width = wholes("here", inputs=2, width=3)
    >>> inputs * width
    6
    """
    return [whole(value, where=f"{where}.{name}") for name, value in values.items()]


def exceeds(base: int, exponent: int, most: int) -> bool:
    """Whether a power is too large, without writing down one of millions of digits.

    Args:
        base: at least 1.
        exponent: at least 0.
        most: what it may be at most.

    >>> exceeds(2, 10, 1024), exceeds(2, 11, 1024), exceeds(1, 10**9, 1024), exceeds(3, 10**9, 1024)
    (False, True, False, True)
    """
    if base == 1:
        return False
    return exponent > most.bit_length() or base**exponent > most
