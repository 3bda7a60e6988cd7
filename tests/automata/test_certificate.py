"""The finite-temperature certificate: its bounds are bounds, and what it certifies happens."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import settings as profile
from hypothesis import strategies as st
from torch import Tensor

from networks import network, tomita
from statewise.automata import (
    Extraction,
    certified_temperature,
    certify,
    compile_machine,
    extract,
    left_side,
    verify,
)
from statewise.automata.frozen import FrozenLayer
from statewise.automata.proof.certify import Search, why_not_certifiable
from statewise.automata.proof.derivatives import Ball, Matrix, at_center_on, deviation, summands
from statewise.automata.proof.intervals import Interval
from statewise.automata.proof.steps_bound import movement, numbers_needed
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig, SequenceClassifier

SEEDS = st.integers(0, 2**32 - 1)
CELLS = (
    {"cell": "gru"},
    {"cell": "gru", "reset_before": True},
    {"cell": "mgu"},
    {"cell": "rac"},
    {"cell": "multiplicative"},
    *({"cell": "rnn", "nonlinearity": kind} for kind in ("tanh", "relu", "sigmoid", "identity", "modrelu")),
)
SIMILARITIES = ("dot", "euclidean", "sqeuclidean")


def frozen(seed: int, settings: dict[str, Any], *, bias: float = -0.3) -> tuple[FrozenLayer, Tensor]:
    model = network(seed, scale=1.5, hidden=6, centroids=(5,), **settings)
    for name, parameter in model.layer.named_parameters():
        if name.startswith("bias_mod"):
            torch.nn.init.constant_(parameter, bias)
    found = extract(model).network
    return found.layers[0], found.embedding[:1]


def ball_of(layer: FrozenLayer, inputs: Tensor, radius: float) -> Ball:
    rows = len(layer.centroids)
    matrices = tuple(Matrix.of(block) for block in layer.weight_hh.chunk(len(layer.cell.blocks)))
    term = layer.input_term(inputs.expand(rows, -1))
    return Ball(layer, matrices, term, layer.centroids, torch.full((rows,), radius, dtype=torch.float64))


def derivative(layer: FrozenLayer, inputs: Tensor, state: Tensor) -> Tensor:
    def step(h: Tensor) -> Tensor:
        u: Tensor = layer.cell_step(inputs, h[None])
        return u[0]

    found: Tensor = torch.autograd.functional.jacobian(step, state)
    return found


def inside(centers: Tensor, radius: float, seed: int) -> Tensor:
    """Points in the balls, one at each centre, on average far out."""
    draw = torch.Generator().manual_seed(seed)
    direction = torch.randn(centers.shape, generator=draw, dtype=torch.float64)
    share = torch.rand(len(centers), 1, generator=draw, dtype=torch.float64) ** 0.2
    found: Tensor = centers + radius * share * direction / torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    return found


@pytest.mark.parametrize("settings", CELLS, ids=lambda s: "-".join(map(str, s.values())))
@profile(max_examples=10)
@given(seed=SEEDS)
def test_the_derivative_at_the_centre_is_that_of_automatic_differentiation(settings: dict[str, Any], seed: int) -> None:
    layer, inputs = frozen(seed, settings)
    parts = summands(ball_of(layer, inputs, 0.0))
    unit = torch.eye(6, dtype=torch.float64).expand(5, -1, -1)
    whole = torch.stack([derivative(layer, inputs, state) for state in layer.centroids])
    torch.testing.assert_close(at_center_on(parts, unit).mT, whole, rtol=1e-9, atol=1e-9)
    assert float(deviation(parts).max()) < 1e-12


@pytest.mark.parametrize("settings", CELLS, ids=lambda s: "-".join(map(str, s.values())))
@profile(max_examples=10)
@given(seed=SEEDS, radius=st.floats(1e-3, 2.0))
def test_the_derivative_stays_within_its_bound_on_the_ball(settings: dict[str, Any], seed: int, radius: float) -> None:
    layer, inputs = frozen(seed, settings)
    bound = deviation(summands(ball_of(layer, inputs, radius))).expand(5)
    points = inside(layer.centroids, radius, seed)
    for state, point, most in zip(layer.centroids, points, bound, strict=True):
        moved = derivative(layer, inputs, point) - derivative(layer, inputs, state)
        assert float(torch.linalg.matrix_norm(moved, 2)) <= float(most) + 1e-9


@pytest.mark.parametrize("settings", CELLS, ids=lambda s: "-".join(map(str, s.values())))
@profile(max_examples=10)
@given(seed=SEEDS, radius=st.floats(1e-3, 2.0))
def test_readings_of_the_cell_move_no_more_than_their_bound_and_its_lipschitz_constant_says(
    settings: dict[str, Any], seed: int, radius: float
) -> None:
    layer, inputs = frozen(seed, settings)
    rows = inputs.expand(5, -1)
    centers, targets = layer.centroids, layer.centroids.roll(1, 0)
    moves = movement(layer, rows, centers, layer.centroids, targets)
    weights = torch.rand(5, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * radius / 5
    points = centers + torch.einsum("rk,rkd->rd", weights, layer.centroids - centers[:, None])
    lengths = torch.linalg.vector_norm(points - centers, dim=1)
    change = layer.cell_step(rows, points) - layer.cell_step(rows, centers)
    readings = torch.einsum("rkd,rd->rk", layer.centroids - targets[:, None], change)
    assert bool((readings <= moves.bound(weights, lengths) + 1e-9).all())
    assert bool((torch.linalg.vector_norm(change, dim=1) <= moves.length(weights, lengths) + 1e-9).all())
    radii = torch.full((5,), radius, dtype=torch.float64)
    points = inside(centers, radius, seed)
    lengths = torch.linalg.vector_norm(points - centers, dim=1)
    change = layer.cell_step(rows, points) - layer.cell_step(rows, centers)
    assert bool((torch.linalg.vector_norm(change, dim=1) <= moves.lipschitz(radii) * lengths + 1e-9).all())


def test_the_bound_is_tight_for_small_weights() -> None:
    """The first-order part is exact: a state that leans to one centroid moves a reading by nearly the bound."""
    layer, inputs = frozen(0, {"cell": "gru"})
    rows = inputs.expand(5, -1)
    targets = layer.centroids.roll(1, 0)
    moves = movement(layer, rows, layer.centroids, layer.centroids, targets)
    weights = torch.zeros(5, 5, dtype=torch.float64)
    weights[:, 2] = 1e-6
    lean = 1e-6 * (layer.centroids[2] - layer.centroids)
    change = layer.cell_step(rows, layer.centroids + lean) - layer.cell_step(rows, layer.centroids)
    readings = torch.einsum("rkd,rd->rk", layer.centroids - targets[:, None], change)
    allowed = moves.bound(weights, torch.linalg.vector_norm(lean, dim=1))
    rises = readings > 1e-9
    assert int(rises.sum()) >= 5
    torch.testing.assert_close(readings[rises], allowed[rises], rtol=1e-2, atol=0)


@given(a=st.tuples(*[st.floats(-3, 3)] * 2), b=st.tuples(*[st.floats(-3, 3)] * 2), at=st.tuples(*[st.floats(0, 1)] * 2))
def test_interval_arithmetic_encloses_every_value(
    a: tuple[float, float], b: tuple[float, float], at: tuple[float, float]
) -> None:
    (low_a, high_a), (low_b, high_b) = sorted(a), sorted(b)
    x, y = low_a + at[0] * (high_a - low_a), low_b + at[1] * (high_b - low_b)
    first = Interval(*(torch.tensor([v], dtype=torch.float64) for v in (x, low_a, high_a)))
    second = Interval(*(torch.tensor([v], dtype=torch.float64) for v in (y, low_b, high_b)))
    cases = {
        x + y: first + second,
        x - y: first - second,
        x * y: first * second,
        1 - x: first.from_one(),
        math.tanh(x): first.rising(torch.tanh),
        math.exp(-x * x): first.bell(lambda value: torch.exp(-value.square())),
    }
    for value, found in cases.items():
        assert float(found.low) - 1e-9 <= value <= float(found.high) + 1e-9
        assert abs(value - float(found.center)) <= float(found.spread) + 1e-9
        assert abs(value) <= float(found.largest) + 1e-9


def follows(found: Extraction, temperature: float, *, words: int = 10, length: int = 150) -> tuple[float, bool, bool]:
    """The largest share of its radius that a state uses, and whether all states and classes were the automaton's."""
    cooled = found.network.cooled(temperature)
    (layer,) = cooled.layers
    certificate = certify(found, temperature=temperature)
    radii = torch.zeros(len(layer.centroids), dtype=torch.float64)
    for state, radius in certificate.radii.items():
        radii[state] = radius
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, len(cooled.symbols), (length, words)))
    states, worst, same = cooled.initial(words), 0.0, True
    automaton = np.full(words, found.table.start)
    steps = [cooled.embedding[row] for row in tokens]
    classes = True
    for number, inputs in enumerate([cooled.start.expand(words, -1), *steps] if cooled.start is not None else steps):
        if cooled.start is None or number > 0:
            automaton = found.table.transitions[automaton, tokens[number - (cooled.start is not None)].numpy()]
        u = layer.cell_step(inputs, states[0], fresh=number == 0)
        same &= bool((layer.similarities(u).argmax(1).numpy() == automaton).all())
        states = cooled.soft_step(inputs, states, fresh=number == 0)
        off = torch.linalg.vector_norm(states[0] - layer.centroids[automaton], dim=1)
        worst = max(worst, float((off / radii[automaton]).max()))
        classes &= bool((cooled.read_out(states).argmax(1).numpy() == found.table.outputs[automaton]).all())
    return worst, same, classes


