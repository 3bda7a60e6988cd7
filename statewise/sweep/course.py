"""One network's part in a search: what was tried, what is under way, what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statewise.memory.budget import orthogonal_parameters
from statewise.memory.telling import counted
from statewise.sweep.capacity_search import CapacitySearch, Network
from statewise.sweep.folders import folder_name, reopen
from statewise.sweep.network_capacity import NetworkCapacity
from statewise.sweep.seat import read_outcome
from statewise.sweep.trial import Failure, Outcome, Trial
from statewise.sweep.tries import Run, Try
from statewise.sweep.work import Result

#: Which budget of time has ended the search for a network, or that it could not begin.
OF_THE_SEARCH, OF_A_NETWORK, NO_RATES = "seconds of the search", "seconds a network", "no rates were found for it"


class Course:
    """The search for the capacity of one network.

    Args:
        search: that it is a part of.
        network: whose capacity.
        runs: where the folders of the runs are.
        without: why no rates were found for it, so that it cannot be trained; empty if it can.
    """

    def __init__(self, search: CapacitySearch, network: Network, runs: Path, without: str = "") -> None:
        self.search, self.network, self.runs = search, network, runs
        self.tries: dict[int, Try] = {}
        self.doubtful: dict[int, Try] = {}  # of an earlier process; to be tried again if there is time
        self.spent = 0.0
        self.without, self.ended = without, f"{NO_RATES}: {without}" if without else ""
        self.waiting: dict[int, dict[Trial, Outcome | Failure | None]] = {}

    @property
    def seconds_left(self) -> float | None:
        """Of this network's budget; None if it has none."""
        limit = self.search.network_seconds
        return None if limit is None else max(0.0, limit - self.spent)

    def begin_next(self, *, late: bool) -> list[Trial]:
        """The trials of the values that come next; none if the search of this network is over.

        Args:
            late: whether the time of the whole search is up.
        """
        if self.without:
            return []
        out_of_time = late or self.seconds_left == 0
        if out_of_time:
            self.tries, self.doubtful = {**self.doubtful, **self.tries}, {}
        solved = {value: each.verdict == "solved" for value, each in self.tries.items()}
        values = self.search.strategy.next_values(self.search.values, solved)
        if not values:
            return []
        if out_of_time:
            self.ended = OF_THE_SEARCH if late else OF_A_NETWORK
            return []
        self.waiting = {value: dict.fromkeys(self.search.trials(self.network, value)) for value in values}
        for trials in self.waiting.values():
            self._reopen([self.runs / folder_name(trial) for trial in trials])
        return [trial for trials in self.waiting.values() for trial in trials]

    def _reopen(self, folders: list[Path]) -> None:
        """Let runs go on that an earlier process stopped for want of time, not because others had solved the value."""
        outcomes = [outcome for folder in folders if (outcome := read_outcome(folder)) is not None]
        if not any(outcome.accuracy > self.search.above for outcome in outcomes):
            for folder in folders:
                reopen(folder)

    def take(self, result: Result) -> Try | None:
        """Take in what became of a trial; gives the value that it completes, if it does.

        Args:
            result: of a trial of this network.
        """
        self.spent += result.seconds
        value, outcomes = next((value, each) for value, each in self.waiting.items() if result.trial in each)
        outcomes[result.trial] = result.outcome
        ended = {trial: outcome for trial, outcome in outcomes.items() if outcome is not None}
        if len(ended) < len(outcomes):
            return None
        del self.waiting[value]
        runs = tuple(
            Run(
                lr=trial.lr,
                lr_recurrent=trial.recurrent_rate,
                seed=trial.seed,
                folder=folder_name(trial),
                outcome=outcome,
            )
            for trial, outcome in ended.items()
        )
        self.tries[value] = Try(value=value, runs=runs, above=self.search.above)
        return self.tries[value]

    def found(self) -> NetworkCapacity:
        """What is known by now."""
        task, network = self.search.hardest, self.network
        sizes = {"depth": network.depth, "width": network.width, "inputs": task.inputs, "classes": task.classes}
        return NetworkCapacity(
            depth=network.depth,
            width=network.width,
            size=network.size,
            parameters=orthogonal_parameters(**sizes, count="true"),
            thesis_parameters=orthogonal_parameters(**sizes, count="thesis"),
            values=self.search.values,
            tries=self._all_tries(),
            seconds=self.spent,
            ended=self.ended,
        )

    def told(self, found: Try) -> str:
        """A line on a value that is known now.

        Args:
            found: the value.
        """
        share = f"{found.solved} of {counted(len(found.runs), 'run')}"
        numbers = f"best {found.best:.4f}  median {found.median:.4f}  {self.spent:>7.0f} s"
        return f"{self._line(found.value, found.verdict, share)}  {numbers}"

    def told_begun(self) -> list[str]:
        """A line on each value that is under way, in the columns of :meth:`told`."""
        return [self._line(value, "begun", counted(len(runs), "run")) for value, runs in self.waiting.items()]

    def _line(self, value: int, word: str, runs: str) -> str:
        """What lines on a value have in common."""
        name = f"depth {self.network.depth}  {counted(self.network.width, 'channel'):>13}"
        return f"{name}  {value:>6}  {word:<7}{runs:>14}"

    def describe(self) -> dict[str, Any]:
        """What a search that goes on must know, as JSON can hold it."""
        tries = [each.describe() for each in self._all_tries()]
        return {**self.network.describe(), "spent": self.spent, "tries": tries}

    def _all_tries(self) -> tuple[Try, ...]:
        return tuple(each for _, each in sorted({**self.doubtful, **self.tries}.items()))

    def recall(self, document: Mapping[str, Any]) -> None:
        """Take over what an earlier process has found out.

        What could not be run is tried again, and what was cut short by the clock, if there is time.

        Args:
            document: what :meth:`describe` gave there.
        """
        if (document["depth"], document["width"]) != (self.network.depth, self.network.width):
            raise ValueError(f"another network: depth {document['depth']}, {document['width']} channels")
        self.spent = float(document["spent"])
        for each in (Try.of(found, self.search.above) for found in document["tries"]):
            if type(each.value) is not int or each.value not in self.search.values:
                raise ValueError(f"a try at {each.value!r}, which is none of the values")
            kept = self.doubtful if each.verdict == "broken" or each.out_of_time else self.tries
            kept[each.value] = each
