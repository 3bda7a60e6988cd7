"""Sums of powers in logarithms, so that a growth of 3 over 5,000 steps is a number like any other."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def log_of(value: float) -> float:
    """The natural logarithm, ``ln 0 = -inf`` included.

    >>> log_of(0.0), log_of(1.0), log_of(math.inf)
    (-inf, 0.0, inf)
    """
    return -math.inf if value == 0 else math.log(value)


def log_add(*values: float) -> float:
    """``ln(e^a + e^b + ...)``, none of which need be a number that a computer can hold.

    >>> round(log_add(1000.0, 1000.0) - 1000.0, 9), log_add()
    (0.693147181, -inf)
    """
    return log_sum(values)


def log_sum(values: Iterable[float] | Floats) -> float:
    """The same of a sequence.

    Args:
        values: logarithms; ``-inf`` stands for a term 0.
    """
    terms = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    most = float(terms.max(initial=-math.inf))
    if math.isinf(most):
        return most
    return most + math.log(float(np.exp(terms - most).sum()))


def softplus(value: float) -> float:
    """``ln(1 + e^value)``.

    >>> softplus(1000.0), round(softplus(0.0), 9)
    (1000.0, 0.693147181)
    """
    return float(np.logaddexp(0.0, value))


def log_geometric(log_beta: float, steps: int) -> float:
    """``ln S_t(β)``, ``S_t(β) = sum_{n=0}^{t-1} β^n``: exact through β = 1, finite where the sum is not.

    Args:
        log_beta: ln β; -inf for β = 0.
        steps: t.

    >>> [round(math.exp(log_geometric(math.log(beta), 10)), 9) for beta in (0.5, 1.0, 1.1)]
    [1.998046875, 10.0, 15.937424601]
    >>> round(log_geometric(math.log(3.0), 5000), 9)
    5492.36829616
    """
    if steps <= 0:
        return -math.inf
    if log_beta == -math.inf:
        return 0.0
    if log_beta == 0:
        return math.log(steps)
    if log_beta > 0:
        return (steps - 1) * log_beta + math.log(-math.expm1(-steps * log_beta)) - math.log(-math.expm1(-log_beta))
    return math.log(-math.expm1(steps * log_beta)) - math.log(-math.expm1(log_beta))


def log_geometric_derivative(log_beta: float, steps: int) -> float:
    """``ln D_t(β)``, ``D_t(β) = sum_{n=0}^{t-2} (n+1) β^n``, the derivative of S_t; summed: closed forms cancel.

    Args:
        log_beta: ln β; -inf for β = 0.
        steps: t.

    >>> [round(math.exp(log_geometric_derivative(math.log(beta), t)), 9) for beta, t in ((2.0, 4), (1.0, 10), (0.5, 3))]
    [17.0, 45.0, 2.0]
    """
    if steps <= 1:
        return -math.inf
    if log_beta == -math.inf:
        return 0.0
    powers = np.arange(steps - 1, dtype=np.float64)
    return log_sum(np.log1p(powers) + powers * log_beta)
