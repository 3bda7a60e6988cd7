"""Weights with a bounded spectral norm."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from statewise.errors import ArgumentError, ShapeError
from statewise.weights import SpectralCap, project_spectral_, spectral_cap
from support import tolerance


def norms(weight: Tensor, gates: int = 1) -> Tensor:
    """Exact spectral norms of the gates, in float64 whatever the dtype of the weight."""
    norm: Tensor = torch.linalg.svdvals(weight.detach().double().unflatten(0, (gates, -1)))[:, 0]
    return norm


MATRICES = {
    "rows": st.integers(1, 12),
    "columns": st.integers(1, 12),
    "gates": st.integers(1, 4),
    "scale": st.sampled_from([0.01, 1.0, 1e4]),
    "bound": st.floats(1e-3, 10),
    "dtype": st.sampled_from([torch.float16, torch.float32, torch.float64]),
    "seed": st.integers(0, 2**32 - 1),
}


@given(**MATRICES)
def test_the_rounded_weight_itself_never_exceeds_the_bound(
    rows: int, columns: int, gates: int, scale: float, bound: float, dtype: torch.dtype, seed: int
) -> None:
    raw = scale * torch.randn(gates * rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    raw = raw.clamp(-6e4, 6e4).to(dtype)
    # Below the smallest normal number rounding is no longer relative; no certificate lives there.
    slack = torch.finfo(dtype).tiny * (rows * columns) ** 0.5
    capped = SpectralCap(bound=bound, gates=gates)(raw)
    assert capped.dtype == dtype
    assert (norms(capped, gates) <= bound + slack).all()
    assert (norms(project_spectral_(raw.clone(), bound=bound, gates=gates), gates) <= bound + slack).all()


def test_the_cap_is_the_printed_formula(generator: torch.Generator) -> None:
    raw = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    expected = raw * (0.7 / torch.linalg.svdvals(raw)[0])
    torch.testing.assert_close(SpectralCap(bound=0.7)(raw), expected, **tolerance(raw.dtype))


def test_a_weight_below_the_bound_keeps_its_bits(generator: torch.Generator) -> None:
    raw = 0.01 * torch.randn(6, 6, generator=generator)
    assert torch.equal(SpectralCap()(raw), raw)
    assert torch.equal(project_spectral_(raw.clone()), raw)


def test_the_zero_matrix_passes_with_a_finite_gradient() -> None:
    raw = torch.zeros(3, 3, requires_grad=True)
    SpectralCap()(raw).sum().backward()
    assert raw.grad is not None
    assert torch.equal(raw.grad, torch.ones(3, 3))


def test_gradients_flow_through_the_norm(generator: torch.Generator) -> None:
    raw = torch.randn(8, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(SpectralCap(bound=0.5), raw)
    assert torch.autograd.gradcheck(SpectralCap(bound=0.5, gates=2), raw)


def test_each_gate_has_a_cap_of_its_own(generator: torch.Generator) -> None:
    raw = torch.randn(8, 4, generator=generator)
    raw[:4] *= 0.01
    capped = SpectralCap(bound=1.0, gates=2)(raw)
    assert torch.equal(capped[:4], raw[:4])
    torch.testing.assert_close(norms(capped, 2)[1].item(), 1.0, **tolerance(torch.float32))


def test_projection_is_the_nearest_matrix_under_the_bound(generator: torch.Generator) -> None:
    weight = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    projected = project_spectral_(weight.clone(), bound=0.8)
    distance = torch.linalg.matrix_norm(weight - projected)
    for _ in range(50):
        step = 0.1 * torch.randn(5, 5, generator=generator, dtype=torch.float64)
        other = project_spectral_(projected + step, bound=0.8)
        assert torch.linalg.matrix_norm(weight - other) >= distance - 1e-9


def test_the_verb_bounds_a_recurrent_layer_and_training_keeps_it(generator: torch.Generator) -> None:
    gru = spectral_cap(nn.GRU(3, 5), "weight_hh_l0", bound=0.3, gatewise=True)
    optimizer = torch.optim.SGD(gru.parameters(), lr=1.0)
    for _ in range(5):
        optimizer.zero_grad()
        (-gru(torch.randn(4, 2, 3, generator=generator))[0]).sum().backward()
        optimizer.step()
    assert isinstance(gru.weight_hh_l0, Tensor)
    assert (norms(gru.weight_hh_l0, 3) <= 0.3).all()


def test_assigning_a_weight_does_not_tie_the_parameter_to_it(generator: torch.Generator) -> None:
    linear, given_weight = spectral_cap(nn.Linear(3, 3), "weight"), 0.1 * torch.eye(3)
    linear.weight = given_weight
    assert torch.equal(linear.weight, 0.1 * torch.eye(3))
    with torch.no_grad():
        linear.get_parameter("parametrizations.weight.original").add_(1)
    assert torch.equal(given_weight, 0.1 * torch.eye(3))


def test_state_dicts_and_deep_copies_carry_the_raw_weight(tmp_path: Path, generator: torch.Generator) -> None:
    source, target = (spectral_cap(nn.Linear(4, 4), "weight", bound=0.5) for _ in range(2))
    torch.save(source.state_dict(), tmp_path / "linear.pt")
    target.load_state_dict(torch.load(tmp_path / "linear.pt", weights_only=True))
    assert torch.equal(target.weight, source.weight)
    assert torch.equal(copy.deepcopy(source).weight, source.weight)


@pytest.mark.parametrize("bound", [0.0, -1.0, float("inf"), float("nan")])
def test_a_bound_must_be_positive_and_finite(bound: float) -> None:
    with pytest.raises(ArgumentError, match=r"SpectralCap\.bound"):
        SpectralCap(bound=bound)
    with pytest.raises(ArgumentError, match=r"project_spectral_\.bound"):
        project_spectral_(torch.eye(2), bound=bound)


def test_errors_name_the_weight() -> None:
    with pytest.raises(ArgumentError, match=r"Linear.weights: got NoneType, wanted a weight matrix"):
        spectral_cap(nn.Linear(2, 2), "weights")
    with pytest.raises(ShapeError, match=r"weight_ih_l0: got shape \(20, 3\)"):
        spectral_cap(nn.LSTM(3, 5), "weight_ih_l0", gatewise=True)
    with pytest.raises(ArgumentError, match=r"SpectralCap\.gates: got 0"):
        SpectralCap(gates=0)
