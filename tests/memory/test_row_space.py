from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.memory.drawn import drawn_weights
from statewise.memory.field import Field, Integers, Table
from statewise.memory.generic import table_rank
from statewise.memory.grid import Weights
from statewise.memory.row_space import row_space_profile, row_space_rank, shallow_rank


def shallow(inputs: Table, recurrent: Table, readout: Table, start: Table | None = None) -> Weights:
    field = Field()
    first = field.ones(len(inputs), 1) if start is None else field.matmul(field.of(recurrent), field.of(start))
    return Weights(
        arithmetic=field,
        inputs=(field.of(inputs),),
        recurrent=(field.of(recurrent),),
        readout=field.of(readout),
        first=(first,),
    )


@given(
    features=st.integers(1, 3),
    width=st.integers(1, 5),
    steps=st.integers(1, 7),
    zeros=st.floats(0, 0.8),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_it_is_the_rank_of_the_table(
    features: int, width: int, steps: int, zeros: float, seed: int, data: st.DataObject
) -> None:
    """Weights with many zeros: spaces that shrink, come back or vanish."""
    generator, split = np.random.default_rng(seed), data.draw(st.integers(0, steps))

    def some(*shape: int) -> Table:
        return np.where(generator.random(shape) < zeros, 0, generator.integers(-2, 3, shape))

    weights = shallow(some(width, features), some(width, width), some(1, width), some(width, 1))
    assert row_space_rank(weights, steps=steps, split=split) == table_rank(weights, steps=steps, split=split)
    if steps > 1:
        whole = [table_rank(weights, steps=steps, split=at) for at in range(1, steps)]
        assert row_space_profile(weights, steps=steps) == whole


def test_spaces_that_come_back_in_turn_are_followed_for_ever() -> None:
    """A channel moves on by one at every step, and the readout sees it at every third."""
    turn = np.roll(np.eye(3, dtype=np.int64), 1, axis=0)
    weights = shallow(
        np.ones((3, 1), dtype=np.int64), turn, np.eye(1, 3, dtype=np.int64), np.eye(3, dtype=np.int64)[:, :1]
    )
    ranks = [row_space_rank(weights, steps=steps, split=steps // 2) for steps in range(1, 13)]
    assert ranks == [int(steps % 3 == 0) for steps in range(1, 13)]
    assert row_space_rank(weights, steps=999_999, split=7) == 1
    assert row_space_rank(weights, steps=1_000_000, split=7) == 0


@pytest.mark.parametrize("split", [0, 1, 2])
def test_before_the_first_step_the_recurrent_matrix_has_not_acted(split: int) -> None:
    """It is nilpotent: applied once more, nothing would be left."""
    down = np.array([[0, 1], [0, 0]])
    weights = shallow(np.array([[1, 2], [3, 4]]), down, np.array([[1, 1]]))
    assert row_space_rank(weights, steps=2, split=split) == table_rank(weights, steps=2, split=split) == 1


def test_a_recurrent_matrix_of_rank_one_remembers_nothing() -> None:
    generator = np.random.default_rng(0)
    column, row = generator.integers(1, 9, (5, 1)), generator.integers(1, 9, (1, 5))
    weights = shallow(generator.integers(1, 9, (5, 3)), column @ row, generator.integers(1, 9, (1, 5)))
    assert row_space_rank(weights, steps=100, split=50) == 1


def test_templates_replace_the_features() -> None:
    field, weights = Field(), drawn_weights(Field(), inputs=3, width=4, depth=1, seed=2)
    for count in (1, 2, 4):
        templates = field.draw(np.random.default_rng(count), count, 3)
        expected = table_rank(weights, steps=4, split=2, templates=templates)
        assert row_space_rank(weights, steps=4, split=2, templates=templates) == expected == min(4, count**2)


def test_a_thousand_steps_take_well_under_a_second() -> None:
    began = time.perf_counter()
    assert shallow_rank(inputs=2, width=16, steps=1000).proved
    assert time.perf_counter() - began < 1


def test_only_one_layer_over_a_fast_field_is_taken() -> None:
    with pytest.raises(ArgumentError, match="one layer"):
        row_space_rank(drawn_weights(Field(), inputs=2, width=2, depth=2, seed=0), steps=4, split=2)
    whole = Integers()
    one = whole.ones(1, 1)
    weights = Weights(arithmetic=whole, inputs=(one,), recurrent=(one,), readout=one, first=(one,))
    with pytest.raises(ArgumentError, match="Field"):
        row_space_rank(weights, steps=4, split=2)
    with pytest.raises(ArgumentError, match="from 0 to 4"):
        row_space_rank(drawn_weights(Field(), inputs=2, width=2, depth=1, seed=0), steps=4, split=9)
    with pytest.raises(ArgumentError, match="give split"):
        shallow_rank(inputs=2, width=2, steps=5)
