"""Constants of Elman, MGU and LSTM networks as they were computed for Chen, Li & Zhao 2019, and what was repaired."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from contracts.network_classes import Form, lipschitz, worst_ratio
from statewise.bounds.elman import ElmanClass
from statewise.bounds.gates import GateRows
from statewise.bounds.kl import kl_inverse
from statewise.bounds.lstm import LSTMClass
from statewise.bounds.matrices import GATES
from statewise.bounds.mgu import MGUClass
from statewise.bounds.network_class import NetworkClass
from statewise.bounds.profile import Profile
from statewise.bounds.walk import Signal
from support import fill

EXACT = 1e-9


def elman(*, U: float = 0.5, W: float = 3.0, V: float = 2.0, steps: int = 3, largest: float = 1.0) -> NetworkClass:
    layer = ElmanClass(hidden=4, features=2, norms={"U": U, "W": W}, largest=largest)
    return NetworkClass(layers=(layer,), head_norm=V, classes=2, steps=steps, input_bound=1.0)


def gated(
    kind: str, *, hidden: int, features: int, classes: int, steps: int, head: float, gate: float, rows: GateRows
) -> NetworkClass:
    """Candidate matrices of norm 1, all of the gates of another, inputs at most 1 long."""
    norms = {f"{side} {name}": 1.0 if name == "candidate" else gate for side in "WU" for name in GATES[kind]}
    every = {name: rows for name in GATES[kind] if name != "candidate"}
    layer: MGUClass | LSTMClass
    if kind == "mgu":
        layer = MGUClass(hidden=hidden, features=features, norms=norms, gates=every)
    else:
        layer = LSTMClass(hidden=hidden, features=features, norms=norms, gates=every, refined=False)
    return NetworkClass(layers=(layer,), head_norm=head, classes=classes, steps=steps, input_bound=1.0)


def small(kind: str) -> NetworkClass:
    rows = GateRows(row_norm=0.1, row_sum=0.2)
    return gated(kind, hidden=4, features=2, classes=2, steps=10, head=2.0, gate=0.1, rows=rows)


def paper_form(profile: Profile, *, m: float, gamma: float) -> float:
    """The excess risk of the theorems with the repaired logarithm."""
    log_product = max(math.log(block.radius) + block.log_lipschitz for block in profile.blocks)
    inside = math.log(8 * len(profile.blocks) * m) + log_product
    length = math.exp(profile.log_output)
    return 2 * (4 / (m * gamma) + 24 * math.sqrt(profile.parameters * inside / m) * length / gamma)


class TestElman:
    def test_constants_of_the_paper(self) -> None:
        found = lipschitz(elman().paper())
        assert found == pytest.approx({"U": 31.5, "V": 5.25, "W": 3.5}, rel=EXACT)

    def test_tight_constants(self) -> None:
        linear, bounded = elman(largest=math.inf).profile(), elman().profile()
        assert lipschitz(linear) == pytest.approx({"U": 12.0, "V": 5.25, "W": 3.5}, rel=EXACT)
        assert lipschitz(bounded) == pytest.approx({"U": 6.0, "V": 2.0, "W": 3.5}, rel=EXACT)

    def test_lengths_of_states(self) -> None:
        signal = Signal(log_norm=np.zeros(3), log_moves=np.zeros((3, 0)))
        for largest, lengths in ((math.inf, [3.0, 4.5, 5.25]), (1.0, [2.0, 2.0, 2.0])):
            layer = elman(largest=largest).directions[0][0]
            assert np.exp(layer.walk(signal).state.log_norm).tolist() == pytest.approx(lengths, rel=EXACT)

    def test_after_one_step_the_recurrent_matrix_has_done_nothing(self) -> None:
        assert lipschitz(elman(steps=1).profile())["U"] == 0

    def test_without_recurrence_time_does_not_matter(self) -> None:
        """Only the paper's constant of U grows with it."""
        found = {steps: lipschitz(elman(U=0.0, steps=steps).profile()) for steps in (1, 2, 3, 100)}
        for steps in (2, 3, 100):
            assert found[steps] == found[2]
            assert (found[steps]["V"], found[steps]["W"]) == (found[1]["V"], found[1]["W"])
        assert found[1]["U"] == 0
        printed = [lipschitz(elman(U=0.0, steps=steps).paper())["U"] for steps in (1, 2, 100)]
        assert printed == pytest.approx([printed[0], 2 * printed[0], 100 * printed[0]])

    @pytest.mark.parametrize(("U", "nats", "L"), [(0.5, 155.342467784, None), (1.0, 202.455220621, (34, 2, 20))])
    def test_the_cover_of_net_a(self, U: float, nats: float, L: tuple[float, ...] | None) -> None:
        profile = elman(U=U, W=1.0, steps=10).profile()
        assert profile.cover_nats(math.log(0.5 / (2 * math.sqrt(2)))) == pytest.approx(nats, rel=EXACT)
        if L:
            assert lipschitz(profile) == pytest.approx(dict(zip("UVW", L, strict=True)), rel=EXACT)


