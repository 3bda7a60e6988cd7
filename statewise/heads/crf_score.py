"""The scores of given tags: sums over a path, each of whose steps may count more or less."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, DeviceError, DtypeError, ShapeError
from statewise.heads.crf_constraints import Constraints
from statewise.heads.crf_fast import Path, score_of, serving
from statewise.heads.crf_reference import NEVER, Scores
from statewise.heads.crf_span import Span
from statewise.kernels import traced


class ForbiddenPathError(ArgumentError):
    """Tags that were given as right are impossible under the constraints."""


def path_score(
    emissions: Float[Tensor, "steps batch tags"],
    scores: Scores,
    tags: Int[Tensor, "steps batch"],
    span: Span,
    *,
    weights: Float[Tensor, "steps batch"] | None = None,
    pair_weights: Float[Tensor, "pairs batch"] | None = None,
    engine: str = "auto",
) -> Float[Tensor, " batch"]:
    """``sum_t w_t E[t, y_t] + sum_t mu_t A[y_t, y_{t+1}] + w_1 start[y_1] + w_L end[y_L]``.

    Args:
        emissions: E, of any floating dtype.
        scores: of the chain, at least single precision.
        tags: y; whatever lies beyond the end of a sequence is not looked at.
        span: how far the sequences reach.
        weights: w; None means 1 everywhere.
        pair_weights: mu, one less than steps; None means ``(w_t + w_{t+1}) / 2``.
        engine: as that of the recursion: "reference" for torch's operations alone, which go on to second derivatives.
    """
    fixed = not any(each is not None and each.requires_grad for each in (weights, pair_weights))
    walker = serving(emissions, engine) if fixed else None
    if walker is not None:
        kind = scores.start.dtype
        given = (each if each is None else each.to(kind).contiguous() for each in (weights, pair_weights))
        return score_of(walker, emissions, scores, span, Path(tags.long().contiguous(), *given))
    tags = torch.where(span.inside, tags, 0)
    emitted = emissions.gather(-1, tags.unsqueeze(-1)).squeeze(-1).to(scores.start.dtype)
    ends = scores.start[tags[0]], scores.end[span.at_end(tags)]
    if weights is None:
        found = _weighted(emitted, None, span.inside) + ends[0] + ends[1]
    else:
        weights = torch.where(span.inside, weights.to(emitted.dtype), 0.0)
        found = _weighted(emitted, weights, span.inside)
        for value, weight in zip(ends, (weights[0], span.at_end(weights)), strict=True):
            found = found + _product(value, weight)
        if pair_weights is None:
            pair_weights = (weights[:-1] + weights[1:]) / 2
    return found + pair_score(scores, tags[:-1], tags[1:], span, weights=pair_weights)


def pair_score(
    scores: Scores,
    source: Int[Tensor, "pairs batch"],
    target: Int[Tensor, "pairs batch"],
    span: Span,
    *,
    weights: Float[Tensor, "pairs batch"] | None = None,
) -> Float[Tensor, " batch"]:
    """``sum_t mu_t A[source_t, target_{t+1}]`` within the sequences.

    Args:
        scores: of the chain.
        source: tags of all steps but the last, 0 beyond the end of a sequence.
        target: tags of all steps but the first, likewise.
        span: how far the sequences reach.
        weights: mu; None means 1. A forbidden transition with weight 0 counts 0.
    """
    inside = span.inside[1:]
    values = scores.transitions[source, target]
    if weights is not None:
        weights = torch.where(inside, weights.to(values.dtype), 0.0)
    return _weighted(values, weights, inside)


def _weighted(values: Tensor, weights: Tensor | None, inside: Tensor) -> Tensor:
    values = torch.where(inside, values, 0.0)
    return (values if weights is None else _product(values, weights)).sum(0)


def _product(values: Tensor, weights: Tensor) -> Tensor:
    return weights * values.masked_fill((weights == 0) & (values == NEVER), 0.0)  # 0 times -inf would be NaN


def check_tags(
    tags: Tensor, span: Span, count: int, constraints: Constraints | None = None, *, where: str = "tags"
) -> None:
    """Refuse tags that do not exist, or a path that the constraints forbid.

    Tags on a device are not looked at, since the host would have to wait for them, nor those that torch's compiler
    traces: a forbidden path there has the score -inf, and a loss of inf.

    Args:
        tags: (steps, batch).
        span: how far the sequences reach.
        count: how many tags there are.
        constraints: that hold while training; None if there are none.
        where: the argument, for errors.
    """
    if not isinstance(tags, Tensor) or tags.dtype not in (torch.int32, torch.int64):
        got = str(tags.dtype) if isinstance(tags, Tensor) else type(tags).__name__
        raise DtypeError(where=where, got=got, wanted="a tensor of whole numbers")
    if tags.shape != (span.steps, len(span.lengths)):
        raise ShapeError(where=where, got=tuple(tags.shape), wanted=f"({span.steps}, {len(span.lengths)}), time first")
    if tags.device.type != "cpu" or span.there.device.type != "cpu" or traced():
        return
    outside = ((tags < 0) | (tags >= count)) & span.inside
    if bool(outside.any()):
        step, row = outside.nonzero()[0].tolist()
        raise ArgumentError(
            where=where,
            got=f"tag {int(tags[step, row])} in sequence {row} at step {step}",
            wanted=f"tags from 0 to {count - 1}",
            remedy="Padding belongs beyond the lengths.",
        )
    if constraints is not None:
        _check_path(torch.where(span.inside, tags, 0), span, constraints, where)


def check_weights(weights: Tensor, span: Span, *, where: str = "weights") -> None:
    """Refuse weights of another shape or place: engines read one for each step of each sequence.

    Args:
        weights: (steps, batch).
        span: how far the sequences reach.
        where: the argument, for errors.
    """
    if not isinstance(weights, Tensor) or not weights.is_floating_point():
        got = str(weights.dtype) if isinstance(weights, Tensor) else type(weights).__name__
        raise DtypeError(where=where, got=got, wanted="a tensor of real numbers")
    wanted = (span.steps, len(span.lengths))
    if weights.shape != wanted:
        remedy = "Give each step of each sequence its own: weights.expand(steps, batch) repeats one."
        raise ShapeError(where=where, got=tuple(weights.shape), wanted=f"{wanted}, time first", remedy=remedy)
    if weights.device != span.there.device:
        raise DeviceError(where=where, got=str(weights.device), wanted=f"{span.there.device}, as the emissions")


def _check_path(tags: Tensor, span: Span, constraints: Constraints, where: str) -> None:
    assert constraints.start is not None and constraints.end is not None
    first = ~constraints.start[tags[:1]]
    broken = torch.cat([first, ~constraints.allowed[tags[:-1], tags[1:]]]) & span.inside
    unfinished = ~constraints.end[span.at_end(tags)]
    if bool(broken.any()):
        step, row = broken.nonzero()[0].tolist()
        went = f"goes from tag {int(tags[step - 1, row])} to tag {int(tags[step, row])}"
        went = went if step else f"begins with tag {int(tags[0, row])}"
    elif bool(unfinished.any()):
        row = int(unfinished.nonzero()[0])
        step = int(span.lengths[row]) - 1
        went = f"ends with tag {int(tags[step, row])}"
    else:
        return
    raise ForbiddenPathError(
        where=where,
        got=f"sequence {row}, which at step {step} {went}",
        wanted="paths that the constraints allow",
        remedy='Correct the tags or the constraints, or give constrain="decoding".',
    )
