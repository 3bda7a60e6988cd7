"""Penalties on the activations of the top layer: AR and TAR."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from statewise.heads.cross_entropy import at_least_single


def activation_penalty(outputs: Float[Tensor, "steps batch width"]) -> Float[Tensor, ""]:
    """The mean square of what the softmax reads (AR).

    ``mean(o^2)`` over steps, batch and units (Merity et al. 2017).

    >>> import torch
    >>> activation_penalty(torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])).item()
    7.5
    """
    return at_least_single(outputs).square().mean()


def temporal_penalty(states: Float[Tensor, "steps batch width"]) -> Float[Tensor, ""]:
    """The mean square of the change from one step to the next (TAR).

    ``mean((r_{t+1} - r_t)^2)``, on states before dropout and noise; 0 for a single step (Merity et al. 2017).

    >>> import torch
    >>> temporal_penalty(torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])).item()
    4.0
    >>> temporal_penalty(torch.ones(1, 2, 3)).item()
    0.0
    """
    states = at_least_single(states)
    if states.shape[0] == 1:
        return states.sum() * 0.0  # the mean of nothing would be NaN
    return (states[1:] - states[:-1]).square().mean()
