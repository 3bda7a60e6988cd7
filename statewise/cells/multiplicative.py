"""The multiplicative RNN: the input chooses the matrix that acts on the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition


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
        f = af * product(state, 0, 1)
        n = torch.tanh(an + product(f, 1, 2))
        return Transition(n, None, (f, n))
