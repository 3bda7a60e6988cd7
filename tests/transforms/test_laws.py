"""What every noise law promises, whatever its formula."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from statewise.errors import ArgumentError, DeviceError, DtypeError
from statewise.transforms import Randomness
from statewise.transforms.laws import LAWS, Law, law

EVERY_LAW = pytest.mark.parametrize("noise", LAWS.values(), ids=list(LAWS))
EVERY_DTYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
SCALES = ("gaussian", "logistic", "laplace", "gamma", "gumbel")

strengths = st.floats(1e-3, 1.0)  # inside the domain of all eight laws
shapes = st.floats(1e-2, 1e3)
seeds = st.integers(0, 2**32 - 1)


def seeded(seed: int, device: str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def assert_quantiles(sample: Tensor, cdf: Callable[[Tensor], Tensor], thresholds: Tensor) -> None:
    """The share of draws up to each threshold is the closed-form one, within five standard errors."""
    expected = cdf(thresholds)
    share = (sample.double() <= thresholds.unsqueeze(1)).double().mean(1)
    error = (expected * (1 - expected) / sample.numel()).sqrt()
    assert ((expected > 1e-3) & (expected < 1 - 1e-3)).all(), "a threshold in the far tail proves nothing"
    assert ((share - expected).abs() < 5 * error).all()


# --- the registry


def test_the_eight_laws_are_found_by_name() -> None:
    assert list(LAWS) == ["gaussian", "logistic", "laplace", "gamma", "bernoulli", "gumbel", "beta", "chi-square"]
    for name, noise in LAWS.items():
        assert law(name) is noise
        assert noise.name == name


@pytest.mark.parametrize(("wrong", "meant"), [("gausian", "gaussian"), ("chi_square", "chi-square"), ("Beta", "beta")])
def test_an_unknown_law_is_answered_with_all_eight_and_the_closest(wrong: str, meant: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        law(wrong)
    assert repr(wrong) in str(caught.value)
    assert all(repr(name) in str(caught.value) for name in LAWS)
    assert f"Did you mean {meant!r}?" in str(caught.value)


def test_nothing_is_suggested_for_a_name_like_no_other() -> None:
    with pytest.raises(ArgumentError, match=r"^law: got 'xyz', wanted one of .*'chi-square'\.$"):
        law("xyz")


@EVERY_LAW
def test_a_law_cannot_be_changed_and_its_copies_are_itself(noise: Law) -> None:
    with pytest.raises(AttributeError, match=noise.name):
        noise.silent_gamma = 0.5  # type: ignore[misc]
    assert copy.deepcopy(noise) is noise
    assert pickle.loads(pickle.dumps(noise)) is noise


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        LAWS["gaussian"] = law("beta")  # type: ignore[index]


# --- values that are refused


@EVERY_LAW
@pytest.mark.parametrize("gamma", [-0.1, -5e-324, math.nan, math.inf, -math.inf, 10**400])
def test_a_strength_outside_the_domain_is_refused(noise: Law, gamma: float) -> None:
    with pytest.raises(ArgumentError) as caught:
        noise.check(gamma, 2.0)
    assert f"{noise.name}.gamma: got {gamma!r}, wanted a" in str(caught.value)
    assert noise.gamma_meaning in str(caught.value)


@pytest.mark.parametrize("gamma", [0, 0.0, 1.0000001, 2])
def test_a_keep_probability_is_above_zero_and_at_most_one(gamma: float) -> None:
    with pytest.raises(ArgumentError, match=r"got .*, wanted a keep probability in \(0, 1\]\. .*gamma = 1 - p"):
        law("bernoulli").check(gamma, 2.0)


@EVERY_LAW
@pytest.mark.parametrize("alpha", [0, 0.0, -1.0, math.nan, math.inf])
def test_a_shape_must_be_positive_and_finite(noise: Law, alpha: float) -> None:
    with pytest.raises(ArgumentError) as caught:
        noise.check(0.5, alpha)
    assert f"{noise.name}.alpha: got {alpha!r}, wanted a finite shape > 0" in str(caught.value)


@EVERY_LAW
@pytest.mark.parametrize("value", [True, False, "0.5", None, 0.5j, torch.tensor(0.5)], ids=repr)
def test_what_is_no_number_is_refused(noise: Law, value: object) -> None:
    with pytest.raises(DtypeError, match=rf"gamma: got .* of type {type(value).__name__}, wanted a"):
        noise.check(value, 2.0)
    with pytest.raises(DtypeError, match=rf"alpha: got .* of type {type(value).__name__}, wanted a"):
        noise.check(0.5, value)


@EVERY_LAW
def test_numbers_of_any_real_type_are_accepted(noise: Law) -> None:
    for value in (1, 0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)):
        noise.check(value, value)


@EVERY_LAW
def test_every_method_checks_its_arguments(noise: Law) -> None:
    out, generator = torch.empty(3), seeded(0)
    calls: list[Callable[[float, float], object]] = [
        noise.variance,
        noise.skewness,
        noise.excess_kurtosis,
        noise.support,
        lambda gamma, alpha: noise.mgf(0.1, gamma, alpha),
        lambda gamma, alpha: noise.log_mgf(0.1, gamma, alpha),
        lambda gamma, alpha: noise.fill(out, gamma, alpha, generator),
        noise.recipe,
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="gamma: got nan"):
            call(math.nan, 2.0)
        with pytest.raises(ArgumentError, match=r"alpha: got -1\.0"):
            call(0.5, -1.0)
    for one_argument in (noise.std, noise.is_silent):
        with pytest.raises(ArgumentError, match="gamma: got nan"):
            one_argument(math.nan)


@EVERY_LAW
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_moment_generating_function_wants_a_finite_argument(noise: Law, bad: float) -> None:
    with pytest.raises(ArgumentError, match=rf"{noise.name}\.a: got {bad}, wanted a finite number"):
        noise.mgf(bad, 0.5)


@EVERY_LAW
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_a_standard_deviation_must_be_finite_and_not_negative(noise: Law, bad: float) -> None:
    with pytest.raises(ArgumentError, match=rf"{noise.name}\.std: got {bad}, wanted a finite number >= 0"):
        noise.gamma_from_std(bad)


# --- strength


@given(std=st.floats(1e-3, 1e3))
def test_a_standard_deviation_survives_the_way_to_gamma_and_back(std: float) -> None:
    for name, noise in LAWS.items():
        # Bernoulli's gamma is rounded near 1, which its small variance magnifies.
        rounding = 4 * torch.finfo(torch.float64).eps * (1 + 1 / std**2 if name == "bernoulli" else 1)
        assert noise.std(noise.gamma_from_std(std)) == pytest.approx(std, rel=rounding)
        assert noise.variance(noise.gamma_from_std(std)) == pytest.approx(std**2, rel=2 * rounding)


@given(gamma=strengths)
def test_gamma_survives_the_way_to_a_standard_deviation_and_back(gamma: float) -> None:
    for name, noise in LAWS.items():
        back = noise.gamma_from_std(noise.std(gamma))
        assert back == (pytest.approx(gamma, rel=1e-14) if name not in SCALES else gamma)


@EVERY_LAW
@EVERY_DTYPE
def test_silence_is_zero_noise_and_leaves_the_generator_alone(noise: Law, dtype: torch.dtype) -> None:
    silent = 1.0 if noise.name == "bernoulli" else 0.0
    generator = seeded(0)
    before = generator.get_state()
    out = torch.full((2, 3), math.nan, dtype=dtype)
    assert noise.fill(out, silent, 2.0, generator) is out
    assert torch.equal(out, torch.zeros(2, 3, dtype=dtype))
    assert torch.equal(generator.get_state(), before)
    assert noise.is_silent(silent)
    assert not noise.is_silent(0.5)
    assert noise.gamma_from_std(0.0) == silent
    assert noise.std(silent) == noise.variance(silent) == 0.0
    assert noise.support(silent) == (0.0, 0.0)
    assert noise.mgf(100.0, silent) == 1.0
    assert math.isnan(noise.skewness(silent))
    assert math.isnan(noise.excess_kurtosis(silent))


# --- drawing


@EVERY_LAW
@EVERY_DTYPE
def test_the_same_seed_gives_the_same_noise_and_another_seed_another(noise: Law, dtype: torch.dtype) -> None:
    first, again, other = (noise.fill(torch.empty(5, 7, 3, dtype=dtype), 0.4, 2.0, seeded(s)) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.dtype == dtype


@EVERY_LAW
def test_noise_does_not_touch_the_global_generator(noise: Law) -> None:
    before = torch.random.get_rng_state()
    noise.fill(torch.empty(100), 0.4, 0.5, seeded(0))
    assert torch.equal(torch.random.get_rng_state(), before)


@EVERY_LAW
def test_what_was_in_the_tensor_does_not_matter(noise: Law) -> None:
    assert torch.equal(
        noise.fill(torch.full((40,), math.nan), 0.4, 0.5, seeded(3)),
        noise.fill(torch.zeros(40), 0.4, 0.5, seeded(3)),
    )


@EVERY_LAW
def test_filled_step_by_step_a_longer_sequence_begins_like_a_shorter_one(noise: Law) -> None:
    def sequence(steps: int) -> Tensor:
        generator, out = seeded(4), torch.empty(steps, 3, 5)
        for step in out:
            noise.fill(step, 0.4, 2.0, generator)
        return out

    assert torch.equal(sequence(9)[:4], sequence(4))


@EVERY_LAW
def test_steps_and_units_are_uncorrelated(noise: Law) -> None:
    rows = torch.stack([noise.fill(torch.empty(100_000), 0.4, 2.0, generator) for generator in [seeded(5)] * 3])
    products = torch.stack([rows[0] * rows[1], rows[1] * rows[2], rows[0] * rows[0].roll(1)])
    assert (products.mean(1).abs() < 5 * products.std(1) / math.sqrt(rows.shape[1])).all()


@given(gamma=strengths, alpha=shapes, seed=seeds, sizes=st.lists(st.integers(0, 20), max_size=3))
def test_noise_is_finite_and_inside_its_support(gamma: float, alpha: float, seed: int, sizes: list[int]) -> None:
    for noise in LAWS.values():
        for dtype in (torch.float32, torch.float64):
            eps = noise.fill(torch.empty(sizes, dtype=dtype), gamma, alpha, seeded(seed))
            low, high = noise.support(gamma, alpha)
            assert list(eps.shape) == sizes
            assert eps.isfinite().all()
            slack = 4 * torch.finfo(torch.float32).eps  # the digits of a draw, whatever the dtype
            assert (eps >= low - slack * (1 - low)).all()
            assert (eps <= high + slack * (1 + high)).all()


@pytest.mark.parametrize(
    ("name", "gamma", "alpha"),
    [
        ("chi-square", 0.2, 2.0),
        ("chi-square", 1e-8, 2.0),
        ("chi-square", 5e-324, 2.0),
        ("gamma", 1.0, 1e-6),
        ("gamma", 1.0, 1e300),
        ("beta", 0.1, 2.0),
        ("beta", 1e-6, 1e-6),
        ("beta", 1e-40, 1e-40),
        ("beta", 5e-324, 2.0),
        ("beta", 0.5, 5e-324),
        ("beta", 0.5, 1e300),
        ("bernoulli", 1e-45, 2.0),
        ("bernoulli", 5e-324, 2.0),
        ("gumbel", 1e-30, 2.0),
    ],
)
def test_noise_is_finite_at_extreme_shapes_and_strengths(name: str, gamma: float, alpha: float) -> None:
    """As eager code fills it, and as a layer draws it."""
    for dtype in (torch.float32, torch.float64):
        assert law(name).fill(torch.empty(100_000, dtype=dtype), gamma, alpha, seeded(6)).isfinite().all()
    recipe = law(name).recipe(gamma, alpha, mean=1.0)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        stream = Randomness(seeded(5)).stream(0)
        assert stream.draw(torch.empty(100, 1000, dtype=dtype), recipe).isfinite().all()


def test_two_tiny_shapes_of_a_beta_law_give_both_ends_in_their_proportion() -> None:
    """In float32 both gamma variables underflow here; a quotient of them would be 0/0 or exactly one half."""
    alpha, gamma, draws = 1e-3, 2e-3, 100_000
    noise = law("beta")
    eps = noise.fill(torch.empty(draws), gamma, alpha, seeded(8))
    low, high = noise.support(gamma, alpha)
    upper = (eps > (low + high) / 2).double().mean().item()
    share = alpha / (alpha + gamma)
    assert abs(upper - share) < 5 * math.sqrt(share * (1 - share) / draws)
    inside = (eps - low).abs().minimum((eps - high).abs()) > 0.01 * (high - low)
    assert inside.double().mean().item() < 0.02


@pytest.mark.parametrize(("name", "gamma", "alpha"), [("gamma", 0.7, 2.0), ("gamma", 0.7, 0.1), ("chi-square", 0.2, 2)])
@EVERY_DTYPE
def test_quantiles_of_the_gamma_laws(name: str, gamma: float, alpha: float, dtype: torch.dtype) -> None:
    shape, scale = (alpha, gamma / math.sqrt(alpha)) if name == "gamma" else (gamma / 2, math.sqrt(2))
    raw = torch.tensor([0.001, 0.01, 0.1, 0.5, 1.0, 1.5, 2.0]) if shape < 1 else torch.linspace(0.2, 6, 15)
    sample = law(name).fill(torch.empty(200_000, dtype=dtype), gamma, alpha, seeded(9))
    assert_quantiles(
        sample,
        lambda eps: torch.special.gammainc(torch.full_like(eps, shape), eps / scale + shape),
        (raw.double() - shape) * scale,
    )


@pytest.mark.parametrize(
    ("name", "cdf"),
    [
        ("gaussian", torch.special.ndtr),
        ("logistic", lambda z: torch.sigmoid(z * math.pi / math.sqrt(3))),
        ("laplace", lambda z: 0.5 + 0.5 * z.sign() * -torch.expm1(-math.sqrt(2) * z.abs())),
        ("gumbel", lambda z: torch.exp(-torch.exp(-(z * math.pi / math.sqrt(6) + 0.5772156649015329)))),
    ],
)
@EVERY_DTYPE
def test_quantiles_of_the_laws_that_gamma_only_stretches(
    name: str, cdf: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    gamma = 1.7
    sample = law(name).fill(torch.empty(200_000, dtype=dtype), gamma, 2.0, seeded(10))
    assert_quantiles(sample, lambda eps: cdf(eps / gamma), gamma * torch.linspace(-1.6, 2.6, 22, dtype=torch.float64))


@pytest.mark.parametrize("gamma", [0.1, 0.4, 5.0])
@EVERY_DTYPE
def test_quantiles_of_the_beta_law(gamma: float, dtype: torch.dtype) -> None:
    """With alpha = 2 the distribution function of eta is 1 - (1 - x)^gamma (1 + gamma x)."""
    alpha = 2.0
    scale, mean = (alpha + gamma) * math.sqrt((alpha + gamma + 1) / alpha), alpha / (alpha + gamma)
    x = torch.linspace(0.15, 0.75, 10, dtype=torch.float64)
    sample = law("beta").fill(torch.empty(200_000, dtype=dtype), gamma, alpha, seeded(11))

    def cdf(eps: Tensor) -> Tensor:
        eta = eps / scale + mean
        return 1 - (1 - eta) ** gamma * (1 + gamma * eta)

    assert_quantiles(sample, cdf, scale * (x - mean))


@pytest.mark.parametrize("gamma", [1e-4, 0.3, 0.5, 0.999])
@EVERY_DTYPE
def test_a_bernoulli_law_takes_two_values_with_the_right_frequency(gamma: float, dtype: torch.dtype) -> None:
    eps = law("bernoulli").fill(torch.empty(500_000, dtype=dtype), gamma, 2.0, seeded(12))
    dropped, kept = eps.unique().tolist()
    assert dropped == -1.0
    assert kept == pytest.approx(1 / gamma - 1, abs=2 * torch.finfo(torch.float32).eps / gamma)
    assert abs((eps > dropped).double().mean().item() - gamma) < 5 * math.sqrt(gamma * (1 - gamma) / eps.numel())


@EVERY_LAW
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_refused(noise: Law, dtype: torch.dtype) -> None:
    with pytest.raises(DtypeError, match=rf"got {dtype}, wanted torch\.float32 or .* Draw in float32, then cast"):
        noise.fill(torch.empty(3, dtype=dtype), 0.4, 2.0, seeded(0))


@EVERY_LAW
def test_a_generator_of_another_device_is_refused(noise: Law) -> None:
    with pytest.raises(DeviceError, match=r"got a generator on cpu, wanted one on meta"):
        noise.fill(torch.empty(3, device="meta"), 0.4, 2.0, seeded(0))


@pytest.mark.gpu
@EVERY_LAW
@EVERY_DTYPE
def test_an_accelerator_draws_the_same_law(noise: Law, dtype: torch.dtype) -> None:
    gamma, draws = 0.3, 2_000_000
    out = torch.empty(draws, dtype=dtype, device="cuda")
    first = noise.fill(out.clone(), gamma, 0.5, seeded(13, "cuda"))
    assert torch.equal(first, noise.fill(out, gamma, 0.5, seeded(13, "cuda")))
    eps, variance = first.double(), noise.variance(gamma)
    assert eps.isfinite().all()
    assert abs(eps.mean().item()) < 5 * math.sqrt(variance / draws)
    error = variance * math.sqrt((noise.excess_kurtosis(gamma, 0.5) + 2) / draws)
    assert abs(eps.square().mean().item() - variance) < 5 * error
    cubes = (eps / math.sqrt(variance)) ** 3
    assert abs(cubes.mean().item() - noise.skewness(gamma, 0.5)) < 5 * cubes.std().item() / math.sqrt(draws)


# --- moment generating functions


@pytest.mark.parametrize(
    ("name", "gamma", "alpha", "edge"),
    [
        ("gamma", 0.4, 2.0, math.sqrt(2) / 0.4),
        ("gumbel", 0.4, 2.0, math.pi / (math.sqrt(6) * 0.4)),
        ("laplace", 0.4, 2.0, math.sqrt(2) / 0.4),
        ("laplace", 0.4, 2.0, -math.sqrt(2) / 0.4),
        ("logistic", 0.4, 2.0, math.pi / (math.sqrt(3) * 0.4)),
        ("logistic", 0.4, 2.0, -math.pi / (math.sqrt(3) * 0.4)),
        ("chi-square", 0.4, 2.0, 1 / math.sqrt(2)),
    ],
)
def test_an_expectation_outside_its_domain_is_infinite(name: str, gamma: float, alpha: float, edge: float) -> None:
    inside = law(name).mgf(0.999 * edge, gamma, alpha)
    assert 1 < inside < math.inf
    for factor in (1.001, 2.0, 7.3):
        assert law(name).mgf(factor * edge, gamma, alpha) == math.inf
        assert law(name).log_mgf(factor * edge, gamma, alpha) == math.inf


@EVERY_LAW
@pytest.mark.parametrize("a", [1e4, -1e4, 1e300, -1e300, 1e-320])
def test_extreme_arguments_give_a_number_of_at_least_one_or_infinity(noise: Law, a: float) -> None:
    """E exp(a eps) >= 1 by Jensen, and overflow is infinity, not an exception."""
    if noise.name == "beta" and abs(a) > 1e100:
        with pytest.raises(ArgumentError, match=r"got .* = .*, wanted at most 4194304"):
            noise.mgf(a, 0.4, 2.0)
    else:
        assert noise.mgf(a, 0.4, 2.0) >= 1


def test_products_past_the_range_of_a_float_are_limits() -> None:
    assert law("gamma").mgf(-1e308, 1e10) == math.inf
    assert law("logistic").mgf(1e-200, 1e-200) == 1
    assert law("bernoulli").log_mgf(1e4, 0.4) == pytest.approx(1e4 / 0.4 - 1e4 + math.log(0.4), rel=1e-14)
    assert law("bernoulli").log_mgf(-1e4, 0.4) == pytest.approx(1e4 + math.log(0.6), rel=1e-14)


@given(gamma=strengths, alpha=st.floats(0.1, 10.0), a=st.floats(-0.3, 0.3))
def test_generating_functions_are_at_least_one_and_begin_with_the_variance(
    gamma: float, alpha: float, a: float
) -> None:
    """log M(a) >= 0 by Jensen, and log M(a) + log M(-a) = v a^2 + O(a^4)."""
    for noise in LAWS.values():
        assert noise.log_mgf(0, gamma, alpha) == 0
        assert noise.log_mgf(a, gamma, alpha) >= -1e-15 * (1 + 1 / gamma)
        if noise.is_silent(gamma):
            continue
        # So small that the next term, v^2 excess a^4 / 12, is below a thousandth of v a^2.
        variance, excess = noise.variance(gamma), noise.excess_kurtosis(gamma, alpha)
        square = 1e-2 / (variance * (1 + abs(excess)))
        up, down = (noise.log_mgf(sign * math.sqrt(square), gamma, alpha) for sign in (1, -1))
        assert up + down == pytest.approx(variance * square, rel=1e-2, abs=1e-14)


def quadrature_of_beta(a: float, gamma: float, alpha: float) -> float:
    """log E exp(a eps) by the trapezium rule in the log odds of eta, where the density falls exponentially."""
    odds = torch.arange(-400, 400, 0.01, dtype=torch.float64)
    scale, mean = (alpha + gamma) * math.sqrt((alpha + gamma + 1) / alpha), alpha / (alpha + gamma)
    log_density = alpha * torch.nn.functional.logsigmoid(odds) + gamma * torch.nn.functional.logsigmoid(-odds)
    tilted = log_density + a * scale * (torch.sigmoid(odds) - mean)
    return float(tilted.logsumexp(0) - log_density.logsumexp(0))


@pytest.mark.parametrize("a", [-50.0, -2.0, -0.3, 0.01, 1.0, 40.0])
@pytest.mark.parametrize(("gamma", "alpha"), [(0.1, 2.0), (0.4, 2.0), (1.5, 0.5), (8.0, 30.0), (0.5, 300.0)])
def test_kummers_series_agrees_with_quadrature(gamma: float, alpha: float, a: float) -> None:
    """The arguments of 1F1 go up to 13000 on either side, far past where its terms overflow."""
    expected = quadrature_of_beta(a, gamma, alpha)
    assert law("beta").log_mgf(a, gamma, alpha) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_kummers_series_does_not_stop_in_a_dip_of_its_terms() -> None:
    """With a tiny second shape the terms fall at once to 1e-20 of the first, and rise again past 1e15 times it."""
    gamma, alpha, a = 1e-22, 1.0, -70.0
    z = -a * math.sqrt(2)
    # 1F1(gamma; 1; z) = 1 + gamma * sum z^k / (k k!) to first order in gamma.
    series = math.fsum(math.exp(k * math.log(z) - math.lgamma(k + 1) - math.log(k)) for k in range(1, 400))
    assert gamma * series > 1e15
    assert law("beta").log_mgf(a, gamma, alpha) == pytest.approx(math.log1p(gamma * series), rel=1e-9)
