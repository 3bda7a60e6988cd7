"""Counting: what a network with memory can still be read by, and what it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from networks import network, tomita
from statewise.automata import (
    ApproximateExtractionWarning,
    all_words,
    compile_machine,
    count,
    equivalent,
    extract,
)
from statewise.data import Sequences
from statewise.errors import ArgumentError, LengthError, NotMemorylessError, UnknownSymbolError
from statewise.models import ClassifierConfig


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("start_token", [True, False])
def test_a_hard_run_of_a_memoryless_network_is_its_exact_table_on_the_pairs_that_were_seen(
    layers: int, start_token: bool
) -> None:
    for seed in range(5):
        model = network(seed, cell="rnn", layers=layers, start_token=start_token)
        words = list(all_words("01", 7, min_length=1))
        found, exact = count(model, words, run="hard"), extract(model)
        assert found.ambiguity == 0.0
        assert np.array_equal(found.machine.classify(words), exact.machine.classify(words))
        numbers = {label: state for state, label in enumerate(exact.table.labels)}
        for state, symbol in np.argwhere(found.counts.any(2)).tolist():
            after = int(found.counts[state, symbol].argmax())
            there = exact.table.transitions[numbers[found.table.labels[state]], symbol]
            assert numbers[found.table.labels[after]] == there


def test_pairs_that_no_word_took_are_counted_and_lead_to_a_rejecting_sink() -> None:
    found = count(compile_machine(tomita(5)), ["0"])
    assert (found.steps, found.unseen) == (1, 3)
    assert found.table.labels[-1] == "sink"
    assert found.table.run("01") == 0
    assert not equivalent(found.machine, tomita(5))


def test_a_soft_run_that_does_not_decide_has_ambiguity() -> None:
    model = network(0, cell="rnn").with_transition("mixture", temperature=2.0)
    words = list(all_words("01", 8))
    found = [count(network(seed, cell="rnn"), words).ambiguity for seed in range(5)]
    assert max(found) > 0
    assert all(0 <= value < 1 for value in found)
    assert count(model, words).counts.sum() == sum(len(word) for word in words)


@pytest.mark.parametrize("settings", [{"cell": "lstm"}, {"cell": "peephole"}, {"layers": 2, "centroids": (4, 0)}])
def test_networks_that_keep_more_than_centroids_are_counted_with_a_warning(settings: dict[str, Any]) -> None:
    model = network(1, **{"centroids": (4,), **settings})
    words = list(all_words("01", 5))
    with pytest.warns(ApproximateExtractionWarning, match="approximate"):
        found = count(model, words)
    assert found.approximate
    assert "approximate" in repr(found)


def test_a_state_of_a_network_with_memory_has_the_class_of_most_words_that_end_there() -> None:
    model = network(2, cell="lstm", centroids=(3,))
    words = list(all_words("01", 7))
    with pytest.warns(ApproximateExtractionWarning):
        found = count(model, words)
    classes, ends = model.classify(words), [found.table.path(word)[-1] for word in words]
    if found.ambiguity == 0 and found.unseen == 0:
        for state in {*ends}:
            own = classes[[place for place, end in enumerate(ends) if end == state]]
            assert found.table.outputs[state] == np.bincount(own).argmax()


def test_every_word_starts_anew_so_that_batches_change_nothing() -> None:
    model, words = network(0, cell="rnn"), list(all_words("01", 6))
    assert np.array_equal(count(model, words, batch=7).counts, count(model, words).counts)


def test_labelled_words_are_counted_as_their_texts() -> None:
    model, words = network(0, cell="rnn"), list(all_words("01", 5))
    labelled = Sequences.from_words(words, [0] * len(words), symbols="10")
    assert np.array_equal(count(model, labelled).counts, count(model, words).counts)


def test_no_words_unknown_symbols_unknown_runs_and_no_centroids_are_refused() -> None:
    model = compile_machine(tomita(1))
    with pytest.raises(LengthError, match="no words"):
        count(model, [])
    with pytest.raises(UnknownSymbolError, match="'2'"):
        count(model, ["012"])
    with pytest.raises(ArgumentError, match="one of soft, hard"):
        count(model, ["0"], run="fast")
    with pytest.raises(NotMemorylessError, match="learn_by_lstar"):
        count(ClassifierConfig(cell="lstm").build(tokens=2, classes=2, symbols="01"), ["0"])
