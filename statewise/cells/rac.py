"""The recurrent arithmetic circuit: a cell that multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition


@dataclass(frozen=True)
class RACCell(Cell):
    """The recurrent arithmetic circuit, a network that is a polynomial of its inputs.

    ``u_t = (W x_t) * (U h_{t-1})``, elementwise (Levine et al. 2017; Ziv 2019, section 2.1). With biases it is
    multiplicative integration, ``(W x + b) * (U h + b')`` (Wu et al. 2016).

    >>> RACCell().additive
    False
    """

    name: ClassVar[str] = "RAC"
    blocks: ClassVar[tuple[str, ...]] = ("state",)
    additive: ClassVar[bool] = False

    @property
    def linear_path(self) -> bool:
        return True

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        return Transition(input_term * product(state, 0, 1), None)
