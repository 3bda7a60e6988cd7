"""Beta variables for every pair of shapes, from the tiniest to the infinite."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float64
from torch import Tensor

# A gamma variable of a tiny shape underflows: of Gamma(0.001) every second one is 0 in float64, and a ratio of two
# zeros was once 1/2. Under this shape its logarithm is drawn instead; at 0.1 an underflow has probability 1e-31.
SMALL = 0.1
LEAST = 1e-290  # below this concentration a Beta variable is 0 or 1 in float64; clamped here it keeps its mean


def sample_beta(
    mean: Float64[Tensor, "*shape"], concentration: Float64[Tensor, "*shape"], *, generator: torch.Generator | None
) -> Float64[Tensor, "*shape"]:
    """Draw from ``Beta(m S, (1 - m) S)``, of mean ``m`` and concentration ``S = alpha + beta``.

    ``log Gamma(a) = log Gamma(a + 1) + log(U) / a`` for a small shape, then ``sigmoid(log G - log G')``. The two limits
    belong to it: ``S = 0`` is a coin that shows 1 with probability ``m``, ``S = inf`` is ``m`` itself.

    Args:
        mean: from 0 to 1.
        concentration: from 0 to infinity.
        generator: a generator of the CPU; None means torch's global one.

    >>> half = torch.full((4,), 0.5, dtype=torch.float64)
    >>> sample_beta(half, 0 * half, generator=torch.Generator().manual_seed(0))
    tensor([0., 1., 0., 0.], dtype=torch.float64)
    >>> sample_beta(half, half / 0, generator=None)
    tensor([0.5000, 0.5000, 0.5000, 0.5000], dtype=torch.float64)
    """
    sharp = concentration.isinf()
    sizes = concentration.clamp(min=LEAST).masked_fill(sharp, 1.0)
    # Both shapes of a step lie side by side, so that a step draws the same whatever the number of steps.
    shapes = torch.stack((mean * sizes, (1 - mean) * sizes), dim=-2 if mean.ndim > 1 else 0)
    first, second = _log_gamma(shapes, generator).unbind(-2)
    drawn = torch.where(sharp, mean, _step_by_step(torch.sigmoid, first - second, step_dims=1))
    return torch.where((mean <= 0) | (mean >= 1), mean, drawn)


def _log_gamma(shapes: Tensor, generator: torch.Generator | None) -> Tensor:
    """The logarithms of gamma variables."""
    small = shapes < SMALL
    drawn = _step_by_step(torch.log, torch._standard_gamma(shapes + small, generator), step_dims=2)
    if not bool(small.any()):
        return drawn
    uniform = 1 - torch.rand(shapes.shape, dtype=shapes.dtype, generator=generator)  # never 0
    return torch.where(small, drawn + _step_by_step(torch.log, uniform, step_dims=2) / shapes, drawn)


def _step_by_step(function: Callable[[Tensor], Tensor], values: Tensor, *, step_dims: int) -> Tensor:
    """A function of every number, one step after the other where there are several.

    Where an entry stands in a long vector decides how it is rounded; a step must not depend on how many there are.
    """
    if values.ndim == step_dims:
        return function(values)
    return torch.stack([function(step) for step in values])
