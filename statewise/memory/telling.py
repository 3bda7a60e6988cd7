"""How ranks and counts are told to people, and to programs that read JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

#: Python reads and writes no whole number of more digits, unless it is told to.
DIGITS = 4300


def rank_text(rank: int) -> str:
    """A rank as a person reads it: short ones in full, long ones in powers of ten, rounded down.

    >>> rank_text(12345), rank_text(3**50), rank_text(2**10_000)
    ('12,345', '7.17e23', '1.99e3010')
    """
    if rank < 10**9:
        return f"{rank:,}"
    power = int((rank.bit_length() - 1) * math.log10(2))
    power += rank >= 10 ** (power + 1)
    return f"{rank // 10 ** (power - 2) / 100:.2f}e{power}"


def bound_text(bound: int) -> str:
    """A bound from above as a person reads it: no digit is left out unless that is said.

    >>> bound_text(125050014998), bound_text(2**10_000)
    ('125050014998', 'about 1.99e3010')
    """
    return str(bound) if bound < 10**30 else f"about {rank_text(bound)}"


def counted(count: int, name: str) -> str:
    """So many of something.

    Args:
        count: how many.
        name: of one.

    >>> counted(1, "step"), counted(1000, "step")
    ('1 step', '1,000 steps')
    """
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def listed(names: Sequence[object]) -> str:
    """Names in a sentence.

    >>> listed([1]), listed([1, 2]), listed([1, 2, 3])
    ('1', '1 and 2', '1, 2 and 3')
    """
    *others, last = map(str, names)
    return f"{', '.join(others)} and {last}" if others else last


def told_in_json(value: Any) -> Any:
    """The same for a file of JSON: a whole number stays one unless it is longer than Python reads; then it is text.

    Args:
        value: numbers, texts, lists and dictionaries of them.

    >>> told_in_json({"rank": 30, "bounds": [2**20_000]})
    {'rank': 30, 'bounds': ['3.98e6020']}
    """
    if isinstance(value, dict):
        return {name: told_in_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [told_in_json(each) for each in value]
    if type(value) is int and abs(value) >= 10**DIGITS:
        return rank_text(value)
    return value
