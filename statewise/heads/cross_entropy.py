"""The loss of a choice among many words, by a fused kernel on an accelerator."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from statewise.kernels import load_triton, transformed


def cross_entropy(scores: Float[Tensor, "*rows words"], targets: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """``logsumexp(scores) - scores[target]`` of every row, in at least single precision.

    On a CUDA device a kernel reads the scores once and writes their gradient once, in their own dtype. It equals
    torch's up to rounding, and has no second derivative.

    Args:
        scores: before the softmax.
        targets: the words that were to be predicted. -100 is padding: its loss and gradient are 0, as torch's are. Any
            other number outside the words is refused by torch; the kernel, which cannot refuse, gives NaN for its row.

    >>> cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long)).shape
    torch.Size([2, 3])
    """
    flat, chosen = scores.flatten(0, -2), targets.flatten()
    if _fits(flat, chosen):
        losses: Tensor = FusedCrossEntropy.apply(flat, chosen)  # type: ignore[no-untyped-call]
    else:
        losses = F.cross_entropy(at_least_single(flat), chosen, reduction="none")
    return losses.view(targets.shape)


class FusedCrossEntropy(torch.autograd.Function):
    """The kernel's two ways."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor) -> Tensor:
        from statewise.kernels.entropy import cross_entropy_forward

        scores, targets = scores.contiguous(), targets.contiguous()
        losses, normalisers = cross_entropy_forward(scores, targets)
        ctx.save_for_backward(scores, targets, normalisers)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor, None]:
        from statewise.kernels.entropy import cross_entropy_backward

        scores, targets, normalisers = ctx.saved_tensors
        return cross_entropy_backward(grads.float().contiguous(), scores, targets, normalisers), None


def at_least_single(values: Tensor) -> Tensor:
    """Half precision made single: sums over a vocabulary need more.

    >>> at_least_single(torch.zeros(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _fits(scores: Tensor, targets: Tensor) -> bool:
    """Whether the kernel takes these: not under torch.func's transforms, which cannot see through it."""
    if scores.device.type != "cuda" or scores.dtype == torch.float64 or targets.dtype != torch.int64:
        return False
    return load_triton().available and load_triton().device == "cuda" and not transformed()