class TestMGU:
    ORDER = ("W forget", "W candidate", "U forget", "U candidate", "V")

    def test_the_gate_and_the_growth(self) -> None:
        tight, paper = small("mgu").profile(), small("mgu").paper()
        rows = GateRows(row_norm=0.1, row_sum=0.2)
        assert rows.most_open(np.zeros(1), 1.0)[0] == pytest.approx(0.574442516812, rel=EXACT)
        assert tight.log_decay == paper.log_decay == pytest.approx(math.log(0.904426721933), rel=EXACT)
        assert math.exp(paper.log_growth) == pytest.approx(1.204426721933, rel=EXACT)
        assert math.exp(tight.log_growth) == pytest.approx(0.968787784853, rel=EXACT)

    def test_constants_of_the_paper(self) -> None:
        printed = (159.195667161, 53.065222387, 318.391334322, 106.130444774, 2.0)
        profile = small("mgu").paper()
        assert lipschitz(profile) == pytest.approx(dict(zip(self.ORDER, printed, strict=True)), rel=EXACT)
        assert paper_form(profile, m=1e6, gamma=0.5) == pytest.approx(13.739939226, rel=EXACT)

    def test_tight_constants_and_the_cover(self) -> None:
        tight = (11.206808532, 10.002425390, 17.644016909, 15.747834203, 2.0)
        profile = small("mgu").profile()
        assert lipschitz(profile) == pytest.approx(dict(zip(self.ORDER, tight, strict=True)), rel=EXACT)
        assert profile.cover_nats(math.log(0.5 / (2 * math.sqrt(2)))) == pytest.approx(306.641766532, rel=EXACT)


class TestLSTM:
    def test_lengths_and_growth(self) -> None:
        profile, layer = small("lstm").profile(), small("lstm").directions[0][0]
        assert isinstance(layer, LSTMClass)
        assert math.exp(profile.log_hidden) == pytest.approx(1.002709279253, rel=EXACT)
        assert math.exp(profile.log_growth) == pytest.approx(1.232499467278, rel=EXACT)
        assert profile.log_decay == pytest.approx(math.log(0.904426721933), rel=EXACT)
        signal = Signal(log_norm=np.zeros(10), log_moves=np.zeros((10, 0)))
        gates = [layer.most_open(gate, signal) for gate in ("forget", "input", "output")]
        assert layer._lengths(signal.log_norm, *gates).entry[-1] == pytest.approx(1.344577346205, rel=EXACT)

    def test_constants_of_the_recursion_and_the_cover(self) -> None:
        profile = small("lstm").profile()
        found = lipschitz(profile)
        assert found["W output"] == pytest.approx(1.548048825, rel=EXACT)
        assert found["W candidate"] == pytest.approx(5.257521428, rel=EXACT)
        assert found["U candidate"] == pytest.approx(4.321238444, rel=EXACT)
        assert profile.cover_nats(math.log(0.5 / (2 * math.sqrt(2)))) == pytest.approx(401.540916948, rel=EXACT)

    def test_the_formula_in_the_papers_form(self) -> None:
        assert paper_form(small("lstm").paper(), m=1e6, gamma=0.5) == pytest.approx(9.422888043, rel=EXACT)


