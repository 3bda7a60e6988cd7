"""The ways to certify a network: what each needs, and the claim that it makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from statewise.automata import Assumption, extract
from statewise.bounds.automaton import certify_extraction
from statewise.bounds.catalogue import BOUNDS, bound_named
from statewise.bounds.certificate import NETWORK, Claim
from statewise.bounds.grid import Ledger
from statewise.bounds.hidden import why_hidden
from statewise.bounds.kl import kl_inverse
from statewise.bounds.matrices import NetworkMatrices
from statewise.bounds.measured_class import network_class
from statewise.bounds.measured_gates import measured_gates
from statewise.bounds.measured_subject import MeasuredSubject, measure_filters, measure_network
from statewise.bounds.observed import Observed
from statewise.bounds.occam import margin_scale
from statewise.bounds.quantised import describe
from statewise.bounds.reading import Reading
from statewise.bounds.search import BestMargin, SortedMargins, best_over_margins

#: Bounds by norms: their names in a certificate, and in the catalogue.
NORMS: Mapping[str, str] = {
    "kl": "kl_occam",
    "low-rank": "kl_low_rank",
    "massart": "massart",
    "dudley": "dudley",
    "theorem-2": "thm2",
    "theorem-3": "thm3_l1",
    "bartlett": "bartlett_unrolled",
    "theorem-4": "pac_bayes",
    "zhang": "zhang",
    "zhang-order": "zhang_order",
}


class NotApplicableError(Exception):
    """A method says nothing of this network; the text says why."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """What all methods are given.

    Attributes:
        reading: of the model.
        seen: what it did on the data.
        fresh: what it did on data on which nothing was chosen; None without.
        delta: the share of the failure probability that one method has.
        steps: the most steps of a sequence, marks included.
        input_bound: on the length of a step; infinite for tokens; None where nobody knows any.
        paid: the nats of what was chosen for all methods that use norms: steps and input bound.
        chosen: the nats of what was chosen for all methods: the architecture.
        promised: constants of the class that were fixed beforehand.
        reference: a network that was fixed beforehand; None without.
    """

    reading: Reading
    seen: Observed
    fresh: Observed | None
    delta: float
    steps: int
    input_bound: float | None
    paid: Mapping[str, float]
    chosen: Mapping[str, float]
    promised: Mapping[str, float]
    reference: NetworkMatrices | None

    @cached_property
    def margins(self) -> SortedMargins:
        """The margins, for look-ups."""
        return SortedMargins(self.seen.margins)

    @cached_property
    def measured(self) -> MeasuredSubject:
        """The class around the network."""
        return self._measure(None)

    @cached_property
    def measured_around_reference(self) -> MeasuredSubject:
        """The class around the network that lies around a reference."""
        return self._measure(self.reference)

    @property
    def confidence(self) -> dict[str, float]:
        """``ln(1/δ)``."""
        return {"confidence": -math.log(self.delta)}

    def _measure(self, reference: NetworkMatrices | None) -> MeasuredSubject:
        """With the promises or without, whichever is cheaper: a norm may have stayed far below what was promised."""
        kept = self._measure_with(self.promised, reference)
        if not self.promised or self.reading.convolutional is not None:
            return kept
        looked_up = self._measure_with({}, reference)
        scale = margin_scale(max(self.margins.largest, 1e-300) / 4)
        chosen = min(
            (kept, looked_up), key=lambda each: sum(each.paid.values()) + each.subject.profile.cover_nats(scale)
        )
        return replace(chosen, paid={**chosen.paid, "promised or measured": math.log(2)})

    def _measure_with(self, promised: Mapping[str, float], reference: NetworkMatrices | None) -> MeasuredSubject:
        matrices = self.reading.matrices
        if matrices is None:
            raise NotApplicableError(self.reading.why_not)
        assert self.input_bound is not None
        if self.reading.convolutional is not None:
            return measure_filters(*self.reading.convolutional, steps=self.steps, input_bound=self.input_bound)
        return measure_network(
            matrices,
            steps=self.steps,
            input_bound=self.input_bound,
            promised=promised,
            reference=reference,
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    """A claim, and what it rests on beyond what all claims do."""

    claim: Claim
    assumptions: tuple[Assumption, ...] = ()


Method = Callable[[Case], Found]


def _by_norms(name: str) -> Method:
    bound = bound_named(NORMS[name])

    def method(case: Case) -> Found:
        return Found(claim=_searched(case, name, NORMS[name], case.measured))

    def order(case: Case) -> Found:
        subject = case.measured.subject
        _refuse_missing(bound.missing(subject))
        log_penalty = bound.log_penalty(subject, gamma=1.0, m=case.seen.sequences)
        claim = Claim(name=name, title=bound.title, origin=bound.tag, value=1.0, gamma=1.0, log_penalty=log_penalty)
        return Found(claim=replace(claim, sequences=case.seen.sequences, guarantee=False))

    return method if bound.guarantee else order


def _around_reference(case: Case) -> Found:
    if case.reference is None:
        raise NotApplicableError("no reference was given: reference= takes the network that training began with")
    claim = _searched(case, "reference", "kl_occam", case.measured_around_reference)
    return Found(claim=replace(claim, title="margin-Occam certificate around a reference"))


def _searched(case: Case, name: str, catalogued: str, measured: MeasuredSubject) -> Claim:
    bound = bound_named(catalogued)
    _refuse_missing(bound.missing(measured.subject))
    choices = {**measured.ledger(catalogued), **case.paid, **case.chosen}
    best = best_over_margins(bound, measured.subject, case.margins, delta=case.delta, ledger=choices)
    norms = math.fsum(nats for key, nats in measured.ledger(catalogued).items())
    paid = {"constants": norms, "margin": best.paid["gamma"], **case.paid, **case.chosen, **case.confidence}
    return _claim(case, name, best, paid, occam=catalogued.startswith("kl_"))


def _claim(case: Case, name: str, best: BestMargin, paid: Mapping[str, float], *, occam: bool) -> Claim:
    bound = bound_named(best.bound)
    return Claim(
        name=name,
        title=bound.title,
        origin=bound.tag,
        value=best.value,
        delta=case.delta,
        risk=best.risk,
        gamma=best.gamma,
        nats={"class": best.nats, **paid} if occam else dict(paid),
        log_penalty=None if occam else best.log_penalty,
        sequences=case.seen.sequences,
    )


def _refuse_missing(missing: tuple[str, ...]) -> None:
    words = {
        "paper": "one layer in one direction that reads numbers",
        "elman": "one plain Elman layer that reads numbers",
        "entry_sums": "inputs that are numbers, and matrices of free entries",
        "singular_values": "matrices of free entries",
    }
    if missing:
        raise NotApplicableError(f"it is for networks with {words.get(missing[0], missing[0])}")


def _measured_gates(case: Case) -> Found:
    levels = case.seen.watched
    if levels is None or case.reading.matrices is None:
        raise NotApplicableError("it is for one layer of minimal gated units")
    assert case.input_bound is not None
    ledger = Ledger(promised=case.promised)
    network = network_class(
        case.reading.matrices, steps=case.steps, input_bound=case.input_bound, ledger=ledger, gates=False
    )
    choices = {**case.paid, **case.chosen}
    best = measured_gates(
        network,
        torch.from_numpy(case.seen.margins),
        torch.from_numpy(levels),
        delta=case.delta,
        constants_nats=ledger.total + math.fsum(choices.values()),
    )
    claim = Claim(
        name="measured-gates",
        title=f"margin-Occam certificate with gates as they were seen, level {best.theta:.3g}",
        origin="new",
        value=best.value,
        delta=case.delta,
        risk=best.rate,
        gamma=best.gamma,
        sequences=case.seen.sequences,
        nats={
            "class": best.cover_nats,
            "constants": ledger.total,
            "margin": best.choice_nats,
            **choices,
            **case.confidence,
        },
    )
    return Found(claim=claim)


def _bits(case: Case) -> Found:
    if hidden := why_hidden(case.reading.model):
        raise NotApplicableError(f"{hidden}: it cannot be described")
    description = describe(case.reading.model)
    nats = {"weights": description.nats, **case.chosen, **case.confidence}
    claim = Claim(
        name="bits",
        title=f"Occam certificate of its {description.entries:,} weights as they are stored",
        origin="new",
        value=kl_inverse(case.seen.error, math.fsum(nats.values()) / case.seen.sequences),
        delta=case.delta,
        risk=case.seen.error,
        nats=nats,
        sequences=case.seen.sequences,
    )
    return Found(claim=claim)


def _automaton(case: Case) -> Found:
    model = case.reading.classifier
    if model is None or model.tokens is None:
        raise NotApplicableError("an automaton can be read off classifiers of tokens whose states move among centroids")
    if not model.memoryless:
        raise NotApplicableError(f"no automaton can be read off it: {model.why_not_memoryless}")
    assert case.seen.words is not None
    extraction = extract(model)
    names = extraction.machine.alphabet
    words = [[names[token] for token in word] for word in case.seen.words]
    found = certify_extraction(extraction, words, case.seen.labels, delta=case.delta)
    parts = {"machine": found.description.total, **case.chosen, **case.confidence}
    claim = Claim(
        name="automaton",
        title=f"Occam certificate of its automaton, {found.states} state{'s' * (found.states > 1)}",
        origin="new",
        value=kl_inverse(found.rate, math.fsum(parts.values()) / found.sequences),
        about=NETWORK if found.predictor.startswith("the network as it is") else found.predictor,
        delta=case.delta,
        risk=found.rate,
        nats=parts,
        sequences=found.sequences,
    )
    remark = (Assumption(found.predictor, found.remark, True),) if found.remark else ()
    return Found(claim=claim, assumptions=(*found.assumptions[2:], *remark))


def _held_out(case: Case) -> Found:
    if case.fresh is None:
        raise NotApplicableError("no fresh sequences were given: fresh= takes those on which nothing was chosen")
    fresh, nats = case.fresh, case.confidence
    claim = Claim(
        name="held-out",
        title=f"binomial tail on {fresh.sequences:,} fresh sequences",
        origin="new",
        value=kl_inverse(fresh.error, math.fsum(nats.values()) / fresh.sequences),
        delta=case.delta,
        risk=fresh.error,
        nats=nats,
        sequences=fresh.sequences,
    )
    told = "as whoever gave them says; they are other ones than the rest"
    statement = "the fresh sequences are draws of the same law, and neither weights nor settings were chosen by them"
    return Found(claim=claim, assumptions=(Assumption(statement, told, True),))


#: All methods by name, in the order in which they are tried.
METHODS: Mapping[str, Method] = {
    "kl": _by_norms("kl"),
    "low-rank": _by_norms("low-rank"),
    "reference": _around_reference,
    "measured-gates": _measured_gates,
    "bits": _bits,
    "automaton": _automaton,
    "held-out": _held_out,
    **{name: _by_norms(name) for name in NORMS if name not in ("kl", "low-rank")},
}
#: Those that need a bound on the inputs.
NEED_INPUT_BOUND = frozenset({*NORMS, "reference", "measured-gates"})
#: Those that make no guarantee, and share no failure probability.
ORDERS = frozenset(name for name, catalogued in NORMS.items() if not BOUNDS[catalogued].guarantee)
