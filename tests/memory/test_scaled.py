from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from statewise import RAC
from statewise.errors import ArgumentError, LengthError
from statewise.memory.circuit import Circuit
from statewise.memory.scaled import Scaled, scaled_scores
from statewise.memory.separation import exact_table

DOUBLE = torch.float64


def layer_of(generator: torch.Generator, depth: int = 2, **options: Any) -> RAC:
    return RAC(3, 4, num_layers=depth, dtype=DOUBLE, generator=generator, **options)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("initial_state", ["ones", "pinv", "learned"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_it_is_the_plain_layer_where_that_is_finite(
    depth: int, initial_state: str, batch_first: bool, generator: torch.Generator
) -> None:
    layer = layer_of(generator, depth, initial_state=initial_state, batch_first=batch_first)
    x = torch.randn(5, 5, 3, dtype=DOUBLE, generator=generator)
    readout = torch.randn(2, 4, dtype=DOUBLE, generator=generator)
    states, scores = scaled_scores(layer, x), scaled_scores(layer, x, readout)
    output = layer(x)[0]
    torch.testing.assert_close(states.plain(), output, rtol=1e-10, atol=0)
    torch.testing.assert_close(scores.plain(), output @ readout.mT, rtol=1e-8, atol=0)
    assert (states.mantissa.abs().amax(-1) == 1).all()


def test_numbers_with_thousands_of_digits_have_the_right_logarithm() -> None:
    """Three layers over 40 steps of the same symbol, against Python's whole numbers."""
    weights: dict[str, Any] = {
        "inputs": ([[1, 2], [3, 1]],) * 3,
        "recurrent": ([[1, 1], [0, 1]],) * 3,
        "readout": [1, 2],
    }
    circuit = Circuit(**weights)
    number = int(exact_table(circuit, steps=40, split=40, templates=[[1, 0]])[0, 0])
    assert number.bit_length() > 15_000
    found = scaled_scores(
        circuit.layer(), torch.eye(2, dtype=DOUBLE)[:1].expand(40, 1, 2), torch.tensor([[1.0, 2.0]]).double()
    )
    exact = number.bit_length() * math.log(2) + math.log(number / (1 << number.bit_length()))
    assert found.log_abs()[-1, 0, 0].item() == pytest.approx(exact, rel=1e-12)
    assert found.plain()[-1].isinf().all()


def test_zero_has_a_scale_of_minus_infinity_and_stays_zero(generator: torch.Generator) -> None:
    x = torch.randn(4, 2, 3, dtype=DOUBLE, generator=generator)
    x[1, 0] = 0
    found = scaled_scores(layer_of(generator), x)
    assert (found.log_scale[1:, 0] == -math.inf).all()
    assert found.log_scale[:, 1].isfinite().all()
    assert (found.plain()[1:, 0] == 0).all()


def test_an_exact_zero_beside_a_number_without_end_stays_zero() -> None:
    found = Scaled(mantissa=torch.tensor([[1.0, 0.0]]), log_scale=torch.tensor([800.0]))
    assert found.plain().tolist() == [[math.inf, 0.0]]


def test_gradients_are_those_of_the_logarithm(generator: torch.Generator) -> None:
    layer = layer_of(generator)
    x = torch.randn(4, 2, 3, dtype=DOUBLE, generator=generator)
    scaled_scores(layer, x).log_abs()[-1].sum().backward()
    found = [parameter.grad.clone() for parameter in layer.parameters() if parameter.grad is not None]
    layer.zero_grad()
    layer(x)[0][-1].abs().log().sum().backward()
    assert len(found) == 4
    for grad, parameter in zip(found, layer.parameters(), strict=True):
        torch.testing.assert_close(grad, parameter.grad, rtol=1e-8, atol=1e-8)


def test_a_readout_may_be_a_linear_layer_without_bias(generator: torch.Generator) -> None:
    layer, x = layer_of(generator), torch.randn(3, 2, 3, dtype=DOUBLE, generator=generator)
    readout = nn.Linear(4, 2, bias=False, dtype=DOUBLE)
    assert torch.equal(scaled_scores(layer, x, readout).mantissa, scaled_scores(layer, x, readout.weight).mantissa)
    with pytest.raises(ArgumentError, match="a bias"):
        scaled_scores(layer, x, nn.Linear(4, 2, dtype=DOUBLE))


def test_other_networks_and_empty_sequences_are_refused(generator: torch.Generator) -> None:
    with pytest.raises(ArgumentError, match="plain circuit"):
        scaled_scores(layer_of(generator, bias=True), torch.zeros(1, 1, 3, dtype=DOUBLE))
    with pytest.raises(LengthError, match="at least one step"):
        scaled_scores(layer_of(generator), torch.zeros(0, 1, 3, dtype=DOUBLE))
