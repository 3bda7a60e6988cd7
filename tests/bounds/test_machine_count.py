"""The number of machines, against enumeration and a recurrence of others; codes, against Kraft's inequality."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networks import random_machine, tomita
from statewise.automata import MooreMachine, from_regex
from statewise.automata.minimise import breadth_first
from statewise.bounds.machine_count import (
    FEW_SYMBOLS,
    _sum_of_logarithms,
    count_machines,
    count_structures,
    describe_machine,
    kinds_nats,
    machine_nats,
    structure_nats,
    targets_nats,
)
from statewise.errors import ArgumentError

SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (2, 5), (3, 1), (3, 2), (4, 1)]


def all_tables(states: int, symbols: int) -> Iterator[np.ndarray]:
    for flat in itertools.product(range(states), repeat=states * symbols):
        yield np.array(flat, dtype=np.int64).reshape(states, symbols)


def canonical_tables(states: int, symbols: int) -> list[np.ndarray]:
    """One table of each kind whose states can all be reached: the one that a breadth-first search numbers."""
    names = list(range(states))
    return [table for table in all_tables(states, symbols) if breadth_first(table, 0) == names]


@pytest.mark.parametrize(("states", "symbols"), SIZES)
def test_the_number_of_structures_is_that_of_an_enumeration(states: int, symbols: int) -> None:
    reachable = [table for table in all_tables(states, symbols) if len(breadth_first(table, 0)) == states]
    assert count_structures(states, symbols) == len(canonical_tables(states, symbols))
    assert count_structures(states, symbols) * math.factorial(states - 1) == len(reachable)


@pytest.mark.parametrize("symbols", [1, 2, 3, 7])
def test_the_number_of_structures_is_that_of_liskovets_recurrence(symbols: int) -> None:
    """Of all tables, those in which j states are reached leave the rows of the others free."""
    labelled: list[int] = [0]
    for n in range(1, 16):
        fewer = sum(math.comb(n - 1, j - 1) * labelled[j] * n ** (symbols * (n - j)) for j in range(1, n))
        labelled.append(n ** (symbols * n) - fewer)
        assert divmod(labelled[n], math.factorial(n - 1)) == (count_structures(n, symbols), 0)


def test_known_numbers_of_machines() -> None:
    assert [count_structures(n, 2) for n in range(1, 7)] == [1, 12, 216, 5248, 160675, 5931540]
    assert [count_structures(n, 3) for n in range(1, 5)] == [1, 56, 7965, 2128064]
    assert (count_structures(1, 0), count_structures(2, 0)) == (1, 0)
    assert count_machines(3, 2, 5) == 216 * 5**3
    assert structure_nats(2, 0) == -math.inf


@pytest.mark.parametrize(("states", "symbols"), [(1, 4), (2, 1), (7, 2), (60, 1), (90, 2), (60, 5), (10, 40)])
def test_in_logarithms_the_number_is_the_same_and_rounded_up(states: int, symbols: int) -> None:
    exact = math.log(count_structures(states, symbols))
    assert _sum_of_logarithms(states, symbols) == pytest.approx(exact, rel=1e-12, abs=1e-12)
    assert exact <= states * symbols * math.log(states) - math.lgamma(states) + 1e-9 * exact


def test_large_machines_are_counted_in_no_time_and_never_below_the_exact_number() -> None:
    """In logarithms, 2,000 states; as tables with unreachable states too, alphabets of 10,000 words."""
    for states, symbols, gap in ((2000, 10, 0.1), (2000, 2, 359.0), (300, 10_000, 0.0)):
        all_of_them = states * symbols * math.log(states) - math.lgamma(states)
        assert structure_nats(states, symbols) == pytest.approx(all_of_them - gap, rel=2e-9, abs=0.5)
    exact = math.log(count_structures(500, 3))  # beyond the limit below which whole numbers are used
    assert exact <= structure_nats(500, 3) <= exact * (1 + 2e-9)


@pytest.mark.parametrize(("states", "symbols"), [(1, 3), (2, 2), (2, 3), (3, 2)])
def test_a_code_gives_all_machines_together_at_most_the_whole(states: int, symbols: int) -> None:
    tables = canonical_tables(states, symbols)
    assert len(tables) * math.exp(-structure_nats(states, symbols)) == pytest.approx(1)
    for code in (kinds_nats, targets_nats):
        assert math.fsum(math.exp(-code(table)) for table in tables) <= 1


@pytest.mark.parametrize(("states", "symbols"), [(2, 2), (2, 4), (3, 2)])
def test_the_codes_are_no_longer_than_they_must_be(states: int, symbols: int) -> None:
    """Over all labelled tables the code by targets is complete, and that by kinds but for binom(N, r) < N^r / r!."""
    orders = math.factorial(states - 1)
    targets = math.fsum(math.exp(-targets_nats(table)) for table in all_tables(states, symbols)) / orders
    assert targets == pytest.approx(1, rel=1e-6)
    kinds = math.fsum(math.exp(-kinds_nats(table)) for table in all_tables(states, symbols)) / orders
    maps = states**states
    of_each = [math.comb(maps, r) * math.factorial(r) / maps**r for r in range(1, symbols + 1)]
    assert kinds == pytest.approx(math.fsum(of_each) / symbols, rel=1e-6)


@given(seed=st.integers(0, 2**32 - 1))
def test_how_states_are_numbered_costs_nothing(seed: int) -> None:
    machine = random_machine(seed, states=6, symbols=4)
    order = np.concatenate(([0], 1 + np.random.default_rng(seed).permutation(len(machine) - 1)))
    place = np.argsort(order)
    renamed = place[machine.transitions[order]]
    for code in (kinds_nats, targets_nats):
        assert code(renamed) == pytest.approx(code(machine.transitions))


@pytest.mark.parametrize("number", range(1, 8))
def test_a_machine_costs_its_number_and_its_size(number: int) -> None:
    machine = tomita(number)
    states = len(machine)
    assert machine_nats(machine) == pytest.approx(
        math.log(count_machines(states, 2, 2)) + math.log(states * (states + 1)), rel=1e-12
    )


@pytest.mark.parametrize(("largest", "symbols", "whole"), [(3, 1, 1 / 2 + 1 / 12 + 1 / 24), (2, 3, 1 / 2 + 1 / 12)])
def test_all_small_machines_together_have_at_most_the_whole_prior(largest: int, symbols: int, whole: float) -> None:
    """1/2 belongs to one state, 1/6 to two, 1/12 to three; half of those with two or three states are minimal."""
    functions = {
        MooreMachine(alphabet=tuple("abc"[:symbols]), transitions=table, outputs=np.array(outputs)).minimise()
        for states in range(1, largest + 1)
        for table in canonical_tables(states, symbols)
        for outputs in itertools.product(range(2), repeat=states)
    }
    assert math.fsum(math.exp(-machine_nats(machine)) for machine in functions) == pytest.approx(whole)


@given(seed=st.integers(0, 2**32 - 1))
def test_states_that_are_not_needed_cost_nothing(seed: int) -> None:
    machine = random_machine(seed)
    assert machine_nats(machine) == machine_nats(machine.minimise())


def test_letters_that_act_alike_are_cheap() -> None:
    """Words with brackets of depth 2 at most, over 28 symbols: another code has less than a third of the nats."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    brackets = from_regex(f"([{letters}]|\\(([{letters}]|\\([{letters}]*\\))*\\))*", f"{letters}()")
    found = describe_machine(brackets)
    assert len(brackets) == 4
    assert found.code == "kinds of symbols"
    assert found.choice == math.log(3)
    assert found.total < 0.3 * structure_nats(4, 28)


