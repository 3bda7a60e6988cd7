"""The multiplicative update on the Stiefel manifold."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.weights import StiefelSGD, haar_orthogonal_, orthogonality_error, stiefel_step
from support import tolerance


def haar(rows: int, columns: int, generator: torch.Generator, *, gates: int = 1, dtype: Any = torch.float64) -> Tensor:
    return haar_orthogonal_(torch.empty(gates * rows, columns, dtype=dtype), gates=gates, generator=generator)


@given(columns=st.integers(1, 8), extra=st.integers(0, 4), lr=st.floats(0, 100), seed=st.integers(0, 2**32 - 1))
def test_a_step_of_any_length_keeps_the_columns_orthonormal(columns: int, extra: int, lr: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight = haar(columns + extra, columns, generator)
    gradient = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    assert orthogonality_error(stiefel_step(weight, gradient, lr=lr)) < 1e-10


def test_the_step_is_the_printed_formula(generator: torch.Generator) -> None:
    weight = haar(5, 5, generator)
    gradient = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    skew, eye = gradient @ weight.T - weight @ gradient.T, torch.eye(5, dtype=torch.float64)
    expected = torch.linalg.inv(eye + 0.15 * skew) @ (eye - 0.15 * skew) @ weight
    torch.testing.assert_close(stiefel_step(weight, gradient, lr=0.3), expected)


def test_descent_finds_the_nearest_rotation(generator: torch.Generator) -> None:
    """Minimising ``||W - R||^2`` within one connected component ends at the rotation R itself."""
    start = haar(6, 6, generator)
    target = stiefel_step(start, torch.randn(6, 6, generator=generator, dtype=torch.float64), lr=0.3)
    weight = nn.Parameter(start.clone())
    optimizer = StiefelSGD([weight], lr=0.2)
    for _ in range(200):
        optimizer.zero_grad()
        (weight - target).square().sum().backward()
        optimizer.step()
    torch.testing.assert_close(weight.detach(), target, rtol=0, atol=1e-6)


def test_the_optimiser_takes_the_step_gate_by_gate(generator: torch.Generator) -> None:
    start = haar(4, 4, generator, gates=3)
    weight = nn.Parameter(start.clone())
    weight.grad = torch.randn(12, 4, generator=generator, dtype=torch.float64)
    StiefelSGD([weight], lr=0.1, gates=3).step()
    for gate in (slice(0, 4), slice(4, 8), slice(8, 12)):
        expected = stiefel_step(start[gate], weight.grad[gate], lr=0.1)
        torch.testing.assert_close(weight.detach()[gate], expected)


def test_rms_scales_the_gradient_before_the_skew_matrix_is_formed(generator: torch.Generator) -> None:
    start = haar(4, 4, generator)
    weight = nn.Parameter(start.clone())
    optimizer = StiefelSGD([weight], lr=0.1, rms=True)
    average, expected = torch.ones(4, 4, dtype=torch.float64), start
    for _ in range(3):
        weight.grad = torch.randn(4, 4, generator=generator, dtype=torch.float64)
        optimizer.step()
        average = 0.9 * average + 0.1 * weight.grad**2
        expected = stiefel_step(expected, weight.grad / (average + 1e-10).sqrt(), lr=0.1)
    torch.testing.assert_close(weight.detach(), expected)


def test_projection_stops_the_drift_of_float32() -> None:
    def drift(every: int) -> float:
        source = torch.Generator().manual_seed(1)
        weight = nn.Parameter(haar(32, 32, source, dtype=torch.float32))
        optimizer = StiefelSGD([weight], lr=1e-2, reorthogonalize_every=every)
        for _ in range(100):
            weight.grad = 0.1 * torch.randn(32, 32, generator=source)
            optimizer.step()
        return orthogonality_error(weight.detach()).item()

    assert drift(50) < 7e-7
    assert drift(0) > 1.4e-6


def test_a_run_resumed_from_its_state_dict_repeats_every_bit(generator: torch.Generator) -> None:
    gradients = torch.randn(8, 5, 5, generator=generator)
    weight = nn.Parameter(haar(5, 5, generator, dtype=torch.float32))

    def run(parameter: nn.Parameter, optimizer: StiefelSGD, part: Tensor) -> None:
        for gradient in part:
            parameter.grad = gradient.clone()
            optimizer.step()

    optimizer = StiefelSGD([weight], lr=0.05, rms=True, reorthogonalize_every=3)
    run(weight, optimizer, gradients[:4])
    resumed = nn.Parameter(weight.detach().clone())
    second = StiefelSGD([resumed], lr=0.5)
    second.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    run(weight, optimizer, gradients[4:])
    run(resumed, second, gradients[4:])
    assert torch.equal(weight, resumed)


def test_the_closure_s_loss_is_returned_and_weights_without_gradient_stay(generator: torch.Generator) -> None:
    weight, still = (nn.Parameter(haar(3, 3, generator)) for _ in range(2))
    before = still.detach().clone()
    optimizer = StiefelSGD([weight, still], lr=0.1)

    def closure() -> float:
        optimizer.zero_grad()
        loss = weight.sum()
        loss.backward()
        return loss.item()

    first = optimizer.step(closure)
    assert first is not None
    assert first > weight.sum().item()
    assert torch.equal(still, before)


def test_a_learning_rate_scheduler_drives_it(generator: torch.Generator) -> None:
    optimizer = StiefelSGD([nn.Parameter(haar(3, 3, generator))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)


def test_lr_of_zero_leaves_the_weight(generator: torch.Generator) -> None:
    weight = nn.Parameter(haar(4, 4, generator))
    before, weight.grad = weight.detach().clone(), torch.ones(4, 4, dtype=torch.float64)
    StiefelSGD([weight], lr=0.0).step()
    torch.testing.assert_close(weight.detach(), before, **tolerance(torch.float64))


def test_a_weight_that_is_not_orthogonal_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(ArgumentError, match=r"StiefelSGD params\[1\]: got a matrix with max.*haar_orthogonal_"):
        StiefelSGD([nn.Parameter(torch.eye(3)), nn.Parameter(torch.randn(3, 3, generator=generator))])


def test_shapes_and_dtypes_that_cannot_be_orthogonal_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"got shape \(2, 3\) in 1 gates.*Store the transpose"):
        StiefelSGD([nn.Parameter(torch.eye(3)[:2])])
    with pytest.raises(ShapeError, match=r"got shape \(3,\), wanted a matrix"):
        StiefelSGD([nn.Parameter(torch.ones(3))])
    with pytest.raises(DtypeError, match=r"torch.complex64"):
        StiefelSGD([nn.Parameter(torch.eye(3, dtype=torch.complex64))])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", -1.0),
        ("decay", 1.0),
        ("eps", -1e-3),
        ("initial_accumulator", -1.0),
        ("reorthogonalize_every", -1),
        ("gates", 0),
    ],
)
def test_settings_outside_their_domain_are_refused(name: str, value: float) -> None:
    with pytest.raises(ArgumentError, match=rf"StiefelSGD.{name}: got {value}"):
        StiefelSGD([nn.Parameter(torch.eye(3))], **{name: value})  # type: ignore[arg-type]


def test_a_refused_group_leaves_the_optimiser_as_it_was() -> None:
    optimizer = StiefelSGD([nn.Parameter(torch.eye(3))])
    with pytest.raises(ArgumentError):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3, 3))]})
    assert len(optimizer.param_groups) == 1
