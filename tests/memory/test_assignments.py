from __future__ import annotations

import itertools
import math

import pytest

from statewise.errors import ArgumentError
from statewise.memory.assignments import motivating_weights, proof_matrix, proof_weights
from statewise.memory.field import Field, WideField
from statewise.memory.grid import grid_matrix


def test_the_table_of_the_proof_is_the_printed_product() -> None:
    """``A[d] = prod over t of sum over r of prod over j <= t of Z[r, d_j]``, and B its factors of the End."""
    weights, prime = proof_weights(inputs=2, width=3, steps=4), WideField().prime
    letters = weights.inputs[0]
    table, matrix = grid_matrix(weights, steps=4, split=2).ravel(), proof_matrix(weights, steps=4).ravel()
    for place, word in enumerate(itertools.product(range(2), repeat=4)):
        factors = [
            sum(math.prod(int(letters[r, d]) for d in word[:t]) for r in range(len(letters))) for t in range(1, 5)
        ]
        assert table[place] == math.prod(factors) % prime
        assert matrix[place] == math.prod(factors[2:]) % prime


def test_the_matrix_of_the_proof_has_the_printed_entries() -> None:
    assert proof_weights(inputs=3, width=5, steps=4, base=2).inputs[0].tolist() == [
        [2**5, 1, 1],
        [1, 2**25, 1],
        [1, 1, pow(2, 125, 2**61 - 1)],
        [0, 0, 0],
        [0, 0, 0],
    ]


def test_the_motivating_weights_multiply_powers_of_the_sums_of_channels() -> None:
    field, depth, steps = Field(), 3, 3
    weights = motivating_weights(field, inputs=2, width=2, depth=depth, seed=1)
    entering, recurrent = (field.integers(each[0]).astype(object) for each in (weights.inputs, weights.recurrent))
    table = field.integers(grid_matrix(weights, steps=steps, split=0)).ravel()
    for place, word in enumerate(itertools.product(range(2), repeat=steps)):
        product, output = [1, 1], 1
        for t, symbol in enumerate(word, start=1):
            state = [product[r] * entering[r, symbol] for r in range(2)]
            product = list(recurrent @ state)
            output *= sum(state) ** math.comb(steps - t + depth - 2, depth - 2)
        assert table[place] == output % field.prime


def test_other_assignments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"\(T/2\)\^2 = 9"):
        proof_weights(inputs=2, width=2, steps=6, omega=9)
    with pytest.raises(ArgumentError, match="at least 2"):
        proof_weights(inputs=2, width=2, steps=6, base=1)
    with pytest.raises(ArgumentError, match="two layers"):
        motivating_weights(Field(), inputs=2, width=2, depth=1)
