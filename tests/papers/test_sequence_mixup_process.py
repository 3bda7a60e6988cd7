"""Known answers for the coefficients of sequence mixup (Karamzade et al. 2020), in closed form and by simulation."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts.passes import seeds
from statewise.errors import ArgumentError
from statewise.mixup import BinomialBeta, InputMixup, MarkovBeta, StationaryBeta, expected_minority, start_variance

DOUBLE = torch.float64


@pytest.mark.parametrize(
    ("alpha", "rho", "previous", "shapes"),
    [
        (0.5, 0.5, 0.2, (2.198, 4.082)),
        (0.5, 0.5, 0.0, (1.25, 3.75)),
        (0.5, 0.5, 1.0, (3.75, 1.25)),
        (0.5, 0.5, 0.5, (3.5, 3.5)),
        (2.0, 0.25, 0.3, (25.13, 46.67)),
        (1.0, 0.1, 0.9, (123.3928, 20.0872)),
        (0.1, 0.9, 0.7, (0.24913778, 0.22997333)),
        (1.0, 0.1, 0.0, (2.8, 53.2)),
    ],
)
def test_the_shapes_have_the_printed_closed_forms(
    alpha: float, rho: float, previous: float, shapes: tuple[float, float]
) -> None:
    found = [float(shape) for shape in MarkovBeta(alpha, rho).shapes(previous)]
    assert found == pytest.approx(shapes, rel=1e-8 if alpha > 0.1 else 5e-8)


def test_mean_variance_and_concentration_of_a_step() -> None:
    process = MarkovBeta(0.5, 0.5)
    mean, variance = process.conditional(torch.tensor(0.2, dtype=DOUBLE))
    assert (float(mean), float(variance)) == (0.35, 0.03125)
    assert float(sum(process.shapes(0.2))) == pytest.approx(6.28, rel=1e-14)


@given(
    alpha=st.floats(-4, 3).map(lambda power: 10**power),
    rho=st.floats(-5, 0).map(lambda power: 10**power),
    previous=st.floats(0, 1),
    stationary=st.booleans(),
)
def test_the_shapes_match_mean_and_variance_and_exist_always(
    alpha: float, rho: float, previous: float, stationary: bool
) -> None:
    """Of a Beta distribution: a / (a + b) and a b / ((a + b)^2 (a + b + 1)); the smaller shape is least at the edge."""
    process = (StationaryBeta if stationary else MarkovBeta)(alpha, rho)
    shape, other = (float(part) for part in process.shapes(previous))
    mean, variance = (float(part) for part in process.conditional(torch.tensor(previous, dtype=DOUBLE)))
    size = shape + other
    assert shape / size == pytest.approx(mean, rel=1e-9)
    assert shape * other / (size**2 * (size + 1)) == pytest.approx(variance, rel=1e-9)
    least = rho * alpha if stationary else 2 * alpha + 1 - rho * (alpha + 1)
    assert min(shape, other) / least >= 1 - 1e-9
    turned = process.shapes(1 - previous)
    assert (float(turned[1]), float(turned[0])) == pytest.approx((shape, other), rel=1e-7)


@given(alpha=st.floats(1e-4, 1e3), rho=st.floats(1e-3, 1))
def test_the_shapes_at_the_edge(alpha: float, rho: float) -> None:
    shape, other = (float(part) for part in MarkovBeta(alpha, rho).shapes(0.0))
    assert shape == pytest.approx(2 * alpha + 1 - rho * (alpha + 1), rel=1e-10)
    assert other == pytest.approx(shape * (2 - rho) / rho, rel=1e-10)


@given(alpha=st.floats(1e-9, 1e6), previous=st.floats(0, 1), seed=seeds)
def test_the_two_limits_of_rho(alpha: float, previous: float, seed: int) -> None:
    """At 1 the shapes are alpha whatever came before, at 0 the coefficient stays."""
    assert [float(shape) for shape in MarkovBeta(alpha, 1.0).shapes(previous)] == [alpha, alpha]
    found = MarkovBeta(alpha, 0.0).sample(3, 7, generator=torch.Generator().manual_seed(seed))
    assert (found - found[0]).abs().max() == 0


@pytest.mark.parametrize(
    ("alpha", "rho", "variances", "correlation"),
    [
        (0.5, 0.5, {1: 0.125, 2: 0.0625, 5: 0.041992, 10: 0.041667}, 0.7071),
        (0.5, 0.1, {2: 0.1025, 5: 0.057555, 10: 0.024353}, 0.9939),
        (1.0, 0.25, {2: 0.052083, 10: 0.012307}, 0.9487),
    ],
)
def test_variances_and_correlations_in_closed_form_and_in_a_simulation(
    alpha: float, rho: float, variances: dict[int, float], correlation: float, generator: torch.Generator
) -> None:
    """The variance falls along the sequence: the paper's text wants one law for all steps, and its process has two."""
    process = MarkovBeta(alpha, rho)
    assert {step: process.variance(step) for step in variances} == pytest.approx(variances, abs=5.1e-7)
    assert process.correlation(1, 1) == pytest.approx(correlation, abs=5.1e-5)
    assert process.variance(10_000) == pytest.approx(start_variance(alpha) * rho / (2 - rho))
    found = process.sample(100_000, 10, generator=generator)
    for step in variances:
        assert float(found[step - 1].var()) == pytest.approx(process.variance(step), rel=0.02)
    assert float(torch.corrcoef(found[:2])[0, 1]) == pytest.approx(correlation, abs=0.01)


