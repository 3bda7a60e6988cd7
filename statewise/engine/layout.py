"""How the rows of a batch of sequences lie in memory: step after step, running rows only."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[np.int64]


class Turn(NamedTuple):
    """One step of a recurrence: its place in the layout, the rows that run, and how many of them ran before."""

    start: int
    rows: int
    kept: int


@dataclass(frozen=True)
class Layout:
    """The layout of ``torch.nn.utils.rnn.PackedSequence``, for which a padded batch is the case of equal lengths.

    Sequences are sorted by length, the longest first; step t occupies the rows ``offsets[t]`` to ``offsets[t + 1]``,
    one for each sequence that is at least t + 1 long. Padding has no rows, so it cannot leak into anything.

    Equal lengths are two numbers, never a tuple as long as the sequences: ``torch.compile`` and ``torch.export`` keep
    them as symbols, so that one graph serves every length.

    Args:
        steps: length of the longest sequence.
        batch: number of sequences.
        uneven: the number of running sequences at each step, where lengths differ.

    >>> Layout.of_sizes((3, 2, 2)).turns(reverse=True)
    (Turn(start=5, rows=2, kept=0), Turn(start=3, rows=2, kept=2), Turn(start=0, rows=3, kept=2))
    """

    steps: int
    batch: int
    uneven: tuple[int, ...] | None = None

    @classmethod
    def of_sizes(cls, batch_sizes: tuple[int, ...]) -> Layout:
        """The layout with so many running sequences at each step.

        >>> Layout.of_sizes((2, 2, 2))
        Layout(steps=3, batch=2, uneven=None)
        """
        even = batch_sizes[-1] == batch_sizes[0]
        return cls(len(batch_sizes), batch_sizes[0], None if even else batch_sizes)

    @classmethod
    def of(cls, lengths: Array) -> Layout:
        """The layout of sequences of these lengths, in any order.

        >>> Layout.of(np.array([1, 3, 3])).batch_sizes
        (3, 2, 2)
        """
        return cls.of_sizes(tuple((lengths > np.arange(lengths.max())[:, None]).sum(1).tolist()))

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Number of running sequences at each step."""
        return (self.batch,) * self.steps if self.uneven is None else self.uneven

    @property
    def offsets(self) -> tuple[int, ...]:
        """First row of each step, and the total at the end."""
        return (0, *accumulate(self.batch_sizes))

    @property
    def rows(self) -> int:
        """Number of rows: the sum of all lengths."""
        return self.batch * self.steps if self.uneven is None else sum(self.uneven)

    @property
    def dense(self) -> bool:
        """Whether all sequences are equally long."""
        return self.uneven is None

    def lengths(self) -> list[int]:
        """Length of every sequence, in sorted order."""
        running = np.arange(self.batch)[:, None] < np.array(self.batch_sizes)
        return running.sum(1).tolist()  # type: ignore[no-any-return]

    def turns(self, *, reverse: bool) -> tuple[Turn, ...]:
        """The steps in the order in which a direction takes them."""
        turns, kept, offsets, sizes = [], 0, self.offsets, self.batch_sizes
        for step in reversed(range(self.steps)) if reverse else range(self.steps):
            rows = sizes[step]
            kept = min(kept, rows)
            turns.append(Turn(offsets[step], rows, kept))
            kept = rows
        return tuple(turns)

    def pack(self, padded: Tensor) -> Tensor:
        """(steps, batch, ...) to (rows, ...)."""
        if self.dense:
            return padded.flatten(0, 1)
        return padded.flatten(0, 1).index_select(0, self._index(padded.device))

    @property
    def places(self) -> tuple[Array, Array]:
        """The sequence of every row, in sorted order, and its step."""
        step, sequence = (np.arange(self.batch) < np.array(self.batch_sizes)[:, None]).nonzero()
        return sequence, step

    def unpack(self, rows: Tensor) -> Tensor:
        """(rows, ...) to (steps, batch, ...), zero where a sequence has ended."""
        if self.dense:
            return rows.view(self.steps, self.batch, *rows.shape[1:])
        return spread(rows, self._index(rows.device), self.steps, self.batch)

    def _index(self, device: torch.device) -> Tensor:
        """For each row its place in a padded batch.

        By numbers that the host knows: a mask would have to be counted on the device, and waited for.
        """
        sequence, step = self.places
        return torch.from_numpy(step * self.batch + sequence).to(device, non_blocking=True)


def spread(rows: Tensor, index: Tensor, steps: int, batch: int) -> Tensor:
    """Rows at their places in a padded batch, (steps, batch, ...), zero elsewhere.

    Args:
        rows: of the steps of sequences.
        index: for each its place, ``step * batch + sequence``.
        steps: of the padded batch.
        batch: how many sequences it has.

    >>> spread(torch.ones(2, 1), torch.tensor([0, 3]), 2, 2).squeeze(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    padded = rows.new_zeros(steps * batch, *rows.shape[1:]).index_copy(0, index, rows)
    return padded.view(steps, batch, *rows.shape[1:])


def moved(numbers: Tensor, device: torch.device | str) -> Tensor:
    """Numbers of the host on a device; a CUDA device gets them while the host goes on.

    Args:
        numbers: on the CPU.
        device: where they go.

    >>> moved(torch.tensor([1, 2]), "cpu")
    tensor([1, 2])
    """
    if torch.device(device).type != "cuda":
        return numbers.to(device)
    return numbers.pin_memory().to(device, non_blocking=True)
