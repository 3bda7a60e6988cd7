"""The LSTM cell whose gates look at the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition


@dataclass(frozen=True)
class PeepholeLSTMCell(Cell):
    """The LSTM cell with diagonal peepholes; the output gate sees the NEW memory.

    ``i, f = sigmoid(z + p c_{t-1})``, ``c_t = f c_{t-1} + i g``, ``o = sigmoid(z_o + p_o c_t)``,
    ``u_t = o tanh(c_t)`` (Gers & Schmidhuber 2000; Wang & Niepert 2019, eqs. 7-9).

    The peepholes are the rows (input, forget, output) of ``weight_ph``; at zero the cell is the plain LSTM.

    >>> PeepholeLSTMCell().extra_parameters
    (('weight_ph', 3),)
    """

    name: ClassVar[str] = "PeepholeLSTM"
    blocks: ClassVar[tuple[str, ...]] = ("input", "forget", "cell", "output")
    observed: ClassVar[tuple[str, ...]] = blocks
    has_memory: ClassVar[bool] = True

    @property
    def extra_parameters(self) -> tuple[tuple[str, int], ...]:
        return (("weight_ph", 3),)

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        assert memory is not None
        pi, pf, po = extra[0]
        zi, zf, zg, zo = (input_term + product(state, 0, 4)).chunk(4, dim=1)
        i, f, g = torch.sigmoid(zi + pi * memory), torch.sigmoid(zf + pf * memory), torch.tanh(zg)
        c = f * memory + i * g
        o = torch.sigmoid(zo + po * c)
        return Transition(o * torch.tanh(c), c, (i, f, g, o))
