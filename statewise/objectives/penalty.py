"""The penalty that unbiased noise amounts to, to second order and in closed form."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import DtypeError
from statewise.heads import Readout
from statewise.heads.likelihoods import by_chunks, chunk_of
from statewise.objectives.noises import Covariance, checked, reach, variance
from statewise.transforms import Noise
from statewise.transforms.base import choice

States = Float[Tensor, "*rows hidden"]
REDUCTIONS = ("sum", "mean", "none")


def sensitivity(
    readout: Readout, states: States, *, mode: str = "multiplicative", full_gradient: bool = True
) -> Float[Tensor, "*rows hidden"]:
    """How much noise on each unit costs: ``h_i^2 q_i`` for multiplicative noise, ``q_i`` for additive.

    ``q_i = V_i . Hess A(s) V_i``, for a softmax the variance of the unit's output weights over the predicted classes
    (Dieng et al. 2018, section 4). Half of it, times the variance of the noise, is the unit's share of the penalty.

    Args:
        readout: the output matrix, its bias and the likelihood.
        states: the clean states ``h``, shape (..., hidden).
        mode: how the noise acts.
        full_gradient: whether gradients flow through the prediction too; else the Fisher information is a constant.

    >>> from statewise.heads import Gaussian
    >>> sensitivity(Readout(Gaussian(), torch.eye(2)), torch.tensor([[1.0, 3.0]]))
    tensor([[1., 9.]])
    """
    choice("sensitivity.mode", mode, ("multiplicative", "additive"))
    readout, rows = as_rows(readout, states)

    def of(part: Tensor) -> Tensor:
        curvature = readout.likelihood.curvature(readout.weight, _scores(readout, part, full_gradient))
        return reach(part, mode).square() * curvature

    return by_chunks(of, rows, chunk_of(readout.outputs)).reshape(states.shape)


def second_order(
    readout: Readout,
    states: States,
    noise: Noise | Covariance,
    *,
    full_gradient: bool = True,
    reduction: str = "sum",
) -> Float[Tensor, "..."]:
    """What unbiased noise on the last states adds to the expected loss, to second order.

    ``1/2 sum_t tr(Hess A(s_t) V^T Cov(z_t) V)``: for independent noise of variance ``v`` it is
    ``v/2 sum_t sum_i h_i^2 q_i`` (multiplicative) or ``v/2 sum_t sum_i q_i`` (additive); for correlated noise
    ``1/2 sum_ij C_ij (V Hess A V^T)_ij``, with ``C_ij h_i h_j`` if multiplicative. Dieng et al. 2018, section 4.

    It is the excess itself for a Gaussian likelihood, under every law. Else its relative error is of order gamma^2 for
    the symmetric laws and gamma for "gamma" and "gumbel". For "bernoulli", "beta" and "chi-square" weak noise is rare
    noise, not small noise: there the ratio does not tend to 1. :func:`exact_excess` and :func:`bracket` tell.

    Args:
        readout: the output matrix, its bias and the likelihood.
        states: the clean states ``h``, shape (..., hidden).
        noise: the noise, or only its covariance.
        full_gradient: whether gradients flow through the prediction too; else the Fisher information is a constant.
        reduction: "sum" or "mean" over the rows, or "none".

    >>> from statewise.heads import Gaussian
    >>> second_order(Readout(Gaussian(), torch.eye(2)), torch.tensor([[1.0, 3.0]]), Noise("gaussian", 1.0))
    tensor(5.)
    """
    choice("second_order.reduction", reduction, REDUCTIONS)
    found, _ = penalised(*as_rows(readout, states), noise, full_gradient)
    return reduced(found.reshape(states.shape[:-1]), reduction)


def penalised(readout: Readout, rows: Tensor, noise: Noise | Covariance, full_gradient: bool) -> tuple[Tensor, Tensor]:
    """The penalty of each row, and the sensitivities of its units."""
    described = _described(noise)
    values = described.at(readout.hidden_size).to(rows)
    shares = sensitivity(readout, rows, mode=described.mode, full_gradient=full_gradient)
    if values.ndim < 2:
        return (shares * values).sum(-1) / 2, shares
    return _correlated(readout, rows, values, described.mode, full_gradient), shares


def reduced(values: Tensor, reduction: str) -> Tensor:
    """The sum or the mean of the rows, or the rows.

    >>> reduced(torch.ones(3), "sum")
    tensor(3.)
    """
    return values if reduction == "none" else values.sum() if reduction == "sum" else values.mean()


def _described(noise: Noise | Covariance) -> Covariance:
    if isinstance(noise, Covariance):
        return noise
    noise = checked(noise, where="second_order")
    return Covariance(torch.tensor(variance(noise), dtype=torch.float64), noise.mode)


def as_rows(readout: Readout, states: Tensor) -> tuple[Readout, Tensor]:
    """The readout and the states as rows, in one dtype of at least float32, where sums keep their digits."""
    if not isinstance(readout, Readout):
        raise DtypeError(
            where="readout",
            got=type(readout).__name__,
            wanted="a Readout: a Likelihood with its output matrix",
            remedy="A mixture of softmaxes is no exponential family in the state and has no explicit penalty.",
        )
    dtype = torch.promote_types(torch.promote_types(readout.weight.dtype, states.dtype), torch.float32)
    bias = None if readout.bias is None else readout.bias.to(dtype)
    return Readout(readout.likelihood, readout.weight.to(dtype), bias), states.to(dtype).reshape(-1, states.shape[-1])


def _scores(readout: Readout, states: Tensor, full_gradient: bool) -> Tensor:
    scores = readout.scores(states)
    return scores if full_gradient else scores.detach()


def _correlated(readout: Readout, rows: Tensor, matrix: Tensor, mode: str, full_gradient: bool) -> Tensor:
    def of(part: Tensor) -> Tensor:
        scores = _scores(readout, part, full_gradient)
        between = readout.likelihood.curvature_matrix(readout.weight, scores)
        size = reach(part, mode)
        return (matrix * between * size.unsqueeze(-1) * size.unsqueeze(-2)).sum((-1, -2)) / 2

    return by_chunks(of, rows, chunk_of(readout.hidden_size * readout.outputs))
