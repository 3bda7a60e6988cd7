"""Bounds from sums of entries or of row lengths instead of counts of parameters: small for sparse and low-rank weights.

Both replace bound (3) of Chen, Li & Zhao 2019, Theorem 3. Its Lemma 10, a cover of ``{‖A‖_{2,1} <= λ}`` with
``(λ/ε)² ln(2 d1 d2)`` nats, is false: one column alone is a ball of dimension d1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from statewise.bounds.elman_constants import ElmanConstants, log_powers
from statewise.bounds.logs import log_add, log_of, log_sum
from statewise.bounds.penalties import Penalty, check_gamma, check_sequences, log_range
from statewise.bounds.profile import Profile
from statewise.errors import ArgumentError, AssumptionError


def maurey_nats(entry_sum: float, distance: float, parameters: int) -> float:
    """``⌈(A/ε)²⌉ ln(2P)``: nats to cover all matrices whose entries' sizes add up to at most A, in the Frobenius norm.

    Each such matrix is a mean of the 2P matrices with one entry ±A, and some mean of that many of them is within ε.

    Args:
        entry_sum: A, a bound on ``Σ |A_ij|``.
        distance: ε.
        parameters: P, the entries.

    >>> round(maurey_nats(1.0, 0.5, 8), 6)
    11.090355
    """
    return math.ceil((entry_sum / distance) ** 2) * math.log(2 * parameters)


def entry_sum(column_sum: float, rows: int) -> float:
    """``√rows ‖A‖_{2,1}``, a bound on the sum of the sizes of a matrix's entries.

    Args:
        column_sum: a bound on ``‖A‖_{2,1}``, the lengths of its columns added up.
        rows: of the matrix.

    >>> entry_sum(3.0, 4)
    6.0
    """
    return math.sqrt(rows) * column_sum


def tied(profile: Profile, entry_sums: Mapping[str, float], *, gamma: float, m: int) -> Penalty:
    """Bound (3) repaired: every matrix covered once, whatever the number of steps.

    ``K = 2√2/γ (Σ_k (L_k A_k √ℓ_k)^(2/3))^(3/2)``, ``Q = Σ_k ℓ_k``, ``ℓ_k = ln(2 P_k)``; see :func:`from_integral`.
    The 2 before the root pays for centres that lie outside the class: each is replaced by a member near it.

    Args:
        profile: of the class; any architecture.
        entry_sums: A_k, a bound on ``Σ |entries|`` of each block, by name.
        gamma: γ.
        m: independent sequences.

    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=0.5, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(tied_log_k(net.tight(), {"U": 4.0, "V": 4.0, "W": 3.0}, gamma=0.5), 9)
    6.737499575
    """
    log_k = tied_log_k(profile, entry_sums, gamma=gamma)
    # A matrix that is 0, or moves nothing, needs no cover.
    active = (each for each in profile.blocks if each.log_lipschitz > -math.inf and entry_sums[each.name] > 0)
    counts = math.fsum(math.log(2 * block.parameters) for block in active)
    return from_integral(log_k, counts, log_range(profile, gamma), m)


def tied_log_k(profile: Profile, entry_sums: Mapping[str, float], *, gamma: float) -> float:
    """``ln K`` of :func:`tied`.

    Args:
        profile: of the class.
        entry_sums: A_k by name.
        gamma: γ.
    """
    terms = []
    for block in profile.blocks:
        if block.name not in entry_sums:
            raise AssumptionError(where=f"the entries of {block.name}", got="nothing", wanted="a bound on their sum")
        if block.free is not None or block.stretch != 1:
            raise AssumptionError(
                where=block.name, got="a norm that is not spectral", wanted="a matrix of free entries"
            )
        log_sum_ = log_of(_not_negative(entry_sums[block.name], f"the entries of {block.name}"))
        terms.append(2 / 3 * (block.log_lipschitz + log_sum_ + 0.5 * math.log(math.log(2 * block.parameters))))
    return 1.5 * math.log(2) - check_gamma(gamma) + 1.5 * log_sum(terms)


def unrolled(elman: ElmanConstants, *, cell_rows: float, head_rows: float, gamma: float, m: int) -> Penalty:
    """The bound of Bartlett et al. 2017 for feedforward networks on an unrolled Elman network, repaired.

    Layer by layer on the sample, with weights that could differ at every step:
    ``K = √2/γ (Σ_s (k_s c_s √ℓ_A)^(2/3) + (ρ_y M_V η_t √ℓ_V)^(2/3))^(3/2)``, ``k_s = ρ_y B_V ρ_h β^(t-s)``,
    ``c_s = M_A √(η_{s-1}² + B_x²)``, ``ℓ_A = ln(2 dh (dh + dx))``, ``ℓ_V = ln(2 dh dy)``, ``Q = t ℓ_A + ℓ_V``; see
    :func:`from_integral`. Centres are projected to the lengths that states can have, which moves them nowhere farther.

    Args:
        elman: the class.
        cell_rows: M_A, a bound on the sum of the lengths of the rows of ``[U, W]``.
        head_rows: M_V, a bound on the sum of the lengths of the rows of V.
        gamma: γ.
        m: independent sequences.

    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=0.5, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(unrolled_log_k(net, cell_rows=4.0, head_rows=4.0, gamma=0.5), 9)
    6.328516637
    """
    log_k = unrolled_log_k(elman, cell_rows=cell_rows, head_rows=head_rows, gamma=gamma)
    cell, head = _log_sizes(elman)
    return from_integral(log_k, elman.steps * cell + head, log_range(elman.tight(), gamma), m)


def unrolled_log_k(elman: ElmanConstants, *, cell_rows: float, head_rows: float, gamma: float) -> float:
    """``ln K`` of :func:`unrolled`.

    Args:
        elman: the class.
        cell_rows: M_A.
        head_rows: M_V.
        gamma: γ.
    """
    log_cell = log_of(_not_negative(cell_rows, "the rows of U and W"))
    log_head = log_of(_not_negative(head_rows, "the rows of V"))
    lengths = elman.hidden_bounds()
    cell, head = _log_sizes(elman)
    log_inputs = 0.5 * np.logaddexp(2 * lengths[:-1], 2 * math.log(elman.input_bound))
    log_factor = math.log(elman.rho_y) + log_of(elman.norm_v) + math.log(elman.rho_h) + log_cell + 0.5 * math.log(cell)
    steps = log_factor + log_powers(elman.log_growth, elman.steps - 1)[::-1] + log_inputs
    last = math.log(elman.rho_y) + log_head + elman.log_read(float(lengths[-1])) + 0.5 * math.log(head)
    return 0.5 * math.log(2) - check_gamma(gamma) + 1.5 * log_sum(np.append(steps, last) * (2 / 3))


def from_integral(log_k: float, counts: float, log_range_: float, m: int) -> Penalty:
    """Dudley's integral of covers with ``√nats <= K/u + √Q`` at distance u, from ``3K/√m`` to r̄.

    ``2 · 12/√m [K (1 + ln(r̄ √m / (3K))) + r̄ √Q]``. Where ``3K >= r̄ √m`` there is nothing to integrate and ``2 r̄`` is
    the bound; the penalty, which is not clipped, leaves the logarithm out instead, so that it still grows with K.

    Args:
        log_k: ln K.
        counts: Q.
        log_range_: ln r̄.
        m: independent sequences.

    >>> round(from_integral(0.0, 4.0, 0.0, 10**6).value, 6)
    0.211419
    """
    log_m = check_sequences(m)
    if log_range_ == -math.inf or log_k == -math.inf:
        return Penalty(-math.inf, -math.inf)  # one function, or all at a distance of 0
    log_steps = max(0.0, log_range_ + 0.5 * log_m - math.log(3) - log_k)
    rest = log_range_ + 0.5 * log_of(counts)
    log_value = math.log(24) - 0.5 * log_m + log_add(log_k + math.log1p(log_steps), rest)
    return Penalty(log_value, log_add(2 * (log_k - log_range_), log_of(counts)))


def _log_sizes(elman: ElmanConstants) -> tuple[float, float]:
    """``ℓ_A`` and ``ℓ_V``."""
    rows, columns = elman.shapes["V"]
    return math.log(2 * elman.hidden * (elman.hidden + elman.inputs)), math.log(2 * rows * columns)


def _not_negative(value: float, where: str) -> float:
    if not 0 <= value < math.inf:
        raise ArgumentError(where=where, got=value, wanted="a finite sum >= 0")
    return value
