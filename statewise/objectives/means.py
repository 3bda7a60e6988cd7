"""Are these means zero? Many means at once, tested so that a false alarm is rare, whatever the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

HEAVY = 0.25  # skewness of a mean beyond which its distribution is too far from normal to be judged


class Judged(NamedTuple):
    """What was found of the means of one tensor of (steps, rows, units).

    Attributes:
        values: the means.
        half_width: of intervals that hold all true means at once, but for half of the false alarms allowed.
        steps: for each step whether its means are not all zero.
        nonzero: whether the means of all steps together are not zero.
        heavy: whether the tails were too heavy to judge.
    """

    values: Tensor
    half_width: Tensor
    steps: Tensor
    nonzero: bool
    heavy: bool


@dataclass
class Watch:
    """Collects deviations whose means should be zero: one tensor (steps, rows, units) for each independent call.

    Calls are the units of the statistics, so what happens within one may depend on itself: a dropped weight is shared
    by all rows. The first half of the calls finds the direction in which the means seem to lie; along it the second
    half, which knows nothing of the first, is tested by Student's t. Small deviations of many units add up that way.

    Args:
        calls: how many will come.
        rounding: what is zero for the arithmetic.
    """

    calls: int
    rounding: float
    _moments: list[Tensor] = field(default_factory=list)
    _direction: Tensor | None = None
    _along: list[Tensor] = field(default_factory=list)
    _seen: int = 0

    def add(self, deviation: Tensor) -> None:
        """Take the mean deviation of one call."""
        if self._seen == self.calls // 2:
            mean, variance, _ = self._summary()
            floor = variance.mean() / 100 + self.rounding**2
            self._direction = torch.where(mean.abs() > self.rounding, mean / (variance + floor), 0.0)
        powers = [deviation, deviation.square(), deviation**3]
        self._moments = [a + b for a, b in zip(self._moments, powers, strict=True)] if self._moments else powers
        if self._direction is not None:
            self._along.append((deviation * self._direction).sum((1, 2)))
        self._seen += 1

    @property
    def means(self) -> int:
        """How many means are tested."""
        return self._moments[0].numel()

    def judge(self, *, interval_alarm: float, direction_alarm: float) -> Judged:
        """Test, each mean and each direction with its own small chance of a false alarm."""
        mean, variance, skewness = self._summary()
        error = (variance / self._seen + self.rounding**2).sqrt()
        quantile = student_quantile(interval_alarm / 2, self._seen - 1)
        # The first term of Cornish and Fisher: far out a skewed mean strays further than Student's t says.
        reach = quantile + skewness * (2 * quantile**2 + 1) / 6
        heavy = skewness > HEAVY
        half_width = torch.full_like(mean, math.inf) if heavy else error * reach + self.rounding
        along = torch.stack(self._along)
        limit = student_quantile(direction_alarm, len(along) - 1)
        seen = (mean.abs() > self.rounding).any() & (not heavy)
        together = seen & (_student(along.sum(1, keepdim=True)) > limit)
        steps = seen & (_student(along) > limit) | (mean.abs() > half_width).flatten(1).any(1)
        return Judged(mean, half_width, steps, bool(together.any() | steps.any()), heavy)

    def _summary(self) -> tuple[Tensor, Tensor, float]:
        """Mean and variance of the calls, and the skewness of the means over them, over all units that vary."""
        first, second, third = (moment / self._seen for moment in self._moments)
        variance = (second - first.square()).clamp(min=0)
        varies = variance > self.rounding**2
        if not bool(varies.any()):
            return first, variance, 0.0
        central = third - 3 * first * second + 2 * first**3
        skewness = (central[varies] / variance[varies] ** 1.5).square().mean().sqrt()
        return first, variance * (self._seen / max(1, self._seen - 1)), float(skewness) / math.sqrt(self._seen)


def _student(values: Tensor) -> Tensor:
    error = values.std(0) / math.sqrt(len(values))
    return torch.where(values.mean(0) > 0, values.mean(0) / error.clamp(min=1e-300), torch.zeros_like(error))


@lru_cache(maxsize=256)
def student_quantile(tail: float, freedom: int) -> float:
    """The number that Student's t exceeds with a given small probability.

    >>> round(student_quantile(0.025, 10), 4)
    2.2281
    """
    points, weights = np.polynomial.legendre.leggauss(200)

    def beyond(angle: float) -> float:
        # t = sqrt(freedom) tan(angle), whose density is a power of a cosine.
        middle, half = (math.pi / 2 + angle) / 2, (math.pi / 2 - angle) / 2
        return float(half * (weights @ np.cos(middle + half * points) ** (freedom - 1)))

    low, high, whole = 0.0, math.pi / 2, 2 * beyond(0.0)
    for _ in range(80):
        angle = (low + high) / 2
        low, high = (angle, high) if beyond(angle) > tail * whole else (low, angle)
    return math.sqrt(freedom) * math.tan(low)
