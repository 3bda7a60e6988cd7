"""Many trials, somewhere: what all places have in common, and the place that is this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from rich.console import Console

from statewise.errors import ArgumentError
from statewise.sweep.folders import folder_name
from statewise.sweep.replicas import train_replicas
from statewise.sweep.trial import Failure, Outcome, Trial
from statewise.sweep.work import Report, Result, Trainer, Unit, by_shape, perform


class Executor(ABC):
    """A place that trains trials and tells what became of each as soon as that is known.

    Trials of one shape are trained side by side. If such a group fails, each of its trials is tried once more by
    itself, so that a bad one does not take the others along; one that fails again becomes a
    :class:`~statewise.sweep.trial.Failure`. What is on disk is never lost: the same trials in the same folder go on
    where they were, and finished ones are read.

    Args:
        folder: where the runs go, each in a folder named by :func:`~statewise.sweep.folders.folder_name`.
        device: where to compute.
        replicas: how many trials are trained side by side at most.
        train: what trains them; for workers elsewhere it must be a function of a module.
        console: where to tell of the progress within a run; None for silence.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        device: torch.device | str = "cpu",
        replicas: int = 16,
        train: Trainer = train_replicas,
        console: Console | None = None,
    ) -> None:
        if replicas < 1:
            raise ArgumentError(where=f"{type(self).__name__}.replicas", got=replicas, wanted="an integer >= 1")
        self.folder, self.device, self.replicas = Path(folder).absolute(), torch.device(device), replicas
        self.train, self.console = train, console
        self._waiting: deque[Unit] = deque()
        self._under_way: set[Trial] = set()
        self._told: deque[Result] = deque()  # known, and not yet asked for: who listens may leave at any time

    def submit(
        self,
        trials: Iterable[Trial],
        *,
        enough: int | None = None,
        above: float = 0.99,
        seconds: float | None = None,
        deadline: float | None = None,
    ) -> None:
        """Ask for trials; :meth:`results` trains them. A trial that is asked for already is not asked for twice.

        Args:
            trials: in order of importance.
            enough: as soon as so many trials of a shape have a test accuracy above ``above``, the others of this shape
                end. Trials of a shape then stay together.
            above: what counts as solved.
            seconds: of computing that they may take all together.
            deadline: when they must end, in seconds since the epoch.
        """
        fresh = [trial for trial in dict.fromkeys(trials) if trial not in self._under_way]
        if not fresh:
            return
        groups = list(by_shape(fresh, at_most=None if enough is not None else self._cut(len(fresh))))
        for group in groups:
            share = None if seconds is None else seconds * len(group) / len(fresh)
            folders = tuple(self.folder / folder_name(trial) for trial in group)
            self._waiting.append(
                Unit(trials=tuple(group), folders=folders, enough=enough, above=above, seconds=share, deadline=deadline)
            )
        self._under_way.update(fresh)

    def results(self) -> Iterator[Result]:
        """What becomes of the trials, as they end, until none is left; more may be asked for meanwhile."""
        while self._told or self._under_way:
            if not self._told:
                for unit, report in self._step(self._waiting):
                    self._told.extend(self._settle(unit, report))
            while self._told:
                yield self._told.popleft()

    def run(
        self, trials: Iterable[Trial], *, enough: int | None = None, above: float = 0.99
    ) -> Iterator[tuple[Trial, Outcome | Failure]]:
        """Train trials, and tell what became of each as they end.

        Args:
            trials: the runs.
            enough: see :meth:`submit`.
            above: what counts as solved.
        """
        self.submit(trials, enough=enough, above=above)
        for result in self.results():
            yield result.trial, result.outcome

    def close(self) -> None:
        """End what is under way; the runs stay on disk as far as they are, to go on from."""
        self._waiting.clear()
        self._under_way.clear()
        self._told.clear()

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def _step(self, waiting: deque[Unit]) -> Sequence[tuple[Unit, Report]]:
        """Begin what can be begun of what waits, taking it out; wait until something has ended, and give that."""

    def _cut(self, trials: int) -> int | None:
        """How many trials of a shape go to one worker, if so many come together."""
        return None

    def _settle(self, unit: Unit, report: Report) -> Iterator[Result]:
        each = unit.before + report.seconds / len(unit.trials)
        if report.outcomes is not None:
            for trial, outcome in zip(unit.trials, report.outcomes, strict=True):
                self._under_way.discard(trial)
                yield Result(trial, outcome, each)
        elif unit.attempt == 1:
            self._waiting.extendleft(reversed(unit.alone(report.seconds)))
        else:
            for trial in unit.trials:
                self._under_way.discard(trial)
                yield Result(trial, Failure(error=report.error), each)


class ReplicaExecutor(Executor):
    """This process: trials of a shape are trained as replicas, one shape after the other.

    All trials of a shape are handed over at once: when one ends, the next takes its place.

    >>> ReplicaExecutor("runs", replicas=4).device
    device(type='cpu')
    """

    def _step(self, waiting: deque[Unit]) -> Sequence[tuple[Unit, Report]]:
        unit = waiting.popleft()
        try:
            report = perform(unit, train=self.train, device=self.device, replicas=self.replicas, console=self.console)
        except BaseException:
            waiting.appendleft(unit)  # Ctrl-C: whoever catches it may go on
            raise
        return [(unit, report)]
