"""The recurrent arithmetic circuit keeps the contract of cells."""

from __future__ import annotations

from contracts.cells import CellContract
from statewise.cells import RACCell


class TestRAC(CellContract):
    cell, name = RACCell(), "RAC"
