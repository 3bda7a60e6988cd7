"""What the size of a class adds to the ramp risk: Theorem 2 as it holds, Dudley's integral, and one scale of a cover.

All bound ``2 R_S``, twice the empirical Rademacher complexity of the ramp losses of a class (Mohri et al.): with
probability 1 - δ every member has ``P(wrong) <= ramp risk + 2 R_S + confidence``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from statewise.bounds.logs import Floats, log_add, log_of, softplus
from statewise.bounds.profile import Profile
from statewise.errors import ArgumentError

#: The scales of :func:`massart`, as shares of the range: fixed before any data.
SCALES: Floats = np.linspace(math.log(1e-8), 0.0, 400)
_LOG_ROOT_TWO = 0.5 * math.log(2)


@dataclass(frozen=True)
class Penalty:
    """What a bound adds to a risk, as logarithms; nothing is clipped, so that bounds far above 1 can be compared.

    Args:
        log_value: ln of the penalty.
        log_nats: ln of the nats in it that the class costs, as this bound counts them.
    """

    log_value: float
    log_nats: float

    @property
    def value(self) -> float:
        """The penalty; infinite where a float cannot hold it."""
        return exp_or_infinity(self.log_value)

    @property
    def nats(self) -> float:
        """What the class costs; infinite where a float cannot hold it."""
        return exp_or_infinity(self.log_nats)


def exp_or_infinity(log_value: float) -> float:
    """``e^x``, without an error where it is too large.

    >>> exp_or_infinity(1000.0), exp_or_infinity(-math.inf)
    (inf, 0.0)
    """
    return math.inf if log_value > 709 else math.exp(log_value)


def check_gamma(gamma: float) -> float:
    """``ln γ`` of a margin that may be used.

    >>> check_gamma(0.0)
    Traceback (most recent call last):
    ...
    statewise.errors.ArgumentError: gamma: got 0.0, wanted a finite margin > 0.
    """
    if not 0 < gamma < math.inf:
        raise ArgumentError(where="gamma", got=gamma, wanted="a finite margin > 0")
    return math.log(gamma)


def check_sequences(m: int) -> float:
    """``ln m`` of a number of sequences that may be used: one sequence says nothing."""
    if not 2 <= m < math.inf:
        raise ArgumentError(where="m", got=m, wanted="at least 2 independent sequences")
    return math.log(m)


def check_delta(delta: float) -> float:
    """``ln(1/δ)`` of a probability of failure that may be used."""
    if not 0 < delta < 1:
        raise ArgumentError(where="delta", got=delta, wanted="a probability strictly between 0 and 1")
    return -math.log(delta)


def log_range(profile: Profile, gamma: float) -> float:
    """``ln r̄``, ``r̄ = min(1, √2 r / γ)``: the ramp losses of a class differ from that of a tie by at most this.

    Margins are √2-Lipschitz in the logits (the paper has 2), the ramp 1/γ-Lipschitz in the margin. ``R_S <= r̄`` always.

    Args:
        profile: of the class.
        gamma: γ.
    """
    return min(0.0, _LOG_ROOT_TWO + profile.log_output - check_gamma(gamma))


def theorem_2(profile: Profile, *, gamma: float, m: int, log_product: float | None = None) -> Penalty:
    """Chen, Li & Zhao 2019, Theorem 2 (for Elman networks; 4 to 6 for the others), repaired.

    ``2 [4/(mγ) + 24 √P r / (√m γ) √ln(8 q m Λ)]``, ``Λ = max_k R_k L_k``: Dudley's integral from ``1/(mγ)``, every one
    of q matrices covered at an equal share of the distance in the Frobenius norm. The printed proof has ``√m`` in the
    logarithm, since it takes a cover of the outputs for one of the sample's Euclidean norm. Where the logarithm is
    below 0 the whole class is nearer than ``1/(mγ)``, and the first term is all.

    Args:
        profile: of the class, with the paper's Lipschitz constants.
        gamma: γ.
        m: independent sequences.
        log_product: ln Λ, if one not below the maximum is to stand in its place, such as that which the paper prints.

    >>> from statewise.bounds.elman_constants import ElmanConstants
    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=1.0, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(theorem_2(net.paper(), gamma=0.5, m=10**6).value, 6)
    10.414284
    """
    log_gamma, log_m = check_gamma(gamma), check_sequences(m)
    if log_product is None:
        log_product = max(log_of(block.radius) + block.log_lipschitz for block in profile.blocks)
    inside = max(0.0, math.log(8 * len(profile.blocks)) + log_m + log_product)
    log_nats = math.log(profile.parameters) + log_of(inside)
    first = math.log(4) - log_m - log_gamma
    second = math.log(24) + profile.log_output + 0.5 * log_nats - 0.5 * log_m - log_gamma
    return Penalty(math.log(2) + log_add(first, second), log_nats)


def dudley(profile: Profile, *, gamma: float, m: int) -> Penalty:
    """Theorem 2 repaired by Dudley's integral over all scales: the margin and V may be scaled together.

    ``2 · 12 r̄/√m √(Σ_k P_k [1 + ln(1 + 2√2 B_k L_k / (π_k γ r̄))])``, by Cauchy-Schwarz and
    ``∫_0^r̄ ln(1 + a/u) du <= r̄ (1 + ln(1 + a/r̄))``.

    Args:
        profile: of the class.
        gamma: γ.
        m: independent sequences.

    >>> from statewise.bounds.elman_constants import ElmanConstants
    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=1.0, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(dudley(net.tight(), gamma=0.5, m=10**6).value, 9)
    0.349731902
    """
    log_m, range_ = check_sequences(m), log_range(profile, gamma)
    log_scale = range_ + math.log(gamma) - _LOG_ROOT_TWO
    if range_ == -math.inf:
        return Penalty(-math.inf, -math.inf)
    nats = 0.0
    for block, distance in zip(profile.blocks, profile.log_distances(log_scale), strict=True):
        if block.bound and distance < math.inf:  # a matrix that is 0, or moves nothing, needs no cover
            far = math.log(2 * block.stretch) + math.log(block.bound) - distance
            nats += block.parameters * (1 + softplus(far))
    log_nats = log_of(nats)
    return Penalty(math.log(24) + range_ + 0.5 * (log_nats - log_m), log_nats)


def massart(profile: Profile, *, gamma: float, m: int) -> Penalty:
    """A cover at the best of 400 fixed scales, and Massart's lemma for its members (new).

    ``2 min_ε (ε + r̄ √(2 ln N(ε) / m))``, ε from 1e-8 r̄ to r̄; about an eighth of :func:`dudley`.

    Args:
        profile: of the class.
        gamma: γ.
        m: independent sequences.

    >>> from statewise.bounds.elman_constants import ElmanConstants
    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=1.0, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(massart(net.tight(), gamma=0.5, m=10**6).value, 4)
    0.0586
    """
    log_m, range_ = check_sequences(m), log_range(profile, gamma)
    if range_ == -math.inf:
        return Penalty(-math.inf, -math.inf)
    scales = SCALES + range_
    nats = cover_nats_at(profile, scales + (math.log(gamma) - _LOG_ROOT_TWO))
    with np.errstate(divide="ignore"):
        log_nats = np.log(nats)
    totals = np.logaddexp(scales, range_ + 0.5 * (math.log(2) + log_nats - log_m))
    best = int(totals.argmin())
    return Penalty(math.log(2) + float(totals[best]), float(log_nats[best]))


def cover_nats_at(profile: Profile, log_scales: Floats) -> Floats:
    """:meth:`Profile.cover_nats` at many scales.

    Args:
        profile: of the class.
        log_scales: their logarithms.
    """
    total = np.zeros_like(log_scales)
    for block, unit in zip(profile.blocks, profile.log_distances(0.0), strict=True):
        log_bound, distances = log_of(block.bound), unit + log_scales
        far = math.log(2 * block.stretch) + log_bound - np.where(np.isinf(distances), 0.0, distances)
        total += np.where(
            distances >= log_bound + math.log(block.reach), 0.0, block.parameters * np.logaddexp(0.0, far)
        )
    return total


def sample_confidence(m: int, log_failures: float) -> float:
    """``3 √(ln(2/δ) / (2m))``: what the luck of the draw may add, where constants belong to the inputs that were drawn.

    Args:
        m: independent sequences.
        log_failures: ``ln(1/δ)``, with all that was paid for choices.

    >>> round(sample_confidence(10**6, math.log(20)), 12)
    0.004074304547
    """
    return 3 * math.sqrt((math.log(2) + log_failures) / (2 * m))


def population_confidence(m: int, log_failures: float) -> float:
    """``√(ln(1/δ) / (2m))``: the same where the penalty holds for every draw, since the inputs' bound was fixed.

    Args:
        m: independent sequences.
        log_failures: ``ln(1/δ)``, with all that was paid for choices.
    """
    return math.sqrt(log_failures / (2 * m))
