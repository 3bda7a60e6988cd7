"""The explicit penalty to second order."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import few_examples, seeds
from statewise import Noise
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.heads import Bernoulli, Categorical, Gaussian, Likelihood, Poisson, Readout
from statewise.heads import likelihoods as room
from statewise.objectives import Covariance, second_order, sensitivity
from support import tolerance

DOUBLE = torch.float64
LIKELIHOODS = [Categorical(), Bernoulli(), Poisson(), Gaussian(0.4)]
each_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda one: type(one).__name__)


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE) / 2


def make(likelihood: Likelihood, seed: int = 0) -> tuple[Readout, Tensor]:
    return Readout(likelihood, random(seed, 3, 5), random(seed + 1, 5)), random(seed + 2, 4, 2, 3)


@each_likelihood
@pytest.mark.parametrize("mode", ["multiplicative", "additive"])
@few_examples
@given(seed=seeds)
def test_it_is_half_the_trace_of_hessian_and_covariance(likelihood: Likelihood, mode: str, seed: int) -> None:
    readout, states = make(likelihood, seed)
    root = random(seed + 3, 3, 3)
    covariance = root @ root.T
    hessian = readout.weight @ likelihood.hessian(readout.scores(states)) @ readout.weight.T
    size = states if mode == "multiplicative" else torch.ones_like(states)
    of_states = covariance * size.unsqueeze(-1) * size.unsqueeze(-2)
    expected = (hessian @ of_states).diagonal(dim1=-2, dim2=-1).sum(-1) / 2
    found = second_order(readout, states, Covariance(covariance, mode), reduction="none")
    torch.testing.assert_close(found, expected, **tolerance(DOUBLE))
    # A diagonal matrix, a vector and a number are the same thing, and noise is its variance.
    for values in (0.49, torch.full((3,), 0.49, dtype=DOUBLE), 0.49 * torch.eye(3, dtype=DOUBLE)):
        same = second_order(readout, states, Covariance(values, mode))
        noise = second_order(readout, states, Noise("gaussian", 0.7, mode=mode))
        torch.testing.assert_close(same, noise, rtol=1e-6, atol=0)


@each_likelihood
def test_the_shares_of_the_units_add_up_to_the_penalty(likelihood: Likelihood) -> None:
    readout, states = make(likelihood)
    shares = sensitivity(readout, states)
    assert shares.shape == states.shape
    found = second_order(readout, states, Noise("gaussian", 0.5), reduction="none")
    torch.testing.assert_close(0.25 / 2 * shares.sum(-1), found, **tolerance(DOUBLE))
    torch.testing.assert_close(second_order(readout, states, Noise("gaussian", 0.5)), found.sum())
    torch.testing.assert_close(second_order(readout, states, Noise("gaussian", 0.5), reduction="mean"), found.mean())


@each_likelihood
def test_its_gradient_is_the_derivative(likelihood: Likelihood) -> None:
    _, states = make(likelihood)
    inputs = (random(5, 3, 5).requires_grad_(), random(6, 5).requires_grad_(), states.requires_grad_())

    def penalty(weight: Tensor, bias: Tensor, states: Tensor) -> Tensor:
        return second_order(Readout(likelihood, weight, bias), states, Noise("gaussian", 0.5))

    assert torch.autograd.gradcheck(penalty, inputs)


def test_without_the_full_gradient_the_prediction_is_a_constant() -> None:
    """``d/dh v/2 sum_i h_i^2 q_i = v h_i q_i`` with q held, and the bias, which acts through it alone, gets nothing."""
    readout, states = make(Categorical())
    bias = random(1, 5).requires_grad_()
    states.requires_grad_()
    found = second_order(
        Readout(Categorical(), readout.weight, bias), states, Noise("gaussian", 0.5), full_gradient=False
    )
    found.backward()
    q = Categorical().curvature(readout.weight, readout.scores(states)).detach()
    torch.testing.assert_close(states.grad, 0.25 * states.detach() * q, **tolerance(DOUBLE))
    assert bias.grad is None
    torch.testing.assert_close(found, second_order(readout, states, Noise("gaussian", 0.5)))


@pytest.mark.parametrize("noise", [Noise("gaussian", 0.5), Covariance(torch.eye(3, dtype=DOUBLE) + 0.2)])
def test_chunks_change_neither_the_penalty_nor_its_gradient(noise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for largest in (2**24, 10):
        monkeypatch.setattr(room, "LARGEST_CHUNK", largest)
        readout, states = make(Categorical())
        states.requires_grad_()
        penalty = second_order(readout, states, noise)
        penalty.backward()
        found.append((penalty.detach(), states.grad))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, **tolerance(DOUBLE))


def test_half_precision_is_accumulated_in_single() -> None:
    readout = Readout(Gaussian(), torch.ones(1, 1, dtype=torch.float16))
    states = torch.ones(70_000, 1, dtype=torch.float16)  # their sum is beyond float16
    found = second_order(readout, states, Covariance(2.0))
    assert found.dtype == torch.float32
    assert found.item() == 70_000


@pytest.mark.usefixtures("as_users_have_it")
def test_what_does_not_fit_is_refused() -> None:
    readout, states = make(Categorical())
    wrong: tuple[Any, ...] = (0.5, "gaussian", None)
    for noise in wrong:
        with pytest.raises(DtypeError, match=r"a statewise\.Noise"):
            second_order(readout, states, noise)
    with pytest.raises(DtypeError, match="a Readout"):
        second_order(Categorical(), states, Noise("gaussian", 0.5))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="not fed back"):
        second_order(readout, states, Noise("gaussian", 0.5, placement="recurrent"))
    with pytest.raises(ArgumentError, match="reduction"):
        second_order(readout, states, Noise("gaussian", 0.5), reduction="average")
    with pytest.raises(ShapeError, match="3 units"):
        second_order(readout, states, Covariance(torch.ones(4)))
    with pytest.raises(ShapeError, match=r"Covariance\.values"):
        Covariance(torch.ones(3, 2))
    with pytest.raises(ArgumentError, match=r"Covariance\.mode"):
        Covariance(1.0, "divisive")


def test_noise_from_one_shared_source_costs_what_the_source_costs() -> None:
    """Its covariance has rank one, and the penalty is the curvature along what the source moves."""
    readout, states = make(Categorical())
    source = random(9, 3, 1)
    found = second_order(readout, states, Covariance(source @ source.T, "additive"), reduction="none")
    along = (source.T @ readout.weight).expand(4, 2, -1)
    expected = Categorical().quadratic(along, readout.scores(states)) / 2
    torch.testing.assert_close(found, expected, **tolerance(DOUBLE))


@few_examples
@given(seed=seeds, likelihood=st.sampled_from(LIKELIHOODS))
def test_it_is_never_negative(seed: int, likelihood: Likelihood) -> None:
    readout, states = make(likelihood, seed)
    assert second_order(readout, states.float() * 10, Noise("gaussian", 0.5), reduction="none").min() >= 0
