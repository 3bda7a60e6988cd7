"""Which hardness to try next: a function of what is known so far, so that a search can go on from any point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statewise.errors import ArgumentError

METHODS = ("bisection", "galloping", "ascending")


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """How the largest value that is solved is looked for among increasing ones.

    "ascending" tries one after the other, until ``misses`` in a row are not solved. "galloping" begins at the easy end
    with growing steps and then halves: it wastes little on values that are far too hard, which cost the most.
    "bisection" halves the range between the largest that is solved and the smallest above it that is not. It takes for
    granted that what is harder than an unsolved value is not solved either; since training is noisy, ``verify_above``
    values above the first unsolved one are tried too, and if one of them is solved the search goes on above it. Nothing
    that was found is dropped: the answer is the largest value that was solved, whatever was not below it.

    Args:
        method: "bisection", "galloping" or "ascending".
        misses: how many values in a row must fail (ascending).
        verify_above: how many values beyond the one that bounds the answer are tried (bisection, galloping).
        at_once: how many values are tried at a time, for clusters with more workers than networks.

    >>> plan, truth = Strategy(verify_above=0), {10: True, 20: True, 30: True, 40: False, 50: False}
    >>> known = {}
    >>> while chosen := plan.next_values(list(truth), known):
    ...     known |= {value: truth[value] for value in chosen}
    >>> known
    {30: True, 40: False}
    """

    method: str = "bisection"
    misses: int = 2
    verify_above: int = 1
    at_once: int = 1

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ArgumentError(where="Strategy.method", got=self.method, wanted=f"one of {', '.join(METHODS)}")
        for name, least in (("misses", 1), ("verify_above", 0), ("at_once", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(where=f"Strategy.{name}", got=getattr(self, name), wanted=f"an integer >= {least}")

    def next_values(self, values: Sequence[int], solved: Mapping[int, bool]) -> list[int]:
        """What to try now; nothing if the answer is known.

        Args:
            values: all that may be tried, increasing.
            solved: whether those that were tried are solved.
        """
        known = {place: solved[value] for place, value in enumerate(values) if value in solved}
        find = {"bisection": self._halves, "galloping": self._gallop, "ascending": self._steps}[self.method]
        places = find(len(values), known)
        return [values[place] for place in places[: self.at_once]]

    def _halves(self, count: int, known: Mapping[int, bool]) -> list[int]:
        low = max((place for place, solved in known.items() if solved), default=-1)
        high = min((place for place, solved in known.items() if not solved and place > low), default=count)
        if high - low > 1:
            parts = min(self.at_once, high - low - 1) + 1
            return [low + (high - low) * part // parts for part in range(1, parts)]
        beyond = range(high + 1, min(high + 1 + self.verify_above, count))
        return [place for place in beyond if place not in known]

    def _gallop(self, count: int, known: Mapping[int, bool]) -> list[int]:
        """Places 0, 1, 3, 7 and so on until one is not solved, then halves: hardly a value far too hard is tried."""
        if all(known.values()):
            beyond = [2**power - 1 for power in range(count.bit_length()) if 2**power - 1 < count]
            ahead = [place for place in beyond if place > max(known, default=-1)]
            if ahead:
                return ahead
        return self._halves(count, known)

    def _steps(self, count: int, known: Mapping[int, bool]) -> list[int]:
        row = 0
        for place in range(count):
            if place not in known:
                return [each for each in range(place, count) if each not in known]
            row = 0 if known[place] else row + 1
            if row == self.misses:
                return []
        return []
