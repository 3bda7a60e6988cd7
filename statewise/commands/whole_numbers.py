"""Lists of whole numbers as a person types them."""

from __future__ import annotations

from statewise.commands.shared import split_list
from statewise.errors import ArgumentError

_MOST = 100_000


def whole_numbers(text: str, *, where: str) -> tuple[int, ...]:
    """The numbers of a list with commas and ranges, each once.

    Args:
        text: what was typed.
        where: the option, for errors.

    >>> whole_numbers("2, 4-6,4", where="--width")
    (2, 4, 5, 6)
    """
    found: dict[int, None] = {}
    for entry in split_list(text):
        first, sign, last = (part.strip() for part in entry.partition("-"))
        if not first.isdecimal() or (sign and not last.isdecimal()) or len(first) > 12 or len(last) > 12:
            raise ArgumentError(where=where, got=entry, wanted="whole numbers, such as 6, or 2,3 or 2-6")
        ends = int(first), int(last) if sign else int(first)
        if not 0 <= ends[1] - ends[0] < _MOST:
            raise ArgumentError(where=where, got=entry, wanted="a range that goes up, such as 2-6")
        found.update(dict.fromkeys(range(ends[0], ends[1] + 1)))
    if not found:
        raise ArgumentError(where=where, got="nothing", wanted="whole numbers, such as 6, or 2,3 or 2-6")
    return tuple(found)
