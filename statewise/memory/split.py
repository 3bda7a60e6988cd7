"""Where a sequence is cut into Start and End."""

from __future__ import annotations

from statewise.errors import ArgumentError
from statewise.memory.telling import counted
from statewise.memory.whole import whole


def split_of(T: int, split: int | None, *, where: str, name: str = "T") -> int:
    """The steps of the Start: as given, or half of an even number of steps; of one step none is.

    Args:
        T: steps.
        split: steps of the Start, 0 to T; None for half.
        where: what was asked, for errors.
        name: what T is called there.

    >>> split_of(6, None, where="here"), split_of(5, 2, where="here")
    (3, 2)
    """
    T = whole(T, where=f"{where}.{name}")
    if split is None:
        if T % 2 and T > 1:  # one step has one half at most, and rank 1 at either split
            raise ArgumentError(
                where=f"{where}.split",
                got=f"none for {counted(T, 'step')}",
                wanted="an even number of steps, or a split",
                remedy=f"An odd number has no middle: give split, how many of the {T} steps are the Start.",
            )
        return T // 2
    return whole(split, where=f"{where}.split", least=0, most=T)
