"""Stacked gates: each gate of an LSTM or GRU orthogonal for itself."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal

from statewise.errors import ArgumentError, ShapeError
from statewise.weights import GatewiseOrthogonal, ScaledCayley, haar_orthogonal_, orthogonality_error, scaled_cayley
from statewise.weights.gates import count_gates, split_gates
from support import tolerance


def recurrent_weight(module: nn.Module) -> Tensor:
    weight = module.weight_hh_l0
    assert isinstance(weight, Tensor)
    return weight.detach()


@pytest.mark.parametrize(("layer", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
def test_every_gate_is_orthogonal_and_different(
    layer: type[nn.RNN | nn.GRU | nn.LSTM], gates: int, generator: torch.Generator
) -> None:
    module = scaled_cayley(layer(3, 6), "weight_hh_l0", gatewise=True, generator=generator)
    blocks = recurrent_weight(module).unflatten(0, (gates, 6))
    assert (orthogonality_error(blocks) < 1e-6).all()
    assert len({tuple(block.flatten().tolist()) for block in blocks}) == gates
    assert module.get_parameter("parametrizations.weight_hh_l0.original").shape == (gates, 15)


def test_torch_s_own_orthogonal_acts_on_the_stack_not_on_a_gate() -> None:
    """The reason for GatewiseOrthogonal; if torch changes this, its documentation must change too."""
    lstm = orthogonal(nn.LSTM(3, 6), "weight_hh_l0")
    stacked = recurrent_weight(lstm)
    assert orthogonality_error(stacked) < 1e-5
    assert (orthogonality_error(stacked.unflatten(0, (4, 6))) > 0.1).all()


def test_an_lstm_computes_with_the_parametrized_weight(generator: torch.Generator) -> None:
    lstm, plain = scaled_cayley(nn.LSTM(3, 4), "weight_hh_l0", gatewise=True, generator=generator), nn.LSTM(3, 4)
    with torch.no_grad():
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            plain.get_parameter(name).copy_(getattr(lstm, name))
    inputs = torch.randn(5, 2, 3, generator=generator)
    torch.testing.assert_close(lstm(inputs)[0], plain(inputs)[0])
    lstm(inputs)[0].sum().backward()
    gradient = lstm.get_parameter("parametrizations.weight_hh_l0.original").grad
    assert gradient is not None
    assert (gradient.abs().amax(-1) > 0).all()


def test_the_stack_is_one_scaled_cayley_map_a_gate(generator: torch.Generator) -> None:
    theta = torch.randn(3, 10, generator=generator, dtype=torch.float64)
    expected = torch.cat([ScaledCayley(5, rho=2)(row) for row in theta])
    torch.testing.assert_close(GatewiseOrthogonal(5, gates=3, rho=2)(theta), expected)


def test_right_inverse_with_suitable_signs_returns_to_any_stack_of_orthogonal_gates(
    generator: torch.Generator,
) -> None:
    weight = haar_orthogonal_(torch.empty(24, 6, dtype=torch.float64), gates=4, generator=generator)
    constraint = GatewiseOrthogonal(6, gates=4, signs=GatewiseOrthogonal.signs_for(weight))
    torch.testing.assert_close(constraint(constraint.right_inverse(weight)), weight, **tolerance(weight.dtype))
    assert len(constraint.rho) == 4


def test_keep_works_gate_by_gate(generator: torch.Generator) -> None:
    gru = nn.GRU(2, 5)
    haar_orthogonal_(recurrent_weight(gru), gates=3, generator=generator)
    before = recurrent_weight(gru).clone()
    scaled_cayley(gru, "weight_hh_l0", gatewise=True, keep=True)
    torch.testing.assert_close(recurrent_weight(gru), before, **tolerance(torch.float32))


def test_one_gate_that_is_not_orthogonal_spoils_the_stack(generator: torch.Generator) -> None:
    weight = haar_orthogonal_(torch.empty(12, 4), gates=3, generator=generator)
    weight[4:8] *= 1.5
    with pytest.raises(ArgumentError, match="GatewiseOrthogonal weight: got a matrix with max"):
        GatewiseOrthogonal(4, gates=3).right_inverse(weight)


def test_gatewise_on_an_input_weight_is_an_error() -> None:
    for size in (3, 10):  # blocks of 10 columns would even fit the 20 rows
        with pytest.raises(
            ArgumentError, match=r"weight_ih_l0: got the weight of the inputs, wanted a recurrent weight"
        ):
            scaled_cayley(nn.LSTM(size, 5), "weight_ih_l0", gatewise=True)


def test_impossible_numbers_of_gates_are_errors() -> None:
    with pytest.raises(ArgumentError, match=r"GatewiseOrthogonal\.gates: got 0"):
        GatewiseOrthogonal(4, gates=0)
    with pytest.raises(ArgumentError, match="weight gates: got 0"):
        split_gates(torch.zeros(4, 4), gates=0)
    with pytest.raises(
        ShapeError, match=r"got shape \(10, 5\), wanted a non-empty matrix whose rows divide into 4 gates"
    ):
        split_gates(torch.zeros(10, 5), gates=4)


def test_gates_are_counted_only_when_asked_for() -> None:
    assert count_gates(torch.zeros(12, 3), gatewise=False, where="weight") == 1
    assert count_gates(torch.zeros(12, 3), gatewise=True, where="weight") == 4
