"""Probabilistic automata: laws, paths and rates against direct sums over all paths."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networks import network, tomita
from statewise.automata import ProbabilisticMachine, compile_machine, equivalent, extract
from statewise.errors import ArgumentError, NotMemorylessError, ShapeError, UnknownSymbolError

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int, states: int = 3, symbols: int = 2) -> ProbabilisticMachine:
    draw = np.random.default_rng(seed)
    return ProbabilisticMachine(
        alphabet=tuple("ab"[:symbols]),
        start=draw.dirichlet(np.ones(states)),
        laws=draw.dirichlet(np.ones(states), (symbols, states)),
        outputs=draw.integers(0, 2, states),
    )


def paths(machine: ProbabilisticMachine, word: str) -> dict[tuple[int, ...], float]:
    """The probability of every path along a word, multiplied out."""
    found = {}
    for path in itertools.product(range(len(machine)), repeat=len(word) + 1):
        steps = [machine.laws["ab".index(a), i, j] for a, i, j in zip(word, path, path[1:], strict=False)]
        found[path] = float(machine.start[path[0]] * math.prod(steps))
    return found


@given(seed=SEEDS, word=st.text("ab", max_size=5))
def test_laws_classes_occupancy_and_the_best_path_are_sums_over_all_paths(seed: int, word: str) -> None:
    machine = drawn(seed)
    every = paths(machine, word)
    law = [sum(p for path, p in every.items() if path[-1] == state) for state in range(3)]
    assert machine.law(word) == pytest.approx(law)
    accepted = sum(p for path, p in every.items() if machine.outputs[path[-1]] == 1)
    assert machine.class_law(word) == pytest.approx([1 - accepted, accepted])
    visits = [sum(p * path.count(state) for path, p in every.items()) for state in range(3)]
    assert machine.occupancy(word) == pytest.approx(visits)
    path, logarithm = machine.viterbi(word)
    best = max(every.values())
    assert math.exp(logarithm) == pytest.approx(best)
    assert every[tuple(path)] == pytest.approx(best)


@given(seed=SEEDS)
def test_the_stationary_law_stays_and_the_entropy_rate_is_what_the_chain_adds(seed: int) -> None:
    machine = drawn(seed)
    step = 0.3 * machine.laws[0] + 0.7 * machine.laws[1]
    law = machine.stationary([0.3, 0.7])
    assert law @ step == pytest.approx(law)
    direct = -sum(
        p * law[i] * q * math.log(q)
        for p, rows in zip((0.3, 0.7), machine.laws, strict=True)
        for i in range(3)
        for q in rows[i]
    )
    assert machine.entropy_rate([0.3, 0.7]) == pytest.approx(direct)


def test_a_deterministic_machine_has_no_entropy_and_no_gap() -> None:
    target = tomita(5)
    laws = np.eye(4)[target.transitions.T]
    machine = ProbabilisticMachine(
        alphabet=target.alphabet, start=np.eye(4)[target.start], laws=laws, outputs=target.outputs
    )
    nearest = machine.nearest()
    assert (machine.entropy_rate(), nearest.gap, nearest.largest_gap) == (0.0, 0.0, 0.0)
    assert nearest.machine == target
    assert machine.stationary() == pytest.approx([0.25] * 4)  # it has a period, and the mean over it is even


def test_the_nearest_machine_of_a_network_is_its_table_and_the_gap_falls_with_the_temperature() -> None:
    model = compile_machine(tomita(4))
    gaps = []
    for temperature in (8.0, 4.0, 1.0):
        found = extract(model.with_transition("mixture", temperature=temperature))
        nearest = ProbabilisticMachine.of(found).nearest()
        assert equivalent(nearest.machine, found.table)
        gaps.append(nearest.gap)
        assert nearest.largest_gap >= nearest.gap
    assert gaps[0] > gaps[1] > gaps[2]


@pytest.mark.parametrize("start_token", [True, False])
def test_the_laws_of_a_network_are_its_transition_probabilities(start_token: bool) -> None:
    import torch

    model = network(2, cell="rnn", start_token=start_token)
    machine = ProbabilisticMachine.of(extract(model))
    assert len(machine) == 8 + (not start_token)
    trace = model.states(torch.tensor([[1]]))
    assert trace.probabilities[0] is not None
    first = trace.probabilities[0][0, 0].numpy()
    found = machine.start if start_token else machine.law("1")[:-1]
    assert found == pytest.approx(first, abs=1e-5)


@given(seed=SEEDS)
def test_json_comes_back(seed: int) -> None:
    machine = drawn(seed)
    again = ProbabilisticMachine.from_dict(json.loads(machine.to_json()))
    assert again.to_dict() == machine.to_dict()
    assert np.array_equal(again.laws, machine.laws)


def test_what_is_no_law_is_refused() -> None:
    fine = drawn(0)
    settings: dict[str, Any] = {
        "alphabet": fine.alphabet,
        "start": fine.start,
        "laws": fine.laws,
        "outputs": fine.outputs,
    }
    with pytest.raises(ArgumentError, match="laws"):
        ProbabilisticMachine(**{**settings, "laws": fine.laws * 2})
    with pytest.raises(ShapeError, match="start"):
        ProbabilisticMachine(**{**settings, "start": fine.start[:2]})
    with pytest.raises(ArgumentError, match="shares of 1"):
        fine.stationary([0.5, 0.4])
    with pytest.raises(UnknownSymbolError):
        fine.law("abc")
    with pytest.raises(ValueError, match="read-only"):
        fine.laws[0, 0, 0] = 1


def test_stacks_have_no_single_law() -> None:
    with pytest.raises(NotMemorylessError, match="2 layers"):
        ProbabilisticMachine.of(extract(network(0, layers=2)))
