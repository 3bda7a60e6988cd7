"""Memory units that count, on a network whose counter is set by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from statewise.automata import counter_machine, depth, find_counters
from statewise.data import Sequences
from statewise.errors import ArgumentError, LengthError, UnknownSymbolError
from statewise.models import ClassifierConfig, SequenceClassifier

SYMBOLS = ("(", ")", "a")
WORDS = ["(a)", "((a))a", "(()", "a", "", "((((", "(()())", "))", "a(a"]


def closed(word: str) -> int:
    return int(word.count("(") == word.count(")"))


def data(words: list[str] = WORDS) -> Sequences:
    return Sequences.from_words(words, [closed(word) for word in words], symbols=SYMBOLS, classes=("open", "closed"))


def counting_network() -> SequenceClassifier:
    """Unit 1 goes up at "(" and down at ")", unit 2 forgets everything, the rest stays at 0."""
    config = ClassifierConfig(cell="lstm", hidden=4, embedding=5, centroids=(1,), readout="c")
    model = config.build(tokens=3, classes=2, symbols=SYMBOLS, generator=torch.Generator().manual_seed(0))
    values = dict(model.named_parameters())
    with torch.no_grad():
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            values[f"layer.{name}"].zero_()
        values["embedding.weight"].copy_(torch.eye(5))
        gates = values["layer.bias_ih_l0"].view(4, 4)  # input, forget, candidate, output
        gates[:2] = 30.0
        gates[1, 2] = -30.0
        candidates = values["layer.weight_ih_l0"].view(4, 4, 5)[2]
        candidates[1, 0], candidates[1, 1] = 30.0, -30.0
        candidates[2, :3] = torch.tensor([30.0, 0.0, 30.0])
    return model


def test_the_counting_unit_is_found_by_the_signal_and_moves_by_one() -> None:
    found = find_counters(counting_network(), data(), signal=depth(), batch=2)
    assert found.best == 1
    assert found.correlation == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found.steps[:, 1], [1, -1, 0], atol=1e-5)
    np.testing.assert_allclose(found.spreads[:, 1], 0, atol=1e-3)
    assert found.stride() == pytest.approx(1, abs=1e-5)
    assert found.counts.tolist() == [sum(word.count(symbol) for word in WORDS) for symbol in SYMBOLS]


def test_only_units_that_every_token_moves_by_a_constant_count() -> None:
    found = find_counters(counting_network(), data())
    assert found.units() == (1,)  # unit 2 moves too, but by an amount that depends on what was before
    assert found.explained[1] == pytest.approx(1, abs=1e-6)
    assert found.explained[2] < 0.95
    assert found.explained[0] == 0
    assert found.best == 1
    assert np.isnan(found.correlation)


def test_the_state_and_counter_machine_tells_deeper_words_than_it_saw() -> None:
    model = counting_network()
    machine = counter_machine(model, data(), find_counters(model, data(), signal=depth()), batch=3)
    assert (machine.unit, machine.start, machine.faithful) == (1, 0, 1.0)
    assert machine.moves[0, True, "("].change == 1
    assert machine.moves[0, False, ")"].change == -1
    assert machine.occupancy[0, 4] == 1
    for word in ("(" * 30 + ")" * 30, "(" * 30 + ")" * 29, "", "a()a"):
        assert machine.run(word) == closed(word)


def test_what_was_never_seen_has_no_answer() -> None:
    model = counting_network()
    seen = data(["(", "a"])
    machine = counter_machine(model, seen, find_counters(model, seen, signal=depth()))
    assert machine.run("((") is None
    with pytest.raises(UnknownSymbolError, match=r"CounterMachine\.run"):
        machine.run(")")


def test_depth_counts_any_two_symbols() -> None:
    assert list(depth("x", "y")("xxay")) == [1, 2, 2, 1]
    assert list(depth()("")) == []


@pytest.mark.usefixtures("as_users_have_it")
def test_bad_input_is_named() -> None:
    model = counting_network()
    plain = ClassifierConfig(hidden=4, centroids=(2,)).build(tokens=3, classes=2, symbols=SYMBOLS)
    with pytest.raises(ArgumentError, match="without a memory"):
        find_counters(plain, data())
    with pytest.raises(LengthError, match="no symbols"):
        find_counters(model, data([""]))
    with pytest.raises(LengthError, match="one a symbol"):
        find_counters(model, data(), signal=lambda word: [0.0])
