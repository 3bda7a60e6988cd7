"""The LSTM with peepholes keeps the contract of cells."""

from __future__ import annotations

import torch

from contracts.cells import CellContract, Step
from contracts.passes import Case, assert_close
from statewise.cells import LSTMCell, PeepholeLSTMCell


class TestPeepholeLSTM(CellContract):
    cell, name = PeepholeLSTMCell(), "PeepholeLSTM"

    def test_without_peepholes_it_is_the_plain_lstm(self, seed: int) -> None:
        case = Case(seed=seed)
        step, plain = Step(self.cell, case), Step(LSTMCell(), case)
        *shared, peepholes = step.leaves.values()
        moved, _ = step.forward(*shared, torch.zeros_like(peepholes))
        expected, _ = plain.forward(*plain.leaves.values())
        assert_close(moved.state, expected.state, "state")

    def test_the_output_gate_sees_the_new_memory(self, seed: int) -> None:
        """A row whose old memory is zero still feels its output peephole, and feels the other two not at all."""
        step = Step(self.cell, Case(seed=seed))
        leaves = dict(step.leaves)
        leaves["memory"] = torch.zeros_like(leaves["memory"])
        moved, _ = step.forward(*leaves.values())
        (grad,) = torch.autograd.grad(moved.state.sum(), leaves["weight_ph"])
        assert not grad[:2].any()
        assert grad[2].all()
