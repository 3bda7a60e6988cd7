"""The soft orthogonality penalty."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from statewise.errors import ArgumentError
from statewise.weights import haar_orthogonal_, orthogonality_error, orthogonality_penalty
from support import tolerance

NORMS: list[str] = ["fro2", "l1", "spectral"]


def test_each_norm_is_its_definition(generator: torch.Generator) -> None:
    weight = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    excess = weight @ weight.T - torch.eye(4, dtype=torch.float64)
    expected = {"fro2": (excess**2).sum(), "l1": excess.abs().sum(), "spectral": torch.linalg.svdvals(excess)[0]}
    for norm in NORMS:
        penalty = orthogonality_penalty(weight, strength=0.01, norm=norm)
        torch.testing.assert_close(penalty, 0.01 * expected[norm], **tolerance(torch.float64))


@pytest.mark.parametrize("norm", NORMS)
def test_an_orthogonal_weight_costs_nothing_and_has_a_finite_gradient(norm: str, generator: torch.Generator) -> None:
    weight = haar_orthogonal_(torch.empty(5, 5, dtype=torch.float64), generator=generator).requires_grad_()
    penalty = orthogonality_penalty(weight, norm=norm)
    assert penalty < 1e-13
    penalty.backward()
    assert weight.grad is not None
    assert weight.grad.isfinite().all()


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_pass_gradcheck(norm: str, generator: torch.Generator) -> None:
    weight = torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: orthogonality_penalty(w, norm=norm, gates=2), weight)


def test_gates_are_penalised_one_by_one(generator: torch.Generator) -> None:
    weight = torch.randn(12, 4, generator=generator)
    expected = sum(orthogonality_penalty(block) for block in weight.split(4))
    torch.testing.assert_close(orthogonality_penalty(weight, gates=3), expected)


def test_a_tall_weight_can_reach_zero_through_its_columns(generator: torch.Generator) -> None:
    assert orthogonality_penalty(haar_orthogonal_(torch.empty(6, 3), generator=generator)) < 1e-10
    assert orthogonality_penalty(haar_orthogonal_(torch.empty(3, 6), generator=generator)) < 1e-10


def test_descending_the_penalty_leads_to_an_orthogonal_matrix(generator: torch.Generator) -> None:
    weight = nn.Parameter(torch.randn(5, 5, generator=generator))
    before = orthogonality_error(weight.detach())
    optimizer = torch.optim.SGD([weight], lr=0.01)
    for _ in range(500):
        optimizer.zero_grad()
        orthogonality_penalty(weight).backward()
        optimizer.step()
    assert orthogonality_error(weight.detach()) < 0.2 * before


def test_an_unknown_norm_or_a_negative_strength_is_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"strength: got -1\.0"):
        orthogonality_penalty(torch.eye(2), strength=-1.0)
    with pytest.raises(ArgumentError, match="norm: got nuclear, wanted 'fro2', 'l1' or 'spectral'"):
        orthogonality_penalty(torch.eye(2), norm="nuclear")
