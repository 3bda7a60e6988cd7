"""The loop of a run, whatever it trains: when it writes where it is, when it obeys, and what it tells."""

from __future__ import annotations

import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from rich.console import Console
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.train.distributed import World
from statewise.train.interruption import Interruption
from statewise.train.progress import Progress
from statewise.train.run import RunFolder, system_errors
from statewise.train.stored import as_written

DECISION = 50  # updates after which several processes ask whether it is time to write
Snapshot = tuple[dict[str, Tensor], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """How often a run writes where it is; its numbers do not depend on it.

    Args:
        seconds: at least so much time lies between two resume points.
        updates: also after every so many updates; None for no such rule.

    >>> Checkpoints().seconds
    60.0
    """

    seconds: float = 60.0
    updates: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not self.seconds >= 0:
            raise ArgumentError(where="Checkpoints.seconds", got=self.seconds, wanted="a number >= 0")
        if self.updates is not None and (type(self.updates) is not int or self.updates < 1):
            raise ArgumentError(where="Checkpoints.updates", got=self.updates, wanted="a whole number >= 1, or None")


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """A region with torch's global generators seeded; afterwards they are as they were.

    Args:
        seed: of the CPU's generator, and of the device's.
        device: where the run computes.

    >>> with seeded(1, torch.device("cpu")):
    ...     first = torch.rand(())
    >>> with seeded(1, torch.device("cpu")):
    ...     torch.rand(()) == first
    tensor(True)
    """
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """A number for all bits of tensors.

    >>> fingerprint({"a": torch.zeros(2)}) == fingerprint({"a": torch.ones(2)})
    False
    """
    found = 0
    for name in sorted(tensors):
        found = zlib.crc32(tensors[name].detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data, found)
    return f"{found:08x}"


@runtime_checkable
class Training(Protocol):
    """What a driver drives: the state of a run, and one update after the other."""

    model: Any
    world: World
    settings: Any  # with epochs
    position: Any  # with epoch and updates, complete ones
    best: Any  # with epoch and weights
    checkpoint: str | None

    @property
    def remaining(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    def updates(self) -> Iterator[Any]: ...
    def begin_with_these(self) -> None: ...
    def close_epoch(self) -> dict[str, Any]: ...
    def best_weights(self) -> AbstractContextManager[None]: ...


Driven = TypeVar("Driven", bound=Training)


class Driver(ABC, Generic[Driven]):
    """The loop itself, and when it writes; what is particular to a kind of training, its subclasses say.

    Args:
        training: the state of the run.
        folder: where it is kept.
        run: the folder, locked for writing; None in all processes but the first.
        checkpoints: how often to write.
        console: where to tell of the progress; None for silence.
        on_epoch: called with the record of each epoch.
    """

    def __init__(
        self,
        training: Driven,
        folder: Path,
        run: RunFolder | None,
        checkpoints: Checkpoints,
        console: Console | None,
        on_epoch: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self.training, self.folder, self.run, self.checkpoints = training, folder, run, checkpoints
        self.console = console if training.world.first else None
        self.on_epoch = on_epoch
        self.seconds, self._since = 0.0, time.monotonic()
        self._written = self._since
        self._kept = -1  # the epoch of the best model that is on disk

    @abstractmethod
    def _prepare(self) -> None:
        """Write what lies in the folder beside the files of every run."""

    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """All that the rest of the run depends on."""

    @abstractmethod
    def _restore(self, tensors: dict[str, Tensor], document: dict[str, Any]) -> None:
        """Go on from what :meth:`_snapshot` gave."""

    @abstractmethod
    def _about_the_best(self) -> dict[str, Any]:
        """What a reader of the best model's file should know."""

    def _progress(self) -> Progress:
        """What a person sees."""
        return Progress(self.console, epochs=self.training.settings.epochs)

    @abstractmethod
    def _tell(self, progress: Progress, record: Mapping[str, Any]) -> None:
        """End an epoch there."""

    @property
    def world(self) -> World:
        return self.training.world

    def drive(self, *, validate_first: bool = False) -> None:
        """Go on where the folder says, to the end.

        Args:
            validate_first: whether the weights of the beginning may be the best.
        """
        if self.run is not None:
            with system_errors(self.folder):
                self._prepare()
        found = RunFolder(self.folder).load_resume()
        if found is not None:
            with as_written(RunFolder(self.folder).resume_path, "the resume point of this run"):
                self.seconds = float(found[1].pop("seconds"))
                self._restore(*found)
            self.training.checkpoint = str(RunFolder(self.folder).resume_path)
        elif validate_first:
            self.training.begin_with_these()
        # Several processes are stopped by torchrun, which tells each at another moment.
        listening = Interruption() if self.world.size == 1 else nullcontext(Interruption())
        with listening as interruption, self._progress() as progress:
            while not self.training.finished:
                self._epoch(progress, interruption)
        self._checkpoint()

    def _epoch(self, progress: Progress, interruption: Interruption) -> None:
        training, began = self.training, time.monotonic()
        progress.begin_epoch(training.position.epoch + 1, steps=training.remaining)
        for update in training.updates():
            progress.advance(tokens=update.tokens, loss=update.nll)
            if interruption.asked or self._due():
                self._checkpoint()
            interruption.obey()
        record = training.close_epoch()
        record["seconds"] = round(time.monotonic() - began, 3)
        if self.run is not None:
            self.run.append_metrics(record)
        self._tell(progress, record)
        if self.on_epoch is not None and self.world.first:
            self.on_epoch(record)
        if interruption.asked or self._agreed_late():
            self._checkpoint()
        interruption.obey()

    def _due(self) -> bool:
        every, updates = self.checkpoints.updates, self.training.position.updates
        if every is not None and updates % every == 0:
            return True
        # The processes must write together, and to agree on it costs them time.
        return (self.world.size == 1 or updates % DECISION == 0) and self._agreed_late()

    def _agreed_late(self) -> bool:
        """Whether it is time to write, by the first process's clock."""
        late = time.monotonic() - self._written >= self.checkpoints.seconds
        return bool(self.world.agreed(float(late)))

    def _checkpoint(self) -> None:
        tensors, document = self._snapshot()
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now
        if self.run is not None:
            if self.training.best.weights and self.training.best.epoch != self._kept:
                self._save_best()
            self.run.save_resume(tensors, {**document, "seconds": self.seconds})
            self.training.checkpoint = str(self.run.resume_path)
        self._written = time.monotonic()

    def _save_best(self) -> None:
        assert self.run is not None
        with self.training.best_weights():
            self.run.save_model(self.training.model.state_dict(), self._about_the_best())
        self._kept = self.training.best.epoch
