"""The four likelihoods."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from contracts.likelihoods import LikelihoodContract
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.heads import Bernoulli, Categorical, Gaussian, Poisson

DOUBLE = torch.float64


def grid(values: Tensor, outputs: int) -> Tensor:
    return torch.cartesian_prod(*[values] * outputs)


class TestBernoulli(LikelihoodContract):
    likelihood = Bernoulli()

    def everything(self, outputs: int) -> tuple[Tensor, float]:
        return grid(torch.tensor([0.0, 1.0], dtype=DOUBLE), outputs), 1.0


class TestGaussian(LikelihoodContract):
    likelihood = Gaussian(variance=0.3)

    def everything(self, outputs: int) -> tuple[Tensor, float]:
        step = 0.1
        return grid(torch.arange(-6, 6, step, dtype=DOUBLE), outputs), step**outputs

    @pytest.mark.parametrize("variance", [0.0, -1.0, math.nan, math.inf])
    def test_a_variance_must_be_positive(self, variance: float) -> None:
        with pytest.raises(ArgumentError, match=r"Gaussian\.variance"):
            Gaussian(variance=variance)

    @pytest.mark.usefixtures("as_users_have_it")
    def test_a_variance_must_be_a_number(self) -> None:
        with pytest.raises(DtypeError, match=r"Gaussian\.variance"):
            Gaussian(variance="1")  # type: ignore[arg-type]

    def test_it_is_torchs_normal_law(self) -> None:
        scores, observed = torch.tensor([[0.3, -1.0]], dtype=DOUBLE), torch.tensor([[1.0, 0.2]], dtype=DOUBLE)
        truth = torch.distributions.Normal(scores, math.sqrt(0.3)).log_prob(observed).sum(1)
        torch.testing.assert_close(self.likelihood.log_prob(scores, observed), truth)


class TestPoisson(LikelihoodContract):
    likelihood = Poisson()

    def everything(self, outputs: int) -> tuple[Tensor, float]:
        return grid(torch.arange(60, dtype=DOUBLE), outputs), 1.0


class TestCategorical(LikelihoodContract):
    likelihood = Categorical()

    def everything(self, outputs: int) -> tuple[Tensor, float]:
        return torch.arange(outputs), 1.0

    def one_hot(self, observed: Tensor, outputs: int) -> Tensor:
        return torch.nn.functional.one_hot(observed, outputs)

    def test_probabilities_can_be_observed_too(self) -> None:
        scores = torch.randn(5, 3, dtype=DOUBLE)
        mixed = torch.tensor([0.2, 0.5, 0.3], dtype=DOUBLE)
        each = torch.stack([self.likelihood.log_prob(scores, torch.full((5,), k)) for k in range(3)], 1)
        torch.testing.assert_close(self.likelihood.log_prob(scores, mixed.expand(5, -1)), each @ mixed)

    def test_indices_of_another_shape_are_refused(self) -> None:
        with pytest.raises(ShapeError, match=r"indices of shape \(5,\)"):
            self.likelihood.log_prob(torch.zeros(5, 3), torch.zeros(5, 1).long())

    def test_a_variance_far_from_zero_keeps_its_digits_and_is_never_negative(self) -> None:
        """In float32 ``E v^2 - (E v)^2`` at v near 1000 is all rounding, and often negative."""
        generator = torch.Generator().manual_seed(3)
        weight = torch.randn(8, 50, generator=generator) * 0.1 + 1000
        scores = torch.randn(40, 50, generator=generator)
        p = scores.softmax(-1)
        naive = p @ weight.square().T - (p @ weight.T).square()
        assert naive.min() < 0
        exact = self.likelihood.curvature(weight.double(), scores.double())
        found = self.likelihood.curvature(weight, scores)
        assert found.min() >= 0
        torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=0)

    def test_a_constant_row_has_no_curvature(self) -> None:
        found = self.likelihood.curvature(torch.full((1, 7), 12.3), torch.randn(9, 7))
        assert (found >= 0).all()
        assert found.max() < 1e-8

    def test_no_matrix_of_outputs_by_outputs_is_formed(self) -> None:
        """Half a million classes: their square would not fit into any memory."""
        weight, scores = torch.randn(2, 500_000), torch.randn(3, 500_000)
        assert self.likelihood.curvature(weight, scores).shape == (3, 2)
