"""The margin-Occam certificate (new): a finite cover of the class, and for each of its members a binomial tail.

Let C be members of the class such that each network w has one of them, c, whose margins are nowhere farther than γ/2
from its own. Then ``1{M_w <= 0} <= 1{M_c <= γ/2} <= 1{M_w <= γ}`` for every input, seen or not: the error of w is at
most the rate of c beyond γ/2, which Chernoff's bound ties to the same rate on the sample for all of C at once, and that
is at most the margin risk of w. Where no training margin is below γ the rate is ``ln|C| / m``, without a root.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from statewise.bounds.grid import SLACK
from statewise.bounds.kl import kl_inverse
from statewise.bounds.logs import log_of, softplus
from statewise.bounds.penalties import Penalty, check_gamma, check_sequences
from statewise.bounds.profile import Block, Profile
from statewise.errors import AssumptionError


def margin_scale(gamma: float) -> float:
    """``ln(γ / (2√2))``: logits that differ by no more have margins that differ by at most γ/2.

    Args:
        gamma: γ.

    >>> round(math.exp(margin_scale(1.0)), 6)
    0.353553
    """
    return check_gamma(gamma) - 1.5 * math.log(2)


def occam_kl(risk: float, nats: float, *, m: int, log_failures: float) -> float:
    """``kl_inverse(risk, (nats + ln(1/δ)) / m)``: the error that the certificate cannot exclude.

    Args:
        risk: the margin risk at the γ of the cover.
        nats: ``ln|C|``.
        m: independent sequences.
        log_failures: ``ln(1/δ)``, with all that was paid for choices.

    >>> round(occam_kl(0.02, 202.455220621, m=10**6, log_failures=math.log(20)), 9)
    0.022970576
    """
    check_sequences(m)
    return kl_inverse(risk, (nats + log_failures) / m)


def occam_hoeffding(risk: float, nats: float, *, m: int, log_failures: float) -> float:
    """``min(1, risk + √((nats + ln(1/δ)) / (2m)))``: the same in the form of Hoeffding, never below.

    Args:
        risk: as for :func:`occam_kl`.
        nats: as there.
        m: as there.
        log_failures: as there.

    >>> round(occam_hoeffding(0.02, 202.455220621, m=10**6, log_failures=math.log(20)), 9)
    0.030135358
    """
    check_sequences(m)
    return min(1.0, risk + math.sqrt((nats + log_failures) / (2 * m)))


def occam_penalty(nats: float, *, m: int, log_failures: float) -> Penalty:
    """``(nats + ln(1/δ)) / m``, about what the certificate adds to a margin risk of 0.

    Args:
        nats: ``ln|C|``.
        m: independent sequences.
        log_failures: ``ln(1/δ)``, with all that was paid for choices.
    """
    return Penalty(log_of(nats + log_failures) - check_sequences(m), log_of(nats))


@dataclass(frozen=True)
class RankedNats:
    """How a block is covered.

    Args:
        rank: of the members of the cover; None for the cover of all ranks.
        nats: what it costs, the choice of the rank included.
    """

    rank: int | None
    nats: float


def low_rank_nats(
    profile: Profile,
    log_scale: float,
    singular_values: Mapping[str, Sequence[float]],
    *,
    balls: Collection[str] = (),
) -> dict[str, RankedNats]:
    """The nats of a cover that is fine only near matrices of low rank: those of each block, for given weights (new).

    For a block whose class is the ball ``‖A‖ <= B``, at the distance ρ that the scale leaves it, and each rank r:

    1. A = PSQ^T cut off after r singular values stays in the ball, at a distance of ``σ_{r+1}``, which must be <= ρ/2.
    2. It is XY^T with ``‖X‖, ‖Y‖ <= √B``. Covers of both balls at ``ρ/(4√B)`` from inside have ``(1 + 8B/ρ)^(r rows)``
       and ``(1 + 8B/ρ)^(r columns)`` members, and ``‖XY^T - X'Y'^T‖ <= ‖X - X'‖ ‖Y‖ + ‖X'‖ ‖Y - Y'‖ <= ρ/2``.
    3. ``‖X'Y'^T‖ <= B``: members of the cover are in the ball, where the Lipschitz constants hold. The rank is one of
       ``min(rows, columns) + 1`` choices, among them r = 0 (then ``σ_1 <= ρ``) and the cover of all ranks.

    So the weights decide what they cost, and a union over the ranks of all blocks pays for it:
    ``r (rows + columns) ln(1 + 8B/ρ) + ln(min(rows, columns) + 1)``.

    A class that is not the whole ball, such as that of a gate whose rows are bounded too, may not hold A cut off. There
    centres at ρ/2 are made as above, from ``σ_{r+1} <= ρ/4`` and with 16 for 8; each is replaced by a matrix of the
    class near it, if there is one, and that is within ρ of all that the centre stood for.

    Args:
        profile: of the class.
        log_scale: by how much logits may differ, as a logarithm.
        singular_values: of the blocks that are to be looked at, by name. Which those are must not depend on the data.
            Others, and blocks whose norm is not spectral, have their usual cover.
        balls: the names of blocks whose class is the whole ball.

    >>> u = Block(name="U", rows=20, columns=20, bound=1.0, log_lipschitz=0.0)
    >>> net = Profile(architecture="one", blocks=(u,), steps=1, log_hidden=0.0, log_output=0.0, log_growth=0.0)
    >>> covered = low_rank_nats(net, math.log(0.01), {"U": [1.0] + [0.0] * 19}, balls={"U"})["U"]
    >>> covered.rank, round(covered.nats, 3), round(net.cover_nats(math.log(0.01)), 3)
    (1, 270.479, 2121.322)
    """
    distances = profile.log_distances(log_scale)
    covered = {}
    for block, distance in zip(profile.blocks, distances, strict=True):
        plain = RankedNats(None, block.cover_nats(distance))
        if block.name in singular_values and block.free is None and block.stretch == 1:
            plain = _ranked(block, distance, singular_values[block.name], ball=block.name in balls)
        covered[block.name] = plain
    return covered


def _ranked(block: Block, log_distance: float, values: Sequence[float], *, ball: bool) -> RankedNats:
    rank = _least_rank(block, log_distance, values, ball=ball)
    full = block.cover_nats(log_distance)
    if full == 0:
        return RankedNats(None, 0.0)  # one member is near all: there is nothing to choose
    choice, factor = math.log(min(block.rows, block.columns) + 1), math.log(8 if ball else 16)
    if rank is None:
        return RankedNats(None, full + choice)
    low = rank * (block.rows + block.columns) * softplus(factor + log_of(block.bound) - log_distance)
    return RankedNats(rank, low + choice) if low < full else RankedNats(None, full + choice)


def _least_rank(block: Block, log_distance: float, values: Sequence[float], *, ball: bool) -> int | None:
    """The lowest rank at which what is cut off is near enough; None if none below the full one is."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    if len(ordered) != min(block.rows, block.columns):
        wanted = f"{min(block.rows, block.columns)} singular values"
        raise AssumptionError(where=f"singular_values of {block.name}", got=f"{len(ordered)}", wanted=wanted)
    if not 0 <= ordered[0] <= block.bound * SLACK:
        raise AssumptionError(
            where=f"singular_values of {block.name}", got=float(ordered[0]), wanted=f"<= {block.bound}"
        )
    rounding = (SLACK - 1) * ordered[0]  # a decomposition knows small values to a share of the largest
    with np.errstate(divide="ignore"):
        log_cut = np.log(ordered + rounding)
    parts = np.full(len(ordered), 0.5 if ball else 0.25)
    parts[0] *= 2
    near = np.flatnonzero(log_cut <= log_distance + np.log(parts))
    return int(near[0]) if len(near) else None
