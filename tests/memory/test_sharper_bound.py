"""The sharper state bound: below U1, never below a rank, and met where U1 is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.memory.counts import end_cap, multiset, state_bound, upper_bound
from statewise.memory.drawn import drawn_weights
from statewise.memory.elimination import rank
from statewise.memory.field import Field
from statewise.memory.generic import generic_rank
from statewise.memory.sampled import sampled_rank
from statewise.memory.sharper_bound import proved_bound, sharper_state_bound

WIDTHS = st.integers(1, 6)


@given(inputs=WIDTHS, width=WIDTHS, steps=st.integers(1, 12), depth=st.integers(1, 5), data=st.data())
def test_it_is_positive_and_no_more_than_the_state_bound(
    inputs: int, width: int, steps: int, depth: int, data: st.DataObject
) -> None:
    split = data.draw(st.integers(0, steps))
    found = sharper_state_bound(M=inputs, R=width, T=steps, L=depth, split=split)
    assert 1 <= found <= state_bound(R=width, T=steps, L=depth, split=split)


@given(width=WIDTHS, half=st.integers(1, 12))
def test_three_layers_lose_what_the_closed_form_says(width: int, half: int) -> None:
    lost = state_bound(R=width, T=2 * half, L=3) - sharper_state_bound(M=1, R=width, T=2 * half, L=3)
    assert lost == (width**2 * multiset(width - 1, half) if width > 1 else 0)
    assert width != 2 or lost == 4


@pytest.mark.parametrize(
    ("inputs", "width", "steps", "depth"),
    [
        *((2, 2, 6, 3), (3, 2, 6, 3), (2, 2, 8, 3), (2, 2, 12, 3)),
        *((2, 3, 8, 2), (2, 3, 10, 2), (3, 4, 8, 2), (4, 5, 6, 2)),
        *((2, 4, 8, 2), (2, 4, 12, 2), (3, 5, 8, 2)),
    ],
)
def test_it_is_reached_on_continuous_inputs(inputs: int, width: int, steps: int, depth: int) -> None:
    """Where U1 is not: a lower bound with a certificate equals it."""
    bound = sharper_state_bound(M=inputs, R=width, T=steps, L=depth)
    assert bound < state_bound(R=width, T=steps, L=depth)
    assert bound <= end_cap(M=inputs, R=width, T=steps, L=depth, continuous=True)
    found = sampled_rank(inputs=inputs, width=width, steps=steps, depth=depth, samples=bound + 8, runs=1)
    assert found.rank == bound


@pytest.mark.parametrize(
    ("inputs", "width", "steps", "expected"), [(4, 2, 8, 106), (7, 2, 6, 52), (10, 2, 6, 52), (4, 2, 10, 188)]
)
def test_it_proves_the_ranks_that_fall_short_by_four(inputs: int, width: int, steps: int, expected: int) -> None:
    found = generic_rank(inputs=inputs, width=width, steps=steps, depth=3, runs=1)
    assert (found.rank, found.upper, found.proved) == (expected, expected, True)
    assert sharper_state_bound(M=inputs, R=width, T=steps, L=3) == expected


@pytest.mark.parametrize(
    ("inputs", "width", "steps", "depth"), [(3, 3, 6, 3), (2, 2, 6, 4), (2, 3, 6, 3), (3, 2, 4, 4)]
)
def test_no_rank_is_above_it(inputs: int, width: int, steps: int, depth: int) -> None:
    bound = sharper_state_bound(M=inputs, R=width, T=steps, L=depth)
    found = sampled_rank(inputs=inputs, width=width, steps=steps, depth=depth, samples=bound + 8, runs=1)
    assert found.rank <= bound


@pytest.mark.parametrize(
    ("inputs", "width", "end", "depth"),
    [(1, 3, 3, 2), (2, 3, 1, 2), (2, 3, 4, 2), (3, 5, 2, 2), (2, 2, 1, 3), (2, 2, 4, 3), (3, 3, 2, 3), (2, 2, 2, 4)],
)
def test_no_states_exceed_it_whether_a_start_reaches_them_or_not(inputs: int, width: int, end: int, depth: int) -> None:
    found = _rank_of_free_states(inputs, width, end, depth)
    assert found <= proved_bound(M=inputs, R=width, T=end + 50, L=depth, split=50, continuous=True)


def _rank_of_free_states(inputs: int, width: int, end: int, depth: int) -> int:
    """The bound is one of the End alone: rows are any products ``WH h``, drawn at random."""
    field, generator = Field(), np.random.default_rng(0)
    weights = drawn_weights(field, inputs=inputs, width=width, depth=depth, seed=0)
    count = state_bound(R=width, T=end, L=depth, split=0) + 4
    products = [field.draw(generator, width, count, 1) for _ in range(depth)]
    ends = [field.matmul(weights.inputs[0], field.draw(generator, inputs, count))[:, None] for _ in range(end)]
    for term in ends[:-1]:
        products = weights.products(weights.step(products, term))
    return rank(weights.scores(products, ends[-1]), field)


@pytest.mark.parametrize(("depth", "end", "expected"), [(3, 4, 106), pytest.param(4, 4, 2038, marks=pytest.mark.slow)])
def test_states_that_no_start_reaches_come_near_it(depth: int, end: int, expected: int) -> None:
    """A bound that were lower by more than what is between would be false; U1 is 110 and 2,310."""
    assert _rank_of_free_states(2, 2, end, depth) == expected
    assert (
        expected
        <= sharper_state_bound(M=2, R=2, T=end + 50, L=depth, split=50)
        < state_bound(R=2, T=end + 50, L=depth, split=50)
    )


@given(inputs=WIDTHS, width=WIDTHS, steps=st.integers(1, 12), depth=st.integers(1, 5), data=st.data())
def test_the_least_bound_is_proved(inputs: int, width: int, steps: int, depth: int, data: st.DataObject) -> None:
    sizes: dict[str, Any] = {"M": inputs, "R": width, "T": steps, "L": depth}
    sizes["split"] = data.draw(st.integers(0, steps))
    for continuous in (False, True):
        expected = min(upper_bound(**sizes, continuous=continuous), sharper_state_bound(**sizes))
        assert proved_bound(**sizes, continuous=continuous) == expected


@pytest.mark.parametrize("wrong", [{"M": 0}, {"M": -3}, {"R": 0}, {"T": 0}, {"L": 0}])
def test_sizes_of_nothing_are_refused(wrong: dict[str, int]) -> None:
    for bound in (sharper_state_bound, proved_bound):
        with pytest.raises(ArgumentError, match="at least 1"):
            bound(**{"M": 2, "R": 2, "T": 4, "L": 2, **wrong})


def test_an_odd_length_needs_a_split() -> None:
    with pytest.raises(ArgumentError, match="split"):
        sharper_state_bound(M=2, R=2, T=5, L=3)
