"""How the numbers of each law are made from counted words, with torch's operations: the truth for both kernels.

A recipe is what the C++ kernel (``native/random.h``) and the Triton kernel (``kernels/fill.py``) get: a kind, a scale
and a shift. From 32 bits of a word, of which one may be a sign, come the laws that need one uniform number; nothing is
0 or infinite, and the far tails end where a probability of 2^-32 ends: at 21.5 for the Laplace law, 22.2 for the
logistic, and at -3.1 and 22.2 for the Gumbel law. A probability to keep is a multiple of 2^-32.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from statewise.transforms.counter import (
    exponentials,
    joined,
    log,
    pairs_of_halves,
    pairs_of_normals,
    pairs_of_uniforms,
    signed_shares,
    words,
)
from statewise.transforms.gammas import Shape, betas, gammas

_LARGEST = float(torch.finfo(torch.float32).max)


class Kind(IntEnum):
    """The laws of which both kernels know how to draw; the numbers are theirs."""

    UNIFORM = 0
    NORMAL = 1
    BERNOULLI = 2
    LAPLACE = 3
    LOGISTIC = 4
    GUMBEL = 5
    GAMMA = 6
    BETA = 7


class Recipe(NamedTuple):
    """A law of counted numbers, ``scale * raw + shift``.

    Args:
        kind: the law of ``raw``.
        scale: finite in float32.
        shift: finite in float32.
        bound: of a Bernoulli law: 2^32 times its probability of 1.
        shapes: of gamma and beta laws: the three numbers of :class:`~statewise.transforms.gammas.Shape` of each
            variable.

    >>> recipe = Recipe.bernoulli(0.25, scale=4.0)
    >>> numbers(recipe, 1, 1, 5, torch.device("cpu"))
    tensor([[0., 0., 0., 4., 0.]])
    """

    kind: int
    scale: float = 1.0
    shift: float = 0.0
    bound: int = 0
    shapes: tuple[float, ...] = ()

    @classmethod
    def of(cls, kind: Kind, *, scale: float = 1.0, shift: float = 0.0) -> Recipe:
        """A law without further numbers: uniform, normal, Laplace, logistic or Gumbel, in standard form."""
        return cls(int(kind), _narrow(scale), _narrow(shift))

    @classmethod
    def bernoulli(cls, probability: float, *, scale: float = 1.0, shift: float = 0.0) -> Recipe:
        """1 with a probability, else 0."""
        return cls(int(Kind.BERNOULLI), _narrow(scale), _narrow(shift), round(probability * 2**32))

    @classmethod
    def gamma(cls, shape: float, *, scale: float = 1.0, shift: float = 0.0) -> Recipe:
        """A standard gamma variable, less its mean."""
        found = Shape.of(shape)
        # From shape 1 on the kernels subtract it themselves, before anything is rounded.
        mean = shape if found.inverse else 0.0
        return cls(int(Kind.GAMMA), _narrow(scale), _narrow(shift - mean * scale), 0, (*found,))

    @classmethod
    def beta(cls, first: float, second: float, *, scale: float = 1.0, shift: float = 0.0) -> Recipe:
        """A beta variable; the digits are kept of one near 0, so the first shape had better be the smaller."""
        shapes = (*Shape.of(first), *Shape.of(second))
        return cls(int(Kind.BETA), _narrow(scale), _narrow(shift), 0, shapes)


def numbers(recipe: Recipe, seed: int | Tensor, steps: int, size: int, device: torch.device) -> Tensor:
    """The float32 numbers of a recipe, shape (steps, size).

    >>> numbers(Recipe.of(Kind.LAPLACE), 3, 2, 500, torch.device("cpu")).isfinite().all().item()
    True
    """
    if recipe.kind == Kind.GAMMA:
        raw = gammas(seed, Shape(*recipe.shapes), steps, size, device)
    elif recipe.kind == Kind.BETA:
        raw = betas(seed, Shape(*recipe.shapes[:3]), Shape(*recipe.shapes[3:]), steps, size, device)
    else:
        word = words(seed, steps, (size + 1) // 2, device)
        bernoulli = recipe.kind == Kind.BERNOULLI
        pairs = (pairs_of_halves(word) < recipe.bound).float() if bernoulli else _PAIRS[recipe.kind](word)
        raw = joined(pairs, size)
    return raw.mul_(recipe.scale).add_(recipe.shift)


def _laplaces(word: Tensor) -> Tensor:
    minus, share = signed_shares(pairs_of_halves(word))
    return torch.where(minus, log(share), -log(share))


def _logistics(word: Tensor) -> Tensor:
    """``ln(p / (1 - p))`` with p or 1 - p half of a number in (0, 1]."""
    minus, share = signed_shares(pairs_of_halves(word))
    odds = log(share / (2.0 - share))
    return torch.where(minus, odds, -odds)


def _gumbels(word: Tensor) -> Tensor:
    return -log(exponentials(pairs_of_halves(word)))


_PAIRS: dict[int, Callable[[Tensor], Tensor]] = {
    Kind.UNIFORM: pairs_of_uniforms,
    Kind.NORMAL: pairs_of_normals,
    Kind.LAPLACE: _laplaces,
    Kind.LOGISTIC: _logistics,
    Kind.GUMBEL: _gumbels,
}


def _narrow(number: float) -> float:
    """Inside float32, where an infinite scale would make 0 * inf."""
    return max(-_LARGEST, min(_LARGEST, float(number)))
