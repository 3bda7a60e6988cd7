"""Testing many means at once."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from statewise.objectives.means import Watch, student_quantile

DOUBLE = torch.float64
CALLS = 64
ALARMS = {"interval_alarm": 1e-3 / 2 / 120, "direction_alarm": 1e-3 / 2 / 5}


def watch(values: Tensor) -> Watch:
    """A watch that has seen values of the shape (calls, steps, rows, units)."""
    found = Watch(len(values), 1e-10)
    for one in values:
        found.add(one)
    return found


@pytest.mark.parametrize(
    ("tail", "freedom", "quantile"),
    # Of printed tables, and of the Cauchy law (one degree of freedom) in closed form.
    [(0.025, 10, 2.228139), (0.005, 30, 2.749996), (0.0005, 60, 3.460200), (0.01, 1, 1 / math.tan(math.pi * 0.01))],
)
def test_students_quantiles(tail: float, freedom: int, quantile: float) -> None:
    assert student_quantile(tail, freedom) == pytest.approx(quantile, rel=1e-6)


def test_students_quantiles_far_out_are_those_of_the_density() -> None:
    """A tail of 1e-9 at 63 degrees of freedom, integrated by the trapezoidal rule."""
    t = torch.linspace(student_quantile(1e-9, 63), 60, 2_000_001, dtype=DOUBLE)
    log_density = math.lgamma(32) - math.lgamma(31.5) - 0.5 * math.log(63 * math.pi) - 32 * torch.log1p(t**2 / 63)
    assert torch.trapezoid(log_density.exp(), t).item() == pytest.approx(1e-9, rel=1e-5)


def test_zeros_are_zero_and_a_constant_is_not() -> None:
    assert not watch(torch.zeros(CALLS, 4, 3, 10, dtype=DOUBLE)).judge(**ALARMS).nonzero
    rounding = torch.full((CALLS, 4, 3, 10), 1e-12, dtype=DOUBLE)
    assert not watch(rounding).judge(**ALARMS).nonzero
    values = torch.zeros(CALLS, 4, 3, 10, dtype=DOUBLE)
    values[:, 2, 1, 5] = 1e-6
    found = watch(values).judge(**ALARMS)
    assert found.nonzero
    assert found.steps.tolist() == [False, False, True, False]


def test_one_large_mean_is_found_by_its_interval(generator: torch.Generator) -> None:
    values = torch.randn(CALLS, 4, 3, 10, generator=generator, dtype=DOUBLE)
    values[:, 1, 2, 7] += 1.5
    found = watch(values).judge(**ALARMS)
    assert found.steps.tolist() == [False, True, False, False]
    assert found.values[1, 2, 7] > found.half_width[1, 2, 7]
    assert (found.values.abs() > found.half_width).sum() == 1


def test_many_small_means_are_found_together_though_none_alone(generator: torch.Generator) -> None:
    values = torch.randn(CALLS, 4, 30, 100, generator=generator, dtype=DOUBLE)
    values[:, 3] += 0.08 * torch.randn(30, 100, generator=generator, dtype=DOUBLE).sign()
    found = watch(values).judge(interval_alarm=1e-3 / 2 / values[0].numel(), direction_alarm=1e-4)
    assert not (found.values.abs() > found.half_width).any()
    assert found.steps.tolist() == [False, False, False, True]


@pytest.mark.parametrize("kind", ["normal", "skewed", "shared"])
def test_false_alarms_are_rare(kind: str, generator: torch.Generator) -> None:
    """At a level of one in twenty, over a hundred fresh sets of means that are zero."""
    alarms = {"interval_alarm": 0.05 / 2 / 120, "direction_alarm": 0.05 / 2 / 5}
    raised = 0
    for _ in range(100):
        values = torch.randn(CALLS, 4, 3, 10, generator=generator, dtype=DOUBLE)
        if kind == "skewed":
            values = values.square() - 1
        if kind == "shared":
            values = values[:, :1, :1].expand(-1, 4, 3, -1)  # rows and steps of a call have the same noise
        raised += watch(values).judge(**alarms).nonzero
    assert raised <= 14  # of a hundred, with an expectation of five at most; 15 would be one in ten thousand


def test_tails_that_are_too_heavy_are_not_judged(generator: torch.Generator) -> None:
    """Noise that is nearly always absent: most units never see it, and would seem to be off without a doubt."""
    rare = (torch.rand(CALLS, 4, 3, 10, generator=generator, dtype=DOUBLE) < 0.005).double() * 200 - 1
    found = watch(rare).judge(**ALARMS)
    assert found.heavy
    assert not found.nonzero
    assert found.half_width.isinf().all()
