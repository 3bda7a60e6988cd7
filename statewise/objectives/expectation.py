"""Expectations over independent noise on a few units: every mask, or a Gauss rule of the law on a tensor grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.transforms import Noise
from statewise.transforms.laws import EULER_GAMMA, law

Array = NDArray[np.float64]
COUNTS = (8, 12, 16, 24, 32, 48, 64)
MOST_POINTS = 2**20  # of a grid, for each row
HELD = 2**21  # numbers that are held at a time
AGREEMENT = 1e-13  # of two grids, relative to the value, for the finer one to be the last


class Rule(NamedTuple):
    """Values of ``eps`` and their shares: the sum of ``share * f(value)`` is, or approximates, ``E f(eps)``."""

    points: Array
    shares: Array


class Mean(NamedTuple):
    """An expectation for each row, how it was found, and how far the last two grids were apart."""

    values: Tensor
    method: str
    error: Tensor


def expect(
    noise: Noise,
    units: int,
    function: Callable[[Tensor], Tensor],
    *,
    like: Tensor,
    width: int,
) -> Mean:
    """``E f(eps)`` over independent noise on so many units.

    Args:
        noise: the law.
        units: how many units it acts on.
        function: from points (n, units) to values (..., n).
        like: a tensor of the values' device and dtype.
        width: how many numbers the function holds for a point.

    >>> mean = expect(Noise("beta", 0.3), 2, lambda eps: eps.prod(1) ** 2, like=torch.zeros(1).double(), width=1)
    >>> round(mean.values.item(), 12)
    0.09
    """
    if law(noise.law).is_silent(noise.gamma):
        values = function(like.new_zeros(1, units))[..., 0]
        return Mean(values, "no noise", torch.zeros_like(values))
    if noise.law == "bernoulli":
        _check_size(2, units)
        values = _sum(masks(noise), units, function, like, width)
        return Mean(values, f"all {2**units} masks", torch.zeros_like(values))
    counts = [count for count in COUNTS if count**units <= MOST_POINTS]
    _check_size(COUNTS[1], units)
    values, error, count = _sum(gauss(noise, counts[0]), units, function, like, width), None, counts[0]
    for count in counts[1:]:
        finer = _sum(gauss(noise, count), units, function, like, width)
        # NaN, from infinity minus infinity, is no agreement.
        values, error = finer, (finer - values).abs().nan_to_num(nan=math.inf)
        if bool((error <= AGREEMENT * finer.abs()).all()):
            break
    assert error is not None
    return Mean(values, f"a Gauss rule of {count} points a unit", error)


def masks(noise: Noise) -> Rule:
    """The two values of Bernoulli noise.

    >>> masks(Noise("bernoulli", 0.5)).points
    array([-1.,  1.])
    """
    return Rule(np.array([-1.0, 1 / noise.gamma - 1]), np.array([1 - noise.gamma, noise.gamma]))


@lru_cache(maxsize=256)
def gauss(noise: Noise, count: int) -> Rule:
    """The Gauss rule of a law: exact for polynomials of degree below ``2 * count``.

    Laplace noise, whose density has a kink at 0, gets a rule for each side.

    >>> rule = gauss(Noise("logistic", 0.5), 4)
    >>> round(float(rule.shares @ rule.points**2), 12)
    0.25
    """
    gamma, alpha = float(noise.gamma), float(noise.alpha)
    k = np.arange(count, dtype=np.float64)
    if noise.law == "gaussian":
        return _scaled(_golub_welsch(0 * k, k[1:]), 0.0, gamma)
    if noise.law == "logistic":
        return _scaled(
            _golub_welsch(0 * k, k[1:] ** 4 * math.pi**2 / (4 * k[1:] ** 2 - 1)), 0.0, gamma * math.sqrt(3) / math.pi
        )
    if noise.law == "laplace":
        half = _laguerre(1.0, max(1, count // 2))
        return Rule(np.r_[-half.points, half.points] * gamma / math.sqrt(2), np.r_[half.shares, half.shares] / 2)
    if noise.law == "gamma":
        return _scaled(_laguerre(alpha, count), alpha, gamma / math.sqrt(alpha))
    if noise.law == "chi-square":
        return _scaled(_laguerre(gamma / 2, count), gamma / 2, math.sqrt(2))
    if noise.law == "gumbel":
        # The trapezoidal rule converges exponentially on this density; its measure has the same polynomials.
        t = np.arange(-5.0, 500.0, 0.1)
        return _scaled(
            _golub_welsch(*_lanczos(t, np.exp(-t - np.exp(-t)), count)), EULER_GAMMA, gamma * math.sqrt(6) / math.pi
        )
    share, total = _jacobi(alpha, gamma, count), alpha + gamma
    return _scaled(share, alpha / total, total * math.sqrt((total + 1) / alpha))


def _scaled(rule: Rule, mean: float, scale: float) -> Rule:
    return Rule((rule.points - mean) * scale, rule.shares)


def _laguerre(shape: float, count: int) -> Rule:
    """For the law Gamma(shape, 1)."""
    k = np.arange(count, dtype=np.float64)
    return _golub_welsch(2 * k + shape, k[1:] * (k[1:] + shape - 1))


def _jacobi(first: float, second: float, count: int) -> Rule:
    """For the law Beta(first, second)."""
    a, b = second - 1, first - 1
    k = np.arange(1, count, dtype=np.float64)
    d = 2 * k + a + b
    centres = np.r_[(b - a) / (a + b + 2), (b * b - a * a) / (d * (d + 2))]
    # At k = 1 the factors k + a + b and d - 1 are the same, and may both be zero.
    squares = (
        4 * k * (k + a) * (k + b) * np.where(k == 1, 1.0, k + a + b) / (d * d * (d + 1) * np.where(k == 1, 1.0, d - 1))
    )
    rule = _golub_welsch(centres, squares)
    return Rule((rule.points + 1) / 2, rule.shares)


def _golub_welsch(centres: Array, squares: Array) -> Rule:
    """The Gauss rule of a three-term recurrence (Golub & Welsch 1969)."""
    sides = np.sqrt(squares)
    points = np.linalg.eigvalsh(np.diag(centres) + np.diag(sides, 1) + np.diag(sides, -1))
    # Shares from the polynomials, not from eigenvectors: the smallest keep their digits, and meet large values.
    before, now = np.zeros_like(points), np.ones_like(points)
    total, last, log_scale = now.copy(), 0.0, np.zeros_like(points)
    for centre, side in zip(centres, sides, strict=False):
        before, now = now, ((points - centre) * now - last * before) / side
        last = side
        large = np.maximum(np.abs(now), 1.0)
        before, now, total, log_scale = before / large, now / large, total / large**2, log_scale + np.log(large)
        total = total + now**2
    shares = np.exp(-2 * log_scale) / total
    return Rule(points, shares / shares.sum())


def _lanczos(points: Array, shares: Array, count: int) -> tuple[Array, Array]:
    """The recurrence of the polynomials that are orthogonal over a discrete measure."""
    basis = [np.sqrt(shares / shares.sum())]
    centres, squares = [], []
    for _ in range(count):
        moved = points * basis[-1]
        centres.append(float(moved @ basis[-1]))
        for _ in range(2):  # twice is enough to keep them orthogonal
            for one in basis:
                moved = moved - (one @ moved) * one
        squares.append(float(moved @ moved))
        basis.append(moved / math.sqrt(squares[-1]))
    return np.array(centres), np.array(squares[:-1])


def _check_size(count: int, units: int) -> None:
    if count**units > MOST_POINTS:
        most = int(math.log(MOST_POINTS, count))
        raise ArgumentError(
            where="noise on units",
            got=f"{units} units",
            wanted=f"at most {most} for an exact expectation under this law",
            remedy="For more units use bracket(..., method='moments') or estimated_excess.",
        )


def _sum(rule: Rule, units: int, function: Callable[[Tensor], Tensor], like: Tensor, width: int) -> Tensor:
    total: Tensor | None = None
    for points, shares in _grid(rule, units, like, max(1, HELD // width)):
        part = function(points) @ shares
        total = part if total is None else total + part
    assert total is not None
    return total


def _grid(rule: Rule, units: int, like: Tensor, held: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The points of the tensor grid and their shares, some at a time."""
    points, shares = (torch.as_tensor(part).to(like) for part in rule)
    count = len(points)
    places = torch.tensor([count**unit for unit in range(units)], device=like.device)
    for start in range(0, count**units, held):
        index = torch.arange(start, min(start + held, count**units), device=like.device)
        digits = index.unsqueeze(1) // places % count
        yield points[digits], shares[digits].prod(1)
