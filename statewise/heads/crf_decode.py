"""The best paths through a chain: Viterbi's algorithm, and its exact extension to the k best."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from statewise.heads.crf_reference import NEVER, Scores
from statewise.heads.crf_span import Span

NO_TAG = -1


def k_best_paths(
    emissions: Float[Tensor, "steps batch tags"], scores: Scores, span: Span, k: int
) -> tuple[Int[Tensor, "k steps batch"], Float[Tensor, "k batch"]]:
    """The k best sequences of tags, the best first, with their scores.

    Of every tag the k best ways to it are kept, with where they came from; no way that was dropped can beat them later,
    so the result is exact. It costs k times what the best one costs.

    Args:
        emissions: E, at least single precision.
        scores: of the chain.
        span: how far the sequences reach.
        k: how many. Where fewer exist the score is -inf and the tags are -1, as they are beyond the lengths.

    >>> flat, zero = torch.zeros(2, 2), torch.zeros(2)
    >>> E = torch.tensor([[[1.0, 0.0]], [[0.0, 3.0]]])
    >>> tags, found = k_best_paths(E, Scores(flat, zero, zero), Span.of(None, E), 3)
    >>> tags[:, :, 0].tolist(), found[:, 0].tolist()
    ([[0, 1], [1, 1], [0, 0]], [4.0, 3.0, 1.0])
    """
    emissions = torch.where(span.inside.unsqueeze(-1), emissions, 0.0)
    there = span.inside.unsqueeze(-1)
    # (batch, tags, k): the best ways to each tag, numbered as one along the last two; at the first step there is one.
    best = pad((scores.start + emissions[0]).unsqueeze(-1), (0, k - 1), value=NEVER)
    pointers: list[Tensor] = []
    for step in range(1, span.steps):
        routes = (best.unsqueeze(-1) + scores.transitions.unsqueeze(1)).flatten(1, 2)
        moved, pointer = routes.max(1, keepdim=True) if k == 1 else routes.topk(k, 1)
        # A sequence that has ended stays where it is.
        best = torch.where(there[step].unsqueeze(-1), (moved + emissions[step].unsqueeze(1)).transpose(1, 2), best)
        pointers.append(pointer.transpose(1, 2).flatten(1))
    found, chosen = (best + scores.end.unsqueeze(-1)).flatten(1).topk(k, -1)
    path = [chosen]
    for step in range(span.steps - 1, 0, -1):
        chosen = torch.where(there[step], pointers[step - 1].gather(1, chosen), chosen)
        path.append(chosen)
    tags = (torch.stack(path[::-1]) // k).permute(2, 0, 1)
    found = found.T.contiguous()
    return torch.where(span.inside & (found != NEVER).unsqueeze(1), tags, NO_TAG), found