@pytest.mark.parametrize("settings", CELLS, ids=lambda s: "-".join(map(str, s.values())))
@profile(max_examples=2)
@given(
    seed=SEEDS,
    similarity=st.sampled_from(SIMILARITIES),
    readout=st.sampled_from(("u_end", "h")),
    start_token=st.booleans(),
)
def test_at_the_certified_temperature_long_words_follow_the_automaton_within_the_radii(
    settings: dict[str, Any], seed: int, similarity: str, readout: str, start_token: bool
) -> None:
    model = network(seed, scale=3.0, similarity=similarity, readout=readout, start_token=start_token, **settings)
    found = extract(model)
    temperature = certified_temperature(found)
    assume(temperature > 0)
    worst, same, classes = follows(found, temperature)
    assert worst <= 1
    assert same
    assert classes


def leaning_points(box: Tensor, seed: int, *, number: int = 200) -> Tensor:
    """(number, k): weights of other centroids within a box, half of them at its corners, no more than 1 in all."""
    draw = torch.Generator().manual_seed(seed)
    shares = torch.rand(number, len(box), generator=draw, dtype=torch.float64)
    shares[::2] = shares[::2].round()
    weights = shares * box
    weights[0] = box
    return weights / weights.sum(1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize("settings", CELLS, ids=lambda s: "-".join(map(str, s.values())))
@profile(max_examples=3)
@given(
    seed=SEEDS,
    similarity=st.sampled_from(SIMILARITIES),
    readout=st.sampled_from(("u_end", "h")),
    start_token=st.booleans(),
)
def test_whatever_a_state_may_lean_to_the_next_one_leans_no_further_than_it_may(
    settings: dict[str, Any], seed: int, similarity: str, readout: str, start_token: bool
) -> None:
    """The step of the induction, attacked at many points, not only at those that words happen to reach."""
    model = network(seed, scale=3.0, similarity=similarity, readout=readout, start_token=start_token, **settings)
    found = extract(model)
    temperature = certified_temperature(found)
    assume(temperature > 0)
    search, network_then = Search.of(found), found.network.cooled(temperature)
    leaning = search.invariant(temperature)
    assert leaning is not None
    (layer,), radii = network_then.layers, search.steps.radii(leaning)
    centroids = layer.centroids
    for state in search.reachable.tolist():
        leans = leaning_points(leaning[state], seed) @ (centroids - centroids[state])
        assert float(torch.linalg.vector_norm(leans, dim=1).max()) <= float(radii[state])
        states = centroids[state] + leans
        for symbol, inputs in enumerate(network_then.embedding):
            target = int(found.table.transitions[state, symbol])
            similar = layer.similarities(layer.cell_step(inputs.expand(len(states), -1), states))
            weights = torch.softmax(similar / temperature, 1)
            weights[:, target] = 0
            assert bool((weights <= leaning[target] * (1 + 1e-12)).all())
        classes = network_then.read_out([states]).argmax(1)
        assert bool((classes == int(found.table.outputs[state])).all())


@pytest.mark.parametrize("number", [1, 4, 7])
def test_compiled_networks_are_certified_at_temperature_1_and_follow_their_machines(number: int) -> None:
    found = extract(compile_machine(tomita(number)))
    certificate = certify(found)
    assert certificate.holds
    assert certificate.radius is not None
    assert certificate.radius < 1e-5
    assert certificate.gap == pytest.approx(19.28, abs=0.005)
    assert certificate.diameter == pytest.approx(14.142, abs=1e-3)
    hottest = certified_temperature(found)
    assert hottest > 2  # the simple form, with one Lipschitz constant for all steps, ends below 2
    worst, same, classes = follows(found, hottest)
    assert same
    assert classes
    assert 1e-3 < worst <= 1  # the balls are not much too large either


def test_the_simple_form_gives_the_published_figures() -> None:
    """k = 9: 4.9e-7 at temperature 1, which holds, and 7.4e-3 at 2, which does not, for a radius of 1e-3."""
    found = extract(compile_machine(tomita(4)))
    layer, certificate = found.network.layers[0], certify(found)
    everywhere = float(torch.linalg.matrix_norm(layer.weight_hh.chunk(3)[2], 2))  # with gates open, tanh' <= 1
    assert everywhere == pytest.approx(1.13, abs=0.005)
    assert certificate.lipschitz < everywhere
    sizes: dict[str, Any] = {
        "centroids": 9,
        "diameter": certificate.diameter,
        "gap": certificate.gap,
        "lipschitz": everywhere,
    }
    assert left_side(**sizes, radius=1e-3, temperature=1.0) == pytest.approx(4.9e-7, rel=0.02)
    assert left_side(**sizes, radius=1e-3, temperature=2.0) == pytest.approx(7.4e-3, rel=0.02)


def test_euclidean_forms_replace_the_slope() -> None:
    sizes: dict[str, Any] = {
        "centroids": 3,
        "diameter": 5.0,
        "gap": 1.0,
        "lipschitz": 2.0,
        "radius": 0.01,
        "temperature": 0.5,
    }
    assert left_side(**sizes, similarity="euclidean") == pytest.approx(10 * math.exp(-(1 - 2 * 2 * 0.01) / 0.5))
    assert left_side(**sizes, similarity="sqeuclidean") == pytest.approx(10 * math.exp(-(1 - 2 * 5 * 2 * 0.01) / 0.5))


@profile(max_examples=6)
@given(seed=SEEDS, cell=st.sampled_from(("gru", "rnn", "mgu")))
def test_a_certificate_holds_for_all_lower_temperatures_and_ends_where_bisection_says(seed: int, cell: str) -> None:
    found = extract(network(seed, scale=3.0, cell=cell))
    hottest = certified_temperature(found)
    assume(0 < hottest < 1e3)
    assert all(certify(found, temperature=hottest * part).holds for part in (1.0, 0.5, 0.1, 0.01))
    assert not certify(found, temperature=hottest * 1.03).holds


def test_far_above_the_certified_temperature_the_soft_network_does_leave_the_automaton() -> None:
    machine = tomita(5)
    model = compile_machine(machine, temperature=20.0)
    words = ["".join(word) for word in itertools.product("01", repeat=8)]
    assert not certify(extract(model)).holds
    assert (model.classify(words) != machine.classify(words)).any()


def test_a_failed_certificate_names_the_step_and_gives_no_radius() -> None:
    certificate = certify(extract(compile_machine(tomita(5))), temperature=10.0)
    assert not certificate.holds
    assert (certificate.radius, certificate.radii) == (None, {})
    assert "the step from state" in certificate.sentence
    assert "No proof at temperature 10" in certificate.sentence
    assert [assumption.holds for assumption in certificate.assumptions] == [True, True, True, False, False]
    assert "[ ]" in str(certificate)


def test_a_tie_has_no_certificate_at_any_temperature() -> None:
    model = compile_machine(tomita(4))
    with torch.no_grad():
        model.layer.get_parameter("centroids_l0")[1] = model.layer.get_parameter("centroids_l0")[0]
    assert certified_temperature(extract(model)) == 0


def rounded(similarity: str) -> SequenceClassifier:
    """Whatever it reads, u = (1, ..., 1); both centroids are equally similar to it, but not after rounding."""
    config = ClassifierConfig(
        cell="rnn", nonlinearity="identity", hidden=9, embedding=1, centroids=(2,), readout="h", similarity=similarity
    )
    model = config.build(tokens=1, classes=2).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.layer.get_parameter("bias_ih_l0").fill_(1.0)
        draw = torch.Generator().manual_seed(0)
        centroids = model.layer.get_parameter("centroids_l0")
        for _ in range(100):
            centroids[0] = 1e12 * torch.randn(9, generator=draw, dtype=torch.float64)
            centroids[1] = centroids[0][torch.randperm(9, generator=draw)]
            difference = centroids[0] - centroids[1]
            model.head.weight.copy_(torch.stack([difference, -difference]))
            if extract(model).min_margin > 0:
                return model
    raise AssertionError("no rounding was found")


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_lead_that_is_rounding_alone_proves_nothing(similarity: str) -> None:
    model = rounded(similarity)
    centroids = model.layer.get_parameter("centroids_l0").tolist()
    exact = [sum(map(Fraction, row)) for row in centroids]
    assert exact[0] == exact[1]
    found = extract(model)
    assert certified_temperature(found) == 0
    assert not certify(found, temperature=found.min_margin / 50).holds


def test_a_sum_of_which_rounding_takes_a_part_proves_nothing() -> None:
    """``u = 0.3 + 1e15 - 1e15`` comes out as 0.25, which is nearer to the other centroid."""
    config = ClassifierConfig(
        cell="rnn", nonlinearity="identity", hidden=1, embedding=1, centroids=(2,), readout="h", similarity="euclidean"
    )
    model = config.build(tokens=1, classes=2).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.layer.get_parameter("weight_ih_l0").fill_(0.3)
        assert model.embedding is not None
        model.embedding.weight.fill_(1.0)
        model.layer.get_parameter("centroids_l0").copy_(torch.tensor([[0.2], [0.36]]))
        model.head.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        right = extract(model)
        model.layer.get_parameter("bias_ih_l0").fill_(1e15)
        model.layer.get_parameter("bias_hh_l0").fill_(-1e15)
    wrong = extract(model)
    assert (right.used, wrong.used) == (((1,),), ((0,),))
    assert certify(right, temperature=1e-3).holds
    assert certified_temperature(wrong) == 0


def test_a_class_that_rounding_alone_decides_proves_nothing() -> None:
    model = rounded("dot")
    head = model.layer.get_parameter("centroids_l0").detach().clone()
    with torch.no_grad():
        model.head.weight.copy_(head)  # whose rows have the same sum
        model.layer.get_parameter("centroids_l0").copy_(torch.stack([torch.ones(9), -torch.ones(9)]))
    found = extract(model)
    assert found.min_margin > 1
    assert found.output_margins[found.reachable].min() > 0
    certificate = certify(found, temperature=0.01)
    assert not certificate.holds
    assert "read-out" in certificate.failure


def test_bounds_that_would_take_more_than_a_gigabyte_are_refused_and_nothing_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = tomita(4)
    found = extract(compile_machine(machine))
    assert numbers_needed(found.network, len(found.reachable)) == 9 * 2 * 9 * 9
    monkeypatch.setattr(import_module("statewise.automata.proof.certify"), "LARGEST", 9 * 2 * 9 * 9 - 1)
    with pytest.raises(ArgumentError, match=r"9 centroids and 2 symbols.*merge_centroids"):
        certify(found)
    assert extract(compile_machine(machine)).card.certified_temperature is None
    proof = verify(compile_machine(machine), machine, max_length=3, random_words=5).proof
    assert proof is not None
    assert (proof.equal, proof.soft, proof.certificate) == (True, False, None)
    assert "it has 9 centroids and 2 symbols" in proof.sentence


def test_the_machine_of_100_states_and_10_symbols_is_refused_before_its_80_gigabytes_are_asked_for() -> None:
    found = extract(network(0, hidden=1, centroids=(1001,), tokens=10, cell="rnn"))
    rows = np.stack([(np.arange(1001) + 1 + symbol) % 1001 for symbol in range(10)], axis=1)
    whole = replace(found, table=replace(found.table, transitions=rows))
    assert "80.2 GB" in why_not_certifiable(whole)


def test_distances_need_no_table_of_readings() -> None:
    found = extract(network(0, similarity="euclidean"))
    search = Search.of(found)
    assert search.steps.moves.rise.numel() == 0
    assert numbers_needed(found.network, len(found.reachable)) == len(found.reachable) * 2 * 8


def test_similarities_in_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = extract(network(3, similarity="euclidean"))
    whole = certified_temperature(found)
    monkeypatch.setattr("statewise.automata.proof.steps_bound.NUMBERS_AT_ONCE", 1)
    assert certified_temperature(found) == pytest.approx(whole, rel=1e-9)


def test_an_unsure_read_out_has_no_certificate_and_is_named() -> None:
    model = compile_machine(tomita(4), temperature=2.0)
    assert certify(extract(model)).holds
    with torch.no_grad():
        model.head.bias[1] = 10 - 1e-6  # a state of class 0 now leads by almost nothing
        model.head.bias[0] = 0
    certificate = certify(extract(model))
    assert not certificate.holds
    assert "read-out of state" in certificate.failure


def test_a_jump_of_modrelu_inside_a_ball_has_no_bound() -> None:
    layer, inputs = frozen(0, {"cell": "rnn", "nonlinearity": "modrelu"}, bias=0.5)
    assert not bool(torch.isfinite(deviation(summands(ball_of(layer, inputs, 50.0)))).any())


def test_one_centroid_is_certified_at_every_temperature() -> None:
    found = extract(network(0, centroids=(1,)))
    assert certify(found).holds
    assert certified_temperature(found) == 1e3
    assert extract(network(0, centroids=(1,), temperature=2000.0)).card.certified


def test_stacks_float32_and_temperatures_that_are_none_are_refused() -> None:
    with pytest.raises(ArgumentError, match="2 layers"):
        certify(extract(network(0, layers=2)))
    with pytest.raises(ArgumentError, match="float64"):
        certify(extract(network(0), dtype=torch.float32))
    with pytest.raises(ArgumentError, match="above 0"):
        certify(extract(network(0)), temperature=0.0)


def test_the_sentence_can_be_quoted() -> None:
    sentence = certify(extract(compile_machine(tomita(1)))).sentence
    assert sentence.startswith("At every temperature up to 1 the soft network gives every word, of every length,")
