"""The recurrent product of a step, with dropout masks."""

from __future__ import annotations

import torch
from torch import Tensor

from statewise.engine.layout import Turn
from statewise.engine.recurrence import GateMask, Recurrence


class RecurrentProduct:
    """``U v + b`` of the present step, where a mask may act on ``v`` or on ``U v``: the Product that cells get."""

    def __init__(self, call: Recurrence) -> None:
        self._weight, self._bias, self._hidden = call.weight_hh, call.bias_hh, call.hidden
        self._mask, self._start_at_one = call.mask, call.start_at_one
        self._turn = Turn(0, 0, 0)
        self._parts: dict[tuple[int, int], tuple[Tensor, Tensor | None]] = {}
        self._last: tuple[Tensor, int, int, Tensor] | None = None

    def begin(self, turn: Turn) -> None:
        """Announce the step."""
        self._turn, self._last = turn, None

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        if self._last is not None and self._last[0] is value and self._last[1:3] == (first, last):
            return self._last[3]  # the other member of a pair shares the state, hence the product
        weight, bias = self._blocks(first, last)
        out = self._masked(value, weight, first, last)
        if self._start_at_one and self._turn.kept < self._turn.rows:
            fresh = torch.arange(self._turn.rows, device=out.device).unsqueeze(1) >= self._turn.kept
            out = out + fresh
        if bias is not None:
            out = out + bias
        self._last = (value, first, last, out)
        return out

    def _blocks(self, first: int, last: int) -> tuple[Tensor, Tensor | None]:
        """The rows of U and of the bias; cut once, as the derivative of a cut is as large as the whole."""
        if (first, last) not in self._parts:
            blocks = slice(first * self._hidden, last * self._hidden)
            self._parts[first, last] = self._weight[blocks], None if self._bias is None else self._bias[blocks]
        return self._parts[first, last]

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
