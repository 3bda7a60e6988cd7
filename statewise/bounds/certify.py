"""Certify a trained classifier: check what bounds assume, try all that apply, and keep the best."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from torch import nn

from statewise.automata import Assumption
from statewise.bounds.certificate import NETWORK, Certificate, Claim
from statewise.bounds.diagnosis import diagnose
from statewise.bounds.gate_watch import gate_watch, has_one_gate
from statewise.bounds.grid import prefix_nats, round_up
from statewise.bounds.matrices import NetworkMatrices
from statewise.bounds.methods import METHODS, NEED_INPUT_BOUND, ORDERS, Case, Found, NotApplicableError
from statewise.bounds.observed import Data, Forward, Observed, observe
from statewise.bounds.reading import Reading, read_model
from statewise.bounds.trial import refuse_changing, tried
from statewise.errors import ArgumentError, AssumptionError

#: Error probabilities for which the number of sequences is told.
TARGETS = (0.3, 0.1, 0.03, 0.01)
_SAID = "as whoever asked says: nothing can check it"
#: What a certificate rests on if something was given.
_TOLD: Mapping[str, Assumption] = {
    "promised": Assumption("the promised constants were fixed before the data was seen", _SAID, True),
    "reference": Assumption("the reference was fixed before the data was seen", _SAID, True),
    "methods": Assumption("the methods were named before any certificate was looked at", _SAID, True),
    "forward": Assumption("forward computes with nothing but the model, and was fixed beforehand", _SAID, True),
}


def certify(
    model: nn.Module,
    data: Data,
    *,
    delta: float = 0.05,
    iid: bool | None = None,
    input_bound: float | Literal["measured"] | None = None,
    longest: int | None = None,
    promised: Mapping[str, float] | None = None,
    reference: nn.Module | None = None,
    fresh: Data | None = None,
    architectures: int = 1,
    methods: Sequence[str] | None = None,
    forward: Forward | None = None,
    targets: Sequence[float] = TARGETS,
) -> Certificate:
    """How often a classifier errs at most on new sequences, with a proof.

    With probability at least ``1 - delta`` over the draw of the sequences all claims hold together, each with an equal
    share of delta; the least of them is the certificate's. Sequences may be those that the network was trained on: the
    bounds hold for all networks of a class at once, and every constant that was looked up in the network is paid for.

    Args:
        model: in eval mode: a :class:`~statewise.models.SequenceClassifier`, or a module of torch.nn with one recurrent
            layer and one linear head that reads its last state; maybe inside :class:`BoundedInputs`.
        data: ``(inputs, labels)``, ``(inputs, lengths, labels)``, examples of :mod:`statewise.data`, or batches of the
            first two.
        delta: the probability that something that is claimed here is false.
        iid: say True if the sequences are independent draws of one law. Nothing can check that; steps of one sequence,
            windows of one stream and augmented copies are not.
        input_bound: of numbers: the greatest length of a step, fixed before the data was seen and true of all that will
            come; or "measured": that of the data, paid for, longer ones then counting as errors. Tokens need none.
        longest: the most steps of a sequence, fixed before the data was seen; None for those of the data, paid for,
            longer ones then counting as errors.
        promised: constants that were fixed before the data was seen, by name, such as ``{"U": 1.0}`` for the norm that
            a projection kept; all others are measured and paid for.
        reference: a model of the same architecture that was fixed before the data was seen, such as the one that
            training began with.
        fresh: sequences by which nothing was chosen; adds the bound of a held-out set.
        architectures: among how many this one was chosen by looking at the data.
        methods: some of :data:`METHODS`; None for all that apply. One that is named and does not apply is an error.
        forward: gives the logits, from ``(inputs)`` or ``(inputs, lengths)``; None calls the model.
        targets: error probabilities for which to tell how many sequences would be needed.

    >>> import torch
    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(cell="rnn", hidden=2, readout="h").build(features=1, classes=2).eval()
    >>> inputs = torch.rand(500, 3, 1)
    >>> found = certify(model, (inputs, model(inputs).argmax(1)), iid=True, input_bound=1.0)
    >>> found.error, found.best.name, 0 < found.value < 1
    (0.0, 'kl', True)
    """
    _check(delta, iid, longest, architectures, methods)
    reading = read_model(model)
    wanted = tuple(METHODS) if methods is None else tuple(dict.fromkeys(methods))
    # All that may be claimed has a share of delta, whatever comes of it: which ones do must not be found by looking.
    shares = sum(_possible(name, reading, fresh is not None, reference) for name in wanted if name not in ORDERS)
    seen = observe(model, data, forward=forward, watch=gate_watch(reading, promised or {}))
    refuse_changing(model, seen, forward=forward)
    reading, seen = tried(reading, seen)
    limits = _limits(reading, seen, wanted, input_bound, longest)
    untouched = None if fresh is None else observe(model, fresh, forward=forward, where="certify.fresh")
    _refuse_same(seen, untouched)
    case = Case(
        reading=reading,
        seen=seen,
        fresh=untouched,
        delta=delta / max(1, shares),
        steps=limits.steps,
        input_bound=limits.input_bound,
        paid=limits.paid,
        chosen={} if architectures == 1 else {"architecture": math.log(architectures)},
        promised=dict(promised or {}),
        reference=None if reference is None else _reference(reference, model),
    )
    found, inapplicable = _claims(case, wanted, named=methods is not None)
    ranked = sorted(found, key=lambda each: (not each.claim.guarantee, each.claim.value, -_tightness(each.claim)))
    claims = tuple(each.claim for each in ranked)
    best, other = _headline(claims, seen, case.delta)
    told = {"promised": promised, "reference": reference, "methods": methods, "forward": forward}
    asked = [_TOLD[name] for name, value in told.items() if value]
    general = _assumptions(reading, seen, limits, architectures)
    rests = [*general, *asked, *(rest for each in ranked for rest in each.assumptions)]
    return Certificate(
        value=best.value,
        delta=delta,
        sequences=seen.sequences,
        classes=seen.classes,
        error=seen.error,
        best=best,
        other=other,
        claims=claims,
        inapplicable=inapplicable,
        assumptions=tuple(dict.fromkeys(rests)),
        needed={} if best.log_penalty is not None else {target: best.needed(target) for target in targets},
        **diagnose(case, {claim.name: claim for claim in claims}, best),
    )


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """What is known of all sequences that may come: what was paid for it, and how it is known."""

    steps: int
    input_bound: float | None
    paid: Mapping[str, float]
    told: tuple[Assumption, ...]


def _check(delta: float, iid: bool | None, longest: int | None, architectures: int, methods: Any) -> None:
    if not 0 < delta < 1:
        raise ArgumentError(where="certify.delta", got=delta, wanted="a number between 0 and 1")
    if iid is not True:
        raise AssumptionError(
            where="certify.iid",
            got=iid,
            wanted="True",
            remedy="Say iid=True if the sequences are independent draws of one law. Windows of one stream, steps of "
            "one sequence and augmented copies are not, and then there is no certificate.",
        )
    if longest is not None and longest < 1:
        raise ArgumentError(where="certify.longest", got=longest, wanted="a whole number of at least 1")
    if architectures < 1:
        raise ArgumentError(where="certify.architectures", got=architectures, wanted="a whole number of at least 1")
    if isinstance(methods, str):
        raise ArgumentError(where="certify.methods", got=methods, wanted=f'names in a list, such as ["{methods}"]')
    for name in methods or ():
        if name not in METHODS:
            raise ArgumentError(where="certify.methods", got=name, wanted=f"some of {', '.join(METHODS)}")


def _limits(
    reading: Reading,
    seen: Observed,
    wanted: Sequence[str],
    input_bound: float | Literal["measured"] | None,
    longest: int | None,
) -> _Limits:
    paid: dict[str, float] = {}
    if longest is None:
        longest, how = seen.longest, "the most of the data, paid for; longer ones count as errors"
        paid["longest"] = prefix_nats(max(1, longest))
    else:
        how = "fixed beforehand, as whoever asked says, and true of all sequences here"
        if seen.longest > longest:
            raise AssumptionError(
                where="certify.longest",
                got=f"a sequence of {seen.longest} steps",
                wanted=f"at most {longest}",
                remedy="Leave longest= out: then the longest is paid for.",
            )
    told = [Assumption(f"sequences have at most {longest} steps", how, True)]
    bound, bound_paid, bound_told = _input_limit(reading, seen, wanted, input_bound)
    return _Limits(
        steps=max(1, longest + reading.marks),
        input_bound=bound,
        paid={**paid, **bound_paid},
        told=(*told, *bound_told),
    )


def _input_limit(
    reading: Reading, seen: Observed, wanted: Sequence[str], input_bound: float | Literal["measured"] | None
) -> tuple[float | None, dict[str, float], list[Assumption]]:
    """The bound on the inputs, what was paid for it, and how it is known."""
    if seen.words is not None:
        return math.inf, {}, []
    if reading.input_bound is not None:
        statement = f"inputs are at most {reading.input_bound:g} long"
        # What is brought back to the bound is rounded.
        return reading.input_bound * (1 + 1e-6), {}, [Assumption(statement, "the model shortens longer ones", True)]
    if input_bound == "measured":
        rounded = round_up(seen.largest)
        how = "the next grid point above all of the data, paid for; longer ones count as errors"
        return rounded.value, {"input bound": rounded.nats}, [_long(rounded.value, how)]
    if input_bound is None:
        if not NEED_INPUT_BOUND.isdisjoint(wanted) and reading.matrices is not None:
            raise AssumptionError(
                where="certify.input_bound",
                got="inputs without a bound",
                wanted="the greatest length of a step",
                remedy='Give input_bound=, if one was known before the data was seen; or "measured", which is paid '
                "for; or wrap the model in BoundedInputs before it is trained.",
            )
        return None, {}, []
    if isinstance(input_bound, str) or not 0 < input_bound < math.inf:
        wanted = 'a finite number > 0, or "measured"'
        raise ArgumentError(where="certify.input_bound", got=input_bound, wanted=wanted)
    if seen.largest > input_bound * (1 + 1e-6):
        raise AssumptionError(
            where="certify.input_bound",
            got=f"a step of length {seen.largest:.6g}",
            wanted=f"at most {input_bound:g}, as was promised",
            remedy='Give "measured": then the bound is paid for.',
        )
    how = "fixed beforehand, as whoever asked says, and true of all sequences here"
    return input_bound * (1 + 1e-6), {}, [_long(input_bound, how)]


def _long(bound: float, how: str) -> Assumption:
    return Assumption(f"inputs are at most {bound:g} long", how, True)


def _headline(claims: Sequence[Claim], seen: Observed, delta: float) -> tuple[Claim, Claim | None]:
    """The least claim about the network itself, and a lower one about another predictor."""
    proved = [claim for claim in claims if claim.guarantee]
    if not proved:
        raise AssumptionError(
            where="certify", got="no bound that applies", wanted="one", remedy="Name others with methods=, or none."
        )
    own = [claim for claim in proved if claim.about == NETWORK]
    nothing = Claim(name="none", title="nothing is proved of it", origin="new", value=1.0, delta=delta)
    best = own[0] if own else replace(nothing, risk=seen.error, sequences=seen.sequences)
    others = [claim for claim in proved if claim.about != NETWORK and claim.value < best.value]
    return best, others[0] if others else None


def _refuse_same(seen: Observed, fresh: Observed | None) -> None:
    if fresh is None:
        return
    common = int(np.isin(fresh.keys, seen.keys).sum())
    # Short words may well be drawn again; numbers may not.
    if common and (seen.words is None or np.array_equal(np.sort(fresh.keys), np.sort(seen.keys))):
        raise AssumptionError(
            where="certify.fresh",
            got=f"{common:,} sequences that are among the data",
            wanted="others, by which nothing was chosen",
            remedy="Leave fresh= out: the other bounds need no fresh sequences.",
        )


def _possible(name: str, reading: Reading, fresh: bool, reference: nn.Module | None) -> bool:
    """Whether a method may apply, as far as can be said without looking at weights or margins."""
    if name == "held-out":
        return fresh
    if name == "automaton":
        model = reading.classifier
        return model is not None and model.tokens is not None and model.memoryless
    if name == "reference" and reference is None:
        return False
    if name == "measured-gates" and not has_one_gate(reading):
        return False
    return name not in NEED_INPUT_BOUND or reading.matrices is not None


def _reference(model: nn.Module, trained: nn.Module) -> NetworkMatrices:
    places = {parameter.data_ptr() for parameter in trained.parameters()}
    if any(parameter.data_ptr() in places for parameter in model.parameters()):
        raise AssumptionError(
            where="certify.reference",
            got="the weights of the model itself",
            wanted="those of a network that was fixed before the data was seen",
            remedy="Keep a copy.deepcopy of the model before it is trained.",
        )
    found = read_model(copy.deepcopy(model).eval())
    if found.matrices is None:
        raise AssumptionError(
            where="certify.reference", got=found.why_not, wanted="the architecture of the model itself"
        )
    return found.matrices


def _claims(case: Case, wanted: Sequence[str], *, named: bool) -> tuple[list[Found], dict[str, str]]:
    found, inapplicable = [], {}
    for name in wanted:
        try:
            found.append(METHODS[name](case))
        except NotApplicableError as error:
            if named:
                raise AssumptionError(where=f"certify, {name}", got=str(error), wanted="a network it covers") from None
            inapplicable[name] = str(error)
    return found, inapplicable


def _tightness(claim: Claim) -> float:
    """Among bounds that are all cut at 1, how far each was from it."""
    return -claim.log_penalty if claim.log_penalty is not None else 0.0


def _assumptions(reading: Reading, seen: Observed, limits: _Limits, architectures: int) -> list[Assumption]:
    """What all claims rest on."""
    network = "yes" if architectures == 1 else f"it was one of {architectures}, which is paid for"
    again = "it is in eval mode, and gave some sequences the same logits when they were run again, alone"
    copies = f"{_SAID}; {seen.copies:,} of them are copies of others" if seen.copies else _SAID
    found = [
        Assumption("the sequences are independent draws of the law whose error is bounded", copies, True),
        Assumption("the network is one deterministic function of a sequence", again, True),
        Assumption("its architecture was fixed before the data was seen", f"{network}, {_SAID}", True),
        Assumption("so were classes, vocabulary and whatever is done to inputs before it sees them", _SAID, True),
        Assumption("its weights are finite", "all were looked at", True),
    ]
    if reading.matrices is not None:
        read = "its outputs were computed again from its matrices, on some of the sequences"
        found += [Assumption("its logits are a linear map of the last state", read, True), *limits.told]
    return found
