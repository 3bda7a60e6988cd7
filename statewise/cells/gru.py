"""The gated recurrent unit, in torch's form and in the original one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition, TransitionGrads


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
        return Transition(n + z * (state - n), None, (r, z, n, pn))

    def backward(
        self,
        grad_state: Rows,
        grad_memory: Rows | None,
        saved: tuple[Tensor, ...],
        state: Rows,
        memory: Rows | None,
        new_memory: Rows | None,
        product: Product,
        extra: tuple[Tensor, ...],
    ) -> TransitionGrads:
        r, z, n, pn = saved
        dn = grad_state * (1 - z) * (1 - n * n)
        dz = grad_state * (state - n) * z * (1 - z)
        dr = dn * pn * r * (1 - r)
        through_product = product.backward(torch.cat((dr, dz, dn * r), dim=1), 0, 3)
        return TransitionGrads(torch.cat((dr, dz, dn), dim=1), grad_state * z + through_product, None, ())


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

    def backward(
        self,
        grad_state: Rows,
        grad_memory: Rows | None,
        saved: tuple[Tensor, ...],
        state: Rows,
        memory: Rows | None,
        new_memory: Rows | None,
        product: Product,
        extra: tuple[Tensor, ...],
    ) -> TransitionGrads:
        r, z, n = saved
        dn = grad_state * (1 - z) * (1 - n * n)
        reset_state = product.backward(dn, 2, 3)
        dz = grad_state * (state - n) * z * (1 - z)
        dr = reset_state * state * r * (1 - r)
        gates = torch.cat((dr, dz), dim=1)
        grad = grad_state * z + reset_state * r + product.backward(gates, 0, 2)
        return TransitionGrads(torch.cat((gates, dn), dim=1), grad, None, ())
