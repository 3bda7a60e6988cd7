"""The recursions of a linear-chain conditional random field, all steps in one kernel.

One program walks one sequence, with the transitions in its registers, so that a step reads only emissions. All is
float32 and in logarithms, each step's scores beside their greatest, so that long sequences lose no digits. Sums over
sequences are left to torch, whose order is fixed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_NEVER = tl.constexpr(float("-inf"))


def crf_forward(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, *, every: bool
) -> tuple[Tensor, Tensor]:
    """``log Z`` of every prefix, (steps, batch), 0 beyond the lengths, or of the whole sequences, (batch,).

    Then ``log sum_i exp(alpha_{t-1}[i] + A[i, j])`` of every step, (steps, batch, tags), up to a number a step: what
    backward needs.

    Args:
        emissions: (steps, batch, tags), contiguous, of any floating dtype but float64.
        transitions: (tags, tags), float32, contiguous; -inf where one is forbidden.
        start: (tags,), likewise.
        end: (tags,), likewise.
        lengths: (batch,), int64, on the same device.
        every: whether all prefixes are wanted.

    >>> from statewise.kernels import load_triton
    >>> there = {"device": load_triton().device}
    >>> zero, lengths = torch.zeros(3, **there), torch.tensor([2], **there)
    >>> found, _ = crf_forward(
    ...     torch.zeros(2, 1, 3, **there), torch.zeros(3, 3, **there), zero, zero, lengths, every=True
    ... )
    >>> found.exp().round().tolist()
    [[3.0], [9.0]]
    """
    steps, batch, tags = emissions.shape
    single = {"dtype": torch.float32, "device": emissions.device}
    found = torch.zeros(steps, batch, **single) if every else torch.empty(batch, **single)
    reached = torch.empty(steps, batch, tags, **single)
    block, warps = _tiles(tags)
    with torch.cuda.device_of(emissions):
        _forward[(batch,)](
            *(emissions, transitions, start, end, lengths, found, reached, batch, tags),
            EVERY=every,
            BLOCK=block,
            num_warps=warps,
        )
    return found, reached


def crf_backward(
    grads: Tensor,
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor,
    reached: Tensor,
    *,
    every: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of emissions, in their dtype, and of transitions, start and end.

    Args:
        grads: of what forward gave first, float32, contiguous.
        emissions: as forward.
        transitions: as forward.
        start: as forward.
        end: as forward.
        lengths: as forward.
        reached: what forward gave second.
        every: as forward.
    """
    batch, tags = emissions.shape[1:]
    for_emissions = torch.zeros_like(emissions)
    for_transitions, for_start, for_end = (reached.new_empty(batch, *size) for size in ((tags, tags), (tags,), (tags,)))
    block, warps = _tiles(tags)
    with torch.cuda.device_of(emissions):
        _backward[(batch,)](
            *(grads, emissions, transitions, end, lengths, reached),
            *(for_emissions, for_transitions, for_start, for_end, batch, tags),
            EVERY=every,
            BLOCK=block,
            num_warps=warps,
        )
    return for_emissions, for_transitions.sum(0), for_start.sum(0), for_end.sum(0)


