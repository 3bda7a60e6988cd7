"""Of which degree the last output of a deep circuit is, in its inputs and in its weights."""

from __future__ import annotations

import itertools
import math

from statewise.memory.whole import whole


def degree(before_last: int, L: int) -> int:
    """The degree of the last output in the input some steps before: ``C(j + L - 1, L - 1)`` (of Ziv 2019, section 2.1).

    Args:
        before_last: j, how many steps before the last.
        L: layers.

    >>> [degree(6 - t, 3) for t in (1, 2, 3, 4, 5, 6)]
    [21, 15, 10, 6, 3, 1]
    """
    before_last, L = whole(before_last, where="degree.before_last", least=0), whole(L, where="degree.L")
    return math.comb(before_last + L - 1, L - 1)


def weight_copies(T: int, L: int, layer: int) -> int:
    """How many copies of an input matrix the tensor network of the last output has: ``n_l = C(T + L - l, L - l + 1)``.

    Args:
        T: steps.
        L: layers.
        layer: l = 1..L; L + 1 stands for the readout, of which there is one.

    >>> [weight_copies(6, 3, layer) for layer in (1, 2, 3, 4)]
    [56, 21, 6, 1]
    """
    T, layer = whole(T, where="weight_copies.T"), whole(layer, where="weight_copies.layer")
    L = whole(L, where="weight_copies.L", least=max(1, layer - 1))
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
    L = whole(L, where="weight_degree.L")
    copies = [weight_copies(T, L, layer) for layer in range(1, L + 2)]
    sign = -1 if start == "ones" else 1
    return sum(2 * own + sign * above for own, above in itertools.pairwise(copies)) + 1
