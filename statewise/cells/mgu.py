"""The minimal gated unit: one gate that both forgets and resets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition


@dataclass(frozen=True)
class MGUCell(Cell):
    """The minimal gated unit.

    ``r = sigmoid(W_r x + U_r h)``, ``n = tanh(W_n x + U_n (r h_{t-1}))``, ``u_t = (1 - r) h_{t-1} + r n``
    (Zhou et al. 2016; Chen et al. 2019, section 4).

    >>> MGUCell().blocks
    ('gate', 'candidate')
    """

    name: ClassVar[str] = "MGU"
    blocks: ClassVar[tuple[str, ...]] = ("gate", "candidate")
    observed: ClassVar[tuple[str, ...]] = blocks

    @property
    def linear_path(self) -> bool:
        return True

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        size = state.shape[1]
        r = torch.sigmoid(input_term[:, :size] + product(state, 0, 1))
        n = torch.tanh(input_term[:, size:] + product(r * state, 1, 2))
        return Transition(state + r * (n - state), None, (r, n))
