"""The long short-term memory keeps the contract of cells."""

from __future__ import annotations

from contracts.cells import TorchCellContract
from statewise.cells import LSTMCell


class TestLSTM(TorchCellContract):
    cell, name = LSTMCell(), "LSTM"
