"""Interval arithmetic on tensors: every value together with a range that it cannot leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Interval:
    """Numbers known to lie between ``low`` and ``high``, and their value at the centre of a ball.

    >>> box = Interval.around(torch.tensor([2.0]), torch.tensor([1.0])) * Interval.exactly(torch.tensor([-1.0]))
    >>> box.low.item(), box.center.item(), box.high.item(), box.spread.item()
    (-3.0, -2.0, -1.0, 1.0)
    """

    center: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def around(cls, center: Tensor, radius: Tensor) -> Interval:
        """Everything within a radius."""
        return cls(center, center - radius, center + radius)

    @classmethod
    def exactly(cls, value: Tensor) -> Interval:
        """A value that is known."""
        return cls(value, value, value)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.center + other.center, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.center - other.center, self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        low, high = corners[0], corners[0]
        for corner in corners[1:]:
            low, high = torch.minimum(low, corner), torch.maximum(high, corner)
        return Interval(self.center * other.center, low, high)

    def from_one(self) -> Interval:
        """``1 - x``."""
        return Interval(1 - self.center, 1 - self.high, 1 - self.low)

    def rising(self, function: Callable[[Tensor], Tensor]) -> Interval:
        """The image under a function that never falls."""
        return Interval(function(self.center), function(self.low), function(self.high))

    def bell(self, function: Callable[[Tensor], Tensor]) -> Interval:
        """The image under an even function that falls with the distance from 0."""
        nearest = torch.where((self.low <= 0) & (self.high >= 0), torch.zeros_like(self.low), self._nearest)
        farthest = torch.maximum(self.low.abs(), self.high.abs())
        return Interval(function(self.center), function(farthest), function(nearest))

    @property
    def _nearest(self) -> Tensor:
        return torch.minimum(self.low.abs(), self.high.abs())

    @property
    def spread(self) -> Tensor:
        """How far a value can be from its centre."""
        return torch.maximum(self.high - self.center, self.center - self.low)

    @property
    def largest(self) -> Tensor:
        """How large a value can be."""
        return torch.maximum(self.low.abs(), self.high.abs())


def sigmoid_slope(z: Tensor) -> Tensor:
    """The derivative of the logistic function."""
    s = torch.sigmoid(z)
    return s * (1 - s)


def tanh_slope(z: Tensor) -> Tensor:
    """The derivative of tanh, accurate where it is small."""
    return torch.cosh(z.clamp(-350, 350)).pow(-2)
