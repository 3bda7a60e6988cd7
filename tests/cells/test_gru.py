"""Both forms of the gated recurrent unit keep the contract of cells."""

from __future__ import annotations

from contracts.cells import CellContract, TorchCellContract
from statewise.cells import GRUCell, ResetBeforeGRUCell


class TestGRU(TorchCellContract):
    cell, name = GRUCell(), "GRU"


class TestGRUResetBefore(CellContract):
    cell, name = ResetBeforeGRUCell(), "GRU reset before"
