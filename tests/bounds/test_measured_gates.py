"""Certificates from gates as they were seen."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.network_classes import (
    Form,
    as_module,
    common_class,
    distances,
    forms,
    logits,
    partner,
    random_inputs,
    random_network,
)
from contracts.passes import seeds, some_examples
from statewise.bounds.grid import Ledger, nats
from statewise.bounds.kl import kl_inverse
from statewise.bounds.logs import Floats
from statewise.bounds.margins import margins
from statewise.bounds.matrices import NetworkMatrices
from statewise.bounds.measured_class import network_class
from statewise.bounds.measured_gates import GateSensitivity, gate_levels, gate_profile, measured_gates
from statewise.bounds.mgu import MGUClass
from statewise.bounds.network_class import EmbeddingClass, NetworkClass
from statewise.errors import ArgumentError, AssumptionError, ShapeError

PLAIN = {"kind": "mgu", "layers": 1, "directions": 1, "start": False, "readout": "h"}


def levels_of(network: NetworkMatrices, x: Tensor, state_norm: float) -> Tensor:
    if network.embedding is not None:
        x = torch.from_numpy(network.embedding)[x]
    gates = as_module(network)(x, collect=("gates",))[2].gates[0]["gate"]
    return gate_levels(gates, state_norm=state_norm)


def state_norm_of(found: NetworkClass) -> float:
    return found.directions[0][0].norms["U candidate"]


def small(steps: int = 10) -> NetworkClass:
    norms = {"W forget": 0.1, "U forget": 0.1, "W candidate": 1.0, "U candidate": 1.0}
    layer = MGUClass(hidden=4, features=2, norms=norms)
    return NetworkClass(layers=(layer,), head_norm=2.0, classes=2, steps=steps, input_bound=1.0)


class TestSensitivity:
    @some_examples
    @given(form=forms(**PLAIN), seed=seeds)
    def test_logits_and_levels_move_no_further_than_it_says(self, form: Form, seed: int) -> None:
        """The level is that of one of the two networks, on each sequence its own."""
        source = np.random.default_rng(seed)
        here = random_network(source, form)
        there = partner(source, form, here)
        found, x = common_class(form, 1.0, here, there, gates=False), random_inputs(source, form, 1.0)
        norm, apart = state_norm_of(found), distances(here, there)
        levels, others = levels_of(here, x, norm), levels_of(there, x, norm)
        moved = (logits(here, x) - logits(there, x)).norm(dim=1)
        for place in range(x.shape[1]):
            near = GateSensitivity(network=found, level=float(levels[place]))
            for left, logs in ((moved, near.log_outputs), ((levels - others).abs(), near.log_levels)):
                right = sum(math.exp(min(700, log)) * apart[name] for name, log in logs.items())
                assert left[place] <= right * (1 + 1e-9) + 1e-14

    @some_examples
    @given(seed=seeds, theta=st.floats(0.3, 2.0), kappa=st.floats(0.01, 0.5), gamma=st.floats(0.01, 1.0))
    def test_the_events_of_the_proof_lie_in_each_other(
        self, seed: int, theta: float, kappa: float, gamma: float
    ) -> None:
        """An error or open gates of w, seen generously, is one of its neighbour c; that, generously, one of w."""
        source, form = np.random.default_rng(seed), Form(kind="mgu", steps=6, size=0.3)
        here = random_network(source, form)
        found = common_class(form, 1.0, here, gates=False)
        profile = gate_profile(found, gamma=gamma, theta=theta, kappa=kappa)
        near = dict(zip((block.name for block in profile.blocks), profile.log_distances(0.0), strict=True))
        there = self.within(source, here, {name: math.exp(log) for name, log in near.items()})
        found = common_class(form, 1.0, here, there, gates=False)
        x = random_inputs(source, form, 1.0, sequences=30)
        labels = torch.from_numpy(source.integers(form.classes, size=30))
        norm = state_norm_of(found)

        def event(network: NetworkMatrices, margin: float, level: float) -> Tensor:
            return (margins(logits(network, x), labels) <= margin) | (levels_of(network, x, norm) >= level)

        first, second = event(here, 0.0, theta + kappa), event(there, gamma / 2, theta + kappa / 2)
        third = event(here, gamma, theta)
        assert not (first & ~second).any()
        assert not (second & ~third).any()

    @staticmethod
    def within(source: np.random.Generator, here: NetworkMatrices, radii: dict[str, float]) -> NetworkMatrices:
        """A network whose every matrix is as far away as its radius allows, and is no larger."""

        def moved(name: str, matrix: Floats) -> Floats:
            return matrix * (1 - min(1.0, radii[name] / float(np.linalg.norm(matrix, 2))))

        (layer,), *_ = here.layers
        changed = dataclasses.replace(
            layer,
            inputs={gate: moved(f"W {gate}", matrix) for gate, matrix in layer.inputs.items()},
            states={gate: moved(f"U {gate}", matrix) for gate, matrix in layer.states.items()},
        )
        return dataclasses.replace(here, layers=((changed,),), head=moved("V", here.head))

    def test_one_step_with_a_pencil(self) -> None:
        """From zero only the gate's own W and the table move the gate; the level moves 3/4 as far for B_Uh = 1."""
        table = EmbeddingClass(tokens=3, features=2, bound=0.5)
        found = GateSensitivity(network=dataclasses.replace(small(steps=1), embedding=table), level=1.0)
        levels = {name: math.exp(log) for name, log in found.log_levels.items()}
        none = dict.fromkeys(("W candidate", "U candidate", "V"), 0.0)
        wanted = {"embedding": 0.75 * 0.1, "W forget": 0.75 * 0.5, "U forget": 0.75 * 2.0, **none}
        assert levels == pytest.approx(wanted, rel=1e-12)
        assert math.exp(found.log_outputs["embedding"]) == pytest.approx(2 * (0.75 * 0.1 + 1.0), rel=1e-12)

    def test_other_networks_are_refused(self) -> None:
        form = Form(kind="gru")
        network = common_class(form, 1.0, random_network(np.random.default_rng(0), form))
        with pytest.raises(AssumptionError, match="minimal gated units"):
            GateSensitivity(network=network, level=1.0)
        with pytest.raises(ArgumentError, match="level"):
            GateSensitivity(network=small(), level=0.0)


