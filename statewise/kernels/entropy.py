"""Cross entropy over a large vocabulary, read once forward and once backward.

Torch converts half precision scores to float32, writes their log-softmax and its gradient in float32, and converts
back: some twenty bytes of traffic a score and pass. Here a score is read where it lies, and its gradient is written in
its own dtype; everything between is float32 in registers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048  # scores of a program at a time
WARPS = 8

_PADDING = tl.constexpr(-100)  # torch's ignore_index
_LEAST = tl.constexpr(-1e30)  # below every score, and finite: its difference with itself is 0


def cross_entropy_forward(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The losses of all rows, and their log-normalisers as a sum of two numbers, (2, rows); in float32.

    ``loss = logsumexp(scores) - scores[target]``; 0 where the target is padding, that is -100, as torch has it. A
    kernel cannot refuse any other target outside the words: its loss, and the gradient of its row, are NaN.

    Args:
        scores: (rows, words), contiguous, of any floating dtype but float64.
        targets: (rows,), int64, within the words or -100.

    >>> from statewise.kernels import load_triton
    >>> scores = torch.zeros(3, 5, device=load_triton().device)
    >>> losses, _ = cross_entropy_forward(scores, torch.zeros(3, dtype=torch.long, device=scores.device))
    >>> [round(loss, 4) for loss in losses.tolist()]
    [1.6094, 1.6094, 1.6094]
    """
    rows, words = scores.shape
    losses, normalisers = (torch.empty(*size, rows, dtype=torch.float32, device=scores.device) for size in ((), (2,)))
    with torch.cuda.device_of(scores):
        _forward[(rows,)](scores, targets, losses, *normalisers, words, BLOCK=BLOCK, num_warps=WARPS)
    return losses, normalisers


def cross_entropy_backward(grads: Tensor, scores: Tensor, targets: Tensor, normalisers: Tensor) -> Tensor:
    """The gradient of the scores, in their dtype.

    ``(softmax(scores) - one_hot(target)) * grad``, row by row; 0 where the target is -100.

    Args:
        grads: of the losses, (rows,), float32, contiguous.
        scores: as forward.
        targets: as forward.
        normalisers: what forward gave.
    """
    rows, words = scores.shape
    out = torch.empty_like(scores)
    with torch.cuda.device_of(scores):
        _backward[(rows, triton.cdiv(words, BLOCK))](
            grads, scores, targets, *normalisers, out, words, BLOCK=BLOCK, num_warps=WARPS
        )
    return out


@triton.jit
def _forward(scores, targets, losses, greatest, log_totals, words, BLOCK: tl.constexpr):
    """One program reads a row, each of its lanes with a sum of its own.

    The greatest score and the rest of the normaliser stay apart: their sum would lose the digits of the rest.
    """
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], _LEAST, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, words, BLOCK):
        here = start + columns
        score = tl.load(scores + row * words + here, mask=here < words, other=float("-inf")).to(tl.float32)
        above = tl.maximum(largest, score)
        total = total * tl.exp(largest - above) + tl.exp(score - above)
        largest = above
    most = tl.max(largest, 0)
    log_total = tl.log(tl.sum(total * tl.exp(largest - most), 0))
    target = tl.load(targets + row)
    known = (target >= 0) & (target < words)
    chosen = tl.load(scores + row * words + target, mask=known, other=float("nan")).to(tl.float32)
    tl.store(losses + row, tl.where(target == _PADDING, 0.0, (most - chosen) + log_total))
    tl.store(greatest + row, most)
    tl.store(log_totals + row, log_total)


@triton.jit
def _backward(grads, scores, targets, greatest, log_totals, out, words, BLOCK: tl.constexpr):
    """One program writes the gradient of a stretch of a row."""
    row = tl.program_id(0).to(tl.int64)
    here = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = here < words
    score = tl.load(scores + row * words + here, mask=inside, other=float("-inf")).to(tl.float32)
    grad = tl.exp((score - tl.load(greatest + row)) - tl.load(log_totals + row))
    target = tl.load(targets + row)
    known = (target >= 0) & (target < words)
    factor = tl.where(known, tl.load(grads + row), tl.where(target == _PADDING, 0.0, float("nan")))
    grad = (grad - tl.where(here == target, 1.0, 0.0)) * factor
    tl.store(out + row * words + here, grad.to(out.dtype.element_ty), mask=inside)
