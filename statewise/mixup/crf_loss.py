"""What a conditional random field loses on a mixed sequence: three readings of a mixed path."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, LengthError
from statewise.heads.crf import CRF
from statewise.heads.crf_reference import NEVER, Scores
from statewise.heads.crf_score import check_tags, check_weights, pair_score, path_score
from statewise.heads.crf_span import Span

MODES = ("prefix", "paper", "coupled")


class _MixedRun(NamedTuple):
    """What a loss is computed of: the arguments of :func:`mixed_crf_loss`, coefficients where the emissions are."""

    crf: CRF
    emissions: Tensor
    tags: Tensor
    partner_tags: Tensor
    coefficients: Tensor
    lengths: Tensor
    partner_lengths: Tensor


class InconsistentMixtureWarning(UserWarning):
    """A mixed score whose weights belong to no distribution over paths, so that its loss has no lower bound."""


def mixed_crf_loss(
    crf: CRF,
    emissions: Float[Tensor, "steps pairs tags"],
    tags: Int[Tensor, "steps pairs"],
    partner_tags: Int[Tensor, "steps pairs"],
    coefficients: Float[Tensor, "steps pairs"],
    lengths: Int[Tensor, " pairs"],
    partner_lengths: Int[Tensor, " pairs"],
    mode: str | None = None,
) -> Float[Tensor, " pairs"]:
    """The loss of each pair, from the emissions of its mixed run (Karamzade et al. 2020, mixup with a CRF).

    - ``prefix``: ``m [log Z_L - s(y)] + (1 - m) [log Z_L' - s(y')]``, m the mean coefficient over the longer of both;
      the two log partitions come off one recursion. Never negative.
    - ``paper``: ``log Z - s_mix`` where emissions count ``lambda_t`` for y and ``1 - lambda_t`` for y', and transitions
      the mean of their two steps. These weights belong to a distribution over paths only if the coefficients are
      constant in time; otherwise the loss has no lower bound, which is told by a warning.
    - ``coupled``: the expected loss of a path that follows y with probability ``lambda_t`` at step t, and y' otherwise,
      and changes over as rarely as possible: emissions as above, transitions ``min(lambda_t, lambda_{t+1})`` within y,
      ``min(1 - lambda_t, 1 - lambda_{t+1})`` within y', and what is left from one to the other. Never negative. Where
      only one member is there, the path follows it.

    For a coefficient that is constant in time and equal lengths all three are the same.

    Under constraints that always hold, ``coupled`` leaves out changes that they forbid, and gives their weight to the
    transitions within y and y' of the same step; these weights then belong to no distribution over paths, and the loss
    has no lower bound. That is why "prefix" serves there unless another is asked for.

    Args:
        crf: with its transitions.
        emissions: of the mixed run.
        tags: y, of the first member.
        partner_tags: y', of the second.
        coefficients: lambda, the weight of the first member, after the policy for unequal lengths.
        lengths: L, on the CPU.
        partner_lengths: L', on the CPU.
        mode: one of those above; None is "coupled", but "prefix" under constraints that always hold.

    >>> crf, E = CRF(2), torch.zeros(3, 1, 2)
    >>> y, full = torch.tensor([[0], [0], [1]]), torch.tensor([3])
    >>> losses = [mixed_crf_loss(crf, E, y, 1 - y, torch.full((3, 1), 0.3), full, full, mode) for mode in MODES]
    >>> all(torch.allclose(loss, 0.3 * crf.nll(E, y) + 0.7 * crf.nll(E, 1 - y)) for loss in losses)
    True
    """
    if mode is None:
        mode = "coupled" if crf.training_constraints is None else "prefix"
    if mode not in MODES:
        raise ArgumentError(where="mixed_crf_loss.mode", got=mode, wanted=f"one of {', '.join(MODES)}")
    _check_coefficients(coefficients, Span.of(torch.maximum(lengths, partner_lengths), emissions))
    coefficients = coefficients.to(emissions.device, torch.promote_types(emissions.dtype, torch.float32))
    run = _MixedRun(crf, emissions, tags, partner_tags, coefficients, lengths, partner_lengths)
    if mode == "paper":
        _check_paper(coefficients, lengths, partner_lengths)
        return _paper(run)
    return _prefix(run) if mode == "prefix" else _coupled(run)


def _prefix(run: _MixedRun) -> Tensor:
    crf, emissions, tags, partner_tags, coefficients, lengths, others = run
    whole = Span.of(torch.maximum(lengths, others), emissions)
    mean = torch.where(whole.inside, coefficients, 0.0).sum(0) / whole.there
    if torch.equal(lengths, others):
        total = other = crf.log_partition(emissions, lengths)
    else:
        prefixes = crf.prefix_log_partitions(emissions, whole.lengths)
        total, other = (Span.of(each, emissions).at_end(prefixes) for each in (lengths, others))
    first = total - crf.score(emissions, tags, lengths)
    return mean * first + (1 - mean) * (other - crf.score(emissions, partner_tags, others))


def _paper(run: _MixedRun) -> Tensor:
    crf, emissions, tags, partner_tags, coefficients, lengths, others = run
    mixed = crf.score(emissions, tags, lengths, weights=coefficients)
    mixed = mixed + crf.score(emissions, partner_tags, others, weights=1 - coefficients)
    return crf.log_partition(emissions, lengths) - mixed


def _check_coefficients(coefficients: Tensor, whole: Span) -> None:
    """Refuse what is no coefficient for each step of each pair; values on a device are not waited for."""
    where, span = "mixed_crf_loss.coefficients", replace(whole, there=whole.lengths.to(coefficients.device))
    check_weights(coefficients, span, where=where)
    if coefficients.device.type != "cpu":
        return
    wrong = span.inside & ~((coefficients >= 0) & (coefficients <= 1))  # NaN is neither
    if bool(wrong.any()):
        step, pair = wrong.nonzero()[0].tolist()
        got = f"{float(coefficients[step, pair]):g} in pair {pair} at step {step}"
        raise ArgumentError(where=where, got=got, wanted="numbers from 0 to 1")


def _check_paper(coefficients: Tensor, lengths: Tensor, others: Tensor) -> None:
    if not torch.equal(lengths, others):
        row = int((lengths != others).nonzero()[0])
        raise LengthError(
            where="mixed_crf_loss",
            got=f"pair {row} of lengths {int(lengths[row])} and {int(others[row])}",
            wanted='pairs of equal length in mode "paper"',
            remedy='Truncate them, or use mode "prefix" or "coupled".',
        )
    inside = Span.of(lengths, coefficients).inside
    if bool((inside & (coefficients != coefficients[0])).any()):
        warnings.warn(
            'coefficients that vary in time make the loss of mode "paper" unbounded below: its transition weights are '
            'those of no distribution over paths. Use mode "coupled" or "prefix".',
            InconsistentMixtureWarning,
            stacklevel=3,
        )


def _coupled(run: _MixedRun) -> Tensor:
    crf, emissions, tags, partner_tags, coefficients, lengths, others = run
    own, other = Span.of(lengths, emissions), Span.of(others, emissions)
    whole = Span.of(torch.maximum(lengths, others), emissions)
    for given, span in ((tags, own), (partner_tags, other)):
        check_tags(given, span, crf.tags, crf.training_constraints, where="mixed_crf_loss.tags")
    first, second = torch.where(own.inside, tags, 0), torch.where(other.inside, partner_tags, 0)
    weight = torch.where(own.inside & other.inside, coefficients, own.inside.to(coefficients.dtype))
    wide, scores = crf.alike(emissions)
    before, after = weight[:-1], weight[1:]
    leaving, joining = (before - after).clamp(min=0), (after - before).clamp(min=0)
    within, beside = torch.minimum(before, after), torch.minimum(1 - before, 1 - after)
    if crf.training_constraints is not None:
        leaving, joining, factor = _possible(scores, first, second, leaving, joining)
        within, beside = within * factor, beside * factor
    mixed = path_score(wide, scores, first, whole, weights=weight, pair_weights=within, engine=crf.engine)
    mixed = mixed + path_score(wide, scores, second, whole, weights=1 - weight, pair_weights=beside, engine=crf.engine)
    mixed = mixed + pair_score(scores, first[:-1], second[1:], whole, weights=leaving)
    mixed = mixed + pair_score(scores, second[:-1], first[1:], whole, weights=joining)
    return crf.log_partition(emissions, whole.lengths) - mixed


def _possible(
    scores: Scores, first: Tensor, second: Tensor, leaving: Tensor, joining: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of changes that are not forbidden, and by what the others grow in return."""
    stays = 1 - leaving - joining
    leaving = leaving.masked_fill(scores.transitions.detach()[first[:-1], second[1:]] == NEVER, 0.0)
    joining = joining.masked_fill(scores.transitions.detach()[second[:-1], first[1:]] == NEVER, 0.0)
    # At a step with a change of weight 1 that is forbidden nothing is left.
    factor = torch.where(stays > 0, (1 - leaving - joining) / stays.clamp(min=torch.finfo(stays.dtype).tiny), 0.0)
    return leaving, joining, factor
