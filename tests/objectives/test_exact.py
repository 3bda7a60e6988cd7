"""Exact and sampled excess, and the quadrature behind them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from statewise import Noise
from statewise.errors import ArgumentError, DtypeError
from statewise.heads import Bernoulli, Categorical, Gaussian, Likelihood, Poisson, Readout
from statewise.objectives import estimated_excess, exact_excess
from statewise.objectives.expectation import COUNTS, expect, gauss
from statewise.transforms.laws import LAWS
from support import doubles

DOUBLE = torch.float64
LIKELIHOODS = [Categorical(), Bernoulli(), Poisson(), Gaussian(0.4)]
each_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda one: type(one).__name__)
each_law = pytest.mark.parametrize("law", LAWS)
SMOOTH = [name for name in LAWS if name != "bernoulli"]


def make(likelihood: Likelihood, *, units: int = 2) -> tuple[Readout, Tensor]:
    weight = torch.cos(torch.arange(units * 3, dtype=DOUBLE)).view(units, 3) / 2
    return Readout(likelihood, weight, doubles(0.1, 0.0, -0.3)), torch.linspace(-1, 1, 3 * units, dtype=DOUBLE).view(
        3, units
    )


@pytest.mark.parametrize("count", [4, 20, max(COUNTS)])
@pytest.mark.parametrize("law", SMOOTH)
def test_a_gauss_rule_has_the_moments_of_its_law(law: str, count: int) -> None:
    rule = gauss(Noise(law, 0.3, alpha=1.7), count)
    assert len(rule.points) == len(rule.shares) == count
    assert (rule.shares > 0).all()
    moments = [float(rule.shares @ rule.points**power) for power in range(5)]
    of, variance = LAWS[law], LAWS[law].variance(0.3, 1.7)
    assert moments[0] == pytest.approx(1, abs=1e-13)
    assert moments[1] == pytest.approx(0, abs=1e-12)
    assert moments[2] == pytest.approx(variance, rel=1e-11)
    assert moments[3] == pytest.approx(of.skewness(0.3, 1.7) * variance**1.5, rel=1e-10, abs=1e-12)
    if count > 4:  # a Laplace rule has half of its points on each side
        assert moments[4] == pytest.approx((of.excess_kurtosis(0.3, 1.7) + 3) * variance**2, rel=1e-10)


@pytest.mark.parametrize("law", SMOOTH)
def test_a_gauss_rule_finds_the_moment_generating_function(law: str) -> None:
    rule = gauss(Noise(law, 0.4), 48)
    found = float(rule.shares @ torch.from_numpy(0.5 * rule.points).exp().numpy())
    assert found == pytest.approx(LAWS[law].mgf(0.5, 0.4), rel=1e-11)


@each_likelihood
@each_law
@pytest.mark.parametrize("mode", ["multiplicative", "additive"])
def test_the_exact_excess_is_what_sampling_finds(likelihood: Likelihood, law: str, mode: str) -> None:
    readout, states = make(likelihood)
    noise = Noise(law, 0.3, mode=mode)
    exact = exact_excess(readout, states, noise)
    assert exact.finite
    assert exact.values.shape == (3,)
    sampled = estimated_excess(readout, states, noise, samples=4000, generator=torch.Generator().manual_seed(5))
    assert ((exact.values - sampled.values).abs() < 5 * sampled.standard_error + 1e-12).all()


@each_likelihood
def test_it_is_never_negative_and_zero_without_noise(likelihood: Likelihood) -> None:
    readout, states = make(likelihood)
    assert (exact_excess(readout, states, Noise("laplace", 0.5)).values > -1e-15).all()
    for silent in (Noise("gaussian", 0.0), Noise("bernoulli", 1.0), Noise("beta", 0.0)):
        assert exact_excess(readout, states, silent).total == 0


def test_rows_keep_their_shape_and_gradients_do_not_flow() -> None:
    readout, states = make(Categorical())
    states.requires_grad_()
    found = exact_excess(readout, states.view(3, 1, 2), Noise("gaussian", 0.2))
    assert found.values.shape == (3, 1)
    assert not found.values.requires_grad
    assert found.sentence.startswith("Noise('gaussian', 0.2) adds ")
    assert "to the expected loss of 3 row(s), by a Gauss rule" in found.sentence


def test_too_many_units_are_refused_with_what_to_do_instead() -> None:
    readout = Readout(Categorical(), torch.ones(30, 3))
    for law in ("gaussian", "bernoulli"):
        with pytest.raises(ArgumentError, match=r"30 units.*bracket\(\.\.\., method='moments'\) or estimated_excess"):
            exact_excess(readout, torch.ones(1, 30), Noise(law, 0.5))


def test_grids_that_do_not_agree_are_no_answer() -> None:
    readout = Readout(Categorical(), 40 * torch.eye(2, dtype=DOUBLE))
    with pytest.raises(ArgumentError, match="grids that differ"):
        exact_excess(readout, torch.ones(1, 2, dtype=DOUBLE), Noise("gaussian", 3.0))


def test_a_function_that_overflows_is_no_agreement() -> None:
    found = expect(
        Noise("laplace", 1.0), 1, lambda eps: (9 * eps[:, 0]).exp().square(), like=torch.zeros(1).double(), width=1
    )
    assert found.error.item() > 1 or math.isinf(found.values.item())


@pytest.mark.parametrize("samples", [1, 0, True])
def test_an_estimate_needs_two_samples(samples: Any) -> None:
    readout, states = make(Categorical())
    with pytest.raises(ArgumentError, match="at least 2"):
        estimated_excess(readout, states, Noise("gaussian", 0.2), samples=samples)


def test_an_estimate_repeats_from_a_seed_and_leaves_the_global_generator_alone_then() -> None:
    readout, states = make(Categorical())
    before = torch.get_rng_state()
    first, again = (
        estimated_excess(readout, states, Noise("beta", 0.2), samples=50, generator=torch.Generator().manual_seed(1))
        for _ in range(2)
    )
    assert torch.equal(first.values, again.values)
    assert torch.equal(torch.get_rng_state(), before)
    assert "times the second-order penalty (50 samples a row)" in first.sentence


@pytest.mark.usefixtures("as_users_have_it")
def test_only_noise_is_accepted() -> None:
    readout, states = make(Categorical())
    with pytest.raises(DtypeError, match=r"a statewise\.Noise"):
        exact_excess(readout, states, 0.5)  # type: ignore[arg-type]
