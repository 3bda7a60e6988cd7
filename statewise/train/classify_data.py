"""Examples where the network computes, and the batches of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from statewise.data import Copying, Images, Sequences, Series
from statewise.errors import DtypeError


class Batch(NamedTuple):
    """Some examples.

    Attributes:
        inputs: tokens (batch, steps), or numbers (batch, steps, features); on the device.
        lengths: of each, on the CPU; None where all examples of the set have one length.
        targets: the class of each, or of each step; on the device.
        steps: how many steps they have together.
    """

    inputs: Tensor
    lengths: Tensor | None
    targets: Tensor
    steps: int


class OnDevice:
    """All examples of a set, once copied to a device; a batch is then a matter of indices.

    Args:
        examples: sequences of tokens or of numbers with their classes, pictures, or a copying task, where every step
            has a target.
        device: where they go.

    >>> words = OnDevice(Sequences.from_words(["ab", "", "b"], [1, 0, 0]), torch.device("cpu"))
    >>> batch = words.batch(torch.tensor([2, 0]), np.array([2, 0]))
    >>> batch.inputs.tolist(), batch.lengths.tolist(), batch.targets.tolist()
    ([[1, 0], [0, 1]], [1, 2], [0, 1])
    """

    def __init__(self, examples: Sequences | Images | Copying | Series, device: torch.device) -> None:
        self.device = device
        self._shape = (examples.steps, examples.features) if isinstance(examples, Images) else None
        self.least = 0
        if isinstance(examples, Sequences | Series):
            self.lengths, content, starts, targets = _sequences(examples)
        elif isinstance(examples, Images | Copying):
            self.lengths, content, starts, targets = _full(examples)
        else:
            wanted = "Sequences, Series, Images or Copying"
            raise DtypeError(where="examples", got=type(examples).__name__, wanted=wanted)
        self.ragged = len(self.lengths) > 0 and bool((self.lengths != self.lengths[0]).any())
        if targets.ndim == 1:
            self.least = _two_classes_from(self.lengths, targets)
        # As narrow as they are; a batch of them is widened.
        self._content, self._starts, self.targets = (_moved(part, device) for part in (content, starts, targets))

    @property
    def answers(self) -> int:
        """How many targets an example has."""
        return self.targets[0].numel()

    def __len__(self) -> int:
        return len(self.lengths)

    def counted(self, places: npt.NDArray[np.integer]) -> int:
        """How many targets some examples have together.

        Args:
            places: which ones.
        """
        return len(places) * self.answers

    def batch(self, rows: Tensor, places: npt.NDArray[np.integer]) -> Batch:
        """Some examples.

        Args:
            rows: which ones, on the device.
            places: the same, for the host, which must not wait for the device to know how long they are.
        """
        lengths = self.lengths[places]
        targets, steps = self.targets[rows].long(), int(lengths.sum())
        if self._shape is not None:
            values = self._content[rows].to(torch.float32).div_(255)
            return Batch(values.unflatten(1, self._shape), None, targets, steps)
        tokens = self._tokens(rows, int(lengths.max(initial=0)))
        return Batch(tokens, torch.from_numpy(lengths) if self.ragged else None, targets, steps)

    def _tokens(self, rows: Tensor, longest: int) -> Tensor:
        at = torch.arange(longest, device=self.device)
        starts = self._starts[rows].unsqueeze(1)
        places = starts + at
        if not self.ragged:
            return self._widened(self._content[places])
        inside = places < self._starts[rows + 1].unsqueeze(1)
        # Beyond a sequence's end lies the next one, or nothing.
        places = places.clamp_(max=max(0, len(self._content) - 1))
        if not len(self._content):
            return places
        inside = inside if self._content.ndim == 1 else inside.unsqueeze(2)
        return torch.where(inside, self._widened(self._content[places]), 0)

    def _widened(self, content: Tensor) -> Tensor:
        return content if content.is_floating_point() else content.long()


@dataclass(frozen=True)
class EpochBatches:
    """The batches of an epoch in their order.

    Attributes:
        places: the examples, batch after batch.
        bounds: where each batch begins, and the end of the last.
    """

    places: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @classmethod
    def shuffled(
        cls,
        lengths: npt.NDArray[np.int64],
        *,
        batch: int,
        longest: int | None = None,
        bucket: int = 50,
        generator: torch.Generator,
    ) -> EpochBatches:
        """Examples at random, but such that those of a batch have like lengths.

        They are put into a random order; each stretch of ``bucket`` batches is sorted by length; then the batches are
        put into a random order.

        Args:
            lengths: of all examples.
            batch: how many make one.
            longest: those that are longer are left out.
            bucket: batches of a stretch.
            generator: of the order.

        >>> batches = EpochBatches.shuffled(np.array([3, 1, 3, 1]), batch=2, generator=torch.Generator().manual_seed(0))
        >>> [sorted(batches.places[part].tolist()) for part in batches.slices()]
        [[1, 3], [0, 2]]
        """
        order = torch.randperm(len(lengths), generator=generator).numpy()
        if longest is not None:
            order = order[lengths[order] <= longest]
        stretch = batch * bucket
        for start in range(0, len(order), stretch):
            part = order[start : start + stretch]
            order[start : start + stretch] = part[np.argsort(lengths[part], kind="stable")]
        batches = [order[start : start + batch] for start in range(0, len(order), batch)]
        batches = [batches[at] for at in torch.randperm(len(batches), generator=generator).tolist()]
        return cls._of(batches)

    @classmethod
    def sorted(cls, lengths: npt.NDArray[np.int64], *, batch: int) -> EpochBatches:
        """All examples from the shortest to the longest, for evaluation.

        Args:
            lengths: of all examples.
            batch: how many make one.
        """
        order = np.argsort(lengths, kind="stable")
        return cls._of([order[start : start + batch] for start in range(0, len(order), batch)])

    @classmethod
    def joined(cls, some: Sequence[EpochBatches]) -> EpochBatches:
        """The batches of several passes, one after the other.

        Args:
            some: at least one.

        >>> once = EpochBatches(np.array([1, 0]), np.array([0, 1, 2]))
        >>> EpochBatches.joined([once, once]).bounds
        array([0, 1, 2, 3, 4])
        """
        return cls._of([each.places[part] for each in some for part in each.slices()])

    @classmethod
    def _of(cls, batches: list[npt.NDArray[np.int64]]) -> EpochBatches:
        bounds = np.concatenate(([0], np.cumsum([len(one) for one in batches], dtype=np.int64)))
        return cls(np.concatenate(batches) if batches else np.zeros(0, dtype=np.int64), bounds)

    def slices(self, first: int = 0) -> Iterator[slice]:
        """Where each batch lies in ``places``, from a number on."""
        for number in range(first, len(self)):
            yield slice(int(self.bounds[number]), int(self.bounds[number + 1]))


def _sequences(examples: Sequences | Series) -> tuple[Any, ...]:
    if isinstance(examples, Sequences):
        return examples.lengths, examples.tokens, examples.starts, examples.labels
    labels = np.zeros(len(examples), dtype=np.int64) if examples.labels is None else examples.labels
    return examples.lengths, examples.values, examples.starts, labels


def _full(examples: Images | Copying) -> tuple[Any, ...]:
    """Examples of one length: their lengths, content, starts and targets."""
    lengths = np.full(len(examples), examples.steps, dtype=np.int64)
    starts = np.arange(len(examples) + 1) * examples.steps
    if isinstance(examples, Images):
        return lengths, examples.values, starts, examples.labels
    inputs, targets = (part.to(torch.uint8).numpy() for part in (examples.inputs, examples.targets))
    return lengths, inputs.reshape(-1), starts, targets


def _two_classes_from(lengths: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> int:
    """The shortest length up to which there are examples of two classes; that of the longest if there are not.

    >>> _two_classes_from(np.array([5, 1, 2, 3]), np.array([0, 1, 1, 0]))
    3
    """
    order = np.argsort(lengths, kind="stable")
    others = np.flatnonzero(labels[order] != labels[order[:1]])
    return int(lengths[order[others[0]]]) if len(others) else int(lengths.max(initial=0))


def _moved(values: npt.NDArray[np.generic], device: torch.device) -> Tensor:
    # A copy: torch warns of arrays that nobody may write into.
    return torch.tensor(values, device=device)
