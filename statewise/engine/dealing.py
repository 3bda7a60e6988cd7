"""The input terms of pairs: sequences are projected once, and their rows dealt out to the pairs that mix them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from statewise.kernels import batched, traced, transformed
from statewise.native import load_native, operators


@dataclass(frozen=True)
class Member:
    """Where the pairs find the rows of their first or of their second members.

    Attributes:
        index: for every row of the pairs the row of the sequences; -1 where the member has ended.
        ends: whether it is -1 anywhere.
        repeated: whether a sequence may be this member of several pairs.
    """

    index: Tensor
    ends: bool
    repeated: bool

    @property
    def rows(self) -> Tensor:
        """The index as the kernel reads it: its numbers one after the other."""
        return self.index.contiguous()

    def take(self, term: Tensor, blank: Tensor | None) -> Tensor:
        """The rows of a term; where the member has ended, the blank, or zero."""
        index = self.index.clamp(min=0) if self.ends else self.index
        # On a device only the derivative of the first adds up in one order always.
        taken = term[index] if self.repeated and term.is_cuda else term.index_select(0, index)
        if not self.ends:
            return taken
        return torch.where(self.index.unsqueeze(1) < 0, term.new_zeros(()) if blank is None else blank, taken)


def project(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``inputs @ weight.T + bias``, by the CPU's own kernel where there is one."""
    fits = weight.shape[1:] == inputs.shape[1:] and (bias is None or bias.shape == weight.shape[:1])
    if not fits or not _is_native(inputs, weight, bias):  # torch says what does not fit
        return torch.nn.functional.linear(inputs, weight, bias)
    term: Tensor = _Projected.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return term


def deal(
    term: Tensor, blank: Tensor | None, first: Member | None, second: Member, *, plainly: bool = False
) -> tuple[Tensor, Tensor]:
    """The terms of both members of all pairs.

    Args:
        term: of the sequences, (rows, blocks * hidden).
        blank: the term of the zero vector, which a member has that has ended; None for zero.
        first: the first members; None where they are the sequences as they lie.
        second: the second members.
        plainly: whether by torch's operations alone.
    """
    fits = blank is None or blank.shape == term.shape[1:]
    if plainly or not fits or not _is_native(term, blank):
        return term if first is None else first.take(term, blank), second.take(term, blank)
    dealt: tuple[Tensor, Tensor] = _Dealt.apply(term, blank, first, second)  # type: ignore[no-untyped-call]
    return dealt


def _is_native(*tensors: Tensor | None) -> bool:
    """Whether the CPU's kernel can take tensors, and nothing but autograd watches."""
    known = [tensor for tensor in tensors if tensor is not None]
    if any(one.device.type != "cpu" or one.dtype not in (torch.float32, torch.float64) for one in known):
        return False
    if any(one.dtype != known[0].dtype for one in known):
        return False
    watched = transformed() or traced()
    return load_native().available and not watched and torch.autograd.forward_ad._current_level < 0


class _Projected(torch.autograd.Function):
    """A linear map; its second derivatives are made of torch's operations."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        start = None if bias is None else bias.contiguous()
        return operators.multiply(inputs.contiguous(), weight.contiguous(), start, True)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (inputs, weight), needed = grads, ctx.saved_tensors, ctx.needs_input_grad
        sums = grad.sum(0) if needed[2] else None
        if torch.is_grad_enabled() or batched(grad):
            return grad @ weight, grad.T @ inputs, sums
        grad = grad.contiguous()
        back = operators.multiply(grad, weight.contiguous(), None, False) if needed[0] else None
        turned = operators.multiply_turned(grad, inputs.contiguous()) if needed[1] else None
        return back, turned, sums


class _Dealt(torch.autograd.Function):
    """Rows dealt out to pairs; their second derivatives are made of torch's operations."""

    @staticmethod
    def forward(
        ctx: Any, term: Tensor, blank: Tensor | None, first: Member | None, second: Member
    ) -> tuple[Tensor, Tensor]:
        ctx.first, ctx.second, ctx.rows = first, second, len(term)
        rows, start = term.contiguous(), None if blank is None else blank.contiguous()
        taken = operators.deal(rows, second.rows, start)
        return term.view_as(term) if first is None else operators.deal(rows, first.rows, start), taken

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        first: Member | None = ctx.first
        second: Member = ctx.second
        if torch.is_grad_enabled() or batched(*grads):
            grad, blank = _collected(grads, (first, second), ctx.rows)
        else:
            one, other = (grad.contiguous() for grad in grads)
            grad, blank = operators.collect(one, None if first is None else first.rows, other, second.rows, ctx.rows)
        return grad, blank if ctx.needs_input_grad[1] else None, None, None


def _collected(grads: tuple[Tensor, ...], members: tuple[Member | None, ...], rows: int) -> tuple[Tensor, Tensor]:
    """What the rows of the sequences, and the blank, get back from the pairs."""
    total, blank = grads[0].new_zeros(rows, grads[0].shape[1]), grads[0].new_zeros(grads[0].shape[1])
    for grad, member in zip(grads, members, strict=True):
        if member is None:
            total = total + grad
            continue
        there = (member.index >= 0).unsqueeze(1)
        total = total.index_add(0, member.index.clamp(min=0), grad * there)
        blank = blank + (grad * ~there).sum(0)
    return total, blank
