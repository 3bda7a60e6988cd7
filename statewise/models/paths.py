"""Ways in which a sequence may go on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.heads import Normal


@dataclass(frozen=True)
class Paths:
    """Ways to go on, drawn from a forecaster, in the units of the values.

    Args:
        values: (samples, steps, features).
        first: the exact law of the first step, which the samples only approach.

    >>> paths = Paths(torch.tensor([[[1.0]], [[3.0]]]), Normal(torch.tensor([2.0]), torch.tensor([1.0])))
    >>> paths.mean.tolist(), paths.quantile(0.5).tolist()
    ([[2.0]], [[2.0]])
    """

    values: Float[Tensor, "samples steps features"]
    first: Normal

    @property
    def mean(self) -> Float[Tensor, "steps features"]:
        """The mean of each step: that of the first exact, the others' of the samples."""
        return torch.cat((self.first.mean.unsqueeze(0), self.values[:, 1:].mean(0)))

    @property
    def deviation(self) -> Float[Tensor, "steps features"]:
        """The deviation of each step, likewise."""
        later = self.values[:, 1:]
        return torch.cat((self.first.deviation.unsqueeze(0), (later - later.mean(0)).square().mean(0).sqrt()))

    def quantile(self, share: float) -> Float[Tensor, "steps features"]:
        """What so large a share of the ways stays below, at each step; of the first step exact.

        Args:
            share: between 0 and 1.
        """
        if not 0 < share < 1:
            raise ArgumentError(where="Paths.quantile", got=share, wanted="a number between 0 and 1")
        # float64: the inverse of the normal law loses digits in its tails.
        at = torch.special.ndtri(torch.tensor(share, dtype=torch.float64)).to(self.first.mean)
        exact = (self.first.mean + self.first.deviation * at).unsqueeze(0)
        later = self.values[:, 1:]
        return torch.cat((exact, later.quantile(share, dim=0))) if later.shape[1] else exact
