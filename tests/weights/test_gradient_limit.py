"""The limit on the gradient of one weight."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from statewise.errors import ArgumentError
from statewise.weights import scaled_cayley
from statewise.weights.gradient_limit import GradientLimit, limit_entries
from support import doubles, weight


@pytest.mark.parametrize(
    ("gradient", "limited"),
    [
        ((1.0, -9.9), (1.0, -9.9)),
        ((10.0, -10.0), (10.0, -10.0)),
        ((5.0, -20.0), (2.5, -10.0)),
        ((math.nan, 3.0), (0.0, 3.0)),
        ((math.inf, -40.0), (0.0, -10.0)),
        ((-math.inf, math.nan), (0.0, 0.0)),
        ((0.0, 0.0), (0.0, 0.0)),
        ((1e300, -1e308), (1e-7, -10.0)),
        ((), ()),
    ],
)
def test_the_largest_entry_is_the_limit(gradient: tuple[float, ...], limited: tuple[float, ...]) -> None:
    assert limit_entries(doubles(*gradient)).tolist() == pytest.approx(limited, rel=1e-12)


def test_gradients_apart_are_limited_apart() -> None:
    gradients = doubles(20.0, 1.0, 5.0, 2.0).reshape(2, 1, 2)
    assert limit_entries(gradients, apart=1).flatten().tolist() == [10.0, 0.5, 5.0, 2.0]
    assert limit_entries(gradients).flatten().tolist() == [10.0, 0.5, 2.5, 1.0]


def orthogonal_cell(most: float | None) -> nn.RNNCell:
    cell = scaled_cayley(nn.RNNCell(2, 4, dtype=torch.float64), "weight_hh", generator=torch.Generator().manual_seed(0))
    if most is not None:
        register_parametrization(cell, "weight_hh", GradientLimit(most))
    return cell


def slope_of_free(cell: nn.RNNCell, slope: Tensor) -> Tensor:
    free = cell.get_parameter("parametrizations.weight_hh.original")
    (found,) = torch.autograd.grad((cell.weight_hh * slope).sum(), free)
    return found


def test_it_acts_on_the_matrix_before_the_free_entries() -> None:
    """The gradient of the free entries is that of a loss whose dLoss/dW was limited, not a limited one itself."""
    slope = torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plain, limited = orthogonal_cell(None), orthogonal_cell(0.5)
    assert torch.equal(plain.weight_hh, limited.weight_hh)
    torch.testing.assert_close(slope_of_free(limited, slope), slope_of_free(plain, limit_entries(slope, 0.5)))
    assert slope_of_free(limited, slope).abs().max() > 0.5
    torch.testing.assert_close(slope_of_free(orthogonal_cell(100.0), slope), slope_of_free(plain, slope))
    assert not slope_of_free(limited, torch.full_like(slope, math.nan)).any()


def test_many_networks_under_vmap_are_limited_one_by_one() -> None:
    limit = GradientLimit(1.0)

    def loss(matrix: Tensor, scale: Tensor) -> Tensor:
        limited: Tensor = limit(matrix)
        return (limited * scale).sum()

    weights, scales = torch.zeros(3, 2), torch.tensor([[0.5, 0.1], [2.0, 1.0], [math.nan, 4.0]])
    found = torch.func.vmap(torch.func.grad(loss))(weights, scales)
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.1], [1.0, 0.5], [0.0, 1.0]]))


def test_a_module_with_it_can_be_copied_assigned_and_is_told() -> None:
    layer = register_parametrization(nn.Linear(2, 2, bias=False), "weight", GradientLimit(3.0))
    layer.weight = torch.eye(2)
    twin = copy.deepcopy(layer)
    assert torch.equal(weight(twin, "weight"), torch.eye(2))
    assert "most=3" in repr(twin)
    with pytest.raises(ArgumentError, match=r"GradientLimit\.most: got 0"):
        GradientLimit(0.0)
