"""A normal law with a mean and a deviation of its own at every place, as a head of a forecaster gives it."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from statewise.errors import ShapeError
from statewise.heads.likelihoods import Gaussian, widened

#: Below it a deviation does not go: the likelihood of what is foretold exactly has no bound.
LEAST = 1e-3
#: What makes softplus 1.
UNIT = math.log(math.e - 1)


class Normal(NamedTuple):
    """Independent normal laws, one for each number.

    ``log p(x) = log N((x - mean) / deviation; 0, 1) - log deviation``: the family :class:`Gaussian` of numbers that are
    brought to its unit.

    Attributes:
        mean: of each number.
        deviation: of each number, above 0.

    >>> round(float(Normal(torch.zeros(1), torch.ones(1)).log_prob(torch.zeros(1))), 4)
    -0.9189
    """

    mean: Float[Tensor, "*rows outputs"]
    deviation: Float[Tensor, "*rows outputs"]

    @classmethod
    def of(cls, scores: Float[Tensor, "*rows twice"]) -> Normal:
        """Means, and behind them what becomes deviations: ``softplus(score + log(e - 1))``, 1 for a score of 0.

        Args:
            scores: of a linear layer; an even number of them.
        """
        if scores.shape[-1] % 2:
            raise ShapeError(where="Normal.of", got=tuple(scores.shape), wanted="(..., 2 outputs)")
        mean, width = widened(scores).chunk(2, dim=-1)
        return cls(mean, softplus(width + UNIT) + LEAST)

    def log_prob(self, observed: Float[Tensor, "*rows outputs"]) -> Float[Tensor, "*rows"]:
        """The log-density of what was observed, summed over the outputs.

        Args:
            observed: numbers, of the shape of the mean.
        """
        unit = Gaussian().log_prob(torch.zeros_like(self.mean), (observed - self.mean) / self.deviation)
        return unit - self.deviation.log().sum(-1)

    def cdf(self, observed: Float[Tensor, "*rows outputs"]) -> Float[Tensor, "*rows outputs"]:
        """How probable smaller numbers are: uniform between 0 and 1 where the law is the true one.

        Args:
            observed: numbers, of the shape of the mean.
        """
        below: Tensor = torch.special.ndtr((observed - self.mean) / self.deviation)
        return below

    def draw(self, generator: torch.Generator | None = None) -> Float[Tensor, "*rows outputs"]:
        """Numbers drawn from the laws.

        Args:
            generator: source of the draws, on the CPU; None means torch's global one.
        """
        noise = torch.randn(self.mean.shape, generator=generator, dtype=self.mean.dtype)
        return self.mean + self.deviation * noise.to(self.mean.device)

    def in_units(self, mean: Tensor, deviation: Tensor) -> Normal:
        """The laws of ``mean + deviation * x``.

        Args:
            mean: that is added.
            deviation: by which is multiplied, above 0.
        """
        return Normal(self.mean * deviation + mean, self.deviation * deviation)
