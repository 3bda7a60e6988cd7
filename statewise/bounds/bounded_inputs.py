"""A model that cannot be given inputs beyond a bound: what is longer is shortened before the model sees it."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from statewise.errors import ArgumentError


class BoundedInputs(nn.Module):
    """A model whose inputs are within a ball, whatever it is given: their length is no promise, but a fact.

    ``x_s -> x_s min(1, B / ‖x_s‖)``, then the model. Bounds on networks of numbers need it, or a promise.

    Args:
        model: takes inputs (..., features), padded or packed, and whatever else.
        bound: B.

    >>> model = BoundedInputs(nn.Identity(), bound=1.0)
    >>> model(torch.tensor([[[3.0, 4.0], [0.3, 0.4]]])).norm(dim=2).tolist()
    [[1.0, 0.5]]
    """

    def __init__(self, model: nn.Module, *, bound: float) -> None:
        super().__init__()
        if not 0 < bound < math.inf:
            raise ArgumentError(where="BoundedInputs.bound", got=bound, wanted="a finite number > 0")
        self.model, self.bound = model, float(bound)

    def forward(self, inputs: Tensor | PackedSequence, *others: Any, **options: Any) -> Any:
        """What the model gives for the shortened inputs."""
        if isinstance(inputs, PackedSequence):
            inputs = inputs._replace(data=shortened(inputs.data, self.bound))
        else:
            inputs = shortened(inputs, self.bound)
        return self.model(inputs, *others, **options)

    def extra_repr(self) -> str:
        """The bound."""
        return f"bound={self.bound}"


def shortened(inputs: Float[Tensor, "*shape features"], bound: float) -> Float[Tensor, "*shape features"]:
    """Steps that are longer than the bound brought back to it; others untouched.

    Args:
        inputs: finite numbers.
        bound: the greatest length.
    """
    length = torch.linalg.vector_norm(inputs, dim=-1, keepdim=True)
    return torch.where(length > bound, inputs * (bound / length.clamp_min(bound)), inputs)