def _tiles(tags: int) -> tuple[int, int]:
    """A power of two for the tags, and warps enough to hold their square in registers."""
    block = max(8, triton.next_power_of_2(tags))
    return block, max(1, min(16, block * block // 1024))


@triton.jit
def _beside(score):
    """Scores beside their greatest, and that one; 0 if all are -inf."""
    most = tl.max(score, 0)
    most = tl.where(most == _NEVER, 0.0, most)
    return score - most, most


@triton.jit
def _log_total(score):
    """``log sum exp`` of scores, none above 0, along the first axis; -inf if there is nothing to add up."""
    total = tl.sum(tl.exp(score), 0)
    return tl.where(total == 0, _NEVER, tl.log(tl.where(total == 0, 1.0, total)))


@triton.jit
def _forward(
    emissions, transitions, start, end, lengths, found, reached, batch, tags, EVERY: tl.constexpr, BLOCK: tl.constexpr
):
    """One program walks one sequence forward."""
    row = tl.program_id(0).to(tl.int64)
    tag = tl.arange(0, BLOCK)
    inside = tag < tags
    pair = tag[:, None] * tags + tag[None, :]
    both = inside[:, None] & inside[None, :]
    matrix = tl.load(transitions + pair, mask=both, other=_NEVER)
    last = tl.load(end + tag, mask=inside, other=_NEVER)
    length = tl.load(lengths + row)
    here = row * tags + tag  # in 64 bits, as is all that it is added to
    prefix = row

    sums = tl.load(start + tag, mask=inside, other=_NEVER)
    emitted = tl.load(emissions + here, mask=inside, other=0.0).to(tl.float32)
    tl.store(reached + here, sums, mask=inside)
    alpha, peak = _beside(sums + emitted)
    if EVERY:
        ending, top = _beside(alpha + last)
        tl.store(found + row, peak + top + _log_total(ending))
    for _ in range(1, length):
        here += batch * tags
        prefix += batch
        emitted = tl.load(emissions + here, mask=inside, other=0.0).to(tl.float32)
        routes = alpha[:, None] + matrix
        most = tl.max(routes, 0)
        most = tl.where(most == _NEVER, 0.0, most)
        sums = _log_total(routes - most[None, :]) + most
        tl.store(reached + here, sums, mask=inside)
        alpha, most = _beside(sums + emitted)
        peak += most
        if EVERY:
            ending, top = _beside(alpha + last)
            tl.store(found + prefix, peak + top + _log_total(ending))
    if not EVERY:
        ending, top = _beside(alpha + last)
        tl.store(found + row, peak + top + _log_total(ending))


@triton.jit
def _ended(alpha, last, grad):
    """``g softmax(alpha + end)``; 0 if no tag may be the last."""
    ending, _ = _beside(alpha + last)
    weight = tl.exp(ending)
    total = tl.sum(weight, 0)
    return tl.where(total == 0, 0.0, grad * weight / tl.where(total == 0, 1.0, total))


@triton.jit
def _backward(
    grads, emissions, transitions, end, lengths, reached, for_emissions, for_transitions, for_start, for_end,
    batch, tags, EVERY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program walks one sequence back, with the adjoint of the forward recursion."""
    row = tl.program_id(0).to(tl.int64)
    tag = tl.arange(0, BLOCK)
    inside = tag < tags
    pair = tag[:, None] * tags + tag[None, :]
    both = inside[:, None] & inside[None, :]
    matrix = tl.load(transitions + pair, mask=both, other=_NEVER)
    last = tl.load(end + tag, mask=inside, other=_NEVER)
    length = tl.load(lengths + row)
    prefix = (length - 1) * batch + row
    here = prefix * tags + tag

    sums = tl.load(reached + here, mask=inside, other=_NEVER)
    emitted = tl.load(emissions + here, mask=inside, other=0.0).to(tl.float32)
    alpha, _ = _beside(sums + emitted)
    at_last = grads + row
    if EVERY:
        at_last = grads + prefix
    ended = _ended(alpha, last, tl.load(at_last))
    grad = ended
    tl.store(for_emissions + here, grad.to(for_emissions.dtype.element_ty), mask=inside)
    flows = tl.zeros([BLOCK, BLOCK], tl.float32)
    for _ in range(1, length):
        here -= batch * tags
        prefix -= batch
        after = sums
        sums = tl.load(reached + here, mask=inside, other=_NEVER)
        emitted = tl.load(emissions + here, mask=inside, other=0.0).to(tl.float32)
        alpha, _ = _beside(sums + emitted)
        gone = after == _NEVER
        share = tl.exp(alpha[:, None] + matrix - tl.where(gone, 0.0, after)[None, :])
        flow = tl.where(gone[None, :], 0.0, share * grad[None, :])
        flows += flow
        grad = tl.sum(flow, 1)
        if EVERY:
            now = _ended(alpha, last, tl.load(grads + prefix))
            ended += now
            grad += now
        tl.store(for_emissions + here, grad.to(for_emissions.dtype.element_ty), mask=inside)
    tl.store(for_transitions + row * tags * tags + pair, flows, mask=both)
    tl.store(for_start + row * tags + tag, grad, mask=inside)
    tl.store(for_end + row * tags + tag, ended, mask=inside)


def crf_path_score(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    tags: Tensor,
    lengths: Tensor,
    weights: Tensor | None,
    pair_weights: Tensor | None,
) -> Tensor:
    """``sum_t w_t E[t, y_t] + sum_t mu_t A[y_t, y_{t+1}] + w_1 start[y_1] + w_L end[y_L]`` of each sequence.

    A kernel cannot refuse a tag that does not exist: it gives NaN.

    Args:
        emissions: as ``crf_forward``, and so are the scores and lengths.
        transitions: A.
        start: of the first tag.
        end: of the last tag.
        tags: y, (steps, batch), int64, contiguous.
        lengths: of the sequences.
        weights: w, (steps, batch), float32, contiguous; None means 1.
        pair_weights: mu, (steps - 1, batch), likewise; None means the mean of the weights of both steps.

    >>> from statewise.kernels import load_triton
    >>> there = {"device": load_triton().device}
    >>> zero, tags = torch.zeros(3, **there), torch.ones(2, 1, dtype=torch.long, **there)
    >>> given = (torch.ones(2, 1, 3, **there), torch.eye(3, **there), zero, zero, tags, torch.tensor([2], **there))
    >>> crf_path_score(*given, None, None).tolist()
    [3.0]
    """
    batch, count = emissions.shape[1:]
    found = torch.empty(batch, dtype=torch.float32, device=emissions.device)
    with torch.cuda.device_of(emissions):
        _path[(batch,)](
            *(emissions, transitions, start, end, tags, lengths, weights, pair_weights, found, batch, count),
            WEIGHTED=weights is not None,
            PAIRED=pair_weights is not None,
            BLOCK=64,
            num_warps=1,
        )
    return found


def crf_path_score_backward(
    grads: Tensor,
    emissions: Tensor,
    tags: Tensor,
    lengths: Tensor,
    weights: Tensor | None,
    pair_weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of emissions, in their dtype, and of transitions, start and end.

    Args:
        grads: of the scores, (batch,), float32, contiguous.
        emissions: as forward.
        tags: as forward.
        lengths: as forward.
        weights: as forward.
        pair_weights: as forward.
    """
    batch, count = emissions.shape[1:]
    for_emissions = torch.zeros_like(emissions)
    for_transitions, for_start, for_end = (
        grads.new_empty(batch, *size) for size in ((count, count), (count,), (count,))
    )
    block, warps = _tiles(count)
    with torch.cuda.device_of(emissions):
        _path_backward[(batch,)](
            *(grads, tags, lengths, weights, pair_weights),
            *(for_emissions, for_transitions, for_start, for_end, batch, count),
            WEIGHTED=weights is not None,
            PAIRED=pair_weights is not None,
            BLOCK=block,
            num_warps=warps,
        )
    return for_emissions, for_transitions.sum(0), for_start.sum(0), for_end.sum(0)


@triton.jit
def _counted(weight, value):
    """A product in which nothing counts what has weight 0, -inf included."""
    return weight * tl.where(weight == 0, 0.0, value)


@triton.jit
def _path(
    emissions, transitions, start, end, tags, lengths, weights, pair_weights, found, batch, count,
    WEIGHTED: tl.constexpr, PAIRED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program adds up one sequence, many steps at a time."""
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, length, BLOCK):
        step = (first + tl.arange(0, BLOCK)).to(tl.int64)
        inside = step < length
        later = inside & (step > 0)
        at = step * batch + row
        tag = tl.load(tags + at, mask=inside, other=0)
        before = tl.load(tags + at - batch, mask=later, other=0)
        known = (tag >= 0) & (tag < count) & (before >= 0) & (before < count)
        tag, before = tl.where(known, tag, 0), tl.where(known, before, 0)
        weight = tl.full([BLOCK], 1.0, tl.float32)
        pair = weight
        if WEIGHTED:
            weight = tl.load(weights + at, mask=inside, other=0.0)
            pair = (weight + tl.load(weights + at - batch, mask=later, other=0.0)) / 2
        if PAIRED:
            pair = tl.load(pair_weights + at - batch, mask=later, other=0.0)
        emitted = tl.load(emissions + at * count + tag, mask=inside, other=0.0).to(tl.float32)
        emitted += tl.load(start + tag, mask=step == 0, other=0.0)
        emitted += tl.load(end + tag, mask=step == length - 1, other=0.0)
        moved = tl.load(transitions + before * count + tag, mask=later, other=0.0)
        term = tl.where(inside, _counted(weight, emitted), 0.0) + tl.where(later, _counted(pair, moved), 0.0)
        total += tl.where(known, term, float("nan"))
    tl.store(found + row, tl.sum(total, 0))


@triton.jit
def _path_backward(
    grads, tags, lengths, weights, pair_weights, for_emissions, for_transitions, for_start, for_end, batch, count,
    WEIGHTED: tl.constexpr, PAIRED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program walks one sequence, counting its transitions in registers."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    inside = lane < count
    both = inside[:, None] & inside[None, :]
    length = tl.load(lengths + row)
    grad = tl.load(grads + row)
    at = row
    tag = tl.load(tags + at)
    weight = grad
    if WEIGHTED:
        weight = grad * tl.load(weights + at)
    here = lane == tag
    tl.store(for_start + row * count + lane, tl.where(here, weight, 0.0), mask=inside)
    tl.store(for_emissions + at * count + lane, weight.to(for_emissions.dtype.element_ty), mask=here & inside)
    flows = tl.zeros([BLOCK, BLOCK], tl.float32)
    for _ in range(1, length):
        at += batch
        earlier = weight
        if WEIGHTED:
            weight = grad * tl.load(weights + at)
        pair = (earlier + weight) / 2
        if PAIRED:
            pair = grad * tl.load(pair_weights + at - batch)
        before = here
        here = lane == tl.load(tags + at)
        tl.store(for_emissions + at * count + lane, weight.to(for_emissions.dtype.element_ty), mask=here & inside)
        flows += tl.where(before[:, None] & here[None, :], pair, 0.0)
    tl.store(for_transitions + row * count * count + lane[:, None] * count + lane[None, :], flows, mask=both)
    tl.store(for_end + row * count + lane, tl.where(here, weight, 0.0), mask=inside)
