from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.memory.drawn import drawn_weights
from statewise.memory.field import Field, Integers, Table
from statewise.memory.grid import Weights, check_sizes, grid_matrix


def whole_weights(inputs: int, width: int, depth: int, seed: int) -> Weights:
    """Small whole numbers, with a start of its own for every layer."""
    whole, generator = Integers(), np.random.default_rng(seed)

    def some(rows: int, columns: int) -> Table:
        return whole.of(generator.integers(-3, 4, size=(rows, columns)))

    return Weights(
        arithmetic=whole,
        inputs=tuple(some(width, width if layer else inputs) for layer in range(depth)),
        recurrent=tuple(some(width, width) for _ in range(depth)),
        readout=some(1, width),
        first=tuple(some(width, 1) for _ in range(depth)),
    )


def one_output(weights: Weights, features: list[Table]) -> int:
    """The last output of one sequence, by the definition."""
    products = [first[:, 0] for first in weights.first]
    states: list[Table] = []
    for below in features:
        states = []
        for entering, product in zip(weights.inputs, products, strict=True):
            below = product * (entering @ below)
            states.append(below)
        products = [recurrent @ state for recurrent, state in zip(weights.recurrent, states, strict=True)]
    return int((weights.readout @ states[-1])[0])


@given(
    inputs=st.integers(1, 3),
    width=st.integers(1, 3),
    depth=st.integers(1, 3),
    steps=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_every_entry_is_the_output_of_its_word(
    inputs: int, width: int, depth: int, steps: int, seed: int, data: st.DataObject
) -> None:
    weights, split = whole_weights(inputs, width, depth, seed), data.draw(st.integers(0, steps))
    letters = np.eye(inputs, dtype=np.int64).astype(object)
    words = itertools.product(letters, repeat=steps)
    expected = np.array([one_output(weights, list(word)) for word in words], dtype=object)
    table = grid_matrix(weights, steps=steps, split=split)
    assert table.shape == (inputs**split, inputs ** (steps - split))
    assert np.array_equal(table.ravel(), expected)


def test_templates_may_be_any_vectors_and_more_than_features() -> None:
    weights = whole_weights(2, 3, 2, seed=0)
    templates = weights.arithmetic.of([[1, 0], [0, 1], [2, -1]])
    table = grid_matrix(weights, steps=3, split=1, templates=templates)
    expected = [[one_output(weights, [a, b, c]) for b in templates for c in templates] for a in templates]
    assert table.tolist() == expected


@pytest.mark.parametrize("together", [1, 100, 10_000])
def test_strips_of_any_height_give_the_same_table(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = drawn_weights(Field(), inputs=3, width=2, depth=2, seed=1)
    expected = grid_matrix(weights, steps=5, split=2)
    monkeypatch.setattr("statewise.memory.grid._TOGETHER", together)
    assert np.array_equal(grid_matrix(weights, steps=5, split=2), expected)


def test_tables_that_are_too_large_point_to_other_ways() -> None:
    assert check_sizes(2, steps=26, split=13) == (8192, 8192)
    with pytest.raises(ArgumentError, match=r"shallow_rank.*sampled_rank"):
        check_sizes(2, steps=28, split=14)
