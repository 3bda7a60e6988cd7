"""The size of the class around a network as a differentiable number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from statewise.bounds import logs
from statewise.bounds.closed_forms import Norms, log_geometric, log_geometric_up_to, moves
from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.gates import GateRows
from statewise.bounds.gru import GRUClass
from statewise.bounds.lstm import LSTMClass
from statewise.bounds.matrices import GATES, SIGMOID
from statewise.bounds.measured_class import CELLS
from statewise.bounds.network_class import EmbeddingClass, NetworkClass
from statewise.bounds.norms import spectral_norm
from statewise.bounds.penalty import Class, refuse_uncovered, smallest_class, smooth_cover_nats
from statewise.bounds.reading import read_model
from statewise.errors import ArgumentError, AssumptionError
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.models.steps import StepConfig

KINDS = ("rnn", "mgu", "gru", "lstm")
GAMMA = 0.5
LOG_SCALE = math.log(GAMMA / (2 * math.sqrt(2)))


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def plain(value: Tensor) -> float:
    return value.detach().item()


def elman(beta: Tensor | float, *, steps: int = 10) -> Class:
    """Net A of the known answers: dx 2, dh 4, dy 2, B_V 2, B_W = B_x = 1."""
    norms = {"U": beta if isinstance(beta, Tensor) else number(beta), "W": number(1.0), "V": number(2.0)}
    layer = Norms(kind="rnn", hidden=4, steps=steps, log_input=number(0.0), norms=norms, gates={})
    return Class(layer=layer, norms=norms, parameters={"U": 16, "W": 8, "V": 8}, head_bias=False)


def gated(kind: str) -> Norms:
    """A gated layer of the known answers: gate matrices 0.1, candidates 1, rows a = 0.1, μ = 0.2."""
    norms = {f"{side} {gate}": number(0.1 if gate in SIGMOID else 1.0) for gate in GATES[kind] for side in "WU"}
    is_open = torch.sigmoid(number(0.3))
    gates = {gate: (is_open, is_open) for gate in GATES[kind] if gate in SIGMOID}
    return Norms(kind=kind, hidden=4, steps=10, log_input=number(0.0), norms=norms, gates=gates)


def made(kind: str, *, seed: int = 0, features: int = 3, hidden: int = 4, **options: Any) -> SequenceClassifier:
    config = ClassifierConfig(cell=kind, hidden=hidden, **{"readout": "h", **options})
    model = config.build(features=features, classes=2, generator=torch.Generator().manual_seed(seed)).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(seed + len(name)))
    return model


class TestSumsOfPowers:
    @pytest.mark.parametrize("beta", [1e-9, 0.5, 1 - 1e-9, 1.0, 1 + 1e-13, 1.1, 2.0, 3.0])
    @pytest.mark.parametrize("steps", [1, 2, 10, 1000, 5000])
    def test_they_are_those_of_the_bounds(self, beta: float, steps: int) -> None:
        found = plain(log_geometric(number(beta).log(), steps))
        assert found == pytest.approx(logs.log_geometric(math.log(beta), steps), rel=1e-9, abs=1e-9)

    def test_gradients_are_those_of_finite_differences_through_one(self) -> None:
        for at in (-40.0, -0.7, -1e-3, 0.0, 1e-3, 0.7):
            beta = number(at).requires_grad_()
            assert torch.autograd.gradcheck(lambda beta: log_geometric_up_to(beta, 12), (beta,))

    def test_a_growth_of_three_over_five_thousand_steps_has_a_gradient(self) -> None:
        beta = number(3.0).requires_grad_()
        value = log_geometric(beta.log(), 5000)
        value.backward()
        assert plain(value) == pytest.approx(5492.368296160, rel=1e-12)
        assert beta.grad is not None
        assert plain(beta.grad) == pytest.approx(4999 / 3 - 1 / 6, rel=1e-3)


class TestKnownAnswers:
    @pytest.mark.parametrize(
        ("beta", "nats"),
        [(0.5, 155.342467784), (1.0, 202.455220621), (1.5, 260.149209006), (1 - 1e-9, 202.455220508)],
    )
    def test_elman(self, beta: float, nats: float) -> None:
        assert plain(elman(beta).cover_nats(GAMMA)) == pytest.approx(nats, rel=1e-9)

    def test_elman_at_five_thousand_steps_is_finite_with_its_gradient(self) -> None:
        beta = number(3.0).requires_grad_()
        nats = elman(beta, steps=5000).cover_nats(GAMMA)
        nats.backward()
        assert beta.grad is not None
        # 24 of the 32 parameters cost (t - 1) ln β nats and more each.
        assert plain(nats) == pytest.approx(24 * 5000 * math.log(3), rel=0.01)
        assert plain(beta.grad) == pytest.approx(24 * 5000 / 3, rel=0.01)

    def test_without_recurrence_nothing_grows_and_nothing_is_lost(self) -> None:
        beta = number(0.0).requires_grad_()
        short, long = (elman(beta, steps=steps).cover_nats(GAMMA) for steps in (2, 500))
        assert plain(short.detach()) == pytest.approx(plain(long.detach()), rel=1e-12)
        long.backward()
        assert beta.grad is not None
        assert bool(beta.grad.isfinite())

    def test_at_one_step_the_recurrent_matrix_costs_nothing(self) -> None:
        assert "U" not in elman(1.0, steps=1).log_lipschitz()

    def test_mgu(self) -> None:
        layer = gated("mgu")
        norms = {**layer.norms, "V": number(2.0)}
        sizes = (
            dict.fromkeys(("W forget", "W candidate"), 8) | dict.fromkeys(("U forget", "U candidate"), 16) | {"V": 8}
        )
        net = Class(layer=layer, norms=norms, parameters=sizes, head_bias=False)
        found = {name: plain(value.exp()) for name, value in net.log_lipschitz().items()}
        wanted = {"W forget": 11.206808532, "W candidate": 10.002425390, "U forget": 17.644016909}
        assert found == pytest.approx({**wanted, "U candidate": 15.747834203, "V": 2.0}, rel=1e-9)
        assert plain(net.cover_nats(GAMMA)) == pytest.approx(306.641766532, rel=1e-9)

    def test_lstm_has_the_repaired_closed_form(self) -> None:
        found = {name: plain(value) for name, value in moves(gated("lstm")).log_moves.items()}
        growth, entry = 1.232499467278, 1.344577346205
        assert found["W input"] == pytest.approx(logs.log_geometric(math.log(growth), 10) + math.log(0.25), rel=1e-9)
        assert found["U forget"] - found["W input"] == pytest.approx(math.log(2 * entry), rel=1e-9)

    @pytest.mark.parametrize(("kind", "other"), [("gru", GRUClass), ("lstm", LSTMClass)])
    def test_closed_forms_are_those_of_the_classes(self, kind: str, other: Any) -> None:
        layer = gated(kind)
        rows = {gate: GateRows(row_norm=0.1, row_sum=0.2) for gate in layer.gates}
        norms = {name: plain(norm) for name, norm in layer.norms.items()}
        options = {"refined": False} if kind == "lstm" else {}
        wanted = other(hidden=4, features=2, norms=norms, gates=rows, **options).closed_form(0.0, 10).log_moves
        assert {name: plain(value) for name, value in moves(layer).log_moves.items()} == pytest.approx(wanted, rel=1e-9)


class TestNetworks:
    @pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
    def test_of_an_elman_network_it_is_the_tight_class_around_it(self, nonlinearity: str) -> None:
        model = made("rnn", nonlinearity=nonlinearity)
        matrices = read_model(model.eval()).matrices
        assert matrices is not None
        (layer,) = matrices.layers[0]
        constants = ElmanConstants(
            inputs=4,
            hidden=4,
            classes=2,
            steps=20,
            norm_u=spectral_norm(layer.states["state"]),
            norm_w=spectral_norm(layer.folded("state")),
            norm_v=spectral_norm(matrices.folded_head),
            input_bound=math.sqrt(1.5**2 + 1),
            cap=1.0 if nonlinearity == "tanh" else math.inf,
            head_bias=True,
        )
        found = smooth_cover_nats(model, steps=20, gamma=GAMMA, input_bound=1.5)
        assert plain(found) == pytest.approx(constants.tight().cover_nats(LOG_SCALE), rel=1e-9)

    @pytest.mark.parametrize("kind", KINDS[1:])
    def test_of_a_gated_network_it_is_never_below_what_a_walk_gives_and_not_far_above(self, kind: str) -> None:
        model = made(kind)
        matrices = read_model(model.eval()).matrices
        assert matrices is not None
        (layer,) = matrices.layers[0]
        rows = {
            gate: GateRows(
                row_norm=float(np.linalg.norm(layer.inputs[gate], axis=1).max()),
                row_sum=float(np.abs(layer.states[gate]).sum(1).max()),
                bias=float(layer.bias[gate].max()),  # type: ignore[index]
                negated_bias=float((-layer.bias[gate]).max()),  # type: ignore[index]
            )
            for gate in GATES[kind]
            if gate in SIGMOID
        }
        own = smallest_class(model, steps=20, input_bound=1.5)
        norms = {name: plain(norm) for name, norm in own.norms.items() if name != "V"}
        row_sum = own.layer.row_sum
        more: dict[str, Any] = {} if row_sum is None else {"state_bias": True, "row_sum": plain(row_sum)}
        inside = CELLS[kind](hidden=4, features=3, norms=norms, bias=True, gates=rows, **more)  # type: ignore[call-arg]
        head = plain(own.norms["V"])
        sizes: dict[str, Any] = {"classes": 2, "steps": 20, "input_bound": 1.5, "head_bias": True}
        profile = NetworkClass(layers=(inside,), head_norm=head, **sizes).profile()
        assert profile.parameters == sum(own.parameters.values())
        walked, formula = profile.cover_nats(LOG_SCALE), plain(own.cover_nats(GAMMA))
        assert 0.999999 * walked <= formula <= 1.6 * walked

    def test_tokens_are_covered_with_their_embedding(self) -> None:
        config = ClassifierConfig(cell="rnn", hidden=4, embedding=3)
        model = config.build(tokens=2, classes=2, generator=torch.Generator().manual_seed(0)).double()
        own = smallest_class(model, steps=18, input_bound=None)
        assert own.layer.steps == 20, "a start and an end token are steps as well"
        norms = {name: plain(own.norms[name]) for name in ("W", "U")}
        table = EmbeddingClass(tokens=4, features=3, bound=plain(own.norms["embedding"]))
        inside = CELLS["rnn"](hidden=4, features=3, norms=norms, bias=True)
        sizes: dict[str, Any] = {"classes": 2, "steps": 20, "input_bound": math.inf, "head_bias": True}
        head = plain(own.norms["V"])
        wanted = NetworkClass(layers=(inside,), head_norm=head, embedding=table, **sizes).profile()
        assert plain(own.cover_nats(GAMMA)) == pytest.approx(wanted.cover_nats(LOG_SCALE), rel=1e-9)

    @pytest.mark.parametrize("kind", KINDS)
    def test_gradients_are_those_of_finite_differences(self, kind: str) -> None:
        model = made(kind, features=2, hidden=2)
        inputs = tuple(model.parameters())
        assert torch.autograd.gradcheck(lambda *_: smooth_cover_nats(model, steps=7, input_bound=1.5), inputs)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_step_down_the_gradient_saves_nats_also_in_single_precision(self, kind: str) -> None:
        model = made(kind).float()
        options: dict[str, Any] = {"steps": 5000, "input_bound": 1.0}
        with torch.no_grad():
            model.layer.weight_hh_l0.mul_(3 / torch.linalg.matrix_norm(model.layer.weight_hh_l0, 2))
        before = smooth_cover_nats(model, **options)
        before.backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
        assert bool(norm.isfinite())
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.sub_(0.01 * parameter.grad / norm)
        assert plain(smooth_cover_nats(model, **options)) < plain(before)

    def test_more_steps_larger_inputs_and_smaller_margins_cost_more(self) -> None:
        model = made("gru")
        usual: dict[str, Any] = {"steps": 20, "gamma": 1.0, "input_bound": 1.0}
        base = plain(smooth_cover_nats(model, **usual))
        for name, value in (("steps", 21), ("gamma", 0.9), ("input_bound", 1.1)):
            assert plain(smooth_cover_nats(model, **{**usual, name: value})) > base, name

    def test_weights_that_have_diverged_give_nan_and_no_crash(self) -> None:
        model = made("rnn")
        with torch.no_grad():
            model.head.weight[0, 0] = math.inf
        assert smooth_cover_nats(model, steps=3, input_bound=1.0).isnan()


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (made("rac"), "the RAC cell"),
        (made("peephole"), "PeepholeLSTM cell"),
        (made("rnn", nonlinearity="sigmoid"), "with sigmoid"),
        (made("gru", centroids=(3,)), "Centroids"),
        (made("rnn", layers=2), "2 layers"),
        (made("lstm", readout="hc"), 'readout="hc"'),
        (StepConfig(cell="rnn", hidden=3).build(tokens=2, classes=2), "a StepClassifier"),
    ],
)
def test_what_has_no_closed_form_is_refused_by_name(model: Any, told: str) -> None:
    with pytest.raises(AssumptionError, match=told):
        refuse_uncovered(model, where="CoverPenalty")


def test_an_input_bound_is_for_numbers_and_only_for_them() -> None:
    tokens = ClassifierConfig(cell="rnn", hidden=3).build(tokens=2, classes=2)
    with pytest.raises(ArgumentError, match="input_bound: got no bound"):
        smooth_cover_nats(made("rnn"), steps=3)
    with pytest.raises(ArgumentError, match="for a network of tokens"):
        smooth_cover_nats(tokens, steps=3, input_bound=1.0)
