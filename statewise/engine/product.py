"""The recurrent product of a step, with dropout masks, and its derivative."""

from __future__ import annotations

import torch
from torch import Tensor

from statewise.engine.layout import Turn
from statewise.engine.recurrence import GateMask, Recurrence


class RecurrentProduct:
    """``U v + b`` of the present step, where a mask may act on ``v`` or on ``U v``; the Product of the cells' contract.

    With ``recording`` it keeps the values it was given and the gradients it is given back, so that the gradient of U
    is one big product after the loop.
    """

    def __init__(self, call: Recurrence, *, recording: bool) -> None:
        self._weight, self._bias, self._hidden = call.weight_hh, call.bias_hh, call.hidden
        self._mask, self._start_at_one = call.mask, call.start_at_one
        self._recording = recording
        self._turn, self._member = Turn(0, 0, 0), 0
        self._values: dict[tuple[int, int, int], Tensor] = {}
        self._grads: dict[tuple[int, int], tuple[list[Tensor], list[Tensor]]] = {}
        self._bias_grad = None if call.bias_hh is None else torch.zeros_like(call.bias_hh)
        self._last: tuple[Tensor, int, int, Tensor] | None = None

    def begin(self, turn: Turn, member: int = 0) -> None:
        """Announce the step, and for through-time mixing which member of the pair is evaluated."""
        self._turn, self._member = turn, member

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        if self._recording:
            self._values[self._turn.start, self._member, first] = value
        if self._last is not None and self._last[0] is value and self._last[1:3] == (first, last):
            return self._last[3]  # the other member of a pair shares the state, hence the product
        blocks = slice(first * self._hidden, last * self._hidden)
        out = self._masked(value, self._weight[blocks], first, last)
        if self._start_at_one and self._turn.kept < self._turn.rows:
            fresh = torch.arange(self._turn.rows, device=out.device).unsqueeze(1) >= self._turn.kept
            out = out + fresh
        if self._bias is not None:
            out = out + self._bias[blocks]
        self._last = (value, first, last, out)
        return out

    def _masked(self, value: Tensor, weight: Tensor, first: int, last: int) -> Tensor:
        if self._mask is None:
            return value @ weight.T
        if self._mask.on_projection:
            return (value @ weight.T) * self._projection_mask(self._mask, last - first, first)
        if self._mask.shared:
            return (value * self._mask.mask.at(self._turn)) @ weight.T
        masks = self._mask.mask.at(self._turn).split(self._hidden, dim=1)[first:last]
        return torch.cat([(value * m) @ w.T for m, w in zip(masks, weight.split(self._hidden), strict=True)], dim=1)

    def _projection_mask(self, mask: GateMask, blocks: int, first: int) -> Tensor:
        rows = mask.mask.at(self._turn)
        if mask.shared:
            return rows.repeat(1, blocks)
        return rows[:, first * self._hidden : (first + blocks) * self._hidden]

    def backward(self, grad: Tensor, first: int, last: int) -> Tensor:
        value = self._values[self._turn.start, self._member, first]
        blocks = slice(first * self._hidden, last * self._hidden)
        weight = self._weight[blocks]
        if self._bias_grad is not None:
            self._bias_grad[blocks] += grad.sum(0)
        mask = self._mask
        if mask is None:
            return self._record(grad, value, first, last) @ weight
        if mask.on_projection:
            return self._record(grad * self._projection_mask(mask, last - first, first), value, first, last) @ weight
        if mask.shared:
            rows = mask.mask.at(self._turn)
            return (self._record(grad, value * rows, first, last) @ weight) * rows
        masks = mask.mask.at(self._turn).split(self._hidden, dim=1)[first:last]
        total = torch.zeros_like(value)
        for block, m in enumerate(masks, start=first):
            piece = grad[:, (block - first) * self._hidden : (block - first + 1) * self._hidden]
            piece = self._record(piece, value * m, block, block + 1)
            total = total + (piece @ self._weight[block * self._hidden : (block + 1) * self._hidden]) * m
        return total

    def _record(self, grad: Tensor, value: Tensor, first: int, last: int) -> Tensor:
        grads, values = self._grads.setdefault((first, last), ([], []))
        grads.append(grad)
        values.append(value)
        return grad

    def gradients(self) -> tuple[Tensor, Tensor | None]:
        """The gradients of U and of the bias, once all steps are done."""
        total = torch.zeros_like(self._weight)
        for (first, last), (grads, values) in self._grads.items():
            total[first * self._hidden : last * self._hidden] += torch.cat(grads).T @ torch.cat(values)
        return total, self._bias_grad
