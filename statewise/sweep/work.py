"""What is handed to a worker: trials that can be trained side by side, and what came of them."""

from __future__ import annotations

import contextlib
import itertools
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from rich.console import Console

from statewise.errors import ArgumentError, RunInUseError
from statewise.files import write_atomically
from statewise.sweep.folders import error_file
from statewise.sweep.trial import Failure, Outcome, Shape, Trial

#: Seconds for which a run that another process still holds is waited for: a worker whose master was killed takes a
#: moment to end.
_PATIENCE = 30.0


@runtime_checkable
class Trainer(Protocol):
    """What trains trials of one shape side by side, each in its folder, and goes on where a folder holds a part."""

    def __call__(
        self,
        trials: Sequence[Trial],
        folders: Sequence[Path],
        *,
        device: torch.device,
        replicas: int = 16,
        enough: int | None = None,
        above: float = 0.99,
        until: float | None = None,
        console: Console | None = None,
    ) -> list[Outcome]:
        """The outcomes, in the order of the trials."""
        ...


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Trials of one shape that one worker trains.

    Args:
        trials: the runs.
        folders: one for each; absolute, since workers may have another working directory.
        enough: as soon as so many have a test accuracy above ``above``, the others end.
        above: what counts as solved.
        seconds: how long it may take, from its beginning.
        deadline: when it must end, in seconds since the epoch: workers on other machines have no clock in common but
            this one.
        attempt: 1, or 2 if it is tried again.
        before: seconds that an attempt before this one has cost each trial.
    """

    trials: tuple[Trial, ...]
    folders: tuple[Path, ...]
    enough: int | None = None
    above: float = 0.99
    seconds: float | None = None
    deadline: float | None = None
    attempt: int = 1
    before: float = 0.0

    def alone(self, spent: float) -> list[Unit]:
        """Its trials, each as a unit of its own, for another attempt.

        Args:
            spent: seconds that this attempt has cost.
        """
        each = self.before + spent / len(self.trials)
        left = None if self.seconds is None else max(0.0, self.seconds - spent) / len(self.trials)
        return [
            replace(self, trials=(trial,), folders=(folder,), attempt=self.attempt + 1, before=each, seconds=left)
            for trial, folder in zip(self.trials, self.folders, strict=True)
        ]


class Report(NamedTuple):
    """What a worker says of a unit: the outcomes, or what went wrong; and how many seconds it took."""

    outcomes: tuple[Outcome, ...] | None
    error: str
    seconds: float


class Result(NamedTuple):
    """What became of one trial, and how many seconds of a worker it took: its share of those of its unit."""

    trial: Trial
    outcome: Outcome | Failure
    seconds: float


def by_shape(trials: Sequence[Trial], *, at_most: int | None = None) -> Iterator[list[Trial]]:
    """Trials grouped by their shape, in the order in which shapes first occur, and cut into groups of similar size.

    Args:
        trials: in any order.
        at_most: how many a group has; None does not cut.

    >>> from statewise.data.copying_memory import CopyingMemory
    >>> like = Trial(task=CopyingMemory(m=5, n=8, delay=10), depth=1, width=8)
    >>> trials = [replace(like, width=8 + seed % 2, seed=seed) for seed in range(8)]
    >>> [[trial.seed for trial in group] for group in by_shape(trials, at_most=3)]
    [[0, 2], [4, 6], [1, 3], [5, 7]]
    """
    if at_most is not None and at_most < 1:
        raise ArgumentError(where="by_shape.at_most", got=at_most, wanted="an integer >= 1, or None")
    groups: dict[Shape, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.shape, []).append(trial)
    for group in groups.values():
        parts = 1 if at_most is None else -(-len(group) // at_most)
        bounds = [len(group) * part // parts for part in range(parts + 1)]
        for begin, end in itertools.pairwise(bounds):
            yield group[begin:end]


def perform(
    unit: Unit, *, train: Trainer, device: torch.device, replicas: int, console: Console | None = None
) -> Report:
    """Train a unit; an error becomes a report, and its traceback a file beside the folders of the runs.

    Args:
        unit: what to train.
        train: how.
        device: where to compute.
        replicas: how many at once.
        console: where to tell of the progress.
    """
    began = time.monotonic()
    limits = [] if unit.seconds is None else [unit.seconds]
    limits += [] if unit.deadline is None else [unit.deadline - time.time()]
    until = began + min(limits) if limits else None
    try:
        outcomes = tuple(_patiently(unit, train, device=device, replicas=replicas, until=until, console=console))
        if len(outcomes) != len(unit.trials):
            raise ArgumentError(where="train", got=f"{len(outcomes)} outcomes", wanted=f"{len(unit.trials)}")
    except Exception as error:
        _keep(traceback.format_exc(), unit.folders)
        return Report(None, in_words(error), time.monotonic() - began)
    for folder in unit.folders:
        error_file(folder).unlink(missing_ok=True)
    return Report(outcomes, "", time.monotonic() - began)


def _patiently(
    unit: Unit,
    train: Trainer,
    *,
    device: torch.device,
    replicas: int,
    until: float | None,
    console: Console | None,
) -> list[Outcome]:
    """Train; if another process still holds a run, wait a while for it."""
    enough_waiting = time.monotonic() + _PATIENCE
    pause = 0.05
    while True:
        try:
            return train(
                unit.trials,
                unit.folders,
                device=device,
                replicas=replicas,
                enough=unit.enough,
                above=unit.above,
                until=until,
                console=console,
            )
        except RunInUseError:
            if time.monotonic() + pause > enough_waiting:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def in_words(error: BaseException) -> str:
    """The kind of an error and what it says, on one line.

    >>> in_words(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    >>> in_words(MemoryError())
    'MemoryError'
    """
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _keep(trace: str, folders: Sequence[Path]) -> None:
    for folder in folders:
        # A full disk may be what went wrong.
        with contextlib.suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(error_file(folder), trace)
