"""The long short-term memory cell, as torch has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition


@dataclass(frozen=True)
class LSTMCell(Cell):
    """The LSTM cell without peepholes, gates in torch's order.

    ``i, f, o = sigmoid(W x + b + U h + b')``, ``g = tanh(...)``, ``c_t = f c_{t-1} + i g``, ``u_t = o tanh(c_t)``
    (Hochreiter & Schmidhuber 1997; Dieng et al. 2018, section 2).

    >>> LSTMCell().blocks
    ('input', 'forget', 'cell', 'output')
    """

    name: ClassVar[str] = "LSTM"
    blocks: ClassVar[tuple[str, ...]] = ("input", "forget", "cell", "output")
    observed: ClassVar[tuple[str, ...]] = blocks
    has_memory: ClassVar[bool] = True

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        assert memory is not None
        zi, zf, zg, zo = (input_term + product(state, 0, 4)).chunk(4, dim=1)
        i, f, g, o = torch.sigmoid(zi), torch.sigmoid(zf), torch.tanh(zg), torch.sigmoid(zo)
        c = f * memory + i * g
        return Transition(o * torch.tanh(c), c, (i, f, g, o))
