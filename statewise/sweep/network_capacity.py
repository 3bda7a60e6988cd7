"""How hard a task one network can solve, as far as a search has found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from statewise.sweep.tries import Try


@dataclass(frozen=True, kw_only=True)
class NetworkCapacity:
    """How hard a task one network can solve.

    Args:
        depth: layers.
        width: channels of each.
        size: the budget of parameters that it was made for; None if it was given by its width.
        parameters: that it has.
        thesis_parameters: as Ziv 2019 counts them.
        values: that may be tried, increasing.
        tries: those that were tried, increasing.
        seconds: of computing that were spent.
        ended: "" if the search came to its end, else which budget ended it, or why it could not begin.
    """

    depth: int
    width: int
    size: int | None
    parameters: int
    thesis_parameters: int
    values: tuple[int, ...]
    tries: tuple[Try, ...]
    seconds: float
    ended: str = ""

    @property
    def capacity(self) -> int | None:
        """The largest value that was solved; None if none was."""
        return max((each.value for each in self.tries if each.verdict == "solved"), default=None)

    @property
    def bound(self) -> Try | None:
        """The least value above the capacity that was tried and not solved."""
        found = self.capacity
        return next((each for each in self.tries if found is None or each.value > found), None)

    @property
    def censored(self) -> str:
        """What the capacity is short of being known: "all solved", "capped", "broken", "unfinished", or "".

        "all solved": the largest value was solved, so the capacity is at least that. "capped": the value that bounds it
        was not solved within the budget, so it may be larger. "broken": its runs could not all be made. "unfinished":
        a budget ended the search before the value above it was tried.
        """
        if self.capacity == self.values[-1]:
            return "all solved"
        above = self.values[0] if self.capacity is None else self.values[self.values.index(self.capacity) + 1]
        if self.bound is None or self.bound.value != above:
            return "unfinished"
        return self.bound.verdict if self.bound.verdict in ("capped", "broken") else ""

    @property
    def span(self) -> tuple[float, float]:
        """The least and the most that the capacity can be with runs of this many iterations; -1 for no value at all.

        What more time, but no more iterations, could find out is not known. What is harder than an unsolved value is
        taken for unsolved too, as the search does; without such a value the most is infinite.
        """
        least = -1.0 if self.capacity is None else float(self.capacity)
        unsolved = min((each.value for each in self._unsolved if each.value > least), default=None)
        if unsolved is None:
            return least, inf
        place = self.values.index(unsolved)
        return least, float(self.values[place - 1]) if place else -1.0

    @property
    def _unsolved(self) -> list[Try]:
        """Those that all their iterations have not solved."""
        return [each for each in self.tries if each.verdict in ("failed", "capped") and not each.out_of_time]

    @property
    def exceptions(self) -> list[int]:
        """Values that were not solved though a harder one was: a network's noise, which bisection takes for none.

        What could not be run, or ran out of time, is none of them: nobody knows whether it is solved.
        """
        return [each.value for each in self._unsolved if self.capacity is not None and each.value < self.capacity]

    def describe(self) -> dict[str, Any]:
        """All of it, as JSON can hold it, with what follows from it."""
        return {
            "depth": self.depth,
            "width": self.width,
            "size": self.size,
            "parameters": self.parameters,
            "thesis_parameters": self.thesis_parameters,
            "capacity": self.capacity,
            "censored": self.censored,
            "exceptions": self.exceptions,
            "seconds": round(self.seconds, 3),
            "ended": self.ended,
            "values": list(self.values),
            "tries": [each.describe() for each in self.tries],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any], above: float) -> NetworkCapacity:
        """The network that was described.

        Args:
            document: what :meth:`describe` gave.
            above: the test accuracy that counts as solved.
        """
        plain = ("depth", "width", "size", "parameters", "thesis_parameters", "seconds", "ended")
        return cls(
            **{name: document[name] for name in plain},
            values=tuple(document["values"]),
            tries=tuple(Try.of(each, above) for each in document["tries"]),
        )
