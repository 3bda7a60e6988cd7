"""A limit on the gradient of one weight, wherever in the graph that weight is made."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ArgumentError


def limit_entries(gradient: Float[Tensor, "*any"], most: float = 10.0, *, apart: int = 0) -> Float[Tensor, "*any"]:
    """A gradient without infinite entries, scaled such that no entry is larger than ``most``.

    Entries that are not finite become 0; then ``G <- G most / max|G|`` if ``max|G| > most`` (the code published with
    Ziv 2019 does so to dLoss/dW, and to nothing else). Nothing is read on the host.

    Args:
        gradient: of any shape.
        most: what the largest entry may be.
        apart: how many leading dimensions tell gradients apart, each of which is scaled by itself.

    >>> limit_entries(torch.tensor([1.0, -40.0, float("nan")]))
    tensor([  0.2500, -10.0000,   0.0000])
    """
    finite = torch.where(gradient.isfinite(), gradient, torch.zeros_like(gradient))
    if not finite.numel():
        return finite
    largest = finite.abs().amax(tuple(range(apart, finite.dim())), keepdim=True)
    return finite * torch.where(largest > most, most / largest, torch.ones_like(largest))


class _Limited(torch.autograd.Function):
    """The identity, whose gradient is limited; under torch.func.vmap each gradient by itself."""

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, most: float) -> Tensor:
        return weight.view_as(weight)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.most = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return limit_entries(gradients[0], ctx.most), None


class GradientLimit(nn.Module):
    """A parametrization that leaves a weight as it is and limits its gradient: put it after the one that makes it.

    ``register_parametrization(module, "weight_hh_l0", GradientLimit())`` after :func:`scaled_cayley` limits dLoss/dW
    before it goes on to the free entries of A; see :func:`limit_entries`.

    Args:
        most: what the largest entry of the gradient may be.

    >>> from torch.nn.utils.parametrize import register_parametrization
    >>> layer = register_parametrization(nn.Linear(2, 1, bias=False), "weight", GradientLimit(1.0))
    >>> layer(torch.tensor([3.0, 6.0])).sum().backward()
    >>> layer.parametrizations.weight.original.grad
    tensor([[0.5000, 1.0000]])
    """

    def __init__(self, most: float = 10.0) -> None:
        super().__init__()
        if not 0 < most < math.inf:
            raise ArgumentError(where="GradientLimit.most", got=most, wanted="a number above 0")
        self.most = most

    def forward(self, weight: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """The weight itself."""
        limited: Tensor = _Limited.apply(weight, self.most)  # type: ignore[no-untyped-call]
        return limited

    def right_inverse(self, weight: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """The weight itself."""
        return weight

    def extra_repr(self) -> str:
        return f"most={self.most:g}"
