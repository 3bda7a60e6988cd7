from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.memory.circuit import Circuit
from statewise.memory.counts import (
    conjecture,
    end_cap,
    interactions,
    multiset,
    repaired_conjecture,
    start_cap,
    state_bound,
    theorem1,
    upper_bound,
)
from statewise.memory.separation import network_rank
from statewise.memory.split import split_of

SIZES = st.fixed_dictionaries(
    {"M": st.integers(1, 9), "R": st.integers(1, 9), "T": st.integers(1, 12), "L": st.integers(1, 5)}
)


@given(n=st.integers(0, 5), k=st.integers(0, 5))
def test_multisets_are_counted_by_listing_them(n: int, k: int) -> None:
    assert multiset(n, k) == len(list(itertools.combinations_with_replacement(range(n), k)))


@given(T=st.integers(1, 8), L=st.integers(1, 4), data=st.data())
def test_interactions_count_paths_down_the_layers(T: int, L: int, data: st.DataObject) -> None:
    """A state of the first layer reaches the last output by choosing non-increasing times, one for each layer."""
    split = data.draw(st.integers(0, T))
    end = range(split + 1, T + 1)
    times = [path for path in itertools.product(end, repeat=L - 1) if list(path) == sorted(path)]
    assert interactions(T, L, split) == len(times)


def test_the_printed_conjecture_and_its_repair_at_the_counterexample() -> None:
    sizes: dict[str, Any] = {"M": 6, "R": 5, "T": 4, "L": 3}
    assert (conjecture(**sizes), repaired_conjecture(**sizes), end_cap(**sizes)) == (35, 30, 30)
    assert end_cap(**sizes, continuous=True) == 5 * 35
    assert (conjecture(M=4, R=3, T=4, L=4), repaired_conjecture(M=4, R=3, T=4, L=4)) == (15, 12)


def test_theorem_1_of_both_depths() -> None:
    assert [theorem1(M=2, R=5, T=T, L=1) for T in (2, 4, 6, 100)] == [2, 4, 5, 5]
    assert theorem1(M=2, R=5, T=7, L=1, split=6) == 2
    assert theorem1(M=3, R=4, T=10, L=2) == math.comb(7, 5) == conjecture(M=3, R=4, T=10, L=2)


@pytest.mark.parametrize(("inputs", "width", "split", "end"), [(2, 5, 3, 3), (2, 8, 3, 4), (3, 7, 2, 2), (2, 3, 4, 2)])
def test_a_circle_of_channels_reaches_the_theorem_of_one_layer(inputs: int, width: int, split: int, end: int) -> None:
    """Each channel hands its state to the next, and lets a symbol pass: all windows of the circle differ."""

    def windows(circle: tuple[int, ...]) -> set[tuple[int, ...]]:
        short = min(split, end)
        return {tuple(circle[(place + k) % width] for k in range(short)) for place in range(width)}

    circle = next(word for word in itertools.product(range(inputs), repeat=width) if len(windows(word)) == width)
    passes = [[int(symbol == own) for symbol in range(inputs)] for own in circle]
    shift = [[int((row - 1) % width == column) for column in range(width)] for row in range(width)]
    circuit = Circuit(inputs=(passes,), recurrent=(shift,), readout=[1] * width)
    asked = theorem1(M=inputs, R=width, T=split + end, L=1, split=split)
    assert network_rank(circuit, steps=split + end, split=split).rank == asked == width


def test_numbers_are_whole_however_large() -> None:
    assert repaired_conjecture(M=100, R=100, T=1000, L=4) == math.comb(100 + interactions(1000, 4) - 1, 99)
    assert state_bound(R=2, T=1000, L=2) == 2 * 501


@given(sizes=SIZES, data=st.data())
def test_upper_bounds_hold_for_the_repaired_conjecture_and_the_sides(
    sizes: dict[str, Any], data: st.DataObject
) -> None:
    split = data.draw(st.integers(0, sizes["T"]))
    upper = upper_bound(**sizes, split=split)
    assert 1 <= upper <= sizes["M"] ** min(split, sizes["T"] - split)
    bounds = [state_bound(R=sizes["R"], T=sizes["T"], L=sizes["L"], split=split)]
    assert upper == min(bounds + [cap(**sizes, split=split) for cap in (end_cap, start_cap)])
    assert repaired_conjecture(**sizes, split=split) <= max(upper, 1)
    assert upper <= upper_bound(**sizes, split=split, continuous=True)


@given(sizes=SIZES)
def test_in_the_middle_the_start_never_caps_more_than_the_end(sizes: dict[str, Any]) -> None:
    sizes["T"] *= 2
    for continuous in (False, True):
        assert start_cap(**sizes, continuous=continuous) >= end_cap(**sizes, continuous=continuous)


def test_an_odd_number_of_steps_needs_a_split() -> None:
    with pytest.raises(ArgumentError, match="give split"):
        interactions(5, 2)
    assert interactions(5, 2, split=2) == 3
    for wrong in (-1, 6):
        with pytest.raises(ArgumentError, match="from 0 to 5"):
            split_of(5, wrong, where="here")


@pytest.mark.parametrize("wrong", [{"M": 0}, {"R": 0}, {"T": 0}, {"L": 0}])
def test_sizes_of_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match="at least 1"):
        conjecture(**{"M": 2, "R": 2, "T": 4, "L": 2, **wrong})


def test_the_theorem_is_not_stretched() -> None:
    for beyond in ({"L": 3}, {"L": 2, "split": 1}):
        with pytest.raises(ArgumentError, match="repaired_conjecture"):
            theorem1(M=2, R=2, T=4, **beyond)


@given(SIZES, st.integers(0, 12), st.booleans())
def test_caps_are_the_products_that_they_are_defined_as(sizes: dict[str, int], split: int, continuous: bool) -> None:
    """Where no more can be told apart a power stands for the remaining factors."""
    m, r, steps, depth = sizes["M"], sizes["R"], sizes["T"], sizes["L"]
    start = min(split, steps)

    def factor(before: int) -> int:
        power = math.comb(before + depth - 1, depth - 1)
        told = [math.comb(n + power - 1, power) for n in (r, min(m, r))]
        return told[1] if continuous else min(m, told[0])

    expected = [math.prod(map(factor, side)) for side in (range(steps - start), range(steps - start, steps))]
    found = [cap(**sizes, split=start, continuous=continuous) for cap in (end_cap, start_cap)]
    assert found == expected


def test_a_million_steps_take_no_time() -> None:
    assert end_cap(M=3, R=2, T=10**6, L=2) == 2 * 3 ** (10**6 // 2 - 1)
    assert end_cap(M=3, R=2, T=10**6, L=1) == 2 ** (10**6 // 2)


def test_one_step_is_its_own_end() -> None:
    """Whatever the split, one half is empty: the rank is 1, and no split need be given."""
    assert interactions(1, 2) == 1
    assert upper_bound(M=4, R=3, T=1, L=2) == theorem1(M=4, R=3, T=1, L=1) == 1
