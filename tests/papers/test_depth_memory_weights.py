"""Known answers on orthogonal recurrence: Ziv 2019, "Depth Enables Long-Term Memory for Recurrent Neural Networks"."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from statewise.weights import (
    ScaledCayley,
    StiefelSGD,
    haar_orthogonal_,
    orthogonality_error,
    rotation_entries,
    scaled_cayley,
    skew_matrix,
    stiefel_step,
)

SEEDS = st.integers(0, 2**32 - 1)


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def modrelu(z: Tensor, bias: Tensor) -> Tensor:
    return z.sign() * (z.abs() + bias).relu()


@pytest.mark.parametrize("size", [1, 2, 3, 64, 116, 600])
def test_a_fresh_scornn_weight_is_orthogonal_to_1e_12_and_in_float32_to_1e_5(size: int) -> None:
    constraint = ScaledCayley(size)
    theta = constraint.initial(generator=torch.Generator().manual_seed(size))
    assert orthogonality_error(constraint(theta)) < 1e-12
    in_float32 = constraint(theta.float())
    assert torch.linalg.matrix_norm(in_float32 @ in_float32.T - torch.eye(size)) < 1e-5


@given(size=st.integers(1, 20), seed=SEEDS, data=st.data())
def test_the_determinant_is_minus_one_to_the_rho(size: int, seed: int, data: st.DataObject) -> None:
    rho = data.draw(st.integers(0, size))
    weight = ScaledCayley(size, rho=rho)(0.5 * normal(size * (size - 1) // 2, seed=seed))
    torch.testing.assert_close(torch.linalg.det(weight).item(), (-1.0) ** rho, rtol=0, atol=1e-10)


@given(size=st.integers(2, 12), seed=SEEDS)
def test_the_printed_skew_gradient_is_the_gradient_of_the_free_entries(size: int, seed: int) -> None:
    """``V = (I + A)^-T G (D + W^T)``, ``dLoss/dA = V^T - V``, to 1e-12."""
    constraint = ScaledCayley(size).double()
    theta = (0.5 * normal(size * (size - 1) // 2, seed=seed)).requires_grad_()
    slope = normal(size, size, seed=seed + 1)
    weight = constraint(theta)
    (weight * slope).sum().backward()
    skew, eye = skew_matrix(theta.detach(), size=size), torch.eye(size, dtype=torch.float64)
    inner = torch.linalg.inv(eye + skew).T @ slope @ (torch.diag(constraint.signs) + weight.detach().T)
    row, column = torch.triu_indices(size, size, offset=1)
    assert theta.grad is not None
    torch.testing.assert_close(theta.grad, (inner.T - inner)[row, column], rtol=1e-12, atol=1e-12)


def test_an_angle_of_0_7_gives_the_printed_block() -> None:
    theta = rotation_entries(torch.tensor([0.7], dtype=torch.float64), size=2)
    torch.testing.assert_close(theta.item(), -0.3650284948, rtol=0, atol=5e-11)
    block = ScaledCayley(2, rho=0)(theta)
    printed = torch.tensor([[0.76484219, 0.64421769], [-0.64421769, 0.76484219]], dtype=torch.float64)
    torch.testing.assert_close(block, printed, rtol=0, atol=5e-9)


def test_the_block_that_straddles_the_sign_change_is_a_reflection() -> None:
    """With R // 2 odd, one 2x2 block meets both signs of D; its eigenvalues are exactly +1 and -1."""
    constraint = ScaledCayley(6)
    weight = constraint(constraint.initial(generator=torch.Generator().manual_seed(0)))
    eigenvalues = torch.linalg.eigvals(weight[2:4, 2:4]).real.sort().values
    torch.testing.assert_close(eigenvalues, torch.tensor([-1.0, 1.0], dtype=torch.float64))


@pytest.mark.parametrize("size", [7, 32])
def test_an_untrained_network_keeps_the_norm_of_its_state_for_1000_steps(size: int) -> None:
    """With b = 0 and x = 0 ``||h_1000|| = ||h_0||`` to 1e-12."""
    constraint = ScaledCayley(size)
    weight = constraint(constraint.initial(generator=torch.Generator().manual_seed(1)))
    state = start = normal(size, seed=2)
    for _ in range(1000):
        state = modrelu(weight @ state, torch.zeros(size, dtype=torch.float64))
    torch.testing.assert_close(state.norm(), start.norm(), rtol=1e-12, atol=0)


