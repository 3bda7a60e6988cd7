"""Of which degree the last output of a deep circuit is, in its inputs and in its weights."""

from __future__ import annotations

import itertools
import math

from statewise.errors import ArgumentError


def degree(before_last: int, L: int) -> int:
    """The degree of the last output in the input some steps before: ``C(j + L - 1, L - 1)`` (of Ziv 2019, section 2.1).

    Args:
        before_last: j, how many steps before the last.
        L: layers.

    >>> [degree(6 - t, 3) for t in (1, 2, 3, 4, 5, 6)]
    [21, 15, 10, 6, 3, 1]
    """
    _at_least("degree.before_last", before_last, 0)
    return math.comb(before_last + _at_least("degree.L", L, 1) - 1, L - 1)


def weight_copies(T: int, L: int, layer: int) -> int:
    """How many copies of an input matrix the tensor network of the last output has: ``n_l = C(T + L - l, L - l + 1)``.

    Args:
        T: steps.
        L: layers.
        layer: l = 1..L; L + 1 stands for the readout, of which there is one.

    >>> [weight_copies(6, 3, layer) for layer in (1, 2, 3, 4)]
    [56, 21, 6, 1]
    """
    _at_least("weight_copies.T", T, 1)
    _at_least("weight_copies.layer", layer, 1)
    _at_least("weight_copies.L", L, max(1, layer - 1))
    return math.comb(T + L - layer, L - layer + 1)


def weight_degree(T: int, L: int, *, start: str = "ones") -> int:
    """The degree of the last output in all weights together: ``sum over l of (2 n_l - n_(l+1)) + 1``.

    A network of which the start is drawn has as many more products with it: ``sum of (2 n_l + n_(l+1)) + 1``.

    Args:
        T: steps.
        L: layers.
        start: "ones" for a first product ``U h_0 = 1``, else the start counts as weights.

    >>> weight_degree(6, 3)
    139
    """
    _at_least("weight_degree.L", L, 1)
    copies = [weight_copies(T, L, layer) for layer in range(1, L + 2)]
    sign = -1 if start == "ones" else 1
    return sum(2 * own + sign * above for own, above in itertools.pairwise(copies)) + 1


def _at_least(where: str, value: int, least: int) -> int:
    if value < least:
        raise ArgumentError(where=where, got=value, wanted=f"a whole number of at least {least}")
    return value
