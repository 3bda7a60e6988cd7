"""What a task of long-term memory is: sequences of one length, and answers at every step or at the last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from jaxtyping import Float, Int64
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class SequenceTask(ABC):
    """A task over sequences that all have the same length.

    Attributes:
        kind: its name, in files and commands.
        every_step: whether an answer is due at every step, or at the last one only.
    """

    kind: ClassVar[str]
    every_step: ClassVar[bool]

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The width of an input: how many symbols there are, if it is one-hot."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """How many answers there are."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The length of every sequence."""

    @property
    @abstractmethod
    def baseline(self) -> float:
        """The mean cross-entropy of the best answers without memory, over all steps that have an answer."""

    @property
    @abstractmethod
    def chance(self) -> float:
        """The accuracy of the best answers without memory."""

    @property
    @abstractmethod
    def min_delta(self) -> float:
        """By how much a loss on held-out examples must fall to count as an improvement."""

    @abstractmethod
    def right(
        self, logits: Float[Tensor, "*rows classes"], answers: Int64[Tensor, "*rows"]
    ) -> Float[Tensor, "*sequences"]:
        """The share of answers that count and are right, of each sequence.

        Args:
            logits: of the classes: (..., steps, classes) if answers are due at every step, else (..., classes).
            answers: those that are right.
        """

    def describe(self) -> dict[str, Any]:
        """What it is, as JSON can hold it."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class MemoryTask(SequenceTask):
    """A task whose examples are made of uniform numbers, so that any number of them costs nothing to keep.

    Who has the numbers has the examples: on whatever device they lie, for one network or for many side by side, inside
    a CUDA graph or not.
    """

    @property
    @abstractmethod
    def needs(self) -> int:
        """How many uniform numbers an example is made of."""

    @property
    @abstractmethod
    def hardness(self) -> int:
        """What a search makes larger: the delay, the number of bits, or the length."""

    @abstractmethod
    def harder(self, value: int) -> MemoryTask:
        """The same task at another hardness.

        Args:
            value: what ``hardness`` will be.
        """

    @abstractmethod
    def examples(
        self, numbers: Float[Tensor, "*rows needs"]
    ) -> tuple[Int64[Tensor, "*rows steps"], Int64[Tensor, "*rows ..."]]:
        """Sequences of symbols and their answers: one a step, or one a sequence.

        Args:
            numbers: uniform in [0, 1).
        """
