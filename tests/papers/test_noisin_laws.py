"""Known answers for the noise laws of Noisin (Dieng et al. 2018, Table 2)."""

from __future__ import annotations

import functools
import math

import pytest
import torch
from torch import Tensor

from statewise.transforms.laws import LAWS, law

DRAWS = 1_000_000
SIGMAS = 5  # a correct law misses a bound this wide once in two million tests, and the seeds are fixed

VARIANCE_AT_0_4 = {
    "gaussian": 0.16,
    "logistic": 0.16,
    "laplace": 0.16,
    "gamma": 0.16,
    "gumbel": 0.16,
    "bernoulli": 1.5,
    "beta": 0.4,
    "chi-square": 0.4,
}
MGF_OF_0_3_AT_0_4 = {
    "gaussian": 1.0072259823,
    "bernoulli": 1.0718158066,
    "gamma": 1.0076643290,
    "gumbel": 1.0075791133,
    "laplace": 1.0072522160,
    "logistic": 1.0072364540,
    "beta": 1.0165197335,
    "chi-square": 1.0258980973,
}
# The strengths of the paper's Tables 3 and 4: the weakest and the strongest of each law.
PAPER_LEVELS = [
    ("gaussian", 0.50),
    ("gaussian", 1.37),
    ("logistic", 0.40),
    ("logistic", 1.39),
    ("laplace", 0.40),
    ("laplace", 1.39),
    ("gamma", 0.30),
    ("gamma", 1.39),
    ("bernoulli", 0.33),
    ("bernoulli", 0.80),
    ("gumbel", 0.30),
    ("gumbel", 1.39),
    ("beta", 0.10),
    ("beta", 1.50),
    ("chi-square", 0.20),
    ("chi-square", 1.50),
]
EVERY_LAW_AND_LEVEL = [*((name, 0.4) for name in LAWS), *PAPER_LEVELS]


@functools.cache
def drawn(name: str, gamma: float, alpha: float) -> Tensor:
    return law(name).fill(torch.empty(DRAWS), gamma, alpha, torch.Generator().manual_seed(2018))


def noise(name: str, gamma: float, alpha: float = 2.0) -> Tensor:
    """A million draws in float32, as the layers draw them, widened so that sums do not round."""
    return drawn(name, gamma, alpha).double()


def assert_mean(sample: Tensor, expected: float) -> None:
    """The mean of the sample is the expected one, within standard errors that the sample itself tells."""
    error = sample.std().item() / math.sqrt(sample.numel())
    assert abs(sample.mean().item() - expected) < SIGMAS * error


@pytest.mark.parametrize("name", LAWS)
def test_table_2_variances_at_gamma_0_4(name: str) -> None:
    assert law(name).variance(0.4, 2.0) == pytest.approx(VARIANCE_AT_0_4[name], rel=1e-15)
    assert law(name).std(0.4) == pytest.approx(math.sqrt(VARIANCE_AT_0_4[name]), rel=1e-15)


@pytest.mark.parametrize(("name", "gamma"), EVERY_LAW_AND_LEVEL)
def test_noise_has_mean_zero_and_the_variance_of_table_2(name: str, gamma: float) -> None:
    """The standard errors come from the closed-form variance and kurtosis, not from the sample."""
    variance, excess = law(name).variance(gamma, 2.0), law(name).excess_kurtosis(gamma, 2.0)
    sample = noise(name, gamma)
    assert abs(sample.mean().item()) < SIGMAS * math.sqrt(variance / DRAWS)
    error = variance * math.sqrt((excess + 2) / DRAWS)
    assert abs(sample.square().mean().item() - variance) < SIGMAS * error


@pytest.mark.parametrize(("name", "gamma"), EVERY_LAW_AND_LEVEL)
def test_noise_has_the_skewness_and_kurtosis_of_its_law(name: str, gamma: float) -> None:
    standardised = noise(name, gamma) / law(name).std(gamma)
    assert_mean(standardised**3, law(name).skewness(gamma, 2.0))
    assert_mean(standardised**4, law(name).excess_kurtosis(gamma, 2.0) + 3)


