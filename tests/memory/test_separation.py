from __future__ import annotations

import numpy as np
import pytest

from statewise.errors import ArgumentError, NonFiniteError, ShapeError
from statewise.memory.circuit import Circuit, drawn_circuit
from statewise.memory.field import Field
from statewise.memory.generic import generic_rank
from statewise.memory.primes import PRIMES
from statewise.memory.separation import equivalent_shallow_width, exact_table, network_rank


def identity_circuit(width: int, depth: int, seed: int = 0) -> Circuit:
    """Recurrent matrices that are the identity: far from generic."""
    circuit = drawn_circuit(inputs=width, width=width, depth=depth, seed=seed)
    return Circuit(inputs=circuit.inputs, recurrent=(np.eye(width),) * depth, readout=circuit.readout)


@pytest.mark.parametrize(
    ("inputs", "width", "steps", "depth"), [(2, 2, 10, 2), (3, 2, 6, 3), (3, 3, 6, 2), (2, 4, 6, 1)]
)
def test_normal_weights_are_generic(inputs: int, width: int, steps: int, depth: int) -> None:
    found = network_rank(drawn_circuit(inputs=inputs, width=width, depth=depth, seed=3), steps=steps)
    assert found.rank == generic_rank(inputs=inputs, width=width, steps=steps, depth=depth).rank
    assert found.sentence.startswith("This network has separation rank")


def test_special_weights_may_have_less() -> None:
    """Without mixing, two layers see a Start up to the order of its symbols: at most ms(2, 5) = 6 rows differ."""
    found = network_rank(identity_circuit(2, 2), steps=10)
    assert found.rank <= 6 < generic_rank(inputs=2, width=2, steps=10, depth=2).rank
    assert not found.proved
    assert "unless every larger minor is 0 modulo 2147483647 and 2147483629; at most 12 is possible" in found.sentence


def test_a_circuit_that_is_zero_has_rank_zero() -> None:
    for depth in (1, 2):
        zero = Circuit(inputs=(np.ones((2, 2)),) * depth, recurrent=(np.eye(2),) * depth, readout=[0, 0])
        for split in (0, 2, 4):
            assert network_rank(zero, steps=4, split=split).rank == 0
        one = Circuit(inputs=(np.ones((2, 2)),) * depth, recurrent=(np.eye(2),) * depth, readout=[0, 1])
        assert {network_rank(one, steps=4, split=split).rank for split in (0, 2, 4)} == {1}
        assert network_rank(one, steps=1, split=0).rank == 1


def test_more_templates_than_features_show_more() -> None:
    circuit = drawn_circuit(inputs=2, width=3, depth=2)
    templates = np.random.default_rng(0).normal(size=(5, 2))
    few, many = (network_rank(circuit, steps=4, templates=rows) for rows in (templates[:2], templates))
    sampled = network_rank(circuit, steps=4, samples=30)
    assert few.rank == 4 < many.rank <= sampled.rank <= sampled.upper
    assert many.inputs == 5
    assert "at least" in sampled.sentence or sampled.proved


@pytest.mark.parametrize(("templates", "steps", "expected"), [(5, 4, 6), (3, 8, 42)])
def test_many_templates_of_few_features_are_bounded_as_vectors_are(templates: int, steps: int, expected: int) -> None:
    circuit = drawn_circuit(inputs=2, width=3, depth=2)
    rows = np.random.default_rng(0).integers(-9, 9, (templates, 2))
    found = network_rank(circuit, steps=steps, templates=rows)
    assert (found.rank, found.upper, found.proved) == (expected, expected, True)


def test_a_shallow_network_of_that_width_is_no_smaller_than_the_rank() -> None:
    shallow, deep = (drawn_circuit(inputs=3, width=3, depth=depth) for depth in (1, 2))
    assert equivalent_shallow_width(shallow, steps=1000) == 3
    assert equivalent_shallow_width(deep, steps=6) == 27
    assert equivalent_shallow_width(deep, steps=6, samples=40) == 30


def test_an_unlucky_prime_is_corrected_by_the_next() -> None:
    """All weights of the readout are multiples of the first prime: modulo it the circuit is zero."""
    primes = 2147483647, 2147483629
    circuit = Circuit(inputs=([[1, 2], [3, 4]],), recurrent=([[1, 1], [0, 1]],), readout=[primes[0], 2 * primes[0]])
    found = network_rank(circuit, steps=6, primes=primes)
    assert (found.found, found.rank, found.proved) == ((0, 2), 2, True)


def test_primes_that_all_mislead_are_not_called_a_proof() -> None:
    """The readout is a multiple of both: what is found is a lower bound, and says so."""
    both = 2147483647 * 2147483629
    circuit = Circuit(inputs=([[1, 2], [3, 4]],), recurrent=([[1, 1], [0, 1]],), readout=[both, 2 * both])
    found = network_rank(circuit, steps=6)
    assert (found.rank, found.proved, network_rank(circuit, steps=6, primes=PRIMES[:3]).rank) == (0, False, 2)
    assert "unless every larger minor is 0" in found.sentence


def test_an_empty_half_of_continuous_inputs_has_rank_one() -> None:
    circuit = drawn_circuit(inputs=2, width=2, depth=2)
    assert [network_rank(circuit, steps=4, split=split, samples=5).rank for split in (0, 4)] == [1, 1]


def test_tables_over_a_field_and_of_templates() -> None:
    circuit = Circuit(inputs=([[1, 2], [3, -1]],), recurrent=([[1, 1], [0, 1]],), readout=[1, 2])
    assert exact_table(circuit, steps=2, arithmetic=Field()).tolist() == [[22, 2], [Field().prime - 5, 4]]
    doubled = exact_table(circuit, steps=2, templates=[[2, 0], [0, 1]])
    assert doubled.tolist() == [[88, 4], [-10, 4]]
    assert exact_table(circuit, steps=2, split=2).tolist() == [[22], [2], [-5], [4]]
    assert exact_table(circuit, steps=2, split=0).tolist() == [[22, 2, -5, 4]]


def test_what_cannot_be_answered_is_refused() -> None:
    circuit = drawn_circuit(inputs=2, width=2, depth=2)
    with pytest.raises(ArgumentError, match="give split"):
        network_rank(circuit, steps=5)
    with pytest.raises(ArgumentError, match="sampled_rank"):
        network_rank(circuit, steps=100)
    with pytest.raises(ShapeError, match="2 features"):
        network_rank(circuit, steps=4, templates=[[1, 2, 3]])
    with pytest.raises(ArgumentError, match="one of them"):
        network_rank(circuit, steps=4, templates=[[1, 2]], samples=5)
    for wrong, word in (
        ({"primes": []}, "at least one prime"),
        ({"primes": [2**31 - 3]}, "not prime"),
        ({"backend": "sage"}, "flint"),
        ({"seed": -1}, "seed"),
    ):
        with pytest.raises(ArgumentError, match=word):
            network_rank(drawn_circuit(inputs=2, width=2, depth=1), steps=4, **wrong)
    with pytest.raises(NonFiniteError, match="templates"):
        network_rank(circuit, steps=4, templates=[[np.nan, 1.0]])
    with pytest.raises(ArgumentError, match="1 to 8192"):
        network_rank(circuit, steps=4, samples=0)
