from __future__ import annotations

import numpy as np
import pytest

from statewise.errors import ArgumentError, ShapeError
from statewise.memory.drawn import drawn_weights
from statewise.memory.field import Field
from statewise.memory.grid import grid_matrix
from statewise.memory.primes import PRIMES
from statewise.memory.sampled import sampled_rank, sampled_table


def test_a_table_of_all_words_is_the_grid() -> None:
    """With one-hot sequences as samples, in the order of the grid."""
    field, weights = Field(), drawn_weights(Field(), inputs=2, width=3, depth=3, seed=0, start="drawn")
    letters = np.eye(2, dtype=np.int64)
    starts = field.of(np.stack((letters[[0, 0, 1, 1]], letters[[0, 1, 0, 1]])))
    ends = field.of(letters[None])
    assert np.array_equal(sampled_table(weights, starts, ends), grid_matrix(weights, steps=3, split=2))
    nothing = np.zeros((0, 1, 2))
    assert np.array_equal(sampled_table(weights, nothing, starts), grid_matrix(weights, steps=2, split=0))


def test_strips_of_any_height_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    field, weights = Field(), drawn_weights(Field(), inputs=2, width=3, depth=2, seed=0)
    starts, ends = (field.draw(np.random.default_rng(seed), 2, 5, 2) for seed in (0, 1))
    expected = sampled_table(weights, starts, ends)
    monkeypatch.setattr("statewise.memory.grid._TOGETHER", 1)
    assert np.array_equal(sampled_table(weights, starts, ends), expected)


def test_fewer_samples_than_the_rank_show_their_number() -> None:
    found = sampled_rank(inputs=6, width=5, steps=4, depth=3, samples=145)
    assert (found.rank, found.upper, found.samples, found.proved) == (145, 175, 145, False)
    assert "could show no more" in found.sentence


def test_more_samples_than_the_rank_show_it() -> None:
    found = sampled_rank(inputs=2, width=3, steps=8, depth=2, samples=60)
    assert (found.rank, found.upper, found.found) == (42, 42, (42,))


def test_runs_take_other_primes_and_seeds_while_nothing_is_proved() -> None:
    """A Start of two steps shows less than any bound allows."""
    found = sampled_rank(inputs=2, width=3, steps=6, depth=2, split=2, samples=60, seed=10)
    assert (found.rank, found.upper, found.proved) == (39, 42, False)
    assert (found.found, found.primes, found.seeds) == ((39, 39), PRIMES[:2], (10, 11))
    assert 0 < found.failure_probability < 1e-9
    assert "by chance (probability below" in found.sentence
    assert "or by their primes" in found.sentence


def test_any_split_and_start() -> None:
    found = sampled_rank(inputs=2, width=2, steps=9, depth=2, split=4, start="drawn")
    assert found.rank == found.upper == 2 * 6


def test_what_has_no_table_is_refused() -> None:
    weights = drawn_weights(Field(), inputs=2, width=2, depth=1, seed=0)
    with pytest.raises(ShapeError, match="not empty"):
        sampled_table(weights, np.zeros((1, 2, 2)), np.zeros((0, 2, 2)))
    for samples in (0, 10_000):
        with pytest.raises(ArgumentError, match="1 to 8192"):
            sampled_rank(inputs=2, width=2, steps=4, depth=1, samples=samples)
    with pytest.raises(ArgumentError, match="at least 1"):
        sampled_rank(inputs=2, width=0, steps=4, depth=1)
