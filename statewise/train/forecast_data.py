"""Numeric sequences where a forecaster computes: each step is read, and the next one is its target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from statewise.data import Scale, Series
from statewise.errors import LengthError
from statewise.train.classify_data import Batch, OnDevice


class NextSteps(OnDevice):
    """All sequences of a set, once copied to a device, each step with the next one as its target.

    A batch has inputs as they are, (batch, steps, features), and targets of the same shape in standardised units; NaN
    stands where a sequence has no further step, and is read but not scored.

    Args:
        examples: sequences of 2 steps or more.
        device: where they go.
        scale: of the training set.
        where: what to call the set in an error.

    >>> steps = NextSteps(Series.from_arrays([[1.0, 2.0, 3.0], [5.0, 7.0]]), torch.device("cpu"), Scale((1.0,), (2.0,)))
    >>> batch = steps.batch(torch.tensor([1, 0]), np.array([1, 0]))
    >>> batch.inputs.flatten(1).tolist(), batch.targets.flatten(1).tolist(), batch.lengths.tolist()
    ([[5.0, 0.0], [1.0, 2.0]], [[3.0, nan], [0.5, 1.0]], [1, 2])
    """

    def __init__(self, examples: Series, device: torch.device, scale: Scale, *, where: str = "series") -> None:
        if len(short := np.flatnonzero(examples.lengths < 2)):
            at = int(short[0])
            raise LengthError(
                where=f"{where}, sequence {examples.name(at)!r}",
                got=f"{examples.lengths[at]} step",
                wanted="2 or more: one to read, and one to foretell",
                remedy="Leave it out: series.longer_than(1).",
            )
        super().__init__(examples.unlabelled(), device)
        self.lengths, self.least = self.lengths - 1, 0
        self._features = len(examples.features)
        self._mean, self._deviation = (torch.tensor(part, dtype=torch.float32, device=device) for part in scale)

    @property
    def answers(self) -> int:
        """How many targets an example has on average, rounded down."""
        return self.counted(np.arange(len(self))) // max(1, len(self))

    def counted(self, places: npt.NDArray[np.integer]) -> int:
        """How many numbers of some examples are foretold together."""
        return int(self.lengths[places].sum()) * self._features

    def batch(self, rows: Tensor, places: npt.NDArray[np.integer]) -> Batch:
        """Some sequences; arguments as for :meth:`OnDevice.batch`."""
        lengths = self.lengths[places]
        at = torch.arange(int(lengths.max(initial=0)) + 1, device=self.device)
        found = self._starts[rows].unsqueeze(1) + at
        inside = (found < self._starts[rows + 1].unsqueeze(1))[:, 1:].unsqueeze(2)
        values = self._content[found.clamp_(max=len(self._content) - 1)]
        inputs = torch.where(inside, values[:, :-1], 0.0)
        targets = torch.where(inside, (values[:, 1:] - self._mean) / self._deviation, torch.nan)
        return Batch(inputs, torch.from_numpy(lengths) if self.ragged else None, targets, int(lengths.sum()))
