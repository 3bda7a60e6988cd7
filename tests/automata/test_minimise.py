"""Minimal machines: against two other libraries, and against a slow refinement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

from contracts.machines import machines, random_machine
from statewise.automata import MooreMachine, to_aalpy, to_automata_lib
from statewise.automata.minimise import equivalent_states
from statewise.automata.partition import Partition

#: For each of the two libraries, so that a run asks them of a thousand; a profile may ask for more.
MACHINES = max(500, settings.default.max_examples)  # type: ignore[union-attr]


def slow_classes(machine: MooreMachine) -> int:
    """Moore's rounds: states stay together while their successors do."""
    keys = machine.outputs.tolist()
    while True:
        rows = [(keys[s], *(keys[t] for t in machine.transitions[s])) for s in range(len(machine))]
        numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        if len(numbers) == len(set(keys)):
            return len(numbers)
        keys = [numbers[row] for row in rows]


@settings(max_examples=MACHINES)
@given(machines(states=8))
def test_automata_lib_finds_as_many_states(machine: MooreMachine) -> None:
    smallest = machine.minimise()
    theirs = to_automata_lib(machine).minify(retain_names=False)
    assert len(theirs.states) == len(smallest)
    assert theirs == to_automata_lib(smallest)


@pytest.mark.filterwarnings("ignore:Origin or target state not in automaton")  # AALpy may merge its start away
@settings(max_examples=MACHINES)
@given(machines(states=8, classes=3))
def test_aalpy_finds_as_many_states_for_any_number_of_classes(machine: MooreMachine) -> None:
    trimmed = machine.trim()
    theirs = to_aalpy(trimmed)
    theirs.minimize()
    assert theirs.size == len(machine.minimise())


@given(machines(states=8, classes=3))
def test_moores_slow_refinement_finds_the_same_number_of_states(machine: MooreMachine) -> None:
    assert len(machine.minimise()) == slow_classes(machine.trim())


@pytest.mark.parametrize(("states", "symbols"), [(15, 2), (60, 1), (60, 2)])
def test_blocks_that_split_while_they_wait_are_not_forgotten(states: int, symbols: int) -> None:
    """Small machines rarely show it: a waiting block that splits must leave both parts waiting."""
    for seed in range(40):
        machine = random_machine(seed, states, symbols)
        found = equivalent_states(machine.transitions, machine.outputs)
        assert len(set(found.tolist())) == slow_classes(machine)


def chain(states: int, symbols: int) -> MooreMachine:
    """Only the last state differs, so that refinement is as deep as can be."""
    table = np.minimum(np.arange(states)[:, None] + 1, states - 1).repeat(symbols, 1)
    return _marked(table)


def cycle(states: int, symbols: int) -> MooreMachine:
    return _marked(((np.arange(states)[:, None] + 1) % states).repeat(symbols, 1))


def slow_counter(states: int, symbols: int) -> MooreMachine:
    """One symbol moves on, all others stay."""
    table = np.arange(states)[:, None].repeat(symbols, 1)
    table[:, -1] = (table[:, -1] + 1) % states
    return _marked(table)


def doubled(states: int, symbols: int) -> MooreMachine:
    """A random machine each of whose states is there twice."""
    draw = np.random.default_rng(0)
    half = states // 2
    table = draw.integers(0, half, (half, symbols)).repeat(2, 0) * 2 + draw.integers(0, 2, (states, symbols))
    return _marked(table, draw.integers(0, 2, half).repeat(2))


def halving(states: int, symbols: int) -> MooreMachine:
    """Each round cuts every block in two: as much work as n log n allows."""
    return _marked(
        (np.arange(states)[:, None] * 2 + np.arange(symbols) % 2) % states, np.arange(states) // (states // 2) % 2
    )


def all_alike(states: int, symbols: int) -> MooreMachine:
    return _marked(np.random.default_rng(0).integers(0, states, (states, symbols)), np.ones(states, dtype=np.int64))


def _marked(table: np.ndarray, outputs: np.ndarray | None = None) -> MooreMachine:
    last = (np.arange(len(table)) == len(table) - 1).astype(np.int64)
    symbols = tuple(f"s{symbol}" for symbol in range(table.shape[1]))
    return MooreMachine(alphabet=symbols, transitions=table, outputs=last if outputs is None else outputs)


@pytest.mark.parametrize(
    ("make", "expected"),
    [(chain, 300), (cycle, 300), (slow_counter, 300), (doubled, 150), (halving, None), (all_alike, 1)],
)
def test_three_hundred_states_and_fifty_symbols_are_minimised(
    make: Callable[[int, int], MooreMachine], expected: int | None
) -> None:
    machine = make(300, 50)
    assert len(machine.minimise()) == (slow_classes(machine.trim()) if expected is None else expected)


def test_a_long_chain_needs_no_deep_stack() -> None:
    assert len(chain(20_000, 2).minimise()) == 20_000


@given(machines(states=9, classes=3))
def test_states_get_one_number_exactly_if_their_futures_agree(machine: MooreMachine) -> None:
    numbers = equivalent_states(machine.transitions, machine.outputs)
    assert len(set(numbers.tolist())) == slow_classes(machine)
    for state, number in enumerate(numbers.tolist()):
        same = np.flatnonzero(numbers == number)
        assert len(set(machine.outputs[same].tolist())) == 1
        targets = numbers[machine.transitions[same]]
        assert (targets == numbers[machine.transitions[state]]).all()


def test_a_partition_is_split_no_further_than_its_splitters_ask() -> None:
    partition = Partition(np.array([5, 5, 7, 7, 9]))
    one_symbol = [[], [], [0, 1], [2, 3], [4]]  # 0 and 1 -> 2, 2 and 3 -> 3, 4 -> 4
    partition.refine([one_symbol], [2])
    assert partition.numbers().tolist() == [0, 0, 1, 1, 2]
    partition.refine([one_symbol, [[0], [], [], [], [1, 2, 3, 4]]], [2])
    assert len(partition) == 4
    assert partition.numbers()[0] != partition.numbers()[1]
    assert sorted(map(partition.size, range(4))) == [1, 1, 1, 2]
