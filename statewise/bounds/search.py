"""The best margin for a bound: every level of a grid is tried, and the choice among all of them is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from statewise.bounds.family import Bound
from statewise.bounds.grid import margin_levels
from statewise.bounds.logs import Floats
from statewise.bounds.penalties import check_gamma
from statewise.bounds.subject import Subject
from statewise.errors import ArgumentError, NonFiniteError


class SortedMargins:
    """Margins in order, so that both risks at any level take two look-ups.

    Args:
        margins: one of each sequence, in any order.

    >>> margins = SortedMargins(np.array([2.0, -1.0, 0.25, 0.0, 1.0]))
    >>> margins.ramp_risk(1.0), margins.margin_risk(1.0), len(margins)
    (0.55, 0.8, 5)
    """

    def __init__(self, margins: Tensor | npt.ArrayLike) -> None:
        plain = margins.detach().cpu().double().numpy() if isinstance(margins, Tensor) else margins
        values: Floats = np.sort(np.asarray(plain, dtype=np.float64))
        if values.ndim != 1 or len(values) == 0:
            raise ArgumentError(where="margins", got=f"shape {values.shape}", wanted="one number of each sequence")
        if not np.isfinite(values).all():
            raise NonFiniteError(where="margins", got="NaN or infinity", wanted="finite numbers")
        self._values = values
        # In extended precision where the machine has it: differences of these sums are means of small numbers.
        self._sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.longdouble)])

    def __len__(self) -> int:
        return len(self._values)

    @property
    def largest(self) -> float:
        """The largest margin."""
        return float(self._values[-1])

    def margin_risk(self, gamma: float) -> float:
        """The share of margins of at most γ.

        Args:
            gamma: γ.
        """
        check_gamma(gamma)
        return int(np.searchsorted(self._values, gamma, side="right")) / len(self)

    def ramp_risk(self, gamma: float) -> float:
        """The mean of ``clip(1 - M/γ, 0, 1)``.

        Args:
            gamma: γ.
        """
        check_gamma(gamma)
        wrong, within = np.searchsorted(self._values, (0.0, gamma), side="right")
        ramps = (within - wrong) - (self._sums[within] - self._sums[wrong]) / gamma
        return min(1.0, max(0.0, float((wrong + ramps) / len(self))))


@dataclass(frozen=True, kw_only=True)
class BestMargin:
    """A bound at the margin where it is lowest.

    Args:
        bound: its name.
        gamma: the margin.
        risk: the ramp risk or the margin risk there, whichever the bound begins with.
        nats: what the class costs there, as the bound counts it.
        paid: the nats of all choices by name; "gamma" is that of the margin.
        log_penalty: ln of what the bound adds to the risk, not clipped.
        value: the bound, at most 1.
    """

    bound: str
    gamma: float
    risk: float
    nats: float
    paid: Mapping[str, float]
    log_penalty: float
    value: float


def best_over_margins(
    bound: Bound,
    subject: Subject,
    margins: SortedMargins | Tensor | npt.ArrayLike,
    *,
    delta: float,
    ledger: Mapping[str, float] | None = None,
    octaves: int = 24,
) -> BestMargin:
    """The lowest value of a bound over all margins of the grid; of equal ones that with the smallest penalty.

    Args:
        bound: one that gives a guarantee.
        subject: the class and the network.
        margins: of the m independent training sequences.
        delta: δ.
        ledger: the nats of the constants of the class, by name; none if all were fixed beforehand.
        octaves: how far below the largest margin to look.

    >>> from statewise.bounds.catalogue import bound_named
    >>> from statewise.bounds.elman_constants import ElmanConstants
    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=1.0, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> found = best_over_margins(
    ...     bound_named("kl_occam"), Subject.of_elman(net), np.full(100_000, 1.2), delta=0.05, ledger={"U": 3.0}
    ... )
    >>> found.gamma, found.risk, round(found.nats, 3), round(found.value, 6)
    (1.0, 0.0, 180.348, 0.001873)
    """
    table = margins if isinstance(margins, SortedMargins) else SortedMargins(margins)
    fixed = dict(ledger or {})
    if "gamma" in fixed:
        raise ArgumentError(where="ledger", got="an entry 'gamma'", wanted="the other choices; that of γ is added here")
    # Without one right answer no level helps, and one is as good as all.
    levels = margin_levels(table.largest, octaves=octaves) if table.largest > 0 else margin_levels(1.0, octaves=0)
    found = (_at(bound, subject, table, delta, {**fixed, "gamma": level.nats}, level.value) for level in levels)
    return min(found, key=lambda each: (each.value, each.log_penalty))


def _at(
    bound: Bound, subject: Subject, margins: SortedMargins, delta: float, paid: Mapping[str, float], gamma: float
) -> BestMargin:
    risk = margins.ramp_risk(gamma) if bound.risk == "ramp" else margins.margin_risk(gamma)
    m, nats = len(margins), sum(paid.values())
    penalty, value = bound.evaluate(subject, gamma=gamma, risk=risk, m=m, delta=delta, paid=nats)
    return BestMargin(
        bound=bound.name,
        gamma=gamma,
        risk=risk,
        nats=penalty.nats,
        paid=paid,
        log_penalty=penalty.log_value,
        value=value,
    )
