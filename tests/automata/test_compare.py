"""Equivalence, and the shortest word that tells two machines apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.machines import TOMITA, binary, machines, shuffled, tomita
from statewise.automata import MooreMachine, all_words, equivalent, from_regex, over, to_aalpy, to_automata_lib, witness
from statewise.errors import ArgumentError

AB = ("a", "b")


def test_the_two_readings_of_tomita_3_differ_first_on_100110() -> None:
    """K12."""
    rows, accepting, _ = TOMITA[3]
    other = binary([*rows[:3], [2, 1], rows[4]], accepting)
    assert witness(tomita(3), other) == witness(other, tomita(3)) == "100110"
    assert sum(other.count(length)[1] for length in range(13)) == 2244


@pytest.mark.parametrize("number", TOMITA)
def test_a_machine_equals_itself_with_other_names_and_no_other_tomita(number: int) -> None:
    machine = tomita(number)
    assert witness(machine, shuffled(machine, 1)) is None
    assert [other for other in TOMITA if equivalent(machine, tomita(other))] == [number]


@settings(max_examples=200)
@given(machines(states=5, alphabet=AB, classes=3), machines(states=5, alphabet=AB, classes=3))
def test_the_witness_is_the_first_of_all_words_that_differ(a: MooreMachine, b: MooreMachine) -> None:
    found = witness(a, b)
    words = list(all_words(AB, 5))
    differing = np.flatnonzero(a.classify(words) != b.classify(words))
    if len(differing):
        assert found == words[int(differing[0])]
    else:
        assert found is None or len(found) > 5


def last_output(model: Any, word: Sequence[str]) -> bool:
    found = model.execute_sequence(model.initial_state, word)
    return bool(found[-1] if word else found)  # of the empty word AALpy gives no list


@settings(max_examples=150)
@given(machines(states=6, alphabet=AB), machines(states=6, alphabet=AB))
def test_automata_lib_and_aalpy_agree_whether_two_machines_are_equivalent(a: MooreMachine, b: MooreMachine) -> None:
    found = witness(a, b)
    assert (to_automata_lib(a) == to_automata_lib(b)) == (found is None)
    if found is not None:
        difference = to_automata_lib(a) ^ to_automata_lib(b)
        assert difference.minimum_word_length() == len(found)
        one, other = to_aalpy(a), to_aalpy(b)
        assert last_output(one, found) != last_output(other, found)


@given(machines(states=6), st.integers(0, 99))
def test_minimal_machines_are_equal_exactly_if_they_are_equivalent(machine: MooreMachine, seed: int) -> None:
    assert equivalent(machine, shuffled(machine, seed))
    changed = replace(machine, outputs=np.random.default_rng(seed).permutation(machine.outputs))
    assert (machine.minimise() == changed.minimise()) == equivalent(machine, changed)


def test_the_order_of_symbols_and_classes_does_not_matter() -> None:
    a = from_regex("a*b", "ab")
    b = from_regex("a*b", "ba")
    flipped = replace(a, outputs=1 - a.outputs, classes=("accept", "reject"))
    assert equivalent(a, b)
    assert equivalent(a, flipped)


def test_words_over_long_symbols_are_tuples() -> None:
    go = MooreMachine(alphabet=("go", "stop"), transitions=np.array([[0, 1], [1, 1]]), outputs=np.array([0, 1]))
    never = MooreMachine(alphabet=("go", "stop"), transitions=np.array([[0, 0]]), outputs=np.array([0]))
    assert witness(go, never) == ("stop",)


def test_what_cannot_be_compared_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"first machine alone \['b'\], of the second alone \['c'\]"):
        witness(from_regex("ab"), from_regex("ac"))
    with pytest.raises(ArgumentError, match="classes reject, accept and no, yes"):
        witness(from_regex("a"), replace(from_regex("a"), classes=("no", "yes")))
    assert witness(over(from_regex("a*"), "ab"), from_regex("[ab]*")) == "b"


def test_a_witness_at_the_end_of_a_long_chain_is_found() -> None:
    rows = np.minimum(np.arange(2000)[:, None] + 1, 1999)
    last = (np.arange(2000) == 1999).astype(np.int64)
    long = MooreMachine(alphabet=("a",), transitions=rows, outputs=last)
    assert witness(long, replace(long, outputs=np.zeros(2000, dtype=np.int64))) == "a" * 1999
