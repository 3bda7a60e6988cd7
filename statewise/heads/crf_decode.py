"""The best paths through a chain: Viterbi's algorithm, and its exact extension to the k best."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

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
    steps, batch, tags = emissions.shape
    emissions = torch.where(span.inside.unsqueeze(-1), emissions, 0.0)
    # (batch, tags, ways): the best ways to each tag; at the first step there is one.
    best = (scores.start + emissions[0]).unsqueeze(-1)
    pointers: list[tuple[Tensor, int]] = []
    for step in range(1, steps):
        moved, pointer = _step(best, emissions[step], scores.transitions, k)
        before, ways = best.shape[-1], moved.shape[-1]
        # A sequence that has ended stays where it is, each way pointing to itself; ways that are new lead nowhere.
        way = torch.arange(ways, device=best.device).clamp(max=before - 1)
        itself = torch.arange(tags, device=best.device)[:, None] * before + way
        there = span.inside[step].view(batch, 1, 1)
        best = torch.where(there, moved, _padded(best, ways))
        pointers.append((torch.where(there, pointer, itself), before))
    final = (best + scores.end.unsqueeze(-1)).flatten(1)
    found, chosen = final.topk(min(k, final.shape[1]), -1)
    path = [chosen // best.shape[-1]]
    for pointer, before in reversed(pointers):
        chosen = pointer.flatten(1).gather(1, chosen)
        path.append(chosen // before)
    return _shaped(torch.stack(path[::-1]), found, span, k)


def _step(best: Tensor, emitted: Tensor, transitions: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The best ways to each tag one step on, and from which (tag, way), numbered as one, each came."""
    tags, ways = best.shape[1:]
    routes = (best.unsqueeze(-1) + transitions.unsqueeze(1)).flatten(1, 2)
    count = min(k, tags * ways)
    if count == 1:
        moved, pointer = routes.max(1, keepdim=True)
    else:
        moved, pointer = routes.topk(count, 1)
    return (moved + emitted.unsqueeze(1)).transpose(1, 2), pointer.transpose(1, 2)


def _padded(best: Tensor, ways: int) -> Tensor:
    return torch.nn.functional.pad(best, (0, ways - best.shape[-1]), value=NEVER)


def _shaped(path: Tensor, found: Tensor, span: Span, k: int) -> tuple[Tensor, Tensor]:
    """From (steps, batch, ways) and (batch, ways) to the k best first, and nothing where there is nothing."""
    missing = k - found.shape[1]
    found = torch.nn.functional.pad(found, (0, missing), value=NEVER).T
    path = torch.nn.functional.pad(path, (0, missing), value=NO_TAG).permute(2, 0, 1)
    there = span.inside & (found != NEVER).unsqueeze(1)
    return torch.where(there, path, NO_TAG).contiguous(), found.contiguous()