class TestThePrintedLSTMLemmaIsFalse:
    """It leaves out the output gate's own difference, and takes the memory to be at most 1."""

    @staticmethod
    def output(weight: float) -> float:
        """One unit, one step: ``sigmoid(w) tanh(sigmoid(0) tanh(1))``, w the input weight of the output gate."""
        layer = nn.LSTM(1, 1, bias=False, dtype=torch.float64)
        with torch.no_grad():
            # The rows are those of the input, forget, candidate and output gates.
            fill(layer, weight_hh_l0=0.0, weight_ih_l0=torch.tensor([[0.0], [0.0], [1.0], [weight]]))
            return float(layer(torch.ones(1, 1, 1, dtype=torch.float64))[0])

    @staticmethod
    def printed(U_sum: float, output_distance: float, growth_sum: float) -> float:
        """``B_x S_t(β) (... + (B_Uc + B_Ug + B_Ur) ΔW_o)`` where only W_o differs."""
        return growth_sum * U_sum * output_distance

    def test_a_counterexample(self) -> None:
        high, low = self.output(1.0), self.output(-1.0)
        assert [high, low] == pytest.approx([0.26566631, 0.09773317], abs=1e-8)
        assert high - low == pytest.approx(0.16793314, abs=1e-8)
        assert self.printed(U_sum=0.0, output_distance=2.0, growth_sum=1.0) == 0 < high - low

    def test_the_repaired_bound_covers_it(self) -> None:
        norms = {f"{side} {gate}": 0.0 for side in "WU" for gate in GATES["lstm"]}
        norms |= {"W candidate": 1.0, "W output": 1.0}
        still = {gate: GateRows(row_norm=0.0, row_sum=0.0) for gate in ("input", "forget")}
        layer = LSTMClass(hidden=1, features=1, norms=norms, gates=still)
        network = NetworkClass(layers=(layer,), head_norm=1.0, classes=2, steps=1, input_bound=1.0)
        apart = self.output(1.0) - self.output(-1.0)
        for profile in (network.profile(), network.paper()):
            assert lipschitz(profile)["W output"] * 2 >= apart
        assert lipschitz(network.profile())["W output"] == pytest.approx(math.tanh(0.5) / 4)

    def test_a_memory_can_be_as_large_as_time_is_long(self) -> None:
        """Gates and candidate saturated: c_50 = 50."""
        layer = nn.LSTM(1, 1, bias=False, dtype=torch.float64)
        with torch.no_grad():
            fill(layer, weight_hh_l0=0.0, weight_ih_l0=100.0)
            _, (_, memory) = layer(torch.ones(50, 1, 1, dtype=torch.float64))
        assert float(memory) == pytest.approx(50, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "hidden", "typical", "parameters", "growth", "nats", "certified"),
    [
        ("mgu", 16, False, 1568, 0.916, 8693, 0.135),
        ("lstm", 16, False, 2976, 1.180, 11742, 0.178),
        ("mgu", 128, False, 41216, None, 238488, 0.981),
        ("lstm", 128, False, 81152, None, 320489, 0.995),
        ("mgu", 16, True, 1568, 2.75, 45766, 0.534),
        ("lstm", 16, True, 2976, 9.49, 143400, 0.908),
    ],
)
def test_gates_that_are_kept_small_are_worth_a_factor_of_5_to_12(
    kind: str, hidden: int, typical: bool, parameters: int, growth: float | None, nats: float, certified: float
) -> None:
    """28 steps of 28 features, 10 classes, 60,000 sequences, margin 1: all as far as it was written down."""
    rows = GateRows(row_norm=5.0, row_sum=5.0) if typical else GateRows(row_norm=0.1, row_sum=0.1)
    gate = 1.0 if typical else 0.1
    network = gated(kind, hidden=hidden, features=28, classes=10, steps=28, head=3.0, gate=gate, rows=rows)
    profile = network.profile()
    found = profile.cover_nats(math.log(1 / (2 * math.sqrt(2))))
    assert profile.parameters == parameters
    assert round(found) == nats
    assert kl_inverse(0.0, (found + math.log(20)) / 6e4) == pytest.approx(certified, abs=5e-4)
    if growth is not None:
        assert math.exp(profile.log_growth) == pytest.approx(growth, abs=6e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(GATES))
def test_a_thousand_pairs_of_networks_never_break_the_bound_and_nearly_reach_it(kind: str) -> None:
    """Single layers; in the first steps of small ones the bound is all but attained."""
    source, ratios = np.random.default_rng(1), []
    for seed in range(1000):
        tiny = bool(source.integers(2))
        form = Form(
            kind=kind,
            steps=int(source.integers(1, 3 if tiny else 31)),
            features=int(source.integers(1, 2 if tiny else 7)),
            hidden=int(source.integers(1, 2 if tiny else 7)),
            bias=bool(source.integers(2)),
            activation=str(source.choice(["tanh", "relu", "identity"])) if kind == "rnn" else "tanh",
            size=float(source.choice([0.1, 0.5, 1.0, 3.0])),
        )
        ratios.append(worst_ratio(form, seed))
    assert 0.6 < max(ratios) <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(GATES))
def test_nor_do_those_with_more_layers_directions_and_starts(kind: str) -> None:
    source, ratios = np.random.default_rng(2), []
    for seed in range(1000):
        form = Form(
            kind=kind,
            steps=int(source.integers(1, 31)),
            hidden=int(source.integers(1, 7)),
            layers=int(source.integers(1, 3)),
            directions=int(source.integers(1, 3)),
            start=bool(source.integers(2)),
            bias=bool(source.integers(2)),
            tokens=int(source.choice([0, 4])),
            readout=str(source.choice(["h", "c", "hc"])) if kind == "lstm" else "h",
            size=float(source.choice([0.1, 0.5, 1.0])),
        )
        ratios.append(worst_ratio(form, seed))
    assert 0.1 < max(ratios) <= 1 + 1e-9
