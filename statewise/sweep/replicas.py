"""Trials of one shape trained side by side; a finished one makes room for one that waits."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.data.memory_task import MemoryTask, SequenceTask
from statewise.errors import ArgumentError
from statewise.sweep.pixels import PermutedImages, PixelTask
from statewise.sweep.pool import Pool
from statewise.sweep.seat import Seat, read_outcome
from statewise.sweep.sources import FreshExamples, Source
from statewise.sweep.trial import Outcome, Trial
from statewise.train.precision import precisely
from statewise.train.telling import say


def train_replicas(
    trials: Sequence[Trial],
    folders: Sequence[Path],
    *,
    device: torch.device,
    replicas: int = 16,
    enough: int | None = None,
    above: float = 0.99,
    until: float | None = None,
    data: Any = None,
    console: Console | None = None,
) -> list[Outcome]:
    """Train trials of one shape side by side, each in the folder of its own run.

    A run depends on its trial alone, whatever it shares the device with, up to rounding. Runs that are finished are
    read; runs that were killed go on.

    Args:
        trials: that have one ``shape``; the fields that are not in it may differ.
        folders: one for each.
        device: where to compute; on a CUDA device an iteration of all is one launch of a graph.
        replicas: how many are trained at once; others wait.
        enough: as soon as so many have a test accuracy above ``above``, all others end; None for never.
        above: see there.
        until: when all end, as ``time.monotonic()`` counts; None for never.
        data: what the task itself does not hold, e.g. images.
        console: where to tell of finished runs; None for silence.

    Returns:
        What became of each.
    """
    if not trials:
        return []
    _check(trials, folders, replicas)
    with precisely(trials[0].precision, device):
        return _Crew(trials, folders, device, replicas, enough, above, until, data, console).work()


class _Crew:
    """Who sits at which slot of the pool, and what to do at a look."""

    def __init__(
        self,
        trials: Sequence[Trial],
        folders: Sequence[Path],
        device: torch.device,
        replicas: int,
        enough: int | None,
        above: float,
        until: float | None,
        data: Any,
        console: Console | None,
    ) -> None:
        self.trials, self.folders, self.device, self.replicas = trials, folders, device, replicas
        self.enough, self.above, self.until, self.console = enough, above, until, console
        self.shape = trials[0].shape
        self.source = _source_of(self.shape.task, self.shape.batch, device, data)
        self.outcomes = {place: found for place in range(len(trials)) if (found := read_outcome(folders[place]))}
        self.waiting = [place for place in range(len(trials)) if place not in self.outcomes]
        self.seats: dict[int, tuple[int, Seat]] = {}  # by slot: which trial, and its seat
        self.pool: Pool | None = None
        self.over = False  # no more iterations, of nobody

    def work(self) -> list[Outcome]:
        try:
            if not self._stop_if_enough() and self._late:  # an earlier process may have been killed just before
                self._stop()
            while self.waiting or self.seats:
                pool = self._seated()
                if self.over:
                    self._stop()
                    self._dismiss(pool)
                else:
                    self._train(pool)
        finally:
            # A run that is left here goes on from what was written last.
            for _, seat in self.seats.values():
                with suppress(OSError):
                    seat.leave()
        return [self.outcomes[place] for place in range(len(self.trials))]

    def _train(self, pool: Pool) -> None:
        ahead = min(seat.due for _, seat in self.seats.values())
        pool.advance(ahead)
        for _, seat in self.seats.values():
            seat.iterations += ahead
        self._look(pool)

    def _seated(self) -> Pool:
        """The pool with as many at work as there is room for, and without many empty slots."""
        wanted = min(self.replicas, len(self.seats) + len(self.waiting))
        pool = self.pool
        # On a CUDA device a smaller pool is another graph, which must pay for itself.
        worth = 0 if self.device.type != "cuda" else wanted
        if pool is None or pool.slots - wanted > worth or pool.slots < wanted:
            pool = self._moved(wanted)
        for slot in range(pool.slots):
            if slot not in self.seats and self.waiting:
                place = self.waiting.pop(0)
                seat = Seat(self.trials[place], self.folders[place])
                self.seats[slot] = (place, seat)
                pool.put(slot, seat.state, seed=seat.trial.seed, iterations=seat.iterations)
                pool.set_rates(slot, *seat.rates)
        return pool

    def _moved(self, slots: int) -> Pool:
        old, sitting = self.pool, list(self.seats.items())
        self.pool = pool = Pool(self.shape, slots, self.source, self.device)
        self.seats = {}
        for slot, (before, (place, seat)) in enumerate(sitting):
            assert old is not None
            pool.put(slot, old.take(before), seed=seat.trial.seed, iterations=seat.iterations)
            pool.set_rates(slot, *seat.rates)
            self.seats[slot] = (place, seat)
        return pool

    def _look(self, pool: Pool) -> None:
        late = self._late
        due = {
            slot: seat
            for slot, (_, seat) in self.seats.items()
            if seat.iterations % seat.trial.check_every == 0 or seat.iterations >= seat.trial.iterations
        }
        if due:
            look, deviations = pool.look("valid", self.shape.validate), pool.orthogonality()
            for slot, seat in due.items():
                seat.observe(look.losses[slot], look.accuracies[slot], deviations[slot], pool.take(slot))
                pool.set_rates(slot, *seat.rates)
        if late:
            self._stop()
        self._dismiss(pool)
        if not self.over and self._stop_if_enough():
            self._dismiss(pool)

    @property
    def _late(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until

    def _stop_if_enough(self) -> bool:
        solved = sum(outcome.accuracy > self.above for outcome in self.outcomes.values())
        enough = self.enough is not None and solved >= self.enough
        if enough:
            self._stop()
        return enough

    def _stop(self) -> None:
        """Let all end; of those that wait only they stay that have weights of an earlier process to be tested."""
        self.over = True
        for _, seat in self.seats.values():
            seat.reason = seat.reason or "stopped"
        waiting, self.waiting = self.waiting, []
        for place in waiting:
            seat = Seat(self.trials[place], self.folders[place])
            if seat.best is None:
                seat.reason = "stopped"
                self.outcomes[place] = seat.finish(0.0, 0.0, 0.0)
            else:
                seat.leave()
                self.waiting.append(place)

    def _dismiss(self, pool: Pool) -> None:
        """Test the best weights of all that are over, and free their slots."""
        over = {slot: pair for slot, pair in self.seats.items() if pair[1].reason is not None}
        if not over:
            return
        for slot, (_, seat) in over.items():
            if seat.reason == "stopped":
                seat.save(pool.take(slot))  # from where it can go on if it is wanted after all
            if seat.best is not None:
                pool.networks.put(slot, seat.best)
        tested = pool.look("test", self.shape.test)
        deviations, entries = pool.orthogonality(), pool.largest_entries()
        for slot, (place, seat) in over.items():
            accuracy = 0.0 if seat.best is None else tested.accuracies[slot]
            told = (each if math.isfinite(each) else math.inf for each in (deviations[slot], entries[slot]))
            self.outcomes[place] = outcome = seat.finish(accuracy, *told)
            del self.seats[slot]
            say(
                self.console,
                f"{seat.folder.path.name}: accuracy {accuracy:.4f} after {outcome.iterations} iterations "
                f"({outcome.reason}), {outcome.seconds:.0f} s",
            )


def _check(trials: Sequence[Trial], folders: Sequence[Path], replicas: int) -> None:
    if len(trials) != len(folders):
        raise ArgumentError(
            where="train_replicas.folders",
            got=f"{len(folders)} folders",
            wanted=f"one for each of {len(trials)} trials",
        )
    if len({Path(folder) for folder in folders}) < len(folders):
        raise ArgumentError(
            where="train_replicas.folders", got="a folder twice", wanted="one of its own for each trial"
        )
    if replicas < 1:
        raise ArgumentError(where="train_replicas.replicas", got=replicas, wanted="an integer >= 1")
    shapes = {trial.shape for trial in trials}
    if len(shapes) > 1:
        raise ArgumentError(
            where="train_replicas.trials",
            got=f"{len(shapes)} shapes",
            wanted="one",
            remedy="Group the trials by trial.shape, and train each group for itself.",
        )


def _source_of(task: SequenceTask, batch: int, device: torch.device, data: Any = None) -> Source:
    """The source of a task's examples.

    Args:
        task: what is learnt.
        batch: sequences of an iteration.
        device: where the examples are wanted.
        data: what the task itself does not hold, e.g. images.
    """
    if isinstance(task, PixelTask):
        return PermutedImages(task, batch, device, data)
    if isinstance(task, MemoryTask):
        return FreshExamples(task, batch, device)
    raise ArgumentError(where="train_replicas.task", got=type(task).__name__, wanted="a MemoryTask or a PixelTask")