@given(size=st.integers(1, 8), steps=st.integers(2, 12), seed=SEEDS)
def test_the_gradient_norm_never_grows_on_its_way_back_through_time(size: int, steps: int, seed: int) -> None:
    """A loss on h_T alone: ``||dLoss/dh_t||`` is non-decreasing in t for any theta, input and bias."""
    weight = ScaledCayley(size)(normal(size * (size - 1) // 2, seed=seed))
    bias, inputs = normal(size, seed=seed + 1), normal(steps, size, seed=seed + 2)
    states = [normal(size, seed=seed + 3).requires_grad_()]
    for x in inputs:
        states.append(modrelu(weight @ states[-1] + x, bias))
        states[-1].retain_grad()
    states[-1].pow(3).sum().backward()
    norms = torch.stack([state.grad.norm() for state in states if state.grad is not None])
    assert len(norms) == steps + 1
    assert (norms[:-1] <= norms[1:] * (1 + 1e-12)).all()


@given(size=st.integers(2, 10), seed=SEEDS)
def test_the_full_capacity_step_descends_with_the_slope_of_half_the_squared_norm_of_a(size: int, seed: int) -> None:
    """The finite-difference slope of the loss ``<G, W>`` at eta = 0 is ``-||A||_F^2 / 2``."""
    generator = torch.Generator().manual_seed(seed)
    weight = haar_orthogonal_(torch.empty(size, size, dtype=torch.float64), generator=generator)
    slope = normal(size, size, seed=seed + 1)
    ahead, behind = (stiefel_step(weight, slope, lr=lr) for lr in (1e-5, -1e-5))
    found = ((ahead - behind) * slope).sum() / 2e-5
    skew = slope @ weight.T - weight @ slope.T
    torch.testing.assert_close(found, -skew.square().sum() / 2, rtol=1e-5, atol=1e-6)


def test_the_full_capacity_step_as_printed_in_the_thesis_fails_that_test() -> None:
    """``A = G^T W - W^T G`` with the same left product raises the loss about as often as it lowers it."""
    generator = torch.Generator().manual_seed(0)
    stacked = haar_orthogonal_(torch.empty(5 * 1000, 5, dtype=torch.float64), gates=1000, generator=generator)
    weight, slope = stacked.unflatten(0, (1000, 5)), normal(1000, 5, 5, seed=1)
    printed = slope.mT @ weight - weight.mT @ slope
    # The derivative of <G, Cayley(eta A) W> at eta = 0 is -<G, A W>.
    raised = int(((slope * (printed @ weight)).sum((-2, -1)) < 0).sum())
    assert 450 < raised < 650


def test_the_full_capacity_update_drifts_and_scornn_does_not() -> None:
    """A synthetic Figure 1.2, R = 116, eta = 1e-2: after 100 steps 6e-5 in float32 arithmetic, 3e-6 for scoRNN.

    The optimiser here computes in float64 and rounds once a step, and so lies between the two.
    """
    generator = torch.Generator().manual_seed(0)
    plain, eye = haar_orthogonal_(torch.empty(116, 116), generator=generator), torch.eye(116)
    careful = nn.Parameter(plain.clone())
    cell = scaled_cayley(nn.RNNCell(1, 116), "weight_hh", generator=generator)
    theta = cell.get_parameter("parametrizations.weight_hh.original")
    multiplicative, additive = StiefelSGD([careful], lr=1e-2), torch.optim.SGD([theta], lr=1e-2)
    for _ in range(100):
        slope = 0.1 * torch.randn(116, 116, generator=generator)
        half = 0.5e-2 * (slope @ plain.T - plain @ slope.T)
        plain = torch.linalg.solve(eye + half, eye - half) @ plain
        careful.grad, theta.grad = slope, 0.1 * torch.randn(theta.shape, generator=generator)
        multiplicative.step()
        additive.step()
    in_float32, in_float64, scornn = (
        orthogonality_error(weight.detach()).item() for weight in (plain, careful, cell.weight_hh)
    )
    assert 3e-5 < in_float32 < 1.2e-4
    assert in_float64 < 1e-5
    assert scornn < 1e-6


def test_the_number_of_free_parameters_is_half_of_r_times_r_minus_one() -> None:
    cell = scaled_cayley(nn.RNNCell(1, 128), "weight_hh")
    assert cell.get_parameter("parametrizations.weight_hh.original").numel() == 128 * 127 // 2
