"""The certified bracket holds the exact excess, whatever the method."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import few_examples, seeds, some_examples
from statewise import Noise
from statewise.errors import ArgumentError
from statewise.heads import Bernoulli, Categorical, Gaussian, Likelihood, Poisson, Readout
from statewise.objectives import bracket, exact_excess
from statewise.objectives.bracket import psi
from statewise.transforms.laws import LAWS

DOUBLE = torch.float64
each_likelihood = pytest.mark.parametrize("likelihood", [Categorical(), Bernoulli()], ids=["softmax", "sigmoids"])


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


@each_likelihood
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mode", ["multiplicative", "additive"])
@few_examples
@given(seed=seeds, gamma=st.floats(0.05, 0.9), method=st.sampled_from(["curvature", "moments"]))
def test_the_exact_excess_lies_in_the_bracket(
    likelihood: Likelihood, law: str, mode: str, seed: int, gamma: float, method: str
) -> None:
    readout, states = Readout(likelihood, random(seed, 2, 3) / 2, random(seed + 1, 3)), random(seed + 2, 2, 2) / 2
    noise = Noise(law, gamma, mode=mode, placement="last")
    exact = exact_excess(readout, states, noise, tolerance=1e-3)
    found = bracket(readout, states, noise, method=method)
    slack = exact.error + 1e-12
    assert (found.lower <= exact.values + slack).all()
    assert (exact.values <= found.upper + slack).all()
    for bound in (found.by_curvature, found.by_largest, found.by_mgf):
        assert (exact.values <= bound + slack).all()
    assert (found.lower >= 0).all()


@each_likelihood
@some_examples
@given(seed=seeds, scale=st.floats(0.01, 5))
def test_the_inequality_behind_it_holds_point_by_point(likelihood: Likelihood, seed: int, scale: float) -> None:
    scores, u = random(seed, 50, 4) * 2, random(seed + 1, 50, 4) * scale
    linear = (likelihood.gradient(scores) * u).sum(-1)
    excess = likelihood.log_normalizer(scores + u) - likelihood.log_normalizer(scores) - linear
    if isinstance(likelihood, Categorical):
        r, q = u.amax(1) - u.amin(1), likelihood.quadratic(u, scores)
        lower, upper = q * psi(-r) / 2, q * psi(r) / 2
    else:
        p = scores.sigmoid()
        lower, upper = ((u.square() * p * (1 - p) * psi(r)).sum(1) / 2 for r in (-u.abs(), u.abs()))
    assert (lower <= excess + 1e-12).all()
    assert (excess <= upper + 1e-12).all()


def test_psi_is_smooth_where_its_formula_loses_digits() -> None:
    r = torch.tensor([-40.0, -1.0, -0.0101, -0.0099, 0.0, 1e-9, 0.0099, 0.0101, 1.0], dtype=DOUBLE)
    series = sum(2 * r**k / float(math.factorial(k + 2)) for k in range(20))
    assert isinstance(series, Tensor)
    torch.testing.assert_close(psi(r)[1:], series[1:], rtol=1e-11, atol=0)
    assert psi(r)[0].item() == pytest.approx(2 * 39 / 1600)


@pytest.mark.parametrize("law", ["laplace", "logistic", "gumbel", "gamma", "chi-square"])
def test_heavy_tails_fall_back_on_a_finite_bound(law: str) -> None:
    """Far outside the domain of the generating functions, where the curvature bound is infinite."""
    readout, states = Readout(Categorical(), 4 * random(1, 2, 3)), torch.ones(1, 2, dtype=DOUBLE)
    found = bracket(readout, states, Noise(law, 1.5))
    assert found.by_curvature.isinf().all()
    assert found.upper.isfinite().all()
    assert found.upper <= found.by_largest
    assert found.error.isfinite().all()


def test_coarse_grids_that_agree_by_chance_are_not_believed() -> None:
    """At this angle the kink lies so that the rules of 16 and 24 points agree in four digits, which are wrong."""
    angle, gamma = torch.tensor(0.3222, dtype=DOUBLE), 0.3
    weight = torch.stack((angle.cos(), angle.sin())).unsqueeze(1) * torch.tensor([1.0, 0.0], dtype=DOUBLE)
    found = bracket(Readout(Categorical(), weight), torch.ones(1, 2, dtype=DOUBLE), Noise("gaussian", gamma))
    # The two scores are apart by a normal number of standard deviation gamma.
    assert found.by_largest.item() == pytest.approx(gamma / math.sqrt(2 * math.pi), abs=2e-4)


def test_many_units_are_bracketed_by_moments(generator: torch.Generator) -> None:
    from statewise.objectives import estimated_excess

    readout = Readout(Categorical(), 0.1 * random(1, 200, 50))
    states, noise = random(2, 3, 200) / 2, Noise("gaussian", 0.5)
    found = bracket(readout, states, noise)
    assert found.method == "moments of the noise"
    sampled = estimated_excess(readout, states, noise, samples=500, generator=generator)
    assert (found.lower < sampled.values + 5 * sampled.standard_error).all()
    assert (sampled.values - 5 * sampled.standard_error < found.upper).all()
    assert (found.lower > 0.2 * found.second_order).all()
    assert (found.upper < 2 * found.second_order).all()


def test_without_noise_nothing_is_added() -> None:
    readout, states = Readout(Categorical(), random(1, 2, 3)), random(2, 4, 2)
    for method in ("curvature", "moments"):
        for silent in (Noise("gaussian", 0.0), Noise("bernoulli", 1.0)):
            found = bracket(readout, states, silent, method=method)
            assert found.lower.abs().max() == 0
            assert found.upper.abs().max() < 1e-15


def test_it_tells_what_it_rests_on_and_what_it_found() -> None:
    readout, states = Readout(Categorical(), random(1, 2, 3)), random(2, 2, 2, 2)
    found = bracket(readout, states, Noise("bernoulli", 0.8))
    assert found.lower.shape == found.upper.shape == (2, 2)
    assert found.method == "all 4 masks"
    assert found.sentence.startswith("under Noise('bernoulli', 0.8) the expected loss of 4 row(s) exceeds")
    assert any("not fed back" in one for one in found.assumptions)
    assert any("softmax" in one for one in found.assumptions)


@pytest.mark.parametrize("likelihood", [Poisson(), Gaussian()], ids=["poisson", "gaussian"])
def test_other_likelihoods_are_sent_to_their_closed_forms(likelihood: Likelihood) -> None:
    with pytest.raises(ArgumentError, match="exact_excess has a closed form"):
        bracket(Readout(likelihood, torch.ones(2, 3)), torch.ones(1, 2), Noise("gaussian", 0.5))


def test_an_unknown_method_and_fed_back_noise_are_refused() -> None:
    readout, states = Readout(Categorical(), torch.ones(2, 3)), torch.ones(1, 2)
    with pytest.raises(ArgumentError, match=r"bracket\.method"):
        bracket(readout, states, Noise("gaussian", 0.5), method="sampling")
    with pytest.raises(ArgumentError, match="not fed back"):
        bracket(readout, states, Noise("gaussian", 0.5, placement="recurrent"))
