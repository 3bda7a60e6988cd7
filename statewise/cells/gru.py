"""The gated recurrent unit, in torch's form and in the original one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition


@dataclass(frozen=True)
class GRUCell(Cell):
    """The GRU cell as torch has it: the reset gate acts after the recurrent product.

    ``r, z = sigmoid(W x + b + U h + b')``, ``n = tanh(W_n x + b_n + r (U_n h + b'_n))``,
    ``u_t = (1 - z) n + z h_{t-1}`` (Cho et al. 2014; Chung et al. 2014).

    >>> GRUCell().blocks
    ('reset', 'update', 'candidate')
    """

    name: ClassVar[str] = "GRU"
    blocks: ClassVar[tuple[str, ...]] = ("reset", "update", "candidate")
    observed: ClassVar[tuple[str, ...]] = blocks
    additive: ClassVar[bool] = False

    @property
    def linear_path(self) -> bool:
        return True

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        ar, az, an = input_term.chunk(3, dim=1)
        pr, pz, pn = product(state, 0, 3).chunk(3, dim=1)
        r, z = torch.sigmoid(ar + pr), torch.sigmoid(az + pz)
        n = torch.tanh(an + r * pn)
        return Transition(n + z * (state - n), None, (r, z, n))


@dataclass(frozen=True)
class ResetBeforeGRUCell(Cell):
    """The GRU cell of the original paper: the reset gate acts before the recurrent product.

    ``r, z = sigmoid(W x + b + U h + b')``, ``n = tanh(W_n x + b_n + U_n (r h_{t-1}) + b'_n)``,
    ``u_t = (1 - z) n + z h_{t-1}`` (Cho et al. 2014).

    >>> ResetBeforeGRUCell().additive
    True
    """

    name: ClassVar[str] = "GRU(reset_before)"
    blocks: ClassVar[tuple[str, ...]] = ("reset", "update", "candidate")
    observed: ClassVar[tuple[str, ...]] = blocks

    @property
    def linear_path(self) -> bool:
        return True

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        size = state.shape[1]
        r, z = torch.sigmoid(input_term[:, : 2 * size] + product(state, 0, 2)).chunk(2, dim=1)
        n = torch.tanh(input_term[:, 2 * size :] + product(r * state, 2, 3))
        return Transition(n + z * (state - n), None, (r, z, n))
