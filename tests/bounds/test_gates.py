"""How far gates can open and shut."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts.network_classes import Form, as_module, common_class, forms, random_inputs, random_network
from contracts.passes import seeds, some_examples
from statewise import GRU, LSTM, MGU
from statewise.bounds.gates import GatedClass, GateRows, measured_rows
from statewise.bounds.grid import Ledger
from statewise.bounds.layer_class import OffCentreBlock
from statewise.bounds.matrices import SIGMOID, LayerMatrices
from statewise.bounds.mgu import MGUClass
from statewise.bounds.walk import Signal
from statewise.errors import ArgumentError

OURS: dict[str, Any] = {"mgu": MGU, "gru": GRU, "lstm": LSTM}
# The names that our cells give to the gates, where they differ.
NAMES = {"mgu": {"forget": "gate"}, "gru": {}, "lstm": {}}
NOTHING = {"layers": 1, "directions": 1, "tokens": 0, "readout": "h"}


def constant(steps: int, norm: float = 1.0) -> Signal:
    return Signal(log_norm=np.full(steps, math.log(norm)), log_moves=np.zeros((steps, 0)))


class TestEveryGate:
    @pytest.mark.parametrize("kind", sorted(OURS))
    @some_examples
    @given(data=st.data(), seed=seeds)
    def test_opens_and_shuts_no_further_than_it_says(self, kind: str, data: st.DataObject, seed: int) -> None:
        form, source = data.draw(forms(kind=kind, **NOTHING)), np.random.default_rng(seed)
        network = random_network(source, form)
        layer = common_class(form, 1.0, network).directions[0][0]
        assert isinstance(layer, GatedClass)
        module = OURS[kind](form.features, form.hidden, bias=form.bias, dtype=torch.float64)
        module.load_state_dict(as_module(network).state_dict())
        x = random_inputs(source, form, 1.0)
        start = network.layers[0][0].start
        hx: Any = None if start is None else torch.from_numpy(start).expand(1, x.shape[1], -1).contiguous()
        if kind == "lstm" and hx is not None:
            hx = (hx, torch.zeros_like(hx))
        gates = module(x, hx, collect=("gates",))[2].gates[0]
        for gate in sorted(layer.sigmoids()):
            seen = gates[NAMES[kind].get(gate, gate)]
            reach = constant(form.steps)
            assert seen.max() <= layer.most_open(gate, reach)[0] * (1 + 1e-12)
            assert (1 - seen).max() <= layer.most_shut(gate, reach)[0] * (1 + 1e-12)

    def test_the_bound_is_reached(self) -> None:
        """By a row that the input is parallel to, and a state of ones with the signs of U."""
        rows = GateRows(row_norm=5.0, row_sum=0.75, bias=-1.0, negated_bias=1.0)
        highest = torch.sigmoid(torch.tensor(3 * 0.6 + 4 * 0.8 + 0.5 + 0.25 - 1, dtype=torch.float64))
        assert rows.most_open(np.zeros(1), 1.0)[0] == pytest.approx(float(highest), rel=1e-14)
        lowest = torch.sigmoid(torch.tensor(-5 - 0.75 - 1, dtype=torch.float64))
        assert rows.most_shut(np.zeros(1), 1.0)[0] == pytest.approx(1 - float(lowest), rel=1e-14)

    def test_nothing_known_is_1(self) -> None:
        assert GateRows().most_open(np.array([-math.inf, 0.0]), 1.0).tolist() == [1.0, 1.0]
        assert GateRows(row_norm=1.0, row_sum=1.0, bias=math.inf).most_open(np.zeros(1), 1.0)[0] == 1.0

    def test_inputs_beyond_float64_open_it_wholly(self) -> None:
        assert GateRows(row_norm=0.1, row_sum=0.1).most_open(np.array([1e5]), 1.0)[0] == 1.0


class TestMeasuring:
    def layer(self) -> LayerMatrices:
        form = Form(kind="lstm", bias=True, hidden=4, features=3)
        return random_network(np.random.default_rng(3), form).layers[0][0]

    def test_every_row_is_within(self) -> None:
        layer = self.layer()
        for gate in sorted(SIGMOID & set(layer.inputs)):
            found = measured_rows(layer, gate, Ledger(), both=True)
            assert layer.bias is not None
            assert np.linalg.norm(layer.inputs[gate], axis=1).max() <= found.row_norm
            assert np.abs(layer.states[gate]).sum(axis=1).max() <= found.row_sum
            assert layer.bias[gate].max() <= found.bias
            assert -layer.bias[gate].min() <= found.negated_bias

    def test_only_what_is_used_is_paid_for(self) -> None:
        ledger = Ledger()
        assert measured_rows(self.layer(), "forget", ledger, "layer 1: ", both=False).negated_bias == math.inf
        names = ["row norm of W forget", "row sum of U forget", "bias of forget"]
        assert list(ledger.nats) == [f"layer 1: {name}" for name in names]
        assert min(ledger.nats.values()) > 0

    def test_a_class_that_lacks_the_matrix_0_says_so(self) -> None:
        """With all biases below zero the middle of the ball of [W, bias] is no member."""
        norms = {f"{side} {gate}": 1.0 for side in "WU" for gate in ("forget", "candidate")}
        rows = GateRows(row_norm=1.0, row_sum=1.0, bias=-1.0, negated_bias=2.0)
        layer = MGUClass(hidden=2, features=2, norms=norms, bias=True, gates={"forget": rows})
        off = {block.name: isinstance(block, OffCentreBlock) for block in layer.blocks}
        assert off == {"W forget": True, "U forget": False, "W candidate": False, "U candidate": False}

    def test_bad_constants_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="GateRows"):
            GateRows(row_norm=-1.0, row_sum=0.0)
        with pytest.raises(ArgumentError, match="max b"):
            GateRows(row_norm=1.0, row_sum=0.0, bias=-2.0, negated_bias=1.0)
        norms = {f"{side} {gate}": 1.0 for side in "WU" for gate in ("forget", "candidate")}
        with pytest.raises(ArgumentError, match="gates"):
            MGUClass(hidden=2, features=2, norms=norms, gates={"output": GateRows()})
