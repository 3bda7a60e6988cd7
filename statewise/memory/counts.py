"""How large the Start-End separation rank of an arithmetic circuit is, must be or can be: closed forms, in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from statewise.errors import ArgumentError
from statewise.memory.degrees import degree
from statewise.memory.split import split_of
from statewise.memory.whole import whole


def multiset(n: int, k: int) -> int:
    """How many multisets of k elements there are of n kinds: ``ms(n, k) = C(n + k - 1, k)``.

    It is also the number of monomials of degree k in n variables (Ziv 2019, section 2.3, in double parentheses).

    Args:
        n: kinds, at least 0.
        k: elements, at least 0.

    >>> multiset(3, 2), multiset(5, 3), multiset(7, 0)
    (6, 35, 1)
    """
    n, k = whole(n, where="multiset.n", least=0), whole(k, where="multiset.k", least=0)
    return math.comb(n + k - 1, k) if n else int(k == 0)


def interactions(T: int, L: int, split: int | None = None) -> int:
    """How often the unit that joins Start and End occurs in the first of L layers: ``K_L = ms(T/2, L - 1)``.

    It is the degree of the last output in the state of the first layer after the Start (Ziv 2019, Claim 4; the summand
    printed last must be 1).

    Args:
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.

    >>> [interactions(6, L) for L in (1, 2, 3, 4)]
    [1, 3, 6, 10]
    """
    T = whole(T, where="interactions.T")
    return multiset(T - split_of(T, split, where="interactions"), whole(L, where="interactions.L") - 1)


def theorem1(*, M: int, R: int, T: int, L: int, split: int | None = None) -> int:
    """What almost every circuit of one or two layers reaches (Ziv 2019, Theorem 1).

    One layer has exactly ``min{R, M^(T/2)}``, whatever T is once that is R; two have at least ``ms(min{M, R}, T/2)``,
    which grows with T.

    For one layer the thesis cites a theorem on networks of independent tensors, and here they are shared over time.
    This closes the gap: of N = ``min{R, M^(T/2)}`` channels in a circle each hands its state to the next (``WH``) and
    lets one symbol pass (``WI``), such that all N windows of T/2 of these symbols differ; there is such a circle of any
    length N (Lempel 1971). Each channel then stands for one Start and one End, no two for the same: the rank is N.

    Args:
        M: linearly independent input features.
        R: channels of each layer.
        T: steps.
        L: layers, 1 or 2.
        split: steps of the Start; None for half of an even T, the only one that is proved for two layers.

    >>> theorem1(M=4, R=3, T=100, L=1), theorem1(M=4, R=3, T=100, L=2)
    (3, 1326)
    """
    M, R, T, L, start, end = _sizes("theorem1", M=M, R=R, T=T, L=L, split=split)
    if L == 1:
        return min(R, _power(M, min(start, end)))
    if L == 2 and start == end:
        return multiset(min(M, R), end)
    raise ArgumentError(
        where="theorem1",
        got=f"L = {L}, split = {start} of {T}",
        wanted="one layer, or two with the split in the middle",
        remedy="Deeper circuits have a conjecture: repaired_conjecture(M=, R=, T=, L=).",
    )


def conjecture(*, M: int, R: int, T: int, L: int, split: int | None = None) -> int:
    """What almost every circuit would reach, as printed: ``min{ms(min{M, R}, K_L), M^(T/2)}`` (Ziv 2019, Conjecture 1).

    False on M templates wherever it asks for more than U2, which takes R < M: at M = 6, R = 5, T = 4, L = 3 it asks for
    35, and :func:`end_cap` proves that 30 is the most there can be. :func:`repaired_conjecture` heeds that.

    Args:
        M: templates, one-hot.
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T, as printed.

    >>> conjecture(M=6, R=5, T=4, L=3), conjecture(M=3, R=3, T=8, L=3)
    (35, 66)
    """
    M, R, _, L, start, end = _sizes("conjecture", M=M, R=R, T=T, L=L, split=split)
    return min(multiset(min(M, R), multiset(end, L - 1)), _power(M, min(start, end)))


def repaired_conjecture(*, M: int, R: int, T: int, L: int, split: int | None = None) -> int:
    """What almost every circuit reaches as far as anyone has seen: ``min{ms(min{M, R}, K_L), U2}``; not proved.

    The conjecture of Ziv 2019, repaired: its second term ``M^(T/2)`` is replaced by the proved cap U2, see
    :func:`end_cap`.

    Args:
        M: templates, one-hot.
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.

    >>> repaired_conjecture(M=6, R=5, T=4, L=3), repaired_conjecture(M=3, R=3, T=8, L=3)
    (30, 66)
    """
    asked = conjecture(M=M, R=R, T=T, L=L, split=split)
    return min(asked, end_cap(M=M, R=R, T=T, L=L, split=split), start_cap(M=M, R=R, T=T, L=L, split=split))


def state_bound(*, R: int, T: int, L: int, split: int | None = None) -> int:
    """No circuit has a larger rank on any inputs: ``U1 = prod over k = 0..L-1 of ms(R, ms(T/2, k))``.

    New bound: the output is a polynomial of the states between Start and End, homogeneous of degree ``ms(T/2, L - l)``
    in that of layer l, and there are so many monomials.

    Args:
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.

    >>> [state_bound(R=3, T=8, L=L) for L in (1, 2, 3)]
    [3, 45, 2970]
    """
    sizes = _sizes("state_bound", M=1, R=R, T=T, L=L, split=split)
    return math.prod(multiset(sizes.R, multiset(sizes.end, k)) for k in range(sizes.L))


def end_cap(*, M: int, R: int, T: int, L: int, split: int | None = None, continuous: bool = False) -> int:
    """The End can tell no more apart: ``U2 = prod over j = 0..T/2-1 of min{M, ms(R, C(j + L - 1, L - 1))}``.

    New bound: the input j steps before the last enters only through the R numbers ``W f(x)``, with that degree. Inputs
    that are not one of M templates but any vector of M numbers have factors ``ms(min{M, R}, C(j + L - 1, L - 1))``.

    Args:
        M: templates, or the width of continuous inputs.
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.
        continuous: whether inputs are any vectors.

    >>> end_cap(M=6, R=5, T=4, L=3), end_cap(M=6, R=5, T=4, L=3, continuous=True)
    (30, 175)
    """
    sizes = _sizes("end_cap", M=M, R=R, T=T, L=L, split=split)
    return _cap(sizes, range(sizes.end), continuous)


def start_cap(*, M: int, R: int, T: int, L: int, split: int | None = None, continuous: bool = False) -> int:
    """The Start can tell no more apart: the product of :func:`end_cap` over the steps of the Start.

    New bound. Degrees fall with time, so that it is below the other only where the Start is shorter than the End.

    Args:
        M: templates, or the width of continuous inputs.
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.
        continuous: whether inputs are any vectors.

    >>> start_cap(M=20, R=2, T=10, L=2, split=1), end_cap(M=20, R=2, T=10, L=2, split=1)
    (11, 3628800)
    """
    sizes = _sizes("start_cap", M=M, R=R, T=T, L=L, split=split)
    return _cap(sizes, range(sizes.end, sizes.T), continuous)


def steps_cap(*, M: int, R: int, L: int, before_last: Sequence[int], continuous: bool = False) -> int:
    """Any steps can tell no more apart: the product of :func:`end_cap` over them.

    Args:
        M: templates, or the width of continuous inputs.
        R: channels of each layer.
        L: layers.
        before_last: how many steps before the last each of them is.
        continuous: whether inputs are any vectors.

    >>> steps_cap(M=6, R=5, L=3, before_last=[0, 1]), steps_cap(M=6, R=5, L=3, before_last=[0, 0])
    (30, 25)
    """
    return math.prod(_told_apart(M, R, degree(j, L), continuous) for j in before_last)


def upper_bound(*, M: int, R: int, T: int, L: int, split: int | None = None, continuous: bool = False) -> int:
    """The least of U1, U2, the same of the Start, and the sides of the table.

    U1 can be made sharper: :func:`statewise.memory.sharper_bound.proved_bound` is the least of all that is proved.

    Args:
        M: templates, or the width of continuous inputs.
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.
        continuous: whether inputs are any vectors; then there is no table.

    >>> upper_bound(M=6, R=5, T=4, L=3), upper_bound(M=3, R=4, T=10, L=2)
    (30, 224)
    """
    M, R, T, L, start, end = _sizes("upper_bound", M=M, R=R, T=T, L=L, split=split)
    least = state_bound(R=R, T=T, L=L, split=start)
    for side in (range(end), range(end, T)):
        product = 1
        for j in side:
            if product >= least:  # and factors are at least 1: thousands of steps need not be multiplied
                break
            product *= _told_apart(M, R, degree(j, L), continuous)
        least = min(least, product)
    return least


def _told_apart(M: int, R: int, power: int, continuous: bool) -> int:
    """The dimension of the polynomials of one degree in ``W f``, on M templates or on all vectors."""
    return multiset(min(M, R), power) if continuous else min(M, multiset(R, power))


def _cap(sizes: _Sizes, before_last: range, continuous: bool) -> int:
    """The product over some steps, from the last of them back: degrees rise, and factors with them."""
    product = 1
    for place, j in enumerate(before_last):
        factor = _told_apart(sizes.M, sizes.R, degree(j, sizes.L), continuous)
        # Where no more can be told apart, or each step tells as much, thousands of steps need not be looked at.
        if (factor == sizes.M and not continuous) or sizes.L == 1 or min(sizes.M, sizes.R) == 1:
            return product * _power(factor, len(before_last) - place)
        product *= factor
    return product


def _power(base: int, exponent: int) -> int:
    power: int = base**exponent
    return power


class _Sizes(NamedTuple):
    """Checked sizes, and the steps of Start and End."""

    M: int
    R: int
    T: int
    L: int
    start: int
    end: int


def _sizes(where: str, *, M: Any, R: Any, T: Any, L: Any, split: Any) -> _Sizes:
    M, R, L = (whole(value, where=f"{where}.{name}") for name, value in (("M", M), ("R", R), ("L", L)))
    T, start = whole(T, where=f"{where}.T"), split_of(T, split, where=where)
    return _Sizes(M, R, T, L, start, T - start)