@pytest.mark.parametrize(
    ("name", "gamma", "alpha", "skewness", "excess"),
    [
        ("gaussian", 0.4, 2.0, 0.0, 0.0),
        ("logistic", 0.4, 2.0, 0.0, 1.2),
        ("laplace", 0.4, 2.0, 0.0, 3.0),
        ("gumbel", 0.4, 2.0, 1.1395470994, 2.4),
        ("gamma", 0.4, 4.0, 1.0, 1.5),
        ("chi-square", 2.0, 2.0, 2.0, 6.0),
        ("bernoulli", 0.2, 2.0, 1.5, 0.25),
        ("beta", 3.0, 1.0, 0.8606629658, 0.0952380952),  # Beta(1, 3): sqrt(20/27) and 2/21
    ],
)
def test_closed_form_shapes(name: str, gamma: float, alpha: float, skewness: float, excess: float) -> None:
    assert law(name).skewness(gamma, alpha) == pytest.approx(skewness, abs=1e-10)
    assert law(name).excess_kurtosis(gamma, alpha) == pytest.approx(excess, abs=1e-10)


def test_skewness_changes_sign_where_the_law_is_symmetric() -> None:
    """Keeping more than half, and a beta law with alpha > gamma, are skewed to the left."""
    assert law("bernoulli").skewness(0.4) > 0 == law("bernoulli").skewness(0.5) > law("bernoulli").skewness(0.6)
    assert law("beta").skewness(3.0, 2.0) > 0 == law("beta").skewness(2.0, 2.0) > law("beta").skewness(1.0, 2.0)


def test_beta_with_a_large_alpha_is_a_mirrored_gamma_law() -> None:
    """eps -> gamma - Gamma(gamma, 1): skewness -2/sqrt(gamma), also in float32, where 1 - eta would have no digits."""
    gamma, alpha = 0.5, 1e6
    assert law("beta").skewness(gamma, alpha) == pytest.approx(-2 / math.sqrt(gamma), rel=1e-5)
    sample = noise("beta", gamma, alpha)
    assert_mean(sample, 0.0)
    assert_mean(sample.square(), gamma)
    assert_mean((sample / math.sqrt(gamma)) ** 3, -2 / math.sqrt(gamma))
    # E exp(-a (G - gamma)) of G ~ Gamma(gamma, 1); the two differ by O(1 / alpha).
    assert law("beta").log_mgf(0.3, gamma, alpha) == pytest.approx(gamma * (0.3 - math.log(1.3)), rel=1e-5)


@pytest.mark.parametrize("name", LAWS)
def test_moment_generating_functions_at_0_3(name: str) -> None:
    assert law(name).mgf(0.3, 0.4, 2.0) == pytest.approx(MGF_OF_0_3_AT_0_4[name], abs=5e-11)


@pytest.mark.parametrize("a", [-0.3, 0.2])
@pytest.mark.parametrize(("name", "gamma"), EVERY_LAW_AND_LEVEL)
def test_moment_generating_functions_are_means_of_exponentials(name: str, gamma: float, a: float) -> None:
    assert_mean((a * noise(name, gamma)).exp(), law(name).mgf(a, gamma, 2.0))


def test_strength_from_a_standard_deviation() -> None:
    assert law("bernoulli").gamma_from_std(1.1) == pytest.approx(0.4524886878, abs=5e-11)
    assert law("beta").gamma_from_std(0.5) == law("chi-square").gamma_from_std(0.5) == 0.25
    for name in ("gaussian", "logistic", "laplace", "gamma", "gumbel"):
        assert law(name).gamma_from_std(1.1) == 1.1


@pytest.mark.parametrize(
    ("name", "gamma", "std"),
    [
        ("bernoulli", 0.41, 1.200),
        ("bernoulli", 0.33, 1.425),
        ("bernoulli", 0.80, 0.500),
        ("bernoulli", 0.54, 0.923),
        ("beta", 1.07, 1.034),
        ("beta", 0.10, 0.316),
        ("chi-square", 1.50, 1.225),
        ("chi-square", 0.29, 0.539),
    ],
)
def test_strengths_of_tables_3_and_4_as_standard_deviations(name: str, gamma: float, std: float) -> None:
    assert law(name).std(gamma) == pytest.approx(std, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "gamma", "share"),
    [
        ("gaussian", 1.06, 0.173),
        ("gaussian", 1.37, 0.233),
        ("gamma", 1.06, 0.144),
        ("gamma", 1.37, 0.252),
        ("bernoulli", 0.33, 0.0),
        ("chi-square", 1.41, 0.0),
    ],
)
def test_share_of_negative_multipliers(name: str, gamma: float, share: float) -> None:
    """Multipliers may be negative, as nothing is clamped; Bernoulli and chi-square up to sqrt(2) never are."""
    negative = (1 + noise(name, gamma) < 0).double().mean().item()
    assert abs(negative - share) < (5e-4 + SIGMAS * math.sqrt(share / DRAWS) if share else 1e-12)
