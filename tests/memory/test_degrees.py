from __future__ import annotations

import pytest

from statewise.errors import ArgumentError
from statewise.memory.degrees import degree, weight_copies, weight_degree
from statewise.memory.field import Integers
from statewise.memory.grid import Weights, grid_matrix


@pytest.mark.parametrize(("steps", "depth"), [(1, 1), (4, 1), (3, 2), (2, 3), (1, 4)])
@pytest.mark.parametrize("start", ["ones", "drawn"])
def test_doubling_all_weights_multiplies_the_output_by_two_to_the_degree(steps: int, depth: int, start: str) -> None:
    whole = Integers()

    def output(factor: int) -> int:
        one = whole.of([[factor]])
        product = whole.ones(1, 1) if start == "ones" else whole.matmul(one, one)
        layers = (one,) * depth
        weights = Weights(arithmetic=whole, inputs=layers, recurrent=layers, readout=one, first=(product,) * depth)
        return int(grid_matrix(weights, steps=steps, split=0)[0, 0])

    assert (output(1), output(2)) == (1, 2 ** weight_degree(steps, depth, start=start))


@pytest.mark.parametrize(("steps", "depth"), [(4, 2), (3, 3), (6, 3)])
def test_the_degrees_in_all_inputs_add_up_to_the_copies_of_the_first_matrix(steps: int, depth: int) -> None:
    assert sum(degree(steps - t, depth) for t in range(1, steps + 1)) == weight_copies(steps, depth, 1)


def test_degrees_of_nothing_are_refused() -> None:
    with pytest.raises(ArgumentError, match="at least 0"):
        degree(-1, 2)
    with pytest.raises(ArgumentError, match="at least 1"):
        weight_copies(0, 2, 1)
    with pytest.raises(ArgumentError, match="at least 8"):
        weight_copies(3, 2, 9)
    with pytest.raises(ArgumentError, match="at least 1"):
        weight_degree(3, 0)
