"""Singular values of states by class, what they are worth, and what the read-out sees of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from statewise.analysis import (
    effective_rank,
    every_spectrum,
    head_leakage,
    participation_ratio,
    spectrum,
    stable_rank,
)
from statewise.errors import ArgumentError, NonFiniteError, ShapeError

SEEDS = st.integers(0, 2**31)


def drawn(seed: int, rows: int = 40, hidden: int = 6, classes: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(rows, hidden, generator=generator, dtype=torch.float64)
    return states, torch.arange(rows) % classes


def test_the_rows_of_the_known_answer_have_its_numbers() -> None:
    """Rows {±3 e1, ±e2}: sigma = (3 sqrt 2, sqrt 2)."""
    states = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    found = spectrum(states, torch.zeros(4, dtype=torch.long), classes=("only",))
    np.testing.assert_allclose(found.values, [[3 * 2**0.5, 2**0.5]], rtol=1e-12)
    assert found.effective_ranks[0] == pytest.approx(1.384145, abs=5e-7)
    assert found.participation_ratios[0] == pytest.approx(1.219512, abs=5e-7)
    assert found.stable_ranks[0] == pytest.approx(1.111111, abs=5e-7)
    assert found.variances[0] == pytest.approx(5.0)
    assert "only" in str(found)


@given(SEEDS)
def test_values_are_those_of_numpy_for_each_class(seed: int) -> None:
    states, labels = drawn(seed)
    for found in every_spectrum(states, labels, classes=3, count=4):
        for one in range(3):
            rows = states[labels == one].numpy()
            rows = rows - rows.mean(0) if found.center else rows
            values = np.linalg.svd(rows)[1]
            scale = {None: 1.0, "sqrt_n": len(rows) ** 0.5, "sum": values.sum()}[found.normalize]
            np.testing.assert_allclose(found.values[one], values[:4] / scale, rtol=1e-9)
            energies = values**2 / (values**2).sum()
            assert found.effective_ranks[one] == pytest.approx(np.exp(-(energies * np.log(energies)).sum()))


@given(SEEDS)
def test_the_squared_centred_values_sum_to_the_variance(seed: int) -> None:
    states, labels = drawn(seed)
    found = spectrum(states, labels, classes=3, normalize="sqrt_n")
    np.testing.assert_allclose((found.values**2).sum(1), found.variances, rtol=1e-10)
    bare = spectrum(states + 5.0, labels, classes=3, center=False)
    np.testing.assert_allclose(bare.variances, found.variances, rtol=1e-10)


@given(SEEDS, st.floats(1e-3, 1e3))
def test_ranks_know_neither_rotations_nor_scale_and_keep_their_order(seed: int, scale: float) -> None:
    states, labels = drawn(seed)
    turn = torch.linalg.qr(drawn(seed + 1, rows=6)[0])[0]
    found, turned = (spectrum(each, labels, classes=3) for each in (states, scale * states @ turn + 1.0))
    for name in ("effective_ranks", "participation_ratios", "stable_ranks"):
        np.testing.assert_allclose(getattr(turned, name), getattr(found, name), rtol=1e-6)
    assert (found.stable_ranks <= found.participation_ratios + 1e-9).all()
    assert (found.participation_ratios <= found.effective_ranks + 1e-9).all()
    assert (found.effective_ranks <= 6 + 1e-9).all()


@pytest.mark.parametrize("rank", [effective_rank, participation_ratio, stable_rank])
def test_equal_values_count_and_nothing_is_no_dimension(rank: object) -> None:
    assert callable(rank)
    assert rank(np.array([1e-200] * 5)) == pytest.approx(5)
    assert rank(np.array([2.0, 0.0, 0.0])) == pytest.approx(1)
    assert rank(np.zeros(3)) == 0
    with pytest.raises(ArgumentError, match="singular values"):
        rank(np.array([-1.0]))


def test_a_class_of_one_point_has_zeros_and_one_without_states_nothing() -> None:
    states = torch.full((7, 3), 0.1)
    found = spectrum(states, torch.tensor([0] * 5 + [-100] * 2), classes=2, normalize="sum")
    assert found.counts.tolist() == [5, 0]
    assert found.values[0].tolist() == [0, 0, 0], "what rounding leaves is no dimension"
    assert found.effective_ranks[0] == 0
    assert np.isnan(found.values[1]).all()
    assert found.mean(found.variances) == pytest.approx(0, abs=1e-30)
    assert "-" in str(found)


@given(SEEDS)
def test_leakage_is_the_energy_of_the_projection(seed: int) -> None:
    states, labels = drawn(seed)
    weight = torch.randn(3, 6, generator=torch.Generator().manual_seed(seed + 2), dtype=torch.float64)
    found = head_leakage(states, labels, weight)
    assert found.dimensions == 2
    differences = weight[1:] - weight[0]
    onto = differences.T @ torch.linalg.inv(differences @ differences.T) @ differences
    for one in range(3):
        centred = states[labels == one] - states[labels == one].mean(0)
        share = (centred @ onto).square().sum() / centred.square().sum()
        assert found.shares[one] == pytest.approx(float(share), rel=1e-8)
    assert found.mean == pytest.approx(found.shares.mean())
    # What moves all logits alike is invisible to every probability.
    np.testing.assert_allclose(head_leakage(states, labels, weight + 3.0 * weight[0]).shares, found.shares, rtol=1e-6)


def test_what_varies_aside_of_the_read_out_does_not_leak(generator: torch.Generator) -> None:
    weight = torch.eye(5)[:3]
    states = torch.zeros(30, 5)
    labels = torch.arange(30) % 3
    states[:, 3:] = torch.randn(30, 2, generator=generator)
    states += torch.nn.functional.one_hot(labels, 5)
    assert head_leakage(states, labels, weight).mean == pytest.approx(0, abs=1e-12)
    assert head_leakage(states, labels, torch.eye(5)[2:], classes=("a", "b", "c")).mean > 0.5
    still = head_leakage(weight, torch.tensor([0, 1, 2]), weight)
    assert np.isnan(still.mean)
    assert "head leakage" in str(still)


def test_what_does_not_fit_is_refused() -> None:
    states, labels = torch.zeros(4, 3), torch.tensor([0, 1, 2, -100])
    with pytest.raises(ArgumentError, match=r"got 2, wanted classes from 0 to 1"):
        spectrum(states, labels, classes=2)
    with pytest.raises(ArgumentError, match="sqrt_n"):
        spectrum(states, labels, classes=3, normalize="max")
    with pytest.raises(ArgumentError, match="at least one class"):
        spectrum(states, torch.full((4,), -100), classes=3)
    with pytest.raises(NonFiniteError):
        spectrum(states / 0, labels, classes=3)
    with pytest.raises(ShapeError, match="row of zeros"):
        head_leakage(states, labels.clamp(max=0), torch.ones(1, 3))
    with pytest.raises(ArgumentError, match="a number >= 1"):
        spectrum(states, labels, classes="abc")


@pytest.mark.usefixtures("as_users_have_it")
def test_shapes_that_do_not_fit_are_told_to_users_too() -> None:
    states, labels = torch.zeros(4, 3), torch.tensor([0, 1, 2])
    with pytest.raises(ShapeError, match="one a state"):
        spectrum(states, labels, classes=3)
    with pytest.raises(ShapeError, match="3 columns"):
        head_leakage(states, torch.tensor([0, 1, 1, 0]), torch.ones(2, 5))
    with pytest.raises(ShapeError, match="one a row"):
        head_leakage(states, torch.tensor([0, 1, 1, 0]), torch.ones(2, 3), classes=("a", "b", "c"))
