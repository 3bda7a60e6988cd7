"""The multiplicative RNN: the input chooses the matrix that acts on the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition, TransitionGrads


@dataclass(frozen=True)
class MultiplicativeRNNCell(Cell):
    """The multiplicative RNN cell, a factored second-order cell: each input acts on the state as a matrix of its own.

    ``f = (W_f x + b_f) (U_f h_{t-1} + b'_f)``, elementwise, ``u_t = tanh(W_n x + b_n + U_n f + b'_n)``: the state is
    multiplied by ``U_n diag(W_f x + b_f) U_f`` (Sutskever et al. 2011, who have no biases in ``f``).

    >>> MultiplicativeRNNCell().blocks
    ('factor', 'candidate')
    """

    name: ClassVar[str] = "MultiplicativeRNN"
    blocks: ClassVar[tuple[str, ...]] = ("factor", "candidate")
    observed: ClassVar[tuple[str, ...]] = blocks
    additive: ClassVar[bool] = False

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        af, an = input_term.chunk(2, dim=1)
        pf = product(state, 0, 1)
        f = af * pf
        n = torch.tanh(an + product(f, 1, 2))
        return Transition(n, None, (f, n, af, pf))

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
        _, n, af, pf = saved
        dn = grad_state * (1 - n * n)
        df = product.backward(dn, 1, 2)
        return TransitionGrads(torch.cat((df * pf, dn), dim=1), product.backward(df * af, 0, 1), None, ())
