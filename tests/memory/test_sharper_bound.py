"""The sharper state bound: below U1, never below a rank, and met where U1 is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.memory.counts import end_cap, multiset, state_bound
from statewise.memory.generic import generic_rank
from statewise.memory.sampled import sampled_rank
from statewise.memory.sharper_bound import sharper_state_bound

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
    ("inputs", "width", "steps", "rank"), [(4, 2, 8, 106), (7, 2, 6, 52), (10, 2, 6, 52), (4, 2, 10, 188)]
)
def test_it_proves_the_ranks_that_fall_short_by_four(inputs: int, width: int, steps: int, rank: int) -> None:
    assert generic_rank(inputs=inputs, width=width, steps=steps, depth=3, runs=1).rank == rank
    assert sharper_state_bound(M=inputs, R=width, T=steps, L=3) == rank


@pytest.mark.parametrize(
    ("inputs", "width", "steps", "depth"), [(3, 3, 6, 3), (2, 2, 6, 4), (2, 3, 6, 3), (3, 2, 4, 4)]
)
def test_no_rank_is_above_it(inputs: int, width: int, steps: int, depth: int) -> None:
    found = sampled_rank(inputs=inputs, width=width, steps=steps, depth=depth, samples=300, runs=1)
    assert found.rank <= sharper_state_bound(M=inputs, R=width, T=steps, L=depth)


def test_an_odd_length_needs_a_split() -> None:
    with pytest.raises(ArgumentError, match="split"):
        sharper_state_bound(M=2, R=2, T=5, L=3)
