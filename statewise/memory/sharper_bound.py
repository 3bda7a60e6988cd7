"""The state bound made sharper: what the first step after the Start cannot change."""

from __future__ import annotations

import math

from statewise.memory.counts import multiset, state_bound, upper_bound
from statewise.memory.split import split_of
from statewise.memory.whole import wholes


def sharper_state_bound(*, M: int, R: int, T: int, L: int, split: int | None = None) -> int:
    """No circuit has a larger rank, on any inputs: U1 less what the first step of the End makes impossible.

    New bound. Let n be the steps of the End, u the product ``WH h`` of the first layer, v those of the layers above
    it, and a the vector ``WI f(x)`` of the first input of the End. The score is a polynomial of u and v, and enters the
    End through ``u * a``; U1 counts all monomials.

    Three and more layers: if only ``u_d`` is not 0, then ``u * a`` has one direction, whatever a is. So the first step
    of the End only scales, and what multiplies the pure power of ``u_d`` in the score is a polynomial of the states one
    step later: of ``prod over k <= L-2 of ms(R, ms(n-1, k))`` dimensions and not of ``prod ms(R, ms(n, k))``. That is
    so for each of the R pure powers. With L = 3 there are ``R^2 ms(R-1, n)`` dimensions less; with R = 2 these are 4.

    Two layers and M < R: all ``a`` obey ``c . a = 0`` for ``R - M`` independent vectors c. What multiplies ``v_i`` in
    the score is ``p(u * a)`` with a polynomial p that the linear form ``l_i(x) = sum_d A_id x_d`` divides, where A is
    the input matrix of the second layer. Its coefficients times ``(c_d / A_id)^m`` have the sum
    ``p(c / A_i * a)``, which ``c . a = 0`` divides. So there are ``ms(R-M, n)`` linear relations for each i.

    The first holds for all weights. The second needs an A without zeros: almost all have one, and ranks only fall at
    the others.

    Args:
        M: the width of inputs, or how many templates there are.
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.

    >>> [sharper_state_bound(M=2, R=2, T=T, L=3) for T in (6, 8, 22)], state_bound(R=2, T=6, L=3)
    ([52, 106, 1604], 56)
    >>> sharper_state_bound(M=3, R=4, T=10, L=2), state_bound(R=4, T=10, L=2)
    (220, 224)
    """
    M, R, T, L = wholes("sharper_state_bound", M=M, R=R, T=T, L=L)
    bound = state_bound(R=R, T=T, L=L, split=split)
    end = T - split_of(T, split, where="sharper_state_bound")
    if end == 0:
        return bound
    if L == 2 and M < R:
        return bound - R * multiset(R - M, end)
    if L > 2:
        return bound - R * (_upper_layers(R, end, L) - _upper_layers(R, end - 1, L))
    return bound


def proved_bound(*, M: int, R: int, T: int, L: int, split: int | None = None, continuous: bool = False) -> int:
    """The least of all that is proved from above: :func:`~statewise.memory.counts.upper_bound`, with U1 made sharper.

    Args:
        M: templates, or the width of continuous inputs.
        R: channels of each layer.
        T: steps.
        L: layers.
        split: steps of the Start; None for half of an even T.
        continuous: whether inputs are any vectors.

    >>> proved_bound(M=6, R=5, T=4, L=3), proved_bound(M=3, R=4, T=10, L=2), proved_bound(M=4, R=2, T=8, L=3)
    (30, 220, 106)
    """
    plain = upper_bound(M=M, R=R, T=T, L=L, split=split, continuous=continuous)
    return min(plain, sharper_state_bound(M=M, R=R, T=T, L=L, split=split))


def _upper_layers(width: int, steps: int, depth: int) -> int:
    """The monomials of the states of all layers but the first, so many steps before the score."""
    # With no step left the score is linear in the last layer, and does not see the others.
    degrees = [multiset(steps, k) if steps else int(k == 0) for k in range(depth - 1)]
    return math.prod(multiset(width, degree) for degree in degrees)
