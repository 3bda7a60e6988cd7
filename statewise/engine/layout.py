"""How the rows of a batch of sequences lie in memory: step after step, running rows only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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

    >>> Layout((3, 2, 2)).turns(reverse=True)
    (Turn(start=5, rows=2, kept=0), Turn(start=3, rows=2, kept=2), Turn(start=0, rows=3, kept=2))
    """

    batch_sizes: tuple[int, ...]

    @property
    def steps(self) -> int:
        """Length of the longest sequence."""
        return len(self.batch_sizes)

    @property
    def batch(self) -> int:
        """Number of sequences."""
        return self.batch_sizes[0]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """First row of each step, and the total at the end."""
        return (0, *accumulate(self.batch_sizes))

    @property
    def rows(self) -> int:
        """Number of rows: the sum of all lengths."""
        return self.offsets[-1]

    @cached_property
    def dense(self) -> bool:
        """Whether all sequences are equally long."""
        return self.batch_sizes[-1] == self.batch_sizes[0]

    def lengths(self) -> list[int]:
        """Length of every sequence, in sorted order."""
        running = np.arange(self.batch)[:, None] < np.array(self.batch_sizes)
        return running.sum(1).tolist()  # type: ignore[no-any-return]

    def turns(self, *, reverse: bool) -> tuple[Turn, ...]:
        """The steps in the order in which a direction takes them."""
        turns, kept = [], 0
        for step in reversed(range(self.steps)) if reverse else range(self.steps):
            rows = self.batch_sizes[step]
            kept = min(kept, rows)
            turns.append(Turn(self.offsets[step], rows, kept))
            kept = rows
        return tuple(turns)

    def pack(self, padded: Tensor) -> Tensor:
        """(steps, batch, ...) to (rows, ...)."""
        if self.dense:
            return padded.flatten(0, 1)
        sequence, step = self.places
        # By numbers that the host knows: a mask would have to be counted on the device, and waited for.
        index = torch.from_numpy(step * self.batch + sequence).to(padded.device, non_blocking=True)
        return padded.flatten(0, 1).index_select(0, index)

    @cached_property
    def places(self) -> tuple[Array, Array]:
        """The sequence of every row, in sorted order, and its step."""
        step, sequence = (np.arange(self.batch) < np.array(self.batch_sizes)[:, None]).nonzero()
        return sequence, step

    def unpack(self, rows: Tensor) -> Tensor:
        """(rows, ...) to (steps, batch, ...), zero where a sequence has ended."""
        if self.dense:
            return rows.view(self.steps, self.batch, *rows.shape[1:])
        padded = rows.new_zeros(self.steps, self.batch, *rows.shape[1:])
        return padded.masked_scatter(
            self._running(rows.device).view(self.steps, self.batch, *(1,) * (rows.ndim - 1)).expand_as(padded), rows
        )

    def _running(self, device: torch.device) -> Tensor:
        sizes = torch.tensor(self.batch_sizes, device=device)
        return torch.arange(self.batch, device=device).lt(sizes.unsqueeze(1))
