"""Which shapes the tables of ranks are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from statewise.errors import ArgumentError
from statewise.memory.whole import whole


class Shape(NamedTuple):
    """A circuit's shape but for its depth.

    Args:
        inputs: M.
        width: R.
        steps: T, even.
    """

    inputs: int
    width: int
    steps: int

    @property
    def words(self) -> int:
        """How many words a half has, ``M^(T/2)``: the side of the table whose rank is asked."""
        return int(self.inputs ** (self.steps // 2))


def shapes_of(
    *, inputs: Iterable[int], widths: Iterable[int], least: int = 1, most: int, longest: int | None = None
) -> tuple[Shape, ...]:
    """All shapes whose halves have so many words.

    Args:
        inputs: values of M.
        widths: values of R.
        least: words of a half, at least.
        most: words of a half, at most.
        longest: T at most; needed if M = 1, where all halves have one word.

    >>> len(shapes_of(inputs=range(2, 13), widths=range(2, 7), most=300))
    175
    """
    found = list[Shape]()
    widths = tuple(whole(width, where="shapes_of.widths") for width in widths)
    for number in (whole(number, where="shapes_of.inputs") for number in inputs):
        if number == 1 and longest is None:
            raise ArgumentError(where="shapes_of.longest", got=None, wanted="a number of steps if M can be 1")
        steps = 2
        while number ** (steps // 2) <= most and (longest is None or steps <= longest):
            if number ** (steps // 2) >= least:
                found += [Shape(number, width, steps) for width in widths]
            steps += 2
    return tuple(found)


#: Two layers (and one): M up to 5, R up to 6, T up to 10, halves of at most 260 words.
SHALLOW = shapes_of(inputs=range(1, 6), widths=range(1, 7), most=260, longest=10)
#: Three layers: every shape with M up to 12, R from 2 to 6 and halves of at most 300 words.
SMALL = shapes_of(inputs=range(2, 13), widths=range(2, 7), most=300)
#: The same with halves of 301 to 1100 words.
MEDIUM = shapes_of(inputs=range(2, 13), widths=range(2, 7), least=301, most=1100)
#: Shapes picked for their size or because R is M or M - 1. The first 21 are those of which numbers are known; the last
#: seven were reconstructed from how many such shapes meet, exceed and violate the conjecture.
LARGE = tuple(
    Shape(*shape)
    for shape in (
        *((2, 2, 22), (2, 2, 24), (2, 6, 22), (3, 2, 14), (3, 3, 14), (3, 6, 14), (4, 3, 12), (4, 4, 12)),
        *((5, 4, 10), (5, 5, 10), (6, 5, 8), (6, 6, 8), (7, 7, 6), (7, 7, 8)),
        *((7, 6, 8), (8, 7, 6), (9, 8, 6), (10, 9, 6), (11, 10, 6), (20, 12, 4), (20, 19, 4)),
        *((8, 8, 6), (9, 9, 6), (10, 10, 6), (11, 11, 6), (12, 12, 6), (20, 20, 4), (20, 8, 4)),
    )
)
#: More shapes with R from 7 to 12, of which nothing was known before.
WIDE = shapes_of(inputs=range(2, 13), widths=range(7, 13), most=300)

#: The batches of shapes, by name.
BATCHES: Mapping[str, tuple[Shape, ...]] = {
    "shallow": SHALLOW,
    "small": SMALL,
    "medium": MEDIUM,
    "large": LARGE,
    "wide": WIDE,
}
