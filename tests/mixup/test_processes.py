"""Chains of coefficients: the contract of each, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from contracts.processes import ProcessContract
from statewise.errors import ArgumentError, DtypeError
from statewise.mixup import BetaChain, BinomialBeta, Constant, MarkovBeta, StationaryBeta
from statewise.mixup.processes import start_variance

shapes = st.sampled_from([0.0, 1e-9, 1e-3, math.inf]) | st.floats(0.01, 20)
rates = st.sampled_from([0.0, 1e-9, 1.0]) | st.floats(1e-3, 1)


class TestMarkovBeta(ProcessContract):
    kind = MarkovBeta

    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({"alpha": shapes, "rho": rates})


class TestStationaryBeta(ProcessContract):
    kind = StationaryBeta

    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({"alpha": shapes, "rho": rates})


class TestBinomialBeta(ProcessContract):
    kind = BinomialBeta

    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({"alpha": st.floats(1e-3, 20), "n": st.integers(0, 9)})


class TestConstant(ProcessContract):
    kind = Constant

    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({"value": st.floats(0, 1)})


@dataclass(frozen=True)
class Restless(BetaChain):
    """A rule of a user's own, whose variance no Beta distribution has near 0 and 1."""

    def conditional(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        return 0.1 + 0.8 * previous, torch.full_like(previous, 0.12)

    @property
    def persistence(self) -> float:
        return 0.8

    def variance(self, step: int) -> float:
        return start_variance(self.alpha) if step == 1 else 0.12 + 0.64 * self.variance(step - 1)


@pytest.mark.parametrize("kind", [MarkovBeta, StationaryBeta])
@pytest.mark.parametrize("alpha", [-1.0, -1e-9, math.nan, -math.inf])
def test_a_shape_below_zero_is_refused(kind: type[MarkovBeta], alpha: float) -> None:
    with pytest.raises(ArgumentError, match=rf"{kind.__name__}\.alpha"):
        kind(alpha)


@pytest.mark.parametrize("kind", [MarkovBeta, StationaryBeta])
@pytest.mark.parametrize("rho", [-0.1, 1.1, math.nan, math.inf])
def test_a_rate_beyond_0_and_1_is_refused(kind: type[MarkovBeta], rho: float) -> None:
    with pytest.raises(ArgumentError, match=rf"{kind.__name__}\.rho"):
        kind(1.0, rho)


def test_other_settings_are_refused() -> None:
    with pytest.raises(ArgumentError, match="on_infeasible"):
        MarkovBeta(1.0, 0.5, on_infeasible="clamp")
    with pytest.raises(ArgumentError, match=r"BinomialBeta\.alpha: got 0\.0"):
        BinomialBeta(0.0)
    with pytest.raises(ArgumentError, match=r"BinomialBeta\.n: got -1"):
        BinomialBeta(1.0, -1)
    with pytest.raises(ArgumentError, match=r"Constant\.value"):
        Constant(1.5)


@pytest.mark.usefixtures("as_users_have_it")
def test_a_word_is_no_shape() -> None:
    wrong: Any = "one"
    with pytest.raises(DtypeError, match=r"MarkovBeta\.alpha: got str"):
        MarkovBeta(wrong)


def test_a_rule_beyond_every_beta_distribution_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(ArgumentError, match=r"conditional variance of 0\.12, wanted .*no Beta distribution exists"):
        Restless(1.0).shapes(0.0)
    assert Restless(1.0).shapes(0.5)[0] == pytest.approx(0.5 * (0.25 / 0.12 - 1))


def test_a_projected_rule_keeps_its_mean(generator: torch.Generator) -> None:
    """Clamping both shapes, as is done elsewhere, would move it to 1/2."""
    rule = Restless(1.0, on_infeasible="project")
    shape, other = rule.shapes(0.0)
    assert shape / (shape + other) == pytest.approx(0.1)
    previous = torch.zeros(100_000, dtype=torch.float64)
    found = rule.following(previous, generator)
    assert found.mean() == pytest.approx(0.1, abs=0.006)
    assert ((found < 1e-3) | (found > 0.999)).double().mean() > 0.99  # a coin, almost


def test_without_a_rate_there_are_no_shapes() -> None:
    with pytest.raises(ArgumentError, match=r"rho=0\.0, wanted rho > 0"):
        MarkovBeta(1.0, 0.0).shapes(0.5)


def test_a_rate_too_small_for_float64_is_none() -> None:
    found = MarkovBeta(0.5, 1e-12).sample(3, 5, generator=torch.Generator().manual_seed(0))
    assert (found == found[0]).all()


def test_correlations_of_what_does_not_vary_are_unknown() -> None:
    assert math.isnan(Constant(0.5).correlation(1, 1))
