"""Machines to and from automata-lib and AALpy."""

from __future__ import annotations

import sys

import pytest
from aalpy.automata import Dfa, DfaState, MooreState
from aalpy.automata import MooreMachine as AalpyMoore
from automata.fa.dfa import DFA
from hypothesis import given

from contracts.machines import machines, random_machine, tomita
from statewise.automata import (
    MooreMachine,
    all_words,
    equivalent,
    from_aalpy,
    from_automata_lib,
    to_aalpy,
    to_automata_lib,
)
from statewise.errors import ArgumentError, DtypeError, MissingExtraError


@given(machines(states=6))
def test_automata_lib_accepts_the_same_words_and_gives_the_machine_back(machine: MooreMachine) -> None:
    theirs = to_automata_lib(machine)
    for word in all_words(machine.alphabet, 4):
        assert theirs.accepts_input(word) == machine.accepts(word)
    assert from_automata_lib(theirs, alphabet=machine.alphabet) == machine


@given(machines(states=6))
def test_aalpys_dfa_accepts_the_same_words_and_gives_the_machine_back(machine: MooreMachine) -> None:
    theirs = to_aalpy(machine)
    assert isinstance(theirs, Dfa)
    for word in all_words(machine.alphabet, 4, min_length=1):
        assert theirs.execute_sequence(theirs.initial_state, word)[-1] == machine.accepts(word)
    assert equivalent(from_aalpy(theirs, alphabet=machine.alphabet), machine)


@given(machines(states=6, classes=3))
def test_aalpys_moore_machine_has_the_same_outputs(machine: MooreMachine) -> None:
    theirs = to_aalpy(machine)
    assert isinstance(theirs, AalpyMoore)
    for word in all_words(machine.alphabet, 3, min_length=1):
        outputs = theirs.execute_sequence(theirs.initial_state, word)
        assert outputs[-1] == machine.classes[machine.run(word)]
    back = from_aalpy(theirs, alphabet=machine.alphabet)
    for word in all_words(machine.alphabet, 3):
        assert back.classes[back.run(word)] == machine.classes[machine.run(word)]


def test_a_partial_dfa_of_either_library_gets_a_rejecting_sink() -> None:
    partial = DFA(
        states={"p", "q"},
        input_symbols={"0", "1"},
        transitions={"p": {"1": "q"}, "q": {"0": "p"}},
        initial_state="p",
        final_states={"p"},
        allow_partial=True,
    )
    machine = from_automata_lib(partial)
    assert machine.labels == ("p", "q", "sink")
    assert equivalent(machine, tomita(2))
    first, second = DfaState("p", is_accepting=True), DfaState("q")
    first.transitions["1"] = second
    second.transitions["0"] = first
    assert equivalent(from_aalpy(Dfa(first, [first, second])), tomita(2))


def test_a_gap_of_a_moore_machine_is_an_error() -> None:
    first, second = MooreState("p", output="x"), MooreState("q", output="y")
    first.transitions["1"] = second
    with pytest.raises(ArgumentError, match="no next state for state 'q' and symbol '1'"):
        from_aalpy(AalpyMoore(first, [first, second]))


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(DtypeError, match=r"wanted automata\.fa\.dfa\.DFA"):
        from_automata_lib("a machine")
    with pytest.raises(DtypeError, match="an AALpy Dfa or MooreMachine"):
        from_aalpy("a machine")
    state = DfaState("p")
    state.transitions[1] = state
    with pytest.raises(DtypeError, match="symbols that are texts"):
        from_aalpy(Dfa(state, [state]))
    with pytest.raises(ArgumentError, match="3 classes"):
        to_automata_lib(random_machine(0, 3, 2, classes=3))


def test_without_the_libraries_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "automata.fa.dfa", None)
    monkeypatch.setitem(sys.modules, "aalpy.automata", None)
    with pytest.raises(MissingExtraError, match="pip install automata-lib"):
        to_automata_lib(tomita(1))
    with pytest.raises(MissingExtraError, match=r"pip install 'statewise\[automata\]'"):
        to_aalpy(tomita(1))
