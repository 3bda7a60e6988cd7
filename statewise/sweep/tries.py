"""A value of the hardness that a network was tried at, and its runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from statewise.sweep.trial import Failure, Outcome

#: What became of a value: solved; every run ended by itself without solving it; a run was cut short, by a budget or by
#: its goal; a run could not be made.
VERDICTS = ("solved", "failed", "capped", "broken")
#: Reasons of runs that might have come further. What reached its goal on the examples of the looks may miss it on those
#: of the test.
_CUT_SHORT = ("iterations", "stopped", "solved")
_Z95 = 1.959963984540054


def wilson(solved: int, runs: int, *, unknown: int = 0) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score (Wilson 1927); 0 to 1 if there is nothing to go by.

    Args:
        solved: how many were.
        runs: of how many.
        unknown: how many of these were ended early, so that nobody knows: the interval allows for both.

    >>> [round(end, 3) for end in wilson(3, 6)]
    [0.188, 0.812]
    >>> [round(end, 3) for end in wilson(1, 6, unknown=5)]
    [0.03, 1.0]
    """
    return _end(solved, runs, -1.0), _end(solved + unknown, runs, 1.0)


def _end(solved: int, runs: int, sign: float) -> float:
    if not runs:
        return 0.5 + sign / 2
    share, square = solved / runs, _Z95**2
    spread = _Z95 * math.sqrt(share * (1 - share) / runs + square / (4 * runs**2))
    return min(1.0, max(0.0, (share + square / (2 * runs) + sign * spread) / (1 + square / runs)))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run at one value.

    Args:
        lr: its rate.
        lr_recurrent: that of the orthogonal matrices.
        seed: its seed.
        folder: the name of its folder.
        outcome: what became of it.
    """

    lr: float
    lr_recurrent: float
    seed: int
    folder: str
    outcome: Outcome | Failure

    def describe(self) -> dict[str, Any]:
        """The run as JSON can hold it."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Run:
        """The run that was described.

        Args:
            document: what :meth:`describe` gave.
        """
        found = document["outcome"]
        outcome = Failure(**found) if "error" in found else Outcome(**{**found, **_numbers(found)})
        read = cls(**{**document, "outcome": outcome})
        if not all(isinstance(number, int | float) for number in (read.lr, read.lr_recurrent, read.seed)):
            raise TypeError("rates or a seed that are no numbers")
        return read


@dataclass(frozen=True, kw_only=True)
class Try:
    """A value of the hardness that a network was tried at.

    Args:
        value: the hardness.
        runs: rates times seeds.
        above: the test accuracy that counts as solved.
    """

    value: int
    runs: tuple[Run, ...]
    above: float = 0.99

    @property
    def outcomes(self) -> list[Outcome]:
        """Those of the runs that could be made."""
        return [run.outcome for run in self.runs if isinstance(run.outcome, Outcome)]

    @property
    def solved(self) -> int:
        """How many runs have solved it."""
        return sum(outcome.accuracy > self.above for outcome in self.outcomes)

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``."""
        if self.solved:
            return "solved"
        if len(self.outcomes) < len(self.runs):
            return "broken"
        return "capped" if any(outcome.reason in _CUT_SHORT for outcome in self.outcomes) else "failed"

    @property
    def out_of_time(self) -> bool:
        """Whether it is unsolved, and a run was stopped by the clock: more time could solve it."""
        return self.verdict == "capped" and any(outcome.reason == "stopped" for outcome in self.outcomes)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of runs that solve it; those that were stopped early could have."""
        early = sum(outcome.reason == "stopped" and outcome.accuracy <= self.above for outcome in self.outcomes)
        return wilson(self.solved, len(self.outcomes), unknown=early)

    @property
    def best(self) -> float:
        """The best test accuracy, as the thesis reports it; 0 if no run could be made."""
        return max((outcome.accuracy for outcome in self.outcomes), default=0.0)

    @property
    def median(self) -> float:
        """The median test accuracy; 0 if no run could be made."""
        return statistics.median([outcome.accuracy for outcome in self.outcomes] or [0.0])

    def describe(self) -> dict[str, Any]:
        """The value and all its runs, as JSON can hold them, with what follows from them."""
        return {
            "value": self.value,
            "verdict": self.verdict,
            "solved": self.solved,
            "interval": list(self.interval),
            "best": self.best,
            "median": self.median,
            "runs": [run.describe() for run in self.runs],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any], above: float) -> Try:
        """The try that was described.

        Args:
            document: what :meth:`describe` gave.
            above: the test accuracy that counts as solved.
        """
        return cls(value=document["value"], runs=tuple(map(Run.of, document["runs"])), above=above)


def _numbers(document: Mapping[str, Any]) -> dict[str, float]:
    """Infinite numbers, which JSON holds as words."""
    return {name: float(value) for name, value in document.items() if value in ("inf", "-inf")}
