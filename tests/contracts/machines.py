"""What every machine must do, whatever it was made from; and machines to try things with."""

from __future__ import annotations

import copy
import pickle
import random
from abc import ABC, abstractmethod
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import strategies as st

from statewise.automata import (
    MooreMachine,
    all_words,
    count_words,
    equivalent,
    from_aalpy,
    from_dot,
    from_json,
    random_words,
    to_aalpy,
    to_dot,
    to_json,
    witness,
    words_of,
)

# Number: rows [on 0, on 1], accepting states, accepted words of length 0 to 12 (spec, section 4).
TOMITA = {
    1: ([[1, 0], [1, 1]], [0], [1] * 13),
    2: ([[1, 2], [1, 1], [0, 1]], [0], [1, 0] * 6 + [1]),
    3: (
        [[0, 1], [2, 0], [3, 4], [2, 3], [4, 4]],
        [0, 1, 3],
        [1, 2, 3, 6, 10, 18, 31, 54, 93, 160, 274, 468, 797],
    ),
    4: ([[1, 0], [2, 0], [3, 0], [3, 3]], [0, 1, 2], [1, 2, 4, 7, 13, 24, 44, 81, 149, 274, 504, 927, 1705]),
    5: ([[1, 2], [0, 3], [3, 0], [2, 1]], [0], [1, 0, 2, 0, 8, 0, 32, 0, 128, 0, 512, 0, 2048]),
    6: ([[1, 2], [2, 0], [0, 1]], [0], [1, 0, 2, 2, 6, 10, 22, 42, 86, 170, 342, 682, 1366]),
    7: (
        [[0, 1], [2, 1], [2, 3], [4, 3], [4, 4]],
        [0, 1, 2, 3],
        [1, 2, 4, 8, 15, 26, 42, 64, 93, 130, 176, 232, 299],
    ),
}


def binary(rows: list[list[int]], accepting: list[int], start: int = 0) -> MooreMachine:
    outputs = np.isin(np.arange(len(rows)), accepting).astype(np.int64)
    return MooreMachine(alphabet=("0", "1"), transitions=np.array(rows), outputs=outputs, start=start)


def tomita(number: int) -> MooreMachine:
    rows, accepting, _ = TOMITA[number]
    return binary(rows, accepting)


@st.composite
def machines(
    draw: st.DrawFn, *, states: int = 7, symbols: int = 3, classes: int = 2, alphabet: tuple[str, ...] | None = None
) -> MooreMachine:
    """Machines of at most so many states and symbols, any start, unreachable states and all."""
    letters = alphabet or tuple("abcdefgh"[: draw(st.integers(1, symbols))])
    count = draw(st.integers(1, states))
    wide = count * len(letters)
    flat = draw(st.lists(st.integers(0, count - 1), min_size=wide, max_size=wide))
    outputs = draw(st.lists(st.integers(0, classes - 1), min_size=count, max_size=count))
    start = draw(st.integers(0, count - 1))
    # The check of annotations looks at random members, which hypothesis would take for a draw that it cannot repeat.
    before = random.getstate()
    machine = MooreMachine(
        alphabet=letters,
        transitions=np.array(flat).reshape(count, len(letters)),
        outputs=np.array(outputs),
        start=start,
        classes=("reject", "accept") if classes == 2 else tuple(f"class {i}" for i in range(classes)),
    )
    random.setstate(before)
    return machine


def random_machine(
    seed: int, states: int, symbols: int, classes: int = 2, letters: tuple[str, ...] | None = None
) -> MooreMachine:
    draw = np.random.default_rng(seed)
    return MooreMachine(
        alphabet=letters or tuple(f"s{symbol}" for symbol in range(symbols)),
        transitions=draw.integers(0, states, (states, symbols)),
        outputs=draw.integers(0, classes, states),
        classes=("reject", "accept") if classes == 2 else tuple(f"class {i}" for i in range(classes)),
    )


def shuffled(machine: MooreMachine, seed: int) -> MooreMachine:
    """The same machine with its states renamed."""
    order = np.random.default_rng(seed).permutation(len(machine))
    places = np.argsort(order)
    return replace(
        machine,
        transitions=places[machine.transitions[order]],
        outputs=machine.outputs[order],
        start=int(places[machine.start]),
        labels=tuple(machine.labels[state] for state in order) if machine.labels else (),
    )


def same_labels(one: MooreMachine, other: MooreMachine) -> bool:
    return one == other and one.labels == other.labels


