"""The minimal gated unit keeps the contract of cells."""

from __future__ import annotations

from contracts.cells import CellContract
from statewise.cells import MGUCell


class TestMGU(CellContract):
    cell, name = MGUCell(), "MGU"
