"""Bounds from noise that the weights can bear: PAC-Bayes with Gaussians, for Elman networks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from statewise.bounds.elman_constants import ElmanConstants, log_powers
from statewise.bounds.logs import log_add, log_of, log_sum
from statewise.bounds.penalties import Penalty, check_gamma, check_sequences
from statewise.bounds.table1 import Order
from statewise.errors import ArgumentError

_LARGEST = 300.0  # ln of a perturbation beyond which nothing is gained


def log_perturbation(elman: ElmanConstants, log_size: float) -> float:
    """``ln(s Λ(s))``: how far logits move at most when each of U, V and W moves by s in the spectral norm.

    ``Λ(s) = ρ_y [B_V ρ_h Σ_{j<t} β^(t-1-j) (H_j(s) + B_x) + H_t(s)]``, H_j(s) the longest state after j steps of a
    network whose norms are larger by s. The printed bound has the lengths of the network that was not moved.

    Args:
        elman: the class.
        log_size: ln s.
    """
    size = math.exp(log_size)
    lengths = replace(elman, norm_u=elman.norm_u + size, norm_w=elman.norm_w + size).hidden_bounds()
    sources = np.logaddexp(lengths[:-1], math.log(elman.input_bound))
    states = log_sum(log_powers(elman.log_growth, elman.steps - 1)[::-1] + sources)
    through_head = log_of(elman.norm_v) + math.log(elman.rho_h) + states
    return log_size + math.log(elman.rho_y) + log_add(through_head, elman.log_read(float(lengths[-1])))


def log_tolerance(elman: ElmanConstants, gamma: float) -> float:
    """``ln s``: the largest perturbation of all three matrices that moves no logits by more than γ/4.

    Args:
        elman: the class.
        gamma: γ.

    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=0.5, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(math.exp(log_tolerance(net, 0.5)), 10)
    0.0089596842
    """
    wanted = check_gamma(gamma) - math.log(4)
    # s Λ(s) grows faster than s Λ(0): the answer is below this, and a little search finds something below the answer.
    still = log_perturbation(elman, -_LARGEST) + _LARGEST
    high = min(_LARGEST, wanted - still)
    step = 1.0
    while log_perturbation(elman, high - step) > wanted:
        step *= 2
    low = high - step
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return low
        low, high = (middle, high) if log_perturbation(elman, middle) <= wanted else (low, middle)


def log_deviation(elman: ElmanConstants, gamma: float) -> float:
    """``ln σ``: Gaussian noise of this deviation keeps all three matrices within :func:`log_tolerance` half the time.

    The larger of ``s / √(2D ln(12D))``, D the largest size (the paper's), and ``s / (max_k (√rows + √columns) +
    √(2 ln 6))`` (new), by two tails of the spectral norm of Gaussian matrices.

    Args:
        elman: the class.
        gamma: γ.
    """
    shapes = elman.shapes.values()
    largest = max(max(shape) for shape in shapes)
    printed = math.sqrt(2 * largest * math.log(12 * largest))
    sharp = max(math.sqrt(rows) + math.sqrt(columns) for rows, columns in shapes) + math.sqrt(2 * math.log(6))
    return log_tolerance(elman, gamma) - math.log(min(printed, sharp))


def pac_bayes(elman: ElmanConstants, squared_norm: float, *, gamma: float, m: int, log_failures: float) -> Penalty:
    """Bound (4) of Chen, Li & Zhao 2019, Theorem 3, repaired; it is added to the margin risk, not to the ramp risk.

    ``4 √((‖w‖²_F / (2σ²) + ln(6m/δ)) / (m - 1))`` (Neyshabur et al. 2018, with σ of :func:`log_deviation`).

    Args:
        elman: the class, which is what σ is made of.
        squared_norm: ``‖w‖²_F``, of the weights themselves: it need not be fixed beforehand, nor paid for.
        gamma: γ.
        m: independent sequences, at least 2.
        log_failures: ``ln(1/δ)``, with all that was paid for choices.

    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=0.5, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(pac_bayes(net, 6.0, gamma=0.5, m=10**6, log_failures=math.log(20)).value, 9)
    4.303278746
    """
    log_m = check_sequences(m)
    if not 0 <= squared_norm < math.inf:
        raise ArgumentError(where="squared_norm", got=squared_norm, wanted="a finite number >= 0")
    log_nats = log_of(squared_norm) - math.log(2) - 2 * log_deviation(elman, gamma)
    log_chance = math.log(math.log(6) + log_m + log_failures)
    return Penalty(math.log(4) + 0.5 * (log_add(log_nats, log_chance) - math.log(m - 1)), log_nats)


def zhang(elman: ElmanConstants, squared_norm: float, *, gamma: float, m: int, log_failures: float) -> Penalty:
    """In place of Zhang et al. 2018, who give an order: the same bound where nothing keeps states short.

    It is :func:`pac_bayes` with an infinite cap, so that it ignores that tanh is bounded, as they do.

    Args:
        elman: the class.
        squared_norm: as there.
        gamma: γ.
        m: independent sequences, at least 2.
        log_failures: as there.
    """
    return pac_bayes(replace(elman, cap=math.inf), squared_norm, gamma=gamma, m=m, log_failures=log_failures)


def zhang_order(elman: ElmanConstants, *, gamma: float, m: int) -> Order:
    """The order of Zhang et al. 2018, ``d t² ‖W‖ ‖V‖ max(1, ‖U‖^t) / (√m γ)``, ``d = √P``: no guarantee.

    Args:
        elman: the class.
        gamma: γ.
        m: independent sequences.

    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=1.5, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(math.exp(zhang_order(net, gamma=0.5, m=10**6).log_value), 6)
    130.481089
    """
    log_sizes = 0.5 * math.log(elman.parameters) + 2 * math.log(elman.steps)
    log_norms = log_of(elman.norm_w) + log_of(elman.norm_v) + max(0.0, elman.steps * log_of(elman.norm_u))
    return Order("Zhang et al. 2018", log_sizes + log_norms - 0.5 * check_sequences(m) - check_gamma(gamma))
