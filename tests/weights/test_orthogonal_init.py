"""Orthogonal starting points, and the measure of orthogonality."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ShapeError
from statewise.weights import haar_orthogonal_, identity_, nearest_orthogonal, orthogonality_error


@given(
    rows=st.integers(1, 10),
    columns=st.integers(1, 10),
    gates=st.integers(1, 4),
    dtype=st.sampled_from([torch.bfloat16, torch.float32, torch.float64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_gate_is_orthogonal_in_every_shape_and_dtype(
    rows: int, columns: int, gates: int, dtype: torch.dtype, seed: int
) -> None:
    weight = torch.empty(gates * rows, columns, dtype=dtype)
    assert haar_orthogonal_(weight, gates=gates, generator=torch.Generator().manual_seed(seed)) is weight
    errors = orthogonality_error(weight.unflatten(0, (gates, rows)))
    assert (errors <= 10 * max(rows, columns) * torch.finfo(dtype).eps).all()


def test_the_distribution_is_uniform_not_the_bare_qr() -> None:
    """The trace has mean 0 and variance 1, and both determinants are equally likely; the bare QR has mean trace < 0."""
    stacked = torch.empty(4 * 4000, 4, dtype=torch.float64)
    draws = haar_orthogonal_(stacked, gates=4000, generator=torch.Generator().manual_seed(0)).unflatten(0, (4000, 4))
    traces = draws.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert abs(traces.mean()) < 5 / 4000**0.5
    assert abs(traces.var() - 1) < 0.15
    assert abs((torch.linalg.det(draws) > 0).double().mean() - 0.5) < 5 * 0.5 / 4000**0.5


def test_gates_are_independent_and_the_seed_decides() -> None:
    first, again = (
        haar_orthogonal_(torch.empty(12, 4), gates=3, generator=torch.Generator().manual_seed(3)) for _ in range(2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first[:4], first[4:8])


def test_a_parameter_is_filled_without_a_graph(generator: torch.Generator) -> None:
    lstm = torch.nn.LSTM(2, 5)
    weight = lstm.get_parameter("weight_hh_l0")
    haar_orthogonal_(weight, gates=4, generator=generator)
    assert weight.grad_fn is None
    assert weight.requires_grad
    assert (orthogonality_error(weight.detach().unflatten(0, (4, 5))) < 1e-6).all()


def test_the_identity_fills_every_gate() -> None:
    assert torch.equal(identity_(torch.empty(6, 3), gates=2), torch.cat([torch.eye(3), torch.eye(3)]))


def test_the_identity_needs_square_gates() -> None:
    with pytest.raises(ShapeError, match=r"identity_ weight: got shape \(6, 3\) in 1 gates, wanted square gates"):
        identity_(torch.empty(6, 3))


def test_an_empty_weight_is_an_error() -> None:
    with pytest.raises(ShapeError, match="non-empty"):
        haar_orthogonal_(torch.empty(0, 3))


def test_the_error_is_the_frobenius_norm_of_the_excess(generator: torch.Generator) -> None:
    weight = torch.randn(3, 4, 4, generator=generator, dtype=torch.float64)
    expected = [torch.dist(block @ block.T, torch.eye(4, dtype=torch.float64)) for block in weight]
    torch.testing.assert_close(orthogonality_error(weight), torch.stack(expected))


def test_the_polar_projection_is_the_nearest_orthogonal_matrix(generator: torch.Generator) -> None:
    weight = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    nearest = nearest_orthogonal(weight)
    assert orthogonality_error(nearest) < 1e-13
    for _ in range(50):
        other = haar_orthogonal_(torch.empty(4, 4, dtype=torch.float64), generator=generator)
        assert torch.dist(weight, nearest) <= torch.dist(weight, other)
