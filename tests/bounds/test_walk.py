"""What the recursions of all cells share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from contracts.passes import few_examples, seeds
from statewise.bounds.walk import Signal, accumulated, joined, logs, numbers


@few_examples
@given(seed=seeds)
def test_a_recursion_in_logarithms_is_the_plain_one(seed: int) -> None:
    source = np.random.default_rng(seed)
    growth, added, first = source.random(6), source.random((6, 3)), source.random(3)
    found = np.exp(accumulated(np.log(growth), np.log(added), np.log(first)))
    u = first
    for step in range(6):
        u = growth[step] * u + added[step]
        assert found[step] == pytest.approx(u, rel=1e-12)


def test_joined_signals_are_as_long_as_the_vectors_they_bound() -> None:
    one = Signal(log_norm=np.log([3.0]), log_moves=np.log([[6.0, 1.0]]))
    other = Signal(log_norm=np.log([4.0]), log_moves=np.log([[8.0, 0.0 + 1e-300]]))
    both = joined(one, other)
    assert np.exp(both.log_norm) == pytest.approx([5.0])
    assert np.exp(both.log_moves[0]) == pytest.approx([10.0, 1.0])


def test_among_other_matrices_a_signal_has_zeros() -> None:
    signal = Signal(log_norm=np.zeros(1), log_moves=np.array([[1.0, 2.0, 3.0]]))
    none = -math.inf
    assert signal.among(1, 2, 1).log_moves.tolist() == [[1.0, none, none, 2.0, 3.0, none]]


def test_the_greatest_is_over_all_steps_and_each_matrix_for_itself() -> None:
    signal = Signal(log_norm=np.array([2.0, 1.0]), log_moves=np.array([[0.0, 5.0], [1.0, 4.0]]))
    assert signal.greatest.log_norm.tolist() == [2.0, 2.0]
    assert signal.greatest.log_moves.tolist() == [[1.0, 5.0]] * 2
    nothing = Signal(log_norm=np.zeros(2), log_moves=np.zeros((2, 0)))
    assert nothing.greatest.log_moves.shape == (2, 0)


def test_logarithms_and_numbers_have_no_edge() -> None:
    assert logs(np.array([0.0, 1.0])).tolist() == [-math.inf, 0.0]
    assert numbers(np.array([-math.inf, 0.0]))[:2] == [0.0, 1.0]
    assert math.isfinite(numbers(np.array([1e6]))[0])
