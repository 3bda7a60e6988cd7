"""Gamma variables by counting: proposals of Marsaglia & Tsang (2000), each a function of seed, place and round.

With ``d = shape - 1/3``, ``c = 1 / sqrt(9 d)`` and x normal, ``d (1 + c x)^3`` is a gamma variable if it is accepted,
which 95 of 100 are at shape 1, and more above. Below 1 a variable of shape + 1 is multiplied by ``U^(1 / shape)``.
Round r of a place takes the words of that place from seeds of the round's own, so that a number does not depend on how
often its neighbours were rejected. After 16 rounds, once in 10^20 numbers, x = 0 is taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from statewise.transforms.counter import (
    exp,
    exponentials,
    joined,
    log,
    pairs_of_halves,
    pairs_of_normals,
    seed_of,
    signed_shares,
    words_at,
)

ROUNDS = 16
_SMALLEST, _LARGEST = 1e-30, 1e30  # of a shape: quotients and sums of others would leave float32


class Shape(NamedTuple):
    """What the formulas need of a gamma variable's shape.

    >>> Shape.of(0.5).inverse, Shape.of(2.0).inverse
    (2.0, 0.0)
    """

    d: float
    c: float
    inverse: float

    @classmethod
    def of(cls, shape: float) -> Shape:
        """The numbers of a shape; ``inverse`` is 0 from shape 1 on, where no power of a uniform number is needed."""
        shape = min(max(shape, _SMALLEST), _LARGEST)
        boosted = shape < 1
        d = shape + (2 / 3 if boosted else -1 / 3)
        return cls(d, 1 / (3 * math.sqrt(d)), 1 / shape if boosted else 0.0)


def gammas(seed: int | Tensor, shape: Shape, steps: int, size: int, device: torch.device) -> Tensor:
    """Standard gamma numbers, shape (steps, size); less their shape where that is 1 or more.

    So the digits of a large shape do not hide those of its noise.

    >>> gammas(3, Shape.of(2.0), 100, 1000, torch.device("cpu")).mean().item()  # doctest: +ELLIPSIS
    -0.00...
    """
    variable = _Variable(seed, 0, shape, steps, size, device)
    if shape.inverse == 0:
        t = variable.steps_from_one()
        return (t * ((t + 3.0) * t + 3.0)) * shape.d - 1 / 3
    return variable.unboosted() * exp(-(variable.exponentials() * shape.inverse))


def betas(seed: int | Tensor, first: Shape, second: Shape, steps: int, size: int, device: torch.device) -> Tensor:
    """Beta numbers ``G1 / (G1 + G2)``, shape (steps, size).

    The powers of uniform numbers are compared by their logarithms, and the smaller alone is applied: ``0 / 0`` cannot
    be.

    >>> betas(3, Shape.of(1e-9), Shape.of(1e-9), 1, 9, torch.device("cpu")).unique()
    tensor([0., 1.])
    """
    one, other = (_Variable(seed, index, shape, steps, size, device) for index, shape in enumerate((first, second)))
    ahead = other.exponentials() * second.inverse - one.exponentials() * first.inverse
    factor = exp(-ahead.abs())
    g, h = one.unboosted(), other.unboosted()
    g, h = torch.where(ahead > 0, g, g * factor), torch.where(ahead > 0, h * factor, h)
    return g / (g + h)


class _Variable:
    """One of the gamma variables that a number is made of, at all places."""

    def __init__(
        self, seed: int | Tensor, index: int, shape: Shape, steps: int, size: int, device: torch.device
    ) -> None:
        self.seed = seed_of(torch.as_tensor(seed, device=device), (index,))
        self.shape = shape
        self.sizes = (2, steps, (size + 1) // 2)
        self.size = size
        self.places = torch.arange(self.sizes[1] * self.sizes[2], device=device)

    def exponentials(self) -> Tensor:
        """Minus the logarithms of the uniform numbers of a shape below 1."""
        halves = pairs_of_halves(words_at(seed_of(self.seed, (0,)), self.places))
        return joined(exponentials(halves).view(self.sizes), self.size)

    def unboosted(self) -> Tensor:
        """``d (1 + t)^3``, which is never 0."""
        s = self.steps_from_one() + 1.0
        return (s * s * s) * self.shape.d

    def steps_from_one(self) -> Tensor:
        """The first accepted ``t = c x`` of each place."""
        t, accepted = self._proposals(0, self.places)
        t = torch.where(accepted, t, torch.zeros_like(t))
        for turn in range(1, ROUNDS):
            if not _may_be_counted(t):
                again, taken = self._proposals(turn, self.places)
                t = torch.where(taken & ~accepted, again, t)
                accepted = accepted | taken
                continue
            half, place = (~accepted).nonzero(as_tuple=True)
            if len(place) == 0:
                break
            again, taken = (both.gather(0, half.unsqueeze(0))[0] for both in self._proposals(turn, place))
            t[half, place] = torch.where(taken, again, torch.zeros_like(again))
            accepted[half, place] = taken
        return joined(t.view(self.sizes), self.size)

    def _proposals(self, turn: int, places: Tensor) -> tuple[Tensor, Tensor]:
        """``c x`` of both halves of a step at some places, and whether it is accepted."""
        d, c, _ = self.shape
        x = pairs_of_normals(words_at(seed_of(self.seed, (2 * turn + 1,)), places))
        _, share = signed_shares(pairs_of_halves(words_at(seed_of(self.seed, (2 * turn + 2,)), places)))
        t = x * c
        s = t + 1.0
        log_s = log(s) + (t - (s - 1.0))  # of 1 + t before it was rounded; without a meaning where s <= 0
        limit = (x * x) * 0.5 - (t * ((t + 3.0) * t + 3.0) - log_s * 3.0) * d
        return t, (s > 0) & (log(share) < limit)


def _may_be_counted(numbers: Tensor) -> bool:
    """Whether the host knows how many of them are left without waiting for a device."""
    return numbers.device.type == "cpu"