class TestLevels:
    def test_padding_does_not_count(self) -> None:
        gates = torch.tensor([[[0.5], [0.5]], [[0.0], [0.75]]], dtype=torch.float64)
        found = gate_levels(gates, state_norm=1.0, lengths=torch.tensor([1, 2]))
        assert found.tolist() == pytest.approx([0.75, 0.25 + 0.5625])

    def test_single_precision_is_rounded_up(self) -> None:
        gates = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))
        assert (gate_levels(gates, state_norm=1.0) > gate_levels(gates.double(), state_norm=1.0)).all()

    def test_another_shape_is_refused(self) -> None:
        with pytest.raises(ShapeError):
            gate_levels(torch.zeros(3, 4), state_norm=1.0)


class TestCertificate:
    def test_it_is_the_bound_at_its_own_choices(self) -> None:
        source = torch.Generator().manual_seed(0)
        seen = 2 * torch.rand(20000, generator=source, dtype=torch.float64)
        levels = 0.8 + 0.1 * torch.rand(20000, generator=source, dtype=torch.float64)
        found = measured_gates(small(), seen, levels, delta=0.05, constants_nats=20.0)
        rate = float(((seen <= found.gamma) | (levels >= found.theta)).double().mean())
        cover = gate_profile(small(), gamma=found.gamma, theta=found.theta, kappa=found.kappa).cover_nats(0.0)
        choice = nats(round(2 * math.log2(found.gamma))) + nats(round(8 * math.log2(found.theta)))
        choice += nats(round(math.log2(found.kappa)))
        assert [found.rate, found.cover_nats] == pytest.approx([rate, cover], rel=1e-12)
        assert found.choice_nats == pytest.approx(choice, rel=1e-12)
        assert found.value == pytest.approx(kl_inverse(rate, (cover + choice + 20 + math.log(20)) / 20000), rel=1e-12)

    def test_gates_that_stay_shut_are_worth_more_than_what_is_known_of_all_inputs(self) -> None:
        """Gates that could open wholly, but do not, over 50 steps."""
        network = small(steps=50)
        seen, levels = torch.ones(10000) * 1.1, torch.full((10000,), 0.85)
        found = measured_gates(network, seen, levels, delta=0.05)
        worst = network.profile().cover_nats(math.log(1 / (2 * math.sqrt(2))))
        assert found.cover_nats < worst / 2
        assert found.value < 0.1

    def test_sequences_with_open_gates_count_as_errors(self) -> None:
        levels = torch.full((10000,), 0.85)
        levels[:500] = 3.0
        found = measured_gates(small(steps=50), torch.full((10000,), 1.1), levels, delta=0.05)
        assert found.rate == 0.05
        assert found.theta < 3

    def test_where_every_margin_is_negative_nothing_is_certified(self) -> None:
        found = measured_gates(small(), -torch.ones(10), torch.ones(10), delta=0.05)
        assert (found.value, found.rate) == (1.0, 1.0)

    def test_bad_arguments_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="delta"):
            measured_gates(small(), torch.ones(10), torch.ones(10), delta=1.0)
        with pytest.raises(ShapeError):
            measured_gates(small(), torch.ones(10), torch.ones(9), delta=0.5)

    def test_it_runs_from_a_network_to_a_number(self) -> None:
        form, source = Form(kind="mgu", steps=5, size=0.2, bias=True), np.random.default_rng(0)
        network, ledger = random_network(source, form), Ledger()
        found = network_class(network, steps=5, input_bound=1.0, ledger=ledger, gates=False)
        assert not any("row" in name for name in ledger.nats)
        x = random_inputs(source, form, 1.0, sequences=50)
        y = logits(network, x)
        levels = levels_of(network, x, state_norm_of(found))
        value = measured_gates(found, margins(y, y.argmax(1)), levels, delta=0.05, constants_nats=ledger.total).value
        assert 0 < value <= 1