class MachineContract(ABC):
    """Inherit, and give a machine."""

    @abstractmethod
    def make(self) -> MooreMachine:
        """The machine."""

    @pytest.fixture
    def machine(self) -> MooreMachine:
        return self.make()

    @pytest.fixture
    def words(self, machine: MooreMachine) -> list[str | tuple[str, ...]]:
        short = list(islice(all_words(machine.alphabet, 5), 400))
        return short + random_words(machine.alphabet, 50, max_length=40, seed=3)

    def test_a_words_class_is_that_of_the_last_state_of_its_path(self, machine: MooreMachine, words: list[str]) -> None:
        for word in words:
            path = machine.path(word)
            assert len(path) == len(word) + 1
            assert path[0] == machine.start
            steps = zip(path, machine.encode(word), path[1:], strict=False)
            assert all(machine.transitions[state, symbol] == after for state, symbol, after in steps)
            assert machine.run(word) == machine.outputs[path[-1]]

    def test_many_words_at_once_get_the_classes_of_each_alone(self, machine: MooreMachine, words: list[str]) -> None:
        assert machine.classify(words).tolist() == [machine.run(word) for word in words]
        as_lists = [list(word) for word in words]
        assert machine.classify(as_lists).tolist() == [machine.run(word) for word in words]

    def test_rows_of_numbers_get_the_same_classes_whatever_fills_them(
        self, machine: MooreMachine, words: list[str]
    ) -> None:
        lengths = np.array([len(word) for word in words])
        tokens = np.full((len(words), int(lengths.max())), -7)
        for row, word in enumerate(words):
            tokens[row, : len(word)] = machine.encode(word)
        np.testing.assert_array_equal(machine.classify_ids(tokens, lengths), machine.classify(words))

    def test_the_minimal_machine_classes_all_words_alike_and_is_a_fixed_point(
        self, machine: MooreMachine, words: list[str]
    ) -> None:
        smallest = machine.minimise()
        np.testing.assert_array_equal(smallest.classify(words), machine.classify(words))
        assert witness(machine, smallest) is None
        assert len(smallest) <= len(machine.trim()) <= len(machine)
        assert smallest == smallest.minimise() == smallest.canonical() == smallest.trim()

    def test_no_two_states_of_the_minimal_machine_are_alike(self, machine: MooreMachine) -> None:
        smallest = machine.minimise()
        starts = [replace(smallest, start=state) for state in range(len(smallest))]
        pairs = [(a, b) for a in starts for b in starts if a.start < b.start]
        assert not any(equivalent(a, b) for a, b in pairs[:500])

    def test_names_of_states_do_not_matter_to_the_canonical_form(self, machine: MooreMachine) -> None:
        for seed in range(3):
            other = shuffled(machine, seed)
            assert other.canonical() == machine.canonical()
            assert other.minimise() == machine.minimise()

    def test_words_are_counted_as_they_can_be_counted_one_by_one(self, machine: MooreMachine) -> None:
        for length in range(4):
            words = list(all_words(machine.alphabet, length, min_length=length))
            counted = np.bincount(machine.classify(words), minlength=len(machine.classes))
            assert count_words(machine, length) == tuple(counted.tolist()) == machine.count(length)

    def test_the_words_of_the_classes_are_all_words_in_their_order(self, machine: MooreMachine) -> None:
        every = list(all_words(machine.alphabet, 3))
        for number, name in enumerate(machine.classes):
            expected = [word for word in every if machine.run(word) == number]
            assert list(words_of(machine, name, max_length=3)) == expected

    def test_drawn_words_have_the_class_and_the_length(self, machine: MooreMachine) -> None:
        for number, words in enumerate(count_words(machine, 6)):
            if words:
                drawn = machine.sample(number, 6, seed=1, number=20)
                assert {len(word) for word in drawn} == {6}
                assert set(machine.classify(drawn).tolist()) == {number}

    def test_it_survives_text_pictures_copies_and_another_library(self, machine: MooreMachine) -> None:
        labelled = replace(machine, labels=tuple(f'q"{state}\\n, {{}}\n' for state in range(len(machine))))
        for one in (machine, labelled):
            assert same_labels(from_json(to_json(one)), one)
            assert same_labels(from_dot(to_dot(one)), one)
            assert same_labels(pickle.loads(pickle.dumps(one)), one)
            assert same_labels(copy.deepcopy(one), one)
        back = from_aalpy(to_aalpy(machine), alphabet=machine.alphabet)
        assert back.canonical().transitions.tolist() == machine.canonical().transitions.tolist()

    def test_nobody_can_change_it(self, machine: MooreMachine) -> None:
        for one in (machine, copy.deepcopy(machine), machine.minimise()):
            with pytest.raises(ValueError, match="read-only"):
                one.outputs[0] = 0
            with pytest.raises(ValueError, match="read-only"):
                one.transitions[0, 0] = 0
        with pytest.raises(AttributeError):
            machine.start = 0  # type: ignore[misc]
