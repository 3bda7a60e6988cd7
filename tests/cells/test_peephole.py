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
        moved = step.forward(weight_ph=torch.zeros_like(step.leaves["weight_ph"]))
        assert_close(moved.state, plain.forward().state, "state")

    def test_the_output_gate_sees_the_new_memory(self, seed: int) -> None:
        """A row whose old memory is zero still feels its output peephole, and feels the other two not at all."""
        step = Step(self.cell, Case(seed=seed))
        moved = step.forward(memory=torch.zeros_like(step.leaves["memory"]))
        (grad,) = torch.autograd.grad(moved.state.sum(), step.leaves["weight_ph"])
        assert not grad[:2].any()
        assert grad[2].all()
