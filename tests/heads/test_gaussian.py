"""A normal law with a deviation of its own, against torch's distributions."""

from __future__ import annotations

import math

import pytest
import torch

from statewise.errors import ShapeError
from statewise.heads import Normal
from statewise.heads.gaussian import LEAST
from support import tolerance


def laws(generator: torch.Generator) -> Normal:
    scores = torch.randn(4, 3, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    return Normal.of(scores)


def test_density_and_its_gradients_are_those_of_torch(generator: torch.Generator) -> None:
    found = laws(generator)
    observed = torch.randn(4, 3, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    truth = torch.distributions.Normal(found.mean, found.deviation).log_prob(observed).sum(-1)
    torch.testing.assert_close(found.log_prob(observed), truth, **tolerance(truth.dtype))
    inputs = (found.mean, found.deviation, observed)
    mine = torch.autograd.grad(found.log_prob(observed).sum(), inputs, retain_graph=True)
    theirs = torch.autograd.grad(truth.sum(), inputs)
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, **tolerance(one.dtype))


def test_a_score_of_zero_is_the_unit_and_no_deviation_is_zero() -> None:
    unit = Normal.of(torch.zeros(1, 2))
    assert float(unit.mean) == 0
    assert float(unit.deviation) == pytest.approx(1 + LEAST)
    assert float(Normal.of(torch.tensor([[0.0, -1e6]])).deviation) == pytest.approx(LEAST)


def test_other_units_leave_the_distribution_function_as_it_is(generator: torch.Generator) -> None:
    found = laws(generator)
    mean, deviation = torch.tensor([5.0, -3.0, 0.0]).double(), torch.tensor([2.0, 0.1, 30.0]).double()
    other = found.in_units(mean, deviation)
    observed = torch.randn(4, 3, 3, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(other.cdf(observed * deviation + mean), found.cdf(observed), **tolerance(torch.float64))
    shift = deviation.log().sum()
    torch.testing.assert_close(other.log_prob(observed * deviation + mean), found.log_prob(observed) - shift)


def test_draws_have_the_moments_of_the_law_and_depend_on_the_generator_alone() -> None:
    law = Normal(torch.full((20_000, 1), 3.0), torch.full((20_000, 1), 0.5))
    drawn = law.draw(torch.Generator().manual_seed(0))
    assert float(drawn.mean()) == pytest.approx(3.0, abs=5 * 0.5 / math.sqrt(20_000))
    assert float(drawn.std()) == pytest.approx(0.5, rel=0.03)
    assert torch.equal(drawn, law.draw(torch.Generator().manual_seed(0)))
    assert not torch.equal(drawn, law.draw(torch.Generator().manual_seed(1)))


def test_an_odd_number_of_scores_is_refused() -> None:
    with pytest.raises(ShapeError):
        Normal.of(torch.zeros(2, 3))
