"""Margins of logits, and the two empirical risks that bounds begin with."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError

#: What float32 arithmetic may have added to a margin, as a share of the largest logit.
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def margins(logits: Float[Tensor, "sequences classes"], labels: Int[Tensor, "sequences"]) -> Float[Tensor, "sequences"]:
    """``M(y, z) = y_z - max_{j != z} y_j``: how far ahead the right class is; 0 or less is an error, ties included.

    It changes by at most √2 times the distance of two logit vectors (the paper has 2).

    Args:
        logits: before any softmax.
        labels: the right classes.

    >>> margins(torch.tensor([[2.0, 0.5, 1.0], [0.0, 1.0, 1.0]]), torch.tensor([0, 1])).tolist()
    [1.0, 0.0]
    """
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        got = f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)}"
        raise ShapeError(where="margins", got=got, wanted="(sequences, classes) and (sequences,)")
    if logits.shape[1] < 2:
        raise ArgumentError(where="margins", got=f"{logits.shape[1]} classes", wanted="at least 2")
    right = labels.long().unsqueeze(1)
    rivals = logits.scatter(1, right, -math.inf)
    return logits.gather(1, right).squeeze(1) - rivals.amax(1)


def safe_margins(
    logits: Float[Tensor, "sequences classes"], labels: Int[Tensor, "sequences"]
) -> Float[Tensor, "sequences"]:
    """Margins in float64, less what rounding may have added to them, here and on sequences that are still to come.

    Args:
        logits: as the network computed them.
        labels: the right classes.
    """
    slack = 2 * ROUNDING.get(logits.dtype, 2e-2) * logits.detach().double().abs().amax(1)
    return margins(logits.double(), labels) - slack


def ramp(margin: Float[Tensor, "*shape"], gamma: float) -> Float[Tensor, "*shape"]:
    """``clip(1 - M/γ, 0, 1)``: 1 at a tie, 0 from the margin γ on.

    >>> ramp(torch.tensor([-1.0, 0.0, 0.25, 1.0, 2.0]), 1.0).tolist()
    [1.0, 1.0, 0.75, 0.0, 0.0]
    """
    return (1 - margin / _positive(gamma)).clamp(0, 1)


def ramp_risk(margin: Float[Tensor, "sequences"], gamma: float) -> float:
    """The mean of :func:`ramp`."""
    return float(ramp(margin.double(), gamma).mean())


def margin_risk(margin: Float[Tensor, "sequences"], gamma: float) -> float:
    """The share of sequences with a margin of at most γ; never below the ramp risk.

    >>> margin_risk(torch.tensor([-1.0, 0.0, 0.25, 1.0, 2.0]), 1.0)
    0.8
    """
    return int((margin <= _positive(gamma)).sum()) / len(margin)


def _positive(gamma: float) -> float:
    if not gamma > 0:
        raise ArgumentError(where="gamma", got=gamma, wanted="a margin > 0")
    return gamma
