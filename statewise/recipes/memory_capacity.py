"""Figures 3.1 and 3.2 of Ziv 2019: how hard a task networks of one, two and three layers solve at equal sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from statewise.data.copying_memory import CopyingMemory
from statewise.data.memory_task import MemoryTask
from statewise.data.similarity import StartEndSimilarity
from statewise.memory.budget import width_within
from statewise.memory.telling import listed
from statewise.recipes.capacity_order import order
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.replica_studies import Place, ReplicaStudy
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, StudyCase, verdicts
from statewise.sweep.bisection import Strategy
from statewise.sweep.capacity import search_capacity
from statewise.sweep.capacity_search import CapacitySearch, Network
from statewise.sweep.capacity_table import COLUMNS, capacity_row, network_notes
from statewise.sweep.executors import ReplicaExecutor
from statewise.sweep.network_capacity import NetworkCapacity
from statewise.sweep.trial import Trial

#: The values of the thesis: delays; bits, five a symbol; lengths.
DELAYS = (*range(0, 1001, 50), *range(1100, 1501, 100))
BITS = tuple(range(150, 1001, 25))
LENGTHS = tuple(range(60, 1501, 30))
ROWS = ("depth1", "depth2", "depth3")


@dataclass(frozen=True, kw_only=True)
class CapacitySettings:
    """The search for the capacity of one network, within a budget that is not the thesis'.

    The thesis trains up to 200,000 iterations at every value, with the best of several rates between 1e-5 and 1e-3:
    ``--set iterations=200000,network_seconds=0,method=ascending,low_rate=1e-4,high_rate=1e-3``.

    Args:
        depth: layers.
        budget: of parameters; the width is the largest within it.
        iterations: of a run, at most.
        check_every: iterations from one look to the next.
        patience: looks without an improvement that are put up with.
        low_rate: a learning rate.
        high_rate: another; one of the two must do.
        goal: accuracy on held-out examples at which a run ends.
        method: in which order values are tried.
        network_seconds: of the search for one network; 0 for no limit.
        batch: sequences of an iteration.
        validate: held-out examples of a look.
        test: held-out examples at the end.
        largest: the hardest value that is tried.
        seeds: how many runs of each rate.
        seed: of the first.
    """

    depth: int = 1
    budget: int = 2**13
    iterations: int = 12_000
    check_every: int = 500
    patience: int = 10
    low_rate: float = 1e-3
    high_rate: float = 2e-3
    goal: float = 0.993
    method: str = "galloping"
    network_seconds: float = 600.0
    batch: int = 128
    validate: int = 1024
    test: int = 10_000
    largest: int = 1500
    seeds: int = 3
    seed: int = 0

    def network(self, task: MemoryTask) -> Network:
        """The widest within the budget.

        Args:
            task: what it learns.
        """
        sizes: dict[str, Any] = {"inputs": task.inputs, "classes": task.classes, "depth": self.depth}
        return Network(depth=self.depth, width=width_within(budget=self.budget, **sizes), size=self.budget)

    def search(self, task: MemoryTask, values: Sequence[int]) -> CapacitySearch:
        """The whole search.

        Args:
            task: what is to be learnt.
            values: of its hardness.
        """
        like = Trial(
            task=task,
            depth=1,
            width=1,
            seed=self.seed,
            batch=self.batch,
            iterations=self.iterations,
            check_every=self.check_every,
            patience=self.patience,
            validate=self.validate,
            test=self.test,
            goal=self.goal,
        )
        return CapacitySearch(
            like=like,
            values=tuple(value for value in values if value <= self.largest),
            networks=(self.network(task.harder(values[-1])),),
            rates=tuple(sorted({self.low_rate, self.high_rate})),
            seeds=self.seeds,
            strategy=Strategy(method=self.method, verify_above=0),
            enough=1,
            network_seconds=self.network_seconds or None,
        )


class CapacityFigure(ReplicaStudy):
    """One of the figures: a point is the search for the capacity of one network."""

    rows = ROWS
    usual_rows = ROWS
    usual_seeds = 3
    seconds = CapacitySettings.network_seconds  # that it may take; small networks on an accelerator take half of it

    def __init__(
        self, name: str, title: str, task: MemoryTask, values: tuple[int, ...], sizes: tuple[int, ...], measure: str
    ) -> None:
        self.name, self.title, self.task, self.values, self.measure = name, title, task, values, measure
        self.sizes = tuple(map(str, sizes))

    def settings(self, line: Line, *, smoke: bool) -> CapacitySettings:
        told: dict[str, Any] = {"depth": int(line.row.removeprefix("depth")), "budget": int(line.size)}
        if not self.task.every_step:
            told |= {"goal": 0.995, "validate": 4096}  # an answer a sequence: fewer would say too little
        if not smoke:
            return CapacitySettings(**told)
        small: dict[str, Any] = {"iterations": 4, "check_every": 2, "validate": 8, "test": 8, "batch": 4}
        return CapacitySettings(**{**told, "budget": 600, **small}, largest=self.values[1])

    def compute(self, case: StudyCase, data: Place) -> Computed:
        settings: CapacitySettings = case.settings
        place = partial(ReplicaExecutor, device=data.device, replicas=2 * settings.seeds)
        search = settings.search(self.task, self.values)
        told = data.console
        folder = data.folder / case.name / f"search-{settings.seeds}-seeds"
        result = search_capacity(search, folder, executor=place, resume=True, console=told)
        found = result.networks[0].describe()
        broken = any(each.verdict == "broken" for each in result.networks[0].tries)
        # A line has a size and seconds of its own; a search that went on has more seconds than its last go.
        found["budget"], found["search_seconds"] = found.pop("size"), found.pop("seconds")
        return Computed(found=found, final=not broken)

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["size", *COLUMNS]
        rows = [[one.line.size, *capacity_row(network_of(one))] for one in measured]
        return Sheet(columns, rows, 2)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            f"What is looked for: the largest {self.measure} at which some run has a test accuracy above 0.99 "
            f"(10,000 examples). {self._told(measured)} The thesis prints a plot, no numbers; it trains up to 200,000 "
            "iterations at every value with the best of several rates from 1e-5 to 1e-3. So a capacity here is what a "
            "network learns within this budget, not all that it could learn.",
            *(note for one in measured for note in network_notes(network_of(one))),
            *verdicts(self._order(measured)),
        ]

    def _order(self, measured: Sequence[Studied]) -> list[tuple[str, bool | None]]:
        """Whether deeper networks solve harder tasks, size by size; of a smoke run nothing is said."""
        by_size: dict[str, list[NetworkCapacity]] = {}
        for one in measured:
            if not one.smoke:
                by_size.setdefault(one.line.size, []).append(network_of(one))
        return [
            (f"{size} parameters: {told}", holds)
            for size, networks in by_size.items()
            for told, holds in order(networks)
        ]

    def _told(self, measured: Sequence[Studied]) -> str:
        tries = [each for one in measured for each in network_of(one).tries]
        runs, rates = {len(each.runs) for each in tries}, {run.lr for each in tries for run in each.runs}
        spent = [outcome.iterations for each in tries for outcome in each.outcomes]
        told = f"Runs at each value: {', '.join(map(str, sorted(runs)))}, with rates of {listed(sorted(rates))}"
        return f"{told} and at most {max(spent, default=0):,} iterations; all end as soon as one has solved it."


def network_of(one: Studied) -> NetworkCapacity:
    """What was found out about a network.

    Args:
        one: finished.
    """
    # Before there were "search_seconds" they had the name that a line gives to its own.
    own = {"size": one.found["budget"], "seconds": one.found.get("search_seconds", one.found.get("seconds"))}
    return NetworkCapacity.of({**one.found, **own}, 0.99)


_COPYING: dict[str, Any] = {"m": 30, "n": 32, "delay": 0}
_SIZES: Mapping[str, tuple[int, ...]] = {
    "copying": (2**13, 2**14, 2**15, 2**16),
    "similarity": (2**14, 2**15, 2**16, 2**17),
}
RECIPES: tuple[Any, ...] = (
    CapacityFigure(
        "depth-memory/figure3.1-delay",
        "The longest delay of copying memory that networks bridge (150 bits)",
        CopyingMemory(**_COPYING),
        DELAYS,
        _SIZES["copying"],
        "delay",
    ),
    CapacityFigure(
        "depth-memory/figure3.1-bits",
        "The most bits of copying memory that networks repeat, without a delay",
        CopyingMemory(**_COPYING, scale="bits"),
        BITS,
        _SIZES["copying"],
        "number of bits",
    ),
    CapacityFigure(
        "depth-memory/figure3.2",
        "The longest sequences whose halves networks compare (start-end similarity, 150 bits)",
        StartEndSimilarity(length=60, m=30, n=32),
        LENGTHS,
        _SIZES["similarity"],
        "length",
    ),
)
