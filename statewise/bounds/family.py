"""Bounds as one family: each says what it is, what it needs, and what it makes of a class of networks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from statewise.bounds.kl import kl_inverse
from statewise.bounds.occam import margin_scale, occam_penalty
from statewise.bounds.penalties import (
    Penalty,
    check_delta,
    check_gamma,
    check_sequences,
    log_range,
    population_confidence,
    sample_confidence,
)
from statewise.bounds.subject import Subject
from statewise.errors import ArgumentError, AssumptionError

Tag = Literal["repaired", "new", "printed"]
Risk = Literal["ramp", "margin"]


@dataclass(frozen=True, kw_only=True)
class Bound(ABC):
    """A bound on the error of every network of a class, from what one of them does on m independent sequences.

    Args:
        name: for options and tables.
        title: for people.
        tag: "repaired" (the printed proof has a gap, this formula is proved), "new", or "printed" (no guarantee).
        needs: the fields of a :class:`Subject` that must be there.
    """

    name: str
    title: str
    tag: Tag
    needs: tuple[str, ...] = ()
    guarantee: ClassVar[bool] = True
    risk: ClassVar[Risk] = "ramp"

    def missing(self, subject: Subject) -> tuple[str, ...]:
        """What a subject lacks, by name; empty if the bound applies.

        Args:
            subject: the class and the network.
        """
        return tuple(name for name in self.needs if getattr(subject, name) is None)

    def log_penalty(self, subject: Subject, *, gamma: float, m: int, delta: float = 0.05, paid: float = 0.0) -> float:
        """The logarithm of the penalty, not clipped.

        Args:
            subject: the class and the network.
            gamma: γ, fixed beforehand or paid for.
            m: independent sequences.
            delta: δ, which some penalties contain.
            paid: nats of all choices that were made after looking.
        """
        return self.penalty(subject, gamma=gamma, m=m, delta=delta, paid=paid).log_value

    def penalty(self, subject: Subject, *, gamma: float, m: int, delta: float = 0.05, paid: float = 0.0) -> Penalty:
        """What the class adds to the risk, and its nats.

        Args:
            subject: as for :meth:`log_penalty`, as are the others.
            gamma: as there.
            m: as there.
            delta: as there.
            paid: as there.
        """
        check_gamma(gamma)
        check_sequences(m)
        self._refuse(subject)
        return self._penalty(subject, gamma, m, _log_failures(delta, paid))

    def value(
        self, subject: Subject, *, gamma: float, risk: float, m: int, delta: float = 0.05, paid: float = 0.0
    ) -> float:
        """With probability 1 - δ the network's error is at most this; never above 1.

        Args:
            subject: the class and the network.
            gamma: γ, fixed beforehand or paid for.
            risk: the ramp risk or the margin risk at γ, as :attr:`risk` says, on the m sequences.
            m: independent sequences.
            delta: δ.
            paid: nats of all choices that were made after looking.
        """
        return self.evaluate(subject, gamma=gamma, risk=risk, m=m, delta=delta, paid=paid)[1]

    def evaluate(
        self, subject: Subject, *, gamma: float, risk: float, m: int, delta: float = 0.05, paid: float = 0.0
    ) -> tuple[Penalty, float]:
        """:meth:`penalty` and :meth:`value` in one go.

        Args:
            subject: as for :meth:`value`, as are the others.
            gamma: as there.
            risk: as there.
            m: as there.
            delta: as there.
            paid: as there.
        """
        if not 0 <= risk <= 1:
            raise ArgumentError(where="risk", got=risk, wanted="a number from 0 to 1")
        penalty = self.penalty(subject, gamma=gamma, m=m, delta=delta, paid=paid)
        return penalty, min(1.0, self._value(subject, penalty, gamma, risk, m, _log_failures(delta, paid)))

    @abstractmethod
    def _penalty(self, subject: Subject, gamma: float, m: int, log_failures: float) -> Penalty: ...

    @abstractmethod
    def _value(
        self, subject: Subject, penalty: Penalty, gamma: float, risk: float, m: int, log_failures: float
    ) -> float: ...

    def _refuse(self, subject: Subject) -> None:
        lacking = self.missing(subject)
        if lacking:
            raise AssumptionError(
                where=self.name, got=f"no {', '.join(lacking)}", wanted=f"a subject with {lacking[0]}"
            )


@dataclass(frozen=True, kw_only=True)
class RademacherBound(Bound):
    """``ramp risk + 2 R_S + confidence``: holds with a bound on the training inputs alone, too.

    Args:
        formula: a bound on ``2 R_S`` from subject, γ and m.
    """

    formula: Callable[[Subject, float, int], Penalty]

    def _penalty(self, subject: Subject, gamma: float, m: int, log_failures: float) -> Penalty:
        return self.formula(subject, gamma, m)

    def _value(
        self, subject: Subject, penalty: Penalty, gamma: float, risk: float, m: int, log_failures: float
    ) -> float:
        # No complexity is above the range of the losses.
        clipped = min(penalty.value, 2 * math.exp(log_range(subject.profile, gamma)))
        confidence = population_confidence if subject.all_inputs else sample_confidence
        return risk + clipped + confidence(m, log_failures)


@dataclass(frozen=True, kw_only=True)
class _AllInputsBound(Bound):
    """A bound that compares functions on inputs not yet seen."""

    risk: ClassVar[Risk] = "margin"

    def _refuse(self, subject: Subject) -> None:
        super()._refuse(subject)
        if not subject.all_inputs:
            raise AssumptionError(
                where=self.name,
                got="a bound on the training inputs",
                wanted="a bound on all inputs, fixed beforehand",
                remedy="Let the network shorten longer inputs.",
            )


@dataclass(frozen=True, kw_only=True)
class PacBayesBound(_AllInputsBound):
    """``margin risk + penalty``.

    Args:
        formula: the penalty from subject, γ, m and ``ln(1/δ)``.
    """

    formula: Callable[[Subject, float, int, float], Penalty]

    def _penalty(self, subject: Subject, gamma: float, m: int, log_failures: float) -> Penalty:
        return self.formula(subject, gamma, m, log_failures)

    def _value(
        self, subject: Subject, penalty: Penalty, gamma: float, risk: float, m: int, log_failures: float
    ) -> float:
        return risk + penalty.value


@dataclass(frozen=True, kw_only=True)
class OccamBound(_AllInputsBound):
    """The error that a binomial tail cannot exclude for a cover of so many nats; see :mod:`statewise.bounds.occam`.

    Args:
        nats: of the cover, from subject and the logarithm of its scale.
    """

    nats: Callable[[Subject, float], float]

    def _penalty(self, subject: Subject, gamma: float, m: int, log_failures: float) -> Penalty:
        return occam_penalty(self.nats(subject, margin_scale(gamma)), m=m, log_failures=log_failures)

    def _value(
        self, subject: Subject, penalty: Penalty, gamma: float, risk: float, m: int, log_failures: float
    ) -> float:
        return kl_inverse(risk, penalty.value)


@dataclass(frozen=True, kw_only=True)
class PrintedOrder(Bound):
    """How a printed bound grows: to compare, not to trust. It has a penalty and refuses a value.

    Args:
        formula: ln of the order, from subject, γ and m.
    """

    guarantee: ClassVar[bool] = False
    formula: Callable[[Subject, float, int], float]

    def _penalty(self, subject: Subject, gamma: float, m: int, log_failures: float) -> Penalty:
        return Penalty(self.formula(subject, gamma, m), math.nan)

    def _value(
        self, subject: Subject, penalty: Penalty, gamma: float, risk: float, m: int, log_failures: float
    ) -> float:
        raise AssumptionError(where=self.name, got="an order, with every constant 1", wanted="a bound with a guarantee")


def _log_failures(delta: float, paid: float) -> float:
    """``ln(1/δ')``, where δ' is what is left of δ after all choices were paid for."""
    if not 0 <= paid < math.inf:
        raise ArgumentError(where="paid", got=paid, wanted="a finite number of nats >= 0")
    return check_delta(delta) + paid
