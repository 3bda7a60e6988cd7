"""Noisin without noise: the loss of the clean network plus the penalty that noise would have been."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Shaped
from torch import Tensor

from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.heads import Readout
from statewise.objectives.noises import Covariance
from statewise.objectives.penalty import as_rows, penalised
from statewise.transforms import Noise
from statewise.transforms.base import finite


class DeterministicLoss(NamedTuple):
    """A loss for training and what it is made of.

    Attributes:
        loss: ``risk + strength * penalty``, a mean over the rows; call ``backward`` on it.
        risk: the negative log-likelihood of the clean states.
        penalty: the second-order penalty.
        sensitivity: for each unit the mean of ``h_i^2 q_i`` (``q_i`` under additive noise), without gradients: how
            much noise on this unit costs, to be logged.
    """

    loss: Float[Tensor, ""]
    risk: Float[Tensor, ""]
    penalty: Float[Tensor, ""]
    sensitivity: Float[Tensor, " hidden"]


def deterministic_loss(
    readout: Readout,
    states: Float[Tensor, "*rows hidden"],
    observed: Shaped[Tensor, "..."],
    noise: Noise | Covariance,
    *,
    strength: float = 1.0,
    full_gradient: bool = True,
) -> DeterministicLoss:
    """The loss of the clean network plus what noise on its last states would add, to second order; nothing is drawn.

    ``mean_t [-log p(x_t | h_t) + strength * 1/2 tr(Hess A(s_t) V^T Cov(z_t) V)]`` (Dieng et al. 2018, section 4, where
    the noise is drawn instead). The states come from a layer without noise.

    Args:
        readout: the output matrix, its bias and the likelihood.
        states: the clean states ``h``, shape (..., hidden); leave padding out.
        observed: what is to be predicted from each row.
        noise: the noise that is stood in for, or its covariance.
        strength: factor of the penalty; 1 is the noise itself.
        full_gradient: whether gradients flow through the prediction too; else the Fisher information is a constant.

    >>> import torch
    >>> from statewise.heads import Categorical
    >>> head, states = torch.nn.Linear(4, 3), torch.randn(5, 2, 4)
    >>> found = deterministic_loss(
    ...     Readout.of(head, Categorical()), states, torch.zeros(5, 2).long(), Noise("gaussian", 0.5)
    ... )
    >>> found.loss.backward()
    >>> found.sensitivity.shape
    torch.Size([4])
    """
    if finite("deterministic_loss.strength", strength) < 0:
        raise ArgumentError(where="deterministic_loss.strength", got=strength, wanted="a number >= 0")
    readout, rows = as_rows(readout, states)
    if len(rows) == 0:
        raise LengthError(where="deterministic_loss states", got=tuple(states.shape), wanted="at least one row")
    leading = states.ndim - 1
    if observed.shape[:leading] != states.shape[:leading]:
        raise ShapeError(
            where="deterministic_loss observed",
            got=tuple(observed.shape),
            wanted=f"a shape that begins with {tuple(states.shape[:leading])}",
        )
    risk = -readout.log_prob(rows, observed.flatten(0, leading - 1)).mean()
    penalties, sensitivities = penalised(readout, rows, noise, full_gradient)
    penalty = penalties.mean()
    return DeterministicLoss(risk + strength * penalty, risk, penalty, sensitivities.detach().mean(0))
