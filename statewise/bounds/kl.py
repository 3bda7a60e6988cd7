"""The Chernoff bound of a binomial tail and its inverse: from an observed error rate to one that can be trusted."""

from __future__ import annotations

import math

from statewise.errors import ArgumentError


def binary_kl(rate: float, true: float) -> float:
    """``kl(q‖p) = q ln(q/p) + (1-q) ln((1-q)/(1-p))`` in nats.

    Args:
        rate: q.
        true: p.

    >>> round(binary_kl(0.05, 0.2064014078), 9)
    0.1
    """
    first = 0.0 if rate == 0 else math.inf if true == 0 else rate * math.log(rate / true)
    second = 0.0 if rate == 1 else math.inf if true == 1 else (1 - rate) * math.log((1 - rate) / (1 - true))
    return max(0.0, first + second)


def kl_inverse(rate: float, budget: float) -> float:
    """The largest error probability that still explains an observed rate: ``max {p >= q: kl(q‖p) <= c}``.

    ``P(observed rate <= q) <= exp(-m kl(q‖p))`` for m independent tries, so that with ``c = nats / m`` the truth is at
    most this but with probability ``exp(-nats)`` (Chernoff). Rounded up, never down.

    Args:
        rate: q, from 0 to 1.
        budget: c >= 0; infinite gives 1.

    >>> round(kl_inverse(0.0, 0.1), 9), round(kl_inverse(0.05, 0.1), 9), kl_inverse(0.3, math.inf)
    (0.095162582, 0.206401408, 1.0)
    """
    if not 0 <= rate <= 1:
        raise ArgumentError(where="kl_inverse.rate", got=rate, wanted="a number from 0 to 1")
    if not budget >= 0:
        raise ArgumentError(where="kl_inverse.budget", got=budget, wanted="a number >= 0")
    if rate == 1 or budget == math.inf:
        return 1.0
    if rate == 0:
        return -math.expm1(-budget)
    low, high = rate, 1.0
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return high
        low, high = (middle, high) if binary_kl(rate, middle) <= budget else (low, middle)
