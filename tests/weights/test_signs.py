"""Signs for which any orthogonal matrix has a small skew-symmetric Cayley transform."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.weights import ScaledCayley, haar_orthogonal_
from statewise.weights.signs import signs_of_rho, well_conditioned_signs


def haar(size: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return haar_orthogonal_(torch.empty(size, size, dtype=torch.float64), generator=generator)


def largest_entry(weight: Tensor, signs: Tensor) -> float:
    return ScaledCayley(len(weight), signs=signs).right_inverse(weight).abs().amax().item()


@given(size=st.integers(2, 40), seed=st.integers(0, 2**32 - 1))
def test_no_entry_of_the_skew_matrix_exceeds_one(size: int, seed: int) -> None:
    weight = haar(size, seed)
    assert largest_entry(weight, well_conditioned_signs(weight)) <= 1 + 1e-5


@given(size=st.integers(2, 9), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_signed_permutations_which_have_many_eigenvalues_minus_one_are_reached(
    size: int, seed: int, data: st.DataObject
) -> None:
    order = torch.tensor(data.draw(st.permutations(range(size))))
    weight = torch.eye(size, dtype=torch.float64)[order]
    weight *= torch.randint(0, 2, (size,), generator=torch.Generator().manual_seed(seed)) * 2 - 1
    assert largest_entry(weight, well_conditioned_signs(weight)) <= 1 + 1e-5


def test_the_choice_is_a_local_optimum_of_the_determinant_over_all_signs() -> None:
    """No flip of two signs enlarges ``det(I + W D)``, and the best of all signs is at least as good."""
    weight, eye = haar(6, 7), torch.eye(6, dtype=torch.float64)
    signs = well_conditioned_signs(weight)
    chosen = torch.linalg.det(eye + weight * signs)
    every = {
        choice: torch.linalg.det(eye + weight * torch.tensor(choice, dtype=torch.float64))
        for choice in itertools.product([1.0, -1.0], repeat=6)
    }
    for i, j in itertools.combinations(range(6), 2):
        flipped = signs.clone()
        flipped[[i, j]] *= -1
        assert every[tuple(flipped.tolist())] <= chosen + 1e-9
    assert 0 < chosen <= max(every.values()) + 1e-9


def test_the_determinant_of_the_signs_is_that_of_the_weight() -> None:
    for seed in range(5):
        weight = haar(7, seed)
        assert well_conditioned_signs(weight).prod().item() == round(torch.linalg.det(weight).item())


def test_signs_have_the_dtype_of_the_weight() -> None:
    assert well_conditioned_signs(haar(3, 0).float()).dtype == torch.float32


def test_a_matrix_that_is_not_orthogonal_has_no_signs() -> None:
    with pytest.raises(ArgumentError, match="signs_for weight: got a matrix with max"):
        ScaledCayley.signs_for(2 * torch.eye(3))
    with pytest.raises(ShapeError, match="signs_for weight"):
        well_conditioned_signs(torch.eye(3)[:2])


def test_rho_counts_the_minus_ones() -> None:
    for rho in range(6):
        assert (signs_of_rho(5, rho) < 0).sum() == rho
    assert signs_of_rho(4).tolist() == [1, 1, -1, -1]
