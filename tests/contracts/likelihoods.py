"""What every likelihood promises: a density, whose log-normaliser has the derivatives that it says."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd.functional import hessian

from contracts.passes import few_examples, seeds, some_examples
from statewise.errors import ShapeError
from statewise.heads import Likelihood
from support import tolerance

DOUBLE = torch.float64
sizes = st.integers(1, 6)


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


class LikelihoodContract:
    """Inherit it, and say which likelihood it is and how to observe something of every kind under it."""

    likelihood: ClassVar[Likelihood]

    def everything(self, outputs: int) -> tuple[Tensor, float]:
        """All observations of so many outputs, or a grid of them, and the volume of a cell of the grid."""
        raise NotImplementedError

    def one_hot(self, observed: Tensor, outputs: int) -> Tensor:
        """An observation as a vector, whose mean the likelihood tells."""
        return observed

    # --- the value

    def test_it_is_an_immutable_value(self) -> None:
        for twin in (copy.deepcopy(self.likelihood), pickle.loads(pickle.dumps(self.likelihood))):
            assert twin == self.likelihood
            assert hash(twin) == hash(self.likelihood)
        with pytest.raises(dataclasses.FrozenInstanceError):
            self.likelihood.variance = 3.0  # type: ignore[attr-defined]

    # --- the density

    @few_examples
    @given(seed=seeds)
    def test_probabilities_add_up_to_one_and_have_the_mean_it_says(self, seed: int) -> None:
        outputs = 2
        scores = random(seed, outputs) / 2
        observed, volume = self.everything(outputs)
        found = self.likelihood.log_prob(scores.expand(len(observed), -1), observed).exp() * volume
        assert found.sum().item() == pytest.approx(1, abs=1e-6)
        mean = found @ self.one_hot(observed, outputs).to(DOUBLE)
        torch.testing.assert_close(mean, self.likelihood.mean(scores), rtol=0, atol=1e-6)

    # --- the derivatives

    @some_examples
    @given(seed=seeds, outputs=sizes)
    def test_gradient_and_hessian_are_those_of_the_log_normaliser(self, seed: int, outputs: int) -> None:
        scores = random(seed, outputs).requires_grad_()
        (gradient,) = torch.autograd.grad(self.likelihood.log_normalizer(scores), scores)
        torch.testing.assert_close(self.likelihood.gradient(scores), gradient, **tolerance(DOUBLE))
        curvature: Any = hessian(self.likelihood.log_normalizer, scores.detach())
        torch.testing.assert_close(self.likelihood.hessian(scores).detach(), curvature, **tolerance(DOUBLE))

    @some_examples
    @given(seed=seeds, outputs=sizes, hidden=sizes, rows=sizes)
    def test_curvatures_are_those_of_the_dense_hessian(self, seed: int, outputs: int, hidden: int, rows: int) -> None:
        weight, scores = random(seed, hidden, outputs), random(seed + 1, rows, outputs)
        dense = weight @ self.likelihood.hessian(scores) @ weight.T
        matrix = self.likelihood.curvature_matrix(weight, scores)
        torch.testing.assert_close(matrix, dense, **tolerance(DOUBLE))
        found = self.likelihood.curvature(weight, scores)
        torch.testing.assert_close(found, dense.diagonal(dim1=1, dim2=2), **tolerance(DOUBLE))
        along = self.likelihood.quadratic(weight[:1].expand(rows, -1), scores)
        torch.testing.assert_close(along, dense[:, 0, 0], **tolerance(DOUBLE))
        assert (found >= 0).all()

    @few_examples
    @given(seed=seeds, chunk=st.integers(1, 8))
    def test_chunks_change_neither_curvatures_nor_their_gradients(self, seed: int, chunk: int) -> None:
        found = []
        for size in (chunk, 100):
            weight, scores = random(seed, 3, 4).requires_grad_(), random(seed + 1, 2, 5, 4).requires_grad_()
            curvature = self.likelihood.curvature(weight, scores, chunk=size)
            (curvature * random(seed + 2, 2, 5, 3)).sum().backward()
            # A likelihood whose curvature does not depend on the scores has no gradient there.
            grads = [torch.zeros(1) if leaf.grad is None else leaf.grad for leaf in (weight, scores)]
            found.append((curvature.detach(), *grads))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, **tolerance(DOUBLE))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_low_precision_is_widened(self, dtype: torch.dtype) -> None:
        found = self.likelihood.curvature(torch.ones(2, 3, dtype=dtype), torch.zeros(4, 3, dtype=dtype))
        assert found.dtype == torch.float32

    # --- refusals

    @pytest.mark.usefixtures("as_users_have_it")
    def test_a_transposed_weight_is_refused(self) -> None:
        with pytest.raises(ShapeError, match="has to be transposed"):
            self.likelihood.curvature(torch.ones(4, 3), torch.zeros(2, 4))

    def test_observations_of_another_shape_are_refused(self) -> None:
        with pytest.raises(ShapeError, match=f"{type(self.likelihood).__name__} observed"):
            self.likelihood.log_prob(torch.zeros(2, 4), torch.zeros(3, 4))
