"""Where the states of a machine stand on paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.automata import MooreMachine
from statewise.automata.captions import shortened, symbols_text
from statewise.automata.drawing.compose import compose, sinks
from statewise.automata.drawing.geometry import crossed, distance_to_segment
from statewise.automata.drawing.graph import Graph
from statewise.automata.drawing.layout import place_states
from statewise.automata.drawing.legibility import legibility
from statewise.errors import ArgumentError

TOMITA = {
    1: ([[1, 0], [1, 1]], [0]),
    2: ([[1, 2], [1, 1], [0, 1]], [0]),
    3: ([[0, 1], [2, 0], [3, 4], [2, 3], [4, 4]], [0, 1, 3]),
    4: ([[1, 0], [2, 0], [3, 0], [3, 3]], [0, 1, 2]),
    5: ([[1, 2], [0, 3], [3, 0], [2, 1]], [0]),
    6: ([[1, 2], [2, 0], [0, 1]], [0]),
    7: ([[0, 1], [2, 1], [2, 3], [4, 3], [4, 4]], [0, 1, 2, 3]),
}

pytestmark = pytest.mark.usefixtures("as_users_have_it")


def tomita(number: int) -> MooreMachine:
    rows, accepting = TOMITA[number]
    outputs = np.isin(np.arange(len(rows)), accepting).astype(int)
    return MooreMachine(alphabet=("0", "1"), transitions=np.array(rows), outputs=outputs)


def random_machine(states: int, symbols: int, seed: int) -> MooreMachine:
    """All states can be reached: each but the first has an arrow from one before it."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, states, (states, symbols))
    slots = [(state, symbol) for state in range(states) for symbol in range(symbols)]
    for state in range(1, states):
        free = [slot for slot in slots if slot[0] < state]
        chosen = free[rng.integers(len(free))]
        slots.remove(chosen)
        table[chosen] = state
    alphabet = tuple("abcdefghij"[:symbols])
    return MooreMachine(alphabet=alphabet, transitions=table, outputs=rng.integers(0, 2, states))


@pytest.mark.parametrize("number", TOMITA)
def test_a_drawn_tomita_machine_has_no_fault_at_all(number: int) -> None:
    found = legibility(compose(tomita(number)))
    assert found.closest > 1.5
    assert (found.struck, found.crossings, found.hidden, found.mixed, found.astray) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("seed", range(2))
def test_a_machine_of_12_states_has_no_arrow_through_a_state_and_few_crossings(seed: int) -> None:
    found = legibility(compose(random_machine(12, 2, seed)))
    assert found.closest > 1.5
    assert found.struck == found.hidden == found.mixed == 0
    assert found.crossings <= 8


def test_a_machine_of_30_states_is_drawn_without_arrows_through_states() -> None:
    found = legibility(compose(random_machine(30, 2, 0)))
    assert found.struck <= 1
    assert found.closest > 1.5


@pytest.mark.slow
def test_two_hundred_states_are_drawn_all_the_same() -> None:
    assert len(compose(random_machine(200, 2, 0)).circles) == 200


def test_a_machine_has_one_picture() -> None:
    table = random_machine(6, 2, 3).transitions
    assert np.array_equal(place_states(table), place_states(table))


def test_a_chain_is_drawn_as_a_line_from_left_to_right() -> None:
    places = place_states(np.array([[1], [2], [3], [4], [4]]))
    assert places.tolist() == [0, 1, 2, 3, 4]


def test_states_that_cannot_be_reached_get_a_place_too() -> None:
    places = place_states(np.array([[0], [1], [1]]))
    assert len(np.unique(places)) == 3
    assert Graph.of(np.array([[0], [1], [1]])).depths.tolist() == [0, 1, 1]


def test_a_start_outside_the_states_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a state of 2"):
        place_states(np.array([[0], [1]]), start=2)


def test_hidden_sinks_leave_with_their_arrows_and_a_note() -> None:
    machine = tomita(2)
    assert sinks(machine) == [1]
    drawn = compose(machine, hide_sinks=True)
    assert [circle.state for circle in drawn.circles] == [0, 2]
    assert {(arrow.source, arrow.target) for arrow in drawn.arrows} == {(-1, 0), (0, 2), (2, 0)}
    assert "Not drawn: reject state 1" in drawn.notes[0]


def test_a_start_that_nothing_leaves_is_never_hidden() -> None:
    nothing = MooreMachine(alphabet=("a",), transitions=np.array([[0]]), outputs=np.array([0]))
    assert sinks(nothing) == []
    assert len(compose(nothing, hide_sinks=True).circles) == 1


def test_every_transition_is_on_exactly_one_arrow() -> None:
    machine = random_machine(7, 3, 5)
    drawn = compose(machine)
    said = {(arrow.source, arrow.target): set(arrow.title.split(",")) for arrow in drawn.arrows[1:]}
    for state, row in enumerate(machine.transitions):
        for symbol, target in zip(machine.alphabet, row, strict=True):
            assert symbol in said[state, int(target)]
    assert sum(map(len, said.values())) == machine.transitions.size


def test_a_machine_without_symbols_is_drawn() -> None:
    empty = MooreMachine(alphabet=(), transitions=np.zeros((2, 0), dtype=int), outputs=np.array([0, 1]))
    assert len(compose(empty).arrows) == 1


@given(st.sets(st.sampled_from("abcdefghijklmnopqrstuvwxyz()0123456789"), min_size=1))
def test_a_text_of_symbols_can_be_read_back(chosen: set[str]) -> None:
    alphabet = [*"abcdefghijklmnopqrstuvwxyz()0123456789"]
    text = symbols_text(chosen, alphabet)
    negated = text.startswith("any")
    listed = text.removeprefix("any").removeprefix(" but ")
    named = set()
    for part in filter(None, listed.split(",")):
        first, last = (part[0], part[-1])
        named |= {chr(code) for code in range(ord(first), ord(last) + 1)} if len(part) == 3 else {part}
    assert (set(alphabet) - named if negated else named) == chosen


@given(st.text(max_size=30), st.integers(2, 20))
def test_a_shortened_text_is_never_wider_than_asked(text: str, width: int) -> None:
    short = shortened(text, width)
    assert len(short) <= width
    assert short == text or short.endswith("…")


_points = st.complex_numbers(max_magnitude=10, allow_nan=False)


@given(_points, _points, _points, _points)
def test_crossing_does_not_depend_on_order_or_direction(a: complex, b: complex, c: complex, d: complex) -> None:
    pa, pb, pc, pd = (np.array([point]) for point in (a, b, c, d))
    found = crossed(pa, pb, pc, pd)
    assert found == crossed(pb, pa, pc, pd) == crossed(pc, pd, pa, pb)
    if found:
        share = np.linspace(0, 1, 2001)
        nearest = distance_to_segment(a + share * (b - a), pc, pd).min()
        assert nearest <= abs(b - a) / 2000


def test_too_narrow_labels_are_refused() -> None:
    with pytest.raises(ArgumentError, match="at least 2"):
        compose(tomita(1), label_width=1)
