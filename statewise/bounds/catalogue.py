"""The bounds that there are, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from statewise.bounds.family import Bound, OccamBound, PacBayesBound, PrintedOrder, RademacherBound
from statewise.bounds.occam import low_rank_nats
from statewise.bounds.pac_bayes import pac_bayes, zhang, zhang_order
from statewise.bounds.penalties import Penalty, dudley, massart, theorem_2
from statewise.bounds.subject import Subject
from statewise.bounds.two_one import tied, unrolled
from statewise.errors import ArgumentError, AssumptionError

T = TypeVar("T")


def _given(value: T | None) -> T:
    """A field of a subject that the bound's ``needs`` name."""
    if value is None:
        raise AssumptionError(where="Subject", got="None", wanted="all that the bound needs")
    return value


def _theorem_2(subject: Subject, gamma: float, m: int) -> Penalty:
    # Of an Elman network the product is the one that the paper prints, which is not smaller.
    product = None if subject.elman is None else subject.elman.log_printed_product()
    return theorem_2(_given(subject.paper), gamma=gamma, m=m, log_product=product)


def _tied(subject: Subject, gamma: float, m: int) -> Penalty:
    return tied(subject.profile, _given(subject.entry_sums), gamma=gamma, m=m)


def _unrolled(subject: Subject, gamma: float, m: int) -> Penalty:
    rows = {"cell_rows": _given(subject.cell_rows), "head_rows": _given(subject.head_rows)}
    return unrolled(_given(subject.elman), gamma=gamma, m=m, **rows)


def _pac_bayes(subject: Subject, gamma: float, m: int, log_failures: float) -> Penalty:
    return pac_bayes(_given(subject.elman), _given(subject.squared_norm), gamma=gamma, m=m, log_failures=log_failures)


def _zhang(subject: Subject, gamma: float, m: int, log_failures: float) -> Penalty:
    return zhang(_given(subject.elman), _given(subject.squared_norm), gamma=gamma, m=m, log_failures=log_failures)


def _low_rank(subject: Subject, log_scale: float) -> float:
    blocks = low_rank_nats(subject.profile, log_scale, _given(subject.singular_values), balls=subject.balls)
    return math.fsum(each.nats for each in blocks.values())


_ALL: tuple[Bound, ...] = (
    OccamBound(
        name="kl_occam",
        title="margin-Occam certificate",
        tag="new",
        nats=lambda subject, log_scale: subject.profile.cover_nats(log_scale),
    ),
    OccamBound(
        name="kl_low_rank",
        title="margin-Occam certificate of low-rank weights",
        tag="new",
        needs=("singular_values",),
        nats=_low_rank,
    ),
    RademacherBound(
        name="massart",
        title="one scale of a cover (Massart)",
        tag="new",
        formula=lambda subject, gamma, m: massart(subject.profile, gamma=gamma, m=m),
    ),
    RademacherBound(
        name="dudley",
        title="all scales of a cover (Dudley)",
        tag="repaired",
        formula=lambda subject, gamma, m: dudley(subject.profile, gamma=gamma, m=m),
    ),
    RademacherBound(
        name="thm2",
        title="Chen, Li & Zhao 2019, Theorem 2",
        tag="repaired",
        needs=("paper",),
        formula=_theorem_2,
    ),
    RademacherBound(
        name="thm3_l1",
        title="Chen, Li & Zhao 2019, Theorem 3, bound (3)",
        tag="repaired",
        needs=("entry_sums",),
        formula=_tied,
    ),
    RademacherBound(
        name="bartlett_unrolled",
        title="Bartlett et al. 2017 on the unrolled network",
        tag="repaired",
        needs=("elman", "cell_rows", "head_rows"),
        formula=_unrolled,
    ),
    PacBayesBound(
        name="pac_bayes",
        title="Chen, Li & Zhao 2019, Theorem 3, bound (4)",
        tag="repaired",
        needs=("elman", "squared_norm"),
        formula=_pac_bayes,
    ),
    PacBayesBound(
        name="zhang",
        title="in place of Zhang et al. 2018: bound (4) of unbounded states",
        tag="repaired",
        needs=("elman", "squared_norm"),
        formula=_zhang,
    ),
    PrintedOrder(
        name="zhang_order",
        title="Zhang et al. 2018, order",
        tag="printed",
        needs=("elman",),
        formula=lambda subject, gamma, m: zhang_order(_given(subject.elman), gamma=gamma, m=m).log_value,
    ),
)

#: All bounds by name; those that give no guarantee say so and refuse to give a value.
BOUNDS: Mapping[str, Bound] = {bound.name: bound for bound in _ALL}


def bound_named(name: str) -> Bound:
    """A bound of the catalogue.

    Args:
        name: such as "kl_occam".

    >>> bound_named("thm2").title, bound_named("thm2").tag, bound_named("zhang_order").guarantee
    ('Chen, Li & Zhao 2019, Theorem 2', 'repaired', False)
    """
    if name not in BOUNDS:
        raise ArgumentError(where="bound", got=name, wanted=f"one of {', '.join(BOUNDS)}")
    return BOUNDS[name]
