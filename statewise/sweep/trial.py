"""One run among many: which network, on which task, trained how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from statewise.data.memory_task import SequenceTask
from statewise.data.memory_tasks import memory_task
from statewise.errors import ArgumentError
from statewise.models.orthogonal_network import UPDATES, usual_recurrent_rate
from statewise.sweep.pixels import PixelTask

#: Why a run ended: the goal was reached; the loss stopped falling twice; no iterations were left; others had shown
#: what was asked, or the time was up; numbers became infinite.
REASONS = ("solved", "converged", "iterations", "stopped", "diverged")
#: Of products on a CUDA device.
PRECISIONS = ("single", "tf32")


class Shape(NamedTuple):
    """What trials must have in common to be trained side by side: all sizes of their tensors, and when to look."""

    task: SequenceTask
    depth: int
    width: int
    batch: int
    check_every: int
    validate: int
    test: int
    update: str
    precision: str


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Everything that the numbers of one run depend on.

    An orthogonal network (scoRNN) is trained on fresh batches. Every ``check_every`` iterations it is looked at on held
    out examples. If its loss has not improved by the task's ``min_delta`` for more than ``patience`` looks, both rates
    are divided by ten; the second time the run ends. The weights with the least loss are kept (Ziv 2019, section 3.1;
    the rule is that of the code published with it).

    Args:
        task: what is to be learnt.
        depth: layers.
        width: channels of each layer.
        lr: of everything but the orthogonal matrices.
        lr_recurrent: of the orthogonal matrices; None for ``min(1e-4, lr / 10)``.
        seed: of weights, batches and initial states.
        batch: sequences of an iteration.
        iterations: at most.
        check_every: iterations from one look at held-out examples to the next.
        patience: looks without an improvement that are put up with.
        validate: held-out examples of a look.
        test: held-out examples at the end.
        goal: accuracy on held-out examples above which the run ends at once; None to go on.
        update: of the orthogonal matrices: "cayley" (scoRNN) or "full-capacity" (Wisdom et al. 2016).
        precision: of products on a CUDA device: "single", or "tf32", which rounds away what long memories need.

    >>> from statewise.data import CopyingMemory
    >>> Trial(task=CopyingMemory(m=5, n=8, delay=10), depth=2, width=32, seed=1).recurrent_rate
    0.0001
    """

    task: SequenceTask
    depth: int
    width: int
    lr: float = 1e-3
    lr_recurrent: float | None = None
    seed: int = 0
    batch: int = 128
    iterations: int = 200_000
    check_every: int = 1000
    patience: int = 10
    validate: int = 5000
    test: int = 10_000
    goal: float | None = None
    update: str = "cayley"
    precision: str = "single"

    def __post_init__(self) -> None:
        for name in ("depth", "width", "batch", "iterations", "check_every", "validate", "test"):
            if getattr(self, name) < 1:
                raise ArgumentError(where=f"Trial.{name}", got=getattr(self, name), wanted="an integer >= 1")
        for name in ("seed", "patience"):
            if getattr(self, name) < 0:
                raise ArgumentError(where=f"Trial.{name}", got=getattr(self, name), wanted="an integer >= 0")
        for name in ("lr", "lr_recurrent"):
            rate = getattr(self, name)
            if rate is not None and not 0 < rate < float("inf"):
                raise ArgumentError(where=f"Trial.{name}", got=rate, wanted="a number above 0")
        if self.goal is not None and not 0 < self.goal <= 1:
            raise ArgumentError(where="Trial.goal", got=self.goal, wanted="an accuracy in (0, 1], or None")
        if self.update not in UPDATES:
            raise ArgumentError(where="Trial.update", got=self.update, wanted=f"one of {', '.join(UPDATES)}")
        if self.precision not in PRECISIONS:
            wanted = f"one of {', '.join(PRECISIONS)}"
            remedy = "In bfloat16 orthogonal matrices lose a sixth of a state within a thousand steps."
            raise ArgumentError(where="Trial.precision", got=self.precision, wanted=wanted, remedy=remedy)

    @property
    def recurrent_rate(self) -> float:
        """The rate of the orthogonal matrices."""
        return usual_recurrent_rate(self.lr) if self.lr_recurrent is None else self.lr_recurrent

    @property
    def shape(self) -> Shape:
        """What it must have in common with others to be trained beside them."""
        return Shape(*(getattr(self, name) for name in Shape._fields))

    def describe(self) -> dict[str, Any]:
        """The trial as JSON can hold it."""
        return {**asdict(self), "task": self.task.describe()}

    @classmethod
    def of(cls, document: dict[str, Any]) -> Trial:
        """The trial that was described.

        Args:
            document: what :meth:`describe` gave.
        """
        known = {field.name for field in fields(cls)}
        if set(document) != known:
            raise ArgumentError(where="Trial.of", got=sorted(document), wanted=f"all of {', '.join(sorted(known))}")
        return cls(**{**document, "task": _task(document["task"])})


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a trial.

    Args:
        accuracy: on the test examples, of the weights that were kept.
        loss: of these weights on the held-out examples of the looks.
        best_iteration: when they were found.
        iterations: how many there were.
        reason: one of ``REASONS``.
        seconds: of wall time, shared by those that ran side by side.
        orthogonality: the largest ``||W W^T - I||_F`` of any layer at the end.
        largest_entry: the largest entry of any A of the Cayley map at the end; 0 for other updates.
    """

    accuracy: float
    loss: float
    best_iteration: int
    iterations: int
    reason: str
    seconds: float
    orthogonality: float
    largest_entry: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, str if field.name == "reason" else int | float):
                wanted = "a word" if field.name == "reason" else "a number"
                raise ArgumentError(where=f"Outcome.{field.name}", got=value, wanted=wanted)

    def describe(self) -> dict[str, Any]:
        """The outcome as JSON can hold it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A trial that could not be run, twice.

    Args:
        error: what was raised, in words.
    """

    error: str


def _task(document: Mapping[str, Any]) -> SequenceTask:
    if document.get("kind") != PixelTask.kind:
        return memory_task(document)
    return PixelTask(**{name: value for name, value in document.items() if name != "kind"})
