from __future__ import annotations

import numpy as np

from statewise.memory.drawn import drawn_weights
from statewise.memory.field import Field


def test_the_same_seed_gives_the_same_weights() -> None:
    one, other, third = (
        drawn_weights(Field(), inputs=2, width=3, depth=2, seed=seed, start="drawn") for seed in (3, 3, 4)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one.recurrent, other.recurrent, strict=True))
    assert not np.array_equal(one.recurrent[0], third.recurrent[0])
    assert not np.array_equal(one.recurrent[0], one.recurrent[1])


def test_a_start_is_one_or_drawn_and_leaves_the_weights_as_they_are() -> None:
    ones, drawn = (
        drawn_weights(Field(), inputs=2, width=3, depth=2, seed=0, start=start) for start in ("ones", "drawn")
    )
    assert all((first == 1).all() for first in ones.first)
    assert len({tuple(first[:, 0]) for first in drawn.first}) == 2
    assert np.array_equal(ones.readout, drawn.readout)
    assert [weight.shape for weight in ones.inputs] == [(3, 2), (3, 3)]
