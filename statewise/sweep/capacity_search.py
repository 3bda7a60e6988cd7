"""What a search for capacities is told: networks, values, rates, seeds and budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from statewise.data.memory_task import MemoryTask
from statewise.errors import ArgumentError, StatewiseError
from statewise.memory.budget import width_within
from statewise.sweep.bisection import Strategy
from statewise.sweep.trial import Trial

Rate = tuple[float, float | None]
#: Runs of a value, at most: they are listed, and more than these are a slip.
_MOST_RUNS = 10_000


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network whose capacity is looked for.

    Args:
        depth: layers.
        width: channels of each.
        size: the budget of parameters that the width was chosen for; None if it was given.
        rates: its own rates (of all weights, and of the orthogonal matrices or None for the usual), such as
            :func:`~statewise.sweep.tuning.tune_rate` finds; None for those of the search.
    """

    depth: int
    width: int
    size: int | None = None
    rates: tuple[Rate, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("depth", "width"):
            if getattr(self, name) < 1:
                raise ArgumentError(where=f"Network.{name}", got=getattr(self, name), wanted="an integer >= 1")

    def describe(self) -> dict[str, Any]:
        """The network as JSON can hold it."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Network:
        """The network that was described.

        Args:
            document: what :meth:`describe` gave.
        """
        rates = document.get("rates")
        return cls(**{**document, "rates": None if rates is None else tuple((lr, own) for lr, own in rates)})


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Choose the rates of each network by :func:`~statewise.sweep.tuning.tune_rate` before its search begins.

    Args:
        trials: how many pairs of rates.
        at_once: how many are trained at a time.
        short: the part of the iterations after which the hopeless are given up.
        iterations: of a run; None for a tenth of those of the search.
        value: of the hardness; None for the easiest of the search.
    """

    trials: int = 32
    at_once: int = 8
    short: float = 0.25
    iterations: int | None = None
    value: int | None = None

    def __post_init__(self) -> None:
        for name in ("trials", "at_once", "iterations"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ArgumentError(where=f"Tuning.{name}", got=value, wanted="an integer >= 1")


def networks_within(
    task: MemoryTask, *, depths: Sequence[int], sizes: Sequence[int], count: str = "true"
) -> tuple[Network, ...]:
    """The widest network of each depth within each budget of parameters.

    Args:
        task: what is to be learnt, at its hardest.
        depths: numbers of layers.
        sizes: budgets.
        count: how parameters are counted: "true", or "thesis" as Ziv 2019 does.

    >>> from statewise.data.copying_memory import CopyingMemory
    >>> found = networks_within(CopyingMemory(m=30, n=32, delay=0), depths=(1, 2, 3), sizes=(2**13,))
    >>> [network.width for network in found]
    [76, 48, 39]
    """
    told = {"inputs": task.inputs, "classes": task.classes}
    return tuple(
        Network(depth=depth, width=width_within(budget=size, depth=depth, count=count, **told), size=size)
        for size in sizes
        for depth in depths
    )


@dataclass(frozen=True, kw_only=True)
class CapacitySearch:
    """The largest hardness at which some run of a network has a test accuracy above 0.99, to be found for each network.

    At each value that is tried, rates x seeds runs are made (Ziv 2019, section 3.1, takes the best of several rates
    and does not tell the seeds).

    Args:
        like: a trial that all are like, but for task, depth, width, rates and seed. Its task is the one that is made
            harder.
        values: of the hardness, increasing.
        networks: whose capacities are looked for.
        rates: of all weights; those of the orthogonal matrices are as ``like`` says.
        seeds: how many runs of each rate, with seeds from that of ``like``.
        strategy: which values are tried.
        enough: end all runs of a value as soon as so many have solved it; None lets all end by themselves, for the sake
            of medians and intervals.
        above: the test accuracy that counts as solved.
        tuning: choose the rates of each network first, instead of ``rates``; None for no such thing.
        network_seconds: of computing, for each network; looked at only where runs are looked at.
        seconds: of wall time, for the whole search; looked at only where runs are looked at.

    >>> from statewise.data.copying_memory import CopyingMemory
    >>> like = Trial(task=CopyingMemory(m=5, n=8, delay=0), depth=1, width=1)
    >>> search = CapacitySearch(like=like, values=(0, 10, 20), networks=(Network(depth=2, width=32),), seeds=2)
    >>> [(trial.lr, trial.seed, trial.task.delay) for trial in search.trials(search.networks[0], 20)][:3]
    [(0.0001, 0, 20), (0.0001, 1, 20), (0.0003, 0, 20)]
    """

    like: Trial
    values: tuple[int, ...]
    networks: tuple[Network, ...]
    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    seeds: int = 3
    strategy: Strategy = field(default_factory=Strategy)
    enough: int | None = None
    above: float = 0.99
    tuning: Tuning | None = None
    network_seconds: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("values", "networks", "rates"):
            entries = getattr(self, name)
            if not entries or len(set(entries)) < len(entries):
                raise ArgumentError(
                    where=f"CapacitySearch.{name}", got=entries, wanted="at least one, none of them twice"
                )
        places = [(network.depth, network.width) for network in self.networks]
        if len(set(places)) < len(places):
            raise ArgumentError(where="CapacitySearch.networks", got=places, wanted="each depth and width once")
        if list(self.values) != sorted(self.values):
            raise ArgumentError(where="CapacitySearch.values", got=self.values, wanted="increasing values")
        self._check_numbers()
        self.trials(self.networks[0], self.values[0])  # a slip is told before anything is made
        for value in self.values:
            self._task(value)

    def _check_numbers(self) -> None:
        for name, least in (("seeds", 1), ("enough", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ArgumentError(where=f"CapacitySearch.{name}", got=value, wanted=f"an integer >= {least}")
        for name in ("network_seconds", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ArgumentError(where=f"CapacitySearch.{name}", got=value, wanted="a number above 0, or None")
        own = [len(network.rates) * self.seeds for network in self.networks if network.rates]
        if self.enough is not None and self.enough > max(self.runs, *own, 0):
            wanted = f"at most {self.runs}, the runs of a value"
            raise ArgumentError(where="CapacitySearch.enough", got=self.enough, wanted=wanted)
        if self.seeds * len(self.rates) > _MOST_RUNS:
            wanted = f"at most {_MOST_RUNS:,} runs of a value, rates times seeds"
            raise ArgumentError(where="CapacitySearch.seeds", got=self.seeds, wanted=wanted)
        if not 0 < self.above < 1:
            raise ArgumentError(where="CapacitySearch.above", got=self.above, wanted="an accuracy between 0 and 1")
        if self.like.goal is not None and self.like.goal < self.above:
            raise ArgumentError(
                where="CapacitySearch.like goal",
                got=self.like.goal,
                wanted=f"at least {self.above:g}, what counts as solved",
                remedy="Runs would end before they solve anything: name a higher goal, or none (--goal 0).",
            )

    @property
    def runs(self) -> int:
        """How many are made at each value of a network without rates of its own."""
        return self.seeds * (1 if self.tuning else len(self.rates))

    @property
    def hardest(self) -> MemoryTask:
        """The task at the largest value: by its sizes parameters are counted."""
        return self._task(self.values[-1])

    def trials(self, network: Network, value: int) -> list[Trial]:
        """The runs of a network at a value.

        Args:
            network: which.
            value: the hardness.
        """
        rates = network.rates or tuple((rate, self.like.lr_recurrent) for rate in self.rates)
        like = replace(self.like, task=self._task(value), depth=network.depth, width=network.width)
        return [
            replace(like, lr=lr, lr_recurrent=recurrent, seed=like.seed + seed)
            for lr, recurrent in rates
            for seed in range(self.seeds)
        ]

    def describe(self) -> dict[str, Any]:
        """The search as JSON can hold it."""
        told = {name: getattr(self, name) for name in ("seeds", "enough", "above", "network_seconds", "seconds")}
        return {
            "like": self.like.describe(),
            "values": list(self.values),
            "networks": [network.describe() for network in self.networks],
            "rates": list(self.rates),
            "strategy": asdict(self.strategy),
            "tuning": None if self.tuning is None else asdict(self.tuning),
            **told,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> CapacitySearch:
        """The search that was described.

        Args:
            document: what :meth:`describe` gave, as JSON has kept it.
        """
        try:
            parts = {
                "like": Trial.of(document["like"]),
                "values": tuple(document["values"]),
                "networks": tuple(map(Network.of, document["networks"])),
                "rates": tuple(document["rates"]),
                "strategy": Strategy(**document["strategy"]),
                "tuning": None if document["tuning"] is None else Tuning(**document["tuning"]),
            }
            return cls(**{**document, **parts})
        except StatewiseError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            got = f"no search ({type(error).__name__}: {error})"
            raise ArgumentError(where="CapacitySearch.of", got=got, wanted="what describe gives") from error

    def _task(self, value: int) -> MemoryTask:
        task = self.like.task
        if not isinstance(task, MemoryTask):
            raise ArgumentError(
                where="CapacitySearch.like", got=f"the task {task.kind}", wanted="one that can be made harder"
            )
        return task.harder(value)