def test_a_machine_of_thousands_of_symbols_is_described_at_once() -> None:
    draw = np.random.default_rng(0)
    transitions = np.repeat(np.arange(20)[:, None], 3_000, axis=1)
    moving = draw.random(transitions.shape) < 0.02
    transitions[moving] = draw.integers(0, 20, int(moving.sum()))
    machine = MooreMachine(alphabet=tuple(map(str, range(3_000))), transitions=transitions, outputs=np.arange(20) % 2)
    found = describe_machine(machine)
    assert found.code == "favourite targets"
    assert found.total < 0.1 * structure_nats(20, 3_000)


def test_small_alphabets_have_one_code() -> None:
    machine = MooreMachine(
        alphabet=tuple("abcdefghi"[:FEW_SYMBOLS]),
        transitions=np.array([[0] * (FEW_SYMBOLS - 1) + [1], [1] * FEW_SYMBOLS]),
        outputs=np.array([0, 1]),
    )
    found = describe_machine(machine)
    assert (found.code, found.choice) == ("any table", 0.0)


@pytest.mark.parametrize("sizes", [(0, 2, 2), (2, -1, 2), (2, 2, 0)])
def test_sizes_that_no_machine_has_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ArgumentError, match="wanted at least"):
        count_machines(*sizes)
