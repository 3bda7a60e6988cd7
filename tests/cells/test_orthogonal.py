"""The single step of the orthogonal network keeps the contract of single steps; its cell is the modReLU cell."""

from __future__ import annotations

from contracts.cells import SingleStepContract


class TestOrthogonalRNNCell(SingleStepContract):
    name = "OrthogonalRNN"