def test_between_the_limits_of_rho_mixing_is_stronger() -> None:
    rates = {0.0: 0.1250, 0.05: 0.1814, 0.1: 0.2036, 0.25: 0.2158, 0.5: 0.2009, 1.0: 0.1250}
    assert {rho: MarkovBeta(0.5, rho).strength(15) for rho in rates} == pytest.approx(rates, abs=5.1e-5)
    assert all(StationaryBeta(0.5, rho).strength(15) == pytest.approx(0.125) for rho in rates)


@pytest.mark.parametrize("process", [BinomialBeta(0.5, 1), BinomialBeta(1.0, 4)])
def test_the_binomial_chain_has_the_same_law_at_every_step(process: BinomialBeta, generator: torch.Generator) -> None:
    """That of the arcsine, and the uniform one."""
    found = process.sample(20_000, 4, generator=generator)
    grid = torch.linspace(0.05, 0.95, 10, dtype=DOUBLE)
    expected = 2 / math.pi * grid.sqrt().asin() if process.alpha == 0.5 else grid
    for row in found:
        assert ((row.unsqueeze(1) <= grid).double().mean(0) - expected).abs().max() < 0.018


@pytest.mark.parametrize(
    ("alpha", "value"), [(0.1, 0.058424), (0.5, 0.181690), (1.0, 0.25), (2.0, 0.3125), (0.0, 0.0), (math.inf, 0.5)]
)
def test_the_mean_share_of_the_lesser_member(alpha: float, value: float, generator: torch.Generator) -> None:
    assert expected_minority(alpha) == pytest.approx(value, abs=5.1e-7)
    found = MarkovBeta(alpha).sample(100_000, 1, generator=generator)
    assert float(torch.minimum(found, 1 - found).mean()) == pytest.approx(value, abs=0.003)


@pytest.mark.parametrize("rho", [0.0, 1.0])
@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-9, 1e-6, 1e-3])
def test_tiny_shapes_are_coins_and_not_halves(alpha: float, rho: float, generator: torch.Generator) -> None:
    """torch.distributions.Beta gives 1/2 to a quarter of the draws at 0.001, and to all at 1e-9."""
    found = MarkovBeta(alpha, rho).sample(20_000, 2, generator=generator)
    assert float(found.var()) == pytest.approx(start_variance(alpha), abs=0.002)
    assert float(found.mean()) == pytest.approx(0.5, abs=0.02)
    assert ((found - 0.5).abs() < 0.01).double().mean() < 1e-3
    if alpha <= 1e-6:
        assert ((found < 1e-9) | (found > 1 - 1e-9)).double().mean() > 0.999


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [1e8, math.inf])
def test_huge_shapes_are_halves(alpha: float, rho: float, generator: torch.Generator) -> None:
    found = MarkovBeta(alpha, rho).sample(1000, 3, generator=generator)
    assert (found - 0.5).abs().max() < 1e-3


def test_with_tiny_shapes_the_mean_loss_is_that_of_the_members(generator: torch.Generator) -> None:
    """Training is then the standard one on a random member."""
    pairs = InputMixup(alpha=1e-6, pairing="derange").draw([4] * 2000, generator=generator, dtype=DOUBLE)
    labels = torch.randint(3, (4, 2000), generator=generator)
    logits = torch.randn(1, 1, 3, generator=generator, dtype=DOUBLE).expand(4, 2000, 3)
    plain = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / 2000
    assert float(pairs.cross_entropy(logits, labels)) == pytest.approx(float(plain), rel=0.02)


@pytest.mark.parametrize(("alpha", "rho"), [(-1.0, 0.5), (math.nan, 0.5), (1.0, 1.2), (1.0, -0.1), (1.0, math.nan)])
def test_what_is_no_process_is_refused(alpha: float, rho: float) -> None:
    with pytest.raises(ArgumentError, match="MarkovBeta"):
        MarkovBeta(alpha, rho)
