"""The recursion of a linear-chain conditional random field in plain torch operations: the truth."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

NEVER = float("-inf")


class Scores(NamedTuple):
    """What a chain adds to the emissions; -inf where something is forbidden.

    Args:
        transitions: (tags, tags), from a tag (row) to the next (column).
        start: (tags,), of the first tag.
        end: (tags,), of the last tag.
    """

    transitions: Tensor
    start: Tensor
    end: Tensor


def log_sum_exp(values: Float[Tensor, "*size"], dim: int) -> Float[Tensor, "*rest"]:
    """``log sum exp``; of nothing but -inf it is -inf, with gradients of 0 instead of torch's NaN.

    >>> nothing = torch.full((2,), NEVER, requires_grad=True)
    >>> log_sum_exp(nothing, 0).backward()
    >>> nothing.grad
    tensor([0., 0.])
    """
    most = values.detach().amax(dim, keepdim=True)
    most = torch.where(most == NEVER, 0.0, most)  # as a constant: it has no part in any derivative
    total = (values - most).exp().sum(dim)
    none = total == 0
    return torch.where(none, NEVER, torch.where(none, 1.0, total).log() + most.squeeze(dim))


def forward_scores(
    emissions: Float[Tensor, "steps batch tags"],
    scores: Scores,
    inside: Bool[Tensor, "steps batch"],
    *,
    level: bool = False,
) -> Float[Tensor, "steps batch tags"]:
    """``alpha_t[j] = E_t[j] + log sum_i exp(alpha_{t-1}[i] + A[i, j])``, ``alpha_1 = start + E_1``.

    Args:
        emissions: E; whatever lies beyond the end of a sequence is not looked at.
        scores: A and start.
        inside: which steps are there; a sequence that has ended keeps its last alpha.
        level: whether the largest alpha of every step is set to 0, where only their differences are wanted: a sum that
            grows over many steps would lose their digits.

    >>> E, zero = torch.zeros(2, 1, 3), torch.zeros(3)
    >>> forward_scores(E, Scores(torch.zeros(3, 3), zero, zero), torch.ones(2, 1, dtype=torch.bool))[1, 0].exp().round()
    tensor([3., 3., 3.])
    """
    emissions = torch.where(inside.unsqueeze(-1), emissions, 0.0)
    alphas = [_levelled(scores.start + emissions[0]) if level else scores.start + emissions[0]]
    for step in range(1, len(emissions)):
        moved = emissions[step] + log_sum_exp(alphas[-1].unsqueeze(-1) + scores.transitions, -2)
        moved = _levelled(moved) if level else moved
        alphas.append(torch.where(inside[step].unsqueeze(-1), moved, alphas[-1]))
    return torch.stack(alphas)


def _levelled(alpha: Tensor) -> Tensor:
    most = alpha.amax(-1, keepdim=True)
    return alpha - torch.where(most == NEVER, 0.0, most)


def prefix_log_partitions(
    emissions: Float[Tensor, "steps batch tags"], scores: Scores, inside: Bool[Tensor, "steps batch"]
) -> Float[Tensor, "steps batch"]:
    """``log Z_t = log sum_j exp(alpha_t[j] + end[j])`` of every prefix, 0 beyond the end of a sequence.

    Args:
        emissions: as ``forward_scores``.
        scores: of the chain.
        inside: as ``forward_scores``.

    >>> E, zero = torch.zeros(2, 1, 3), torch.zeros(3)
    >>> prefix_log_partitions(
    ...     E, Scores(torch.zeros(3, 3), zero, zero), torch.ones(2, 1, dtype=torch.bool)
    ... ).exp().round()
    tensor([[3.],
            [9.]])
    """
    return torch.where(inside, log_sum_exp(forward_scores(emissions, scores, inside) + scores.end, -1), 0.0)
