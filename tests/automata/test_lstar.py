"""L* on black boxes: it finds small machines, keeps its budget, and says when it has not finished."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networks import network, random_machine, tomita
from statewise.automata import compile_machine, equivalent, extract, learn_by_lstar
from statewise.errors import ArgumentError, MissingExtraError
from statewise.models import ClassifierConfig


@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 4))
def test_machines_are_learnt_from_their_answers(seed: int, classes: int) -> None:
    machine = random_machine(seed, states=5, classes=classes)
    found = learn_by_lstar(machine.classify, machine.alphabet, classes=machine.classes)
    assert found.complete
    assert equivalent(found.machine, machine)
    assert len(found.machine) == len(machine.minimise())


@pytest.mark.parametrize("number", [1, 4, 5])
def test_a_network_is_learnt_and_equals_what_exact_extraction_reads(number: int) -> None:
    model = compile_machine(tomita(number))
    found = learn_by_lstar(model.classify, "01")
    assert found.machine == extract(model).machine
    assert found.queries > 0
    assert found.rounds >= 1
    assert found.seconds > 0


def test_any_network_can_be_asked_also_one_with_memory() -> None:
    model = ClassifierConfig(cell="lstm", hidden=4).build(tokens=2, classes=2, symbols="01")
    found = learn_by_lstar(model.classify, "01", test_words=50, short_words=20, max_length=6, max_rounds=2)
    assert found.rounds >= 1


def test_no_word_is_asked_twice() -> None:
    machine, asked = tomita(5), list[tuple[str, ...]]()

    def classify(words: Sequence[Sequence[str]]) -> np.ndarray:
        asked.extend(map(tuple, words))
        return machine.classify(words)

    found = learn_by_lstar(classify, machine.alphabet)
    assert len(asked) == len({*asked}) == found.queries


def test_a_box_that_is_no_machine_stops_at_its_budget_and_says_so() -> None:
    def more_ones(words: Sequence[Sequence[str]]) -> np.ndarray:
        return np.array([int(2 * list(word).count("1") > len(word)) for word in words])

    found = learn_by_lstar(more_ones, "01", max_rounds=3)
    assert not found.complete
    found = learn_by_lstar(more_ones, "01", max_seconds=0.0)
    assert not found.complete


def test_the_seed_decides_the_test_words() -> None:
    model = network(1, cell="rnn")
    first, second = (learn_by_lstar(model.classify, "01", max_rounds=3, seed=7) for _ in range(2))
    assert (first.machine, first.queries) == (second.machine, second.queries)


def test_no_alphabet_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        learn_by_lstar(lambda words: np.zeros(len(words)), ())


def test_without_aalpy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "aalpy", None)
    with pytest.raises(MissingExtraError, match=r"statewise\[automata\]"):
        learn_by_lstar(tomita(1).classify, "01")
