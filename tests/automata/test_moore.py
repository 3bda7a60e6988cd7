"""Machines: what they are made of, what they refuse, and the contract for each family."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from contracts.machines import TOMITA, MachineContract, binary, machines, random_machine, tomita
from statewise.automata import MooreMachine, all_words, from_regex, from_table
from statewise.errors import ArgumentError, DtypeError, ShapeError, UnknownSymbolError

MULTI = from_table(
    {"idle": {"go": "run", "stop": "idle"}, "run": {"go": "run", "stop": "off"}, "off": {}},
    start="idle",
    outputs={"idle": "waiting", "run": "busy", "off": "done"},
    classes=("waiting", "busy", "done"),
    alphabet=("stop", "go"),
    sink="done",
)


class TestTomita3(MachineContract):
    def make(self) -> MooreMachine:
        return tomita(3)


class TestTomita7Shuffled(MachineContract):
    def make(self) -> MooreMachine:
        return binary([[0, 0], [4, 2], [4, 2], [0, 3], [4, 3]], [1, 2, 3, 4], start=1)


class TestFromRegex(MachineContract):
    def make(self) -> MooreMachine:
        return from_regex("(ab|c+)*b?[^a]", "abc")


class TestManyClasses(MachineContract):
    def make(self) -> MooreMachine:
        return MULTI


class TestRandom(MachineContract):
    def make(self) -> MooreMachine:
        return random_machine(5, states=40, symbols=3, classes=4)


class TestOneState(MachineContract):
    def make(self) -> MooreMachine:
        return MooreMachine(alphabet=("é",), transitions=np.zeros((1, 1), dtype=np.uint8), outputs=np.array([1]))


@pytest.mark.parametrize("number", TOMITA)
def test_tomitas_tables_are_minimal_and_have_the_published_numbers_of_words(number: int) -> None:
    """K11."""
    machine = tomita(number)
    _, _, words = TOMITA[number]
    assert [machine.count(length)[1] for length in range(13)] == words
    assert sum(words) == [13, 7, 1917, 3735, 2731, 2731, 1092][number - 1]
    assert len(machine.minimise()) == len(machine) == [2, 3, 5, 4, 4, 3, 5][number - 1]


PREDICATES: dict[int, Callable[[str], bool]] = {
    1: lambda word: "0" not in word,
    2: lambda word: word == "10" * (len(word) // 2),
    4: lambda word: "000" not in word,
    5: lambda word: word.count("0") % 2 == 0 and word.count("1") % 2 == 0,
    6: lambda word: (word.count("0") - word.count("1")) % 3 == 0,
    7: lambda word: word.lstrip("0").lstrip("1").lstrip("0").lstrip("1") == "",
}


@pytest.mark.parametrize("number", PREDICATES)
def test_a_machine_classes_all_words_as_its_languages_definition_does(number: int) -> None:
    words = list(all_words("01", 10))
    expected = [int(PREDICATES[number](str(word))) for word in words]
    assert tomita(number).classify(words).tolist() == expected


def make(**changes: Any) -> MooreMachine:
    parts: dict[str, Any] = {
        "alphabet": ("a", "b"),
        "transitions": np.array([[0, 1], [1, 0]]),
        "outputs": np.array([0, 1]),
    }
    return MooreMachine(**(parts | changes))


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"alphabet": ("a", "a")}, ArgumentError, r"alphabet: got 'a' more than once"),
        ({"alphabet": ("a", "")}, ArgumentError, "alphabet: got an empty name"),
        ({"alphabet": ("a",)}, ShapeError, r"transitions: got \(2, 2\), wanted the shape \(2, 1\)"),
        ({"transitions": np.array([[0, 1], [2, 0]])}, ArgumentError, "transitions: got 2, wanted numbers from 0 to 1"),
        ({"transitions": np.array([[0, 1], [-1, 0]])}, ArgumentError, "transitions: got -1"),
        ({"transitions": np.array([[0.0, 1.0], [1.0, 0.0]])}, DtypeError, "transitions: got dtype float64"),
        ({"transitions": np.array([0, 1])}, ShapeError, "transitions"),
        ({"outputs": np.array([0, 2])}, ArgumentError, "outputs: got 2, wanted numbers from 0 to 1"),
        ({"outputs": np.array([], dtype=int)}, ShapeError, "at least one state"),
        ({"start": 2}, ArgumentError, "start: got 2"),
        ({"classes": ()}, ArgumentError, "at least one class"),
        ({"classes": ("x", "x")}, ArgumentError, "classes: got 'x' more than once"),
        ({"labels": ("one",)}, ArgumentError, "labels: got 1 labels, wanted none or 2"),
    ],
)
def test_what_is_no_machine_is_refused_by_the_part_at_fault(changes: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make(**changes)


def test_an_unknown_symbol_is_named_with_its_place() -> None:
    machine = tomita(1)
    with pytest.raises(UnknownSymbolError, match=r"symbol 2: got 'x', wanted one of the alphabet: '0' '1'"):
        machine.run("11x")
    with pytest.raises(UnknownSymbolError, match=r"symbol 1 of word 2: got 'x'"):
        machine.classify(["0", "11", "1x0x"])
    with pytest.raises(UnknownSymbolError, match=r"symbol 0 of word 1: got 'xy'"):
        machine.classify([["0"], ["xy"]])
    with pytest.raises(UnknownSymbolError, match="numbers from 0 to 2"):
        machine.classify_ids(np.array([[0, 2]]))


def test_only_a_machine_of_two_classes_accepts() -> None:
    assert tomita(1).accepts("11")
    assert not tomita(1).accepts("10")
    with pytest.raises(ArgumentError, match="a machine of 3 classes"):
        MULTI.accepts(["go"])
    assert MULTI.accepting("done").accepts(["go", "stop"])
    with pytest.raises(ArgumentError, match="one of 'waiting', 'busy', 'done'"):
        MULTI.accepting("lost")


def test_machines_are_equal_by_their_tables_and_not_by_their_labels() -> None:
    assert make() == make(labels=("p", "q"))
    assert hash(make()) == hash(make(labels=("p", "q")))
    assert make() != make(start=1)
    assert make() != make(classes=("no", "yes"))
    assert make() != "a machine"


def test_labels_follow_their_states_and_join_when_states_merge() -> None:
    machine = make(
        transitions=np.array([[1, 2], [1, 2], [2, 2], [0, 0]]),
        outputs=np.array([1, 1, 0, 1]),
        labels=("7", "3", "5", "lost"),
    )
    assert machine.trim().labels == ("7", "3", "5")
    assert machine.minimise().labels == ("7+3", "5")
    assert make(labels=("x", "y"), start=1).canonical().labels == ("y", "x")


def test_a_class_may_be_named_by_a_number_of_numpys() -> None:
    machine = tomita(4)
    assert machine.class_number(np.int64(1)) == 1
    assert type(machine.class_number(np.int64(1))) is int
    assert machine.accepting(np.int64(1)) == machine
    assert machine.sample(np.int64(1), 5, seed=0) == machine.sample(1, 5, seed=0)
    with pytest.raises(ArgumentError, match="one of 'reject', 'accept'"):
        machine.class_number(np.int64(2))


def test_the_callers_arrays_are_copied() -> None:
    table = np.array([[0, 1], [1, 0]])
    machine = make(transitions=table)
    table[:] = 0
    assert machine.transitions.tolist() == [[0, 1], [1, 0]]


def test_an_empty_alphabet_has_the_empty_word_alone() -> None:
    machine = MooreMachine(alphabet=(), transitions=np.zeros((1, 0), dtype=int), outputs=np.array([1]))
    assert machine.accepts("")
    assert machine.minimise() == machine
    assert machine.classify([""]).tolist() == [1]
    assert machine.count(0) == (0, 1)
    assert machine.count(3) == (0, 0)


def test_no_words_have_no_classes() -> None:
    assert tomita(1).classify([]).tolist() == []


def test_the_repr_of_a_large_machine_is_short() -> None:
    assert len(repr(random_machine(0, 300, 50))) < 120


def test_gaps_of_a_table_are_named_unless_a_sink_is_asked_for() -> None:
    table: dict[str, dict[str, str]] = {"A": {"a": "B", "b": "A"}, "B": {"b": "A"}}
    with pytest.raises(ArgumentError, match="no next state for state 'B' and symbol 'a'"):
        from_table(table, start="A", accepting=["A"])
    machine = from_table(table, start="A", accepting=["A"], sink="accept")
    assert machine.labels == ("A", "B", "sink")
    assert machine.classify(["aa", "aab", "a"]).tolist() == [1, 1, 0]
    with pytest.raises(ArgumentError, match="states of the table"):
        from_table(table, start="A", accepting=["C"])
    with pytest.raises(ArgumentError, match="none of"):
        from_table(table, start="A", alphabet="a")
    with pytest.raises(ArgumentError, match="no class for state 'B'"):
        from_table(table, start="A", outputs={"A": "accept"}, sink="reject")


@given(machines(classes=3))
def test_a_machine_of_one_class_accepts_what_has_the_class(machine: MooreMachine) -> None:
    words = list(all_words(machine.alphabet, 3))
    for number, name in enumerate(machine.classes):
        found = machine.accepting(name).classify(words)
        np.testing.assert_array_equal(found, machine.classify(words) == number)


def test_a_hundred_thousand_words_are_classed_in_a_second() -> None:
    machine = random_machine(0, states=50, symbols=2, letters=("0", "1"))
    draw = np.random.default_rng(0)
    words = ["".join(map(str, row)) for row in draw.integers(0, 2, (100_000, 20)).tolist()]
    began = time.process_time()
    machine.classify(words)
    assert time.process_time() - began < 1
