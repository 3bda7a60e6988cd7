from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from statewise import RAC
from statewise.errors import ArgumentError, DtypeError, NonFiniteError, ShapeError
from statewise.memory.circuit import Circuit, SingularStartWarning, drawn_circuit
from statewise.memory.field import Field, Integers
from statewise.memory.grid import grid_matrix
from statewise.memory.grid_tensor import grid_tensor
from statewise.transforms import Noise

DOUBLE = torch.float64
PARTS: dict[str, Any] = {"inputs": ([[1, 2], [3, -1]],), "recurrent": ([[1, 1], [0, 1]],), "readout": [1, 2]}


@pytest.mark.parametrize("initial_state", ["ones", "pinv", "learned"])
def test_a_layer_and_its_circuit_give_the_same_table(initial_state: str, generator: torch.Generator) -> None:
    layer = RAC(2, 3, num_layers=2, dtype=DOUBLE, initial_state=initial_state, generator=generator)
    if initial_state == "learned":
        with torch.no_grad():
            layer.state_0.normal_(generator=generator)
    readout = torch.randn(4, 3, dtype=DOUBLE, generator=generator)
    circuit = Circuit.of(layer, readout, output=2)
    expected = grid_tensor(layer, torch.eye(2, dtype=DOUBLE), 3, readout=readout, output=2)
    again = grid_tensor(circuit.layer(), torch.eye(2, dtype=DOUBLE), 3, readout=readout, output=2)
    torch.testing.assert_close(again, expected)
    products = [first[:, 0] for first in circuit.over(Field()).first]
    if initial_state != "learned":
        assert all((product == 1).all() for product in products)
        assert np.array_equal(circuit.first_products(), np.ones((2, 3)))
    else:
        start = layer.state_0[:, 0].detach()
        weights = torch.stack([layer.get_parameter(f"weight_hh_l{level}") for level in (0, 1)]).detach()
        assert circuit.first_products() == pytest.approx(torch.einsum("lij,lj->li", weights, start).numpy())


def test_floats_are_computed_with_as_the_exact_numbers_that_they_are() -> None:
    """Halves of whole numbers: the table is that of the whole numbers over a power of two."""
    halves = Circuit(inputs=([[0.5, 1.0], [1.5, -0.5]],), recurrent=PARTS["recurrent"], readout=[0.5, 1.0])
    field = Field()
    scaled = field.multiply(grid_matrix(halves.over(field), steps=2, split=1), field.of([8]))
    assert np.array_equal(field.integers(scaled), np.array([[22, 2], [-5, 4]]) % field.prime)


def test_a_start_of_its_own_is_exact_too() -> None:
    circuit = Circuit(**PARTS, start=[[0, 1]])
    whole = circuit.over(Integers())
    assert whole.first[0].tolist() == [[1], [1]]
    assert grid_matrix(whole, steps=2, split=1).tolist() == [[22, 2], [-5, 4]]


def test_the_pseudo_inverse_of_a_singular_matrix_warns() -> None:
    singular = {**PARTS, "recurrent": ([[1, 0], [0, 0]],)}
    with pytest.warns(SingularStartWarning, match="layer 1 is singular"):
        weights = Circuit(**singular, start="pinv").over(Field())
    assert weights.first[0][:, 0].tolist() == [1.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Circuit(**singular).over(Field()).first[0][:, 0].tolist() == [1.0, 1.0]
        assert Circuit(**PARTS, start="pinv").over(Integers()).first[0][:, 0].tolist() == [1, 1]


def test_no_tolerance_decides_what_is_singular() -> None:
    """In floats this matrix has rank 1; but it has an inverse, and so the first product is 1 exactly."""
    nearly = {**PARTS, "recurrent": ([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]],)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Circuit(**nearly, start="pinv").over(Field()).first[0][:, 0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("readout", [[2**63, 2**63 + 1], [2**63 + 1, -1], np.array([2**63, 1], dtype=np.uint64)])
def test_whole_numbers_beyond_64_bits_are_not_rounded(readout: Any) -> None:
    expected = [int(number) for number in readout]
    assert Circuit(**{**PARTS, "readout": readout}).readout.tolist() == expected
    assert Field().integers(Field().of(readout)).tolist() == [number % Field().prime for number in expected]


@pytest.mark.parametrize("name", ["inputs", "recurrent", "readout", "start"])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(name: str, wrong: float) -> None:
    part: Any = {"readout": [wrong, 1.0], "start": [[wrong, 1.0]]}.get(name, ([[wrong, 1.0], [1.0, 1.0]],))
    with pytest.raises(NonFiniteError, match=f"Circuit.{name}"):
        Circuit(**{**PARTS, name: part})


@pytest.mark.parametrize("wrong", [{"inputs": 0}, {"width": 0}, {"depth": 0}, {"seed": -1}])
def test_a_circuit_of_nothing_is_not_drawn(wrong: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match="at least"):
        drawn_circuit(**{"inputs": 2, "width": 2, "depth": 2, **wrong})


def test_a_start_at_zero_is_refused() -> None:
    with pytest.raises(ArgumentError, match="would be 0"):
        Circuit(**PARTS, start=[[0, 0]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": ()},
        {"recurrent": ([[1, 1]],)},
        {"readout": [1, 2, 3]},
        {"readout": [[1, 2]]},
        {"readout": [[1], [1, 2]]},
        {"start": [[1, 1], [1, 1]]},
        {"inputs": ([[1, 2], [3, -1]], [[1, 2, 3], [4, 5, 6]]), "recurrent": PARTS["recurrent"] * 2},
    ],
)
def test_parts_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ShapeError):
        Circuit(**{**PARTS, **wrong})


def test_what_is_not_a_circuit_is_refused(generator: torch.Generator) -> None:
    ones = torch.ones(3)
    biased = nn.Linear(3, 2)
    for layer, readout, word in (
        (RAC(2, 3, bias=True), ones, "a bias"),
        (RAC(2, 3, bidirectional=True), ones, "two directions"),
        (RAC(2, 3, transforms=Noise("gaussian", 0.5)), ones, "transforms"),
        (RAC(2, 3), biased, "a bias"),
    ):
        with pytest.raises(ArgumentError, match=word):
            Circuit.of(layer, readout)
    with pytest.raises(DtypeError, match="whole numbers or floats"):
        Circuit(**{**PARTS, "readout": [1j, 2]})
    with pytest.raises(ArgumentError, match="'ones'"):
        Circuit(**PARTS, start="zeros")


def test_drawn_weights_have_the_variance_of_the_layer() -> None:
    circuit = drawn_circuit(inputs=50, width=60, depth=2, seed=1)
    assert circuit.inputs[0].var() == pytest.approx(1 / 50, rel=0.1)
    assert circuit.inputs[1].var() == pytest.approx(1 / 60, rel=0.1)
    assert not np.array_equal(circuit.readout, drawn_circuit(inputs=50, width=60, depth=2, seed=2).readout)


@pytest.mark.parametrize(
    ("readout", "output"), [(torch.ones(4), 0), (torch.ones(2, 3), 2), (torch.ones(3), 1), (torch.ones(1, 1, 3), 0)]
)
def test_a_readout_that_does_not_fit_is_named(readout: torch.Tensor, output: int) -> None:
    with pytest.raises(ShapeError, match=r"Circuit\.of\.readout: got .* wanted \(more than"):
        Circuit.of(RAC(2, 3), readout, output=output)
