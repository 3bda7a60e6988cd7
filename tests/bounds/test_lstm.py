"""Classes of LSTM layers."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts.network_classes import (
    Form,
    NetworkClassContract,
    as_module,
    common_class,
    random_inputs,
    random_network,
)
from contracts.passes import seeds, some_examples
from statewise.bounds.gates import GateRows
from statewise.bounds.layer_class import Start
from statewise.bounds.lstm import LSTMClass
from statewise.bounds.matrices import GATES
from statewise.bounds.walk import Signal


class TestLSTMClass(NetworkClassContract):
    kind, layer = "lstm", LSTMClass
    # Input gate 1/4 · 1/2 and candidate 1/2, with C_0 = 0; output gate tanh(C_1) / 4 · 1/2 with C_1 = 1.
    first_step: ClassVar = dict.fromkeys(("embedding", "start"), 0.125 + 0.5 + math.tanh(1.0) / 8)


class TestMemoryBeforeTheFirstStep:
    @some_examples
    @given(seed=seeds, steps=st.integers(1, 8))
    def test_it_moves_the_output_no_further_than_it_says(self, seed: int, steps: int) -> None:
        """Two networks that differ in nothing but the memory they start from."""
        source, form = np.random.default_rng(seed), Form(kind="lstm", steps=steps, size=0.3)
        network = random_network(source, form)
        first = torch.from_numpy(source.standard_normal((2, 1, 1, form.hidden)))
        x = random_inputs(source, form, 1.0, sequences=1)
        module, zero = as_module(network), torch.zeros_like(first[0])
        found = [module(x, (zero, memory))[1] for memory in first]
        norm = float(first.norm(dim=3).max())
        start = Start(norm=norm, largest=float(first.abs().max()), learned=True)
        layer = common_class(form, 1.0, network).directions[0][0]
        assert isinstance(layer, LSTMClass)
        signal = Signal(log_norm=np.zeros(steps), log_moves=np.zeros((steps, 0)))
        walk = dataclasses.replace(layer, start_memory=start).walk(signal)
        assert walk.memory is not None
        names = [block.name for block in dataclasses.replace(layer, start_memory=start).blocks]
        apart = float((first[0] - first[1]).norm())
        for place, bound in ((0, walk.state), (1, walk.memory)):
            states = [each[place] for each in found]
            moved = float((states[0] - states[1]).detach().norm())
            assert moved <= math.exp(bound.greatest.log_moves[0, names.index("start memory")]) * apart * (1 + 1e-9)
            longest = max(float(state.detach().norm()) for state in states)
            assert longest <= math.exp(float(bound.greatest.log_norm[0])) * (1 + 1e-9)

    def test_with_open_gates_it_stays_for_ever(self) -> None:
        norms = {f"{side} {gate}": 0.0 for side in "WU" for gate in GATES["lstm"]}
        layer = LSTMClass(hidden=2, features=2, norms=norms, start_memory=Start(norm=1.0, learned=True))
        walk = layer.walk(Signal(log_norm=np.zeros(5), log_moves=np.zeros((5, 0))))
        assert walk.memory is not None
        assert np.exp(walk.memory.log_moves[:, -1]).tolist() == [1.0] * 5


def test_smaller_states_open_gates_less() -> None:
    """Once gates are known to be within 0.9 a state's entries are below 0.9 tanh C, and gates open less."""
    norms = {f"{side} {gate}": 0.5 for side in "WU" for gate in GATES["lstm"]}
    rows = {gate: GateRows(row_norm=0.5, row_sum=0.5) for gate in ("input", "forget", "output")}
    fine = LSTMClass(hidden=4, features=2, norms=norms, gates=rows)
    signal = Signal(log_norm=np.zeros(3), log_moves=np.zeros((3, 0)))
    coarse = dataclasses.replace(fine, refined=False)
    gate = 1 / (1 + math.exp(-1.0))
    assert coarse.largest_state(signal) == 1.0
    expected = gate * math.tanh(gate * (1 + gate + gate**2))
    assert fine.largest_state(signal) == pytest.approx(expected)
    assert fine.walk(signal).log_growth < coarse.walk(signal).log_growth
