"""The automaton certificate: a network that is a small machine can be trusted as far as the machine is short to say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from statewise.automata import Assumption, Extraction, MooreMachine, certify, extract, product
from statewise.automata.checks import numbers_below
from statewise.automata.faithfulness import as_it_is
from statewise.automata.moore import Word
from statewise.automata.proof.certify import why_not_certifiable
from statewise.bounds.kl import binary_kl, kl_inverse
from statewise.bounds.machine_count import MachineDescription, describe_machine
from statewise.errors import ArgumentError, LengthError
from statewise.models import SequenceClassifier

Labels = Sequence[int] | npt.NDArray[Any]

ASKED = "as whoever asked says: data cannot show it"
INDEPENDENT = Assumption("the sequences are independent draws of the law whose error is bounded", ASKED, True)
BEFOREHAND = Assumption("alphabet and classes were fixed before the sequences were drawn", ASKED, True)


@dataclass(frozen=True, kw_only=True)
class AutomatonCertificate:
    """How often a machine errs at most, from its errors on a sample and the length of its description (new).

    With probability ``1 - delta`` over m independent sequences, for all machines over the alphabet at once::

        P(error) <= kl_inv(errors / m, (ln count(n) + ln(n(n+1)) + ln(1/delta)) / m)

    by the Chernoff bound for each machine and a union bound with the prior ``1 / (n(n+1) count(n))``, count(n) the
    number of machines of n states up to renaming. No margin and no norm enters, and no length of words; nor does it
    matter how the machine was found.

    Attributes:
        predictor: what errs so rarely, in words: the machine, and which form of the network provably equals it.
        states: n, of the minimal machine.
        symbols: in the alphabet.
        classes: C.
        sequences: m.
        errors: of the machine on them.
        delta: the probability that the statement fails.
        description: the nats of the machine.
        value: the bound on the probability of an error.
        assumptions: what the statement rests on.
        remark: why it does not speak of the network as it is; empty where it does, or no network was given.
    """

    predictor: str
    states: int
    symbols: int
    classes: int
    sequences: int
    errors: int
    delta: float
    description: MachineDescription
    value: float
    assumptions: tuple[Assumption, ...] = (INDEPENDENT, BEFOREHAND)
    remark: str = ""

    @property
    def nats(self) -> float:
        """All nats that are divided by m: of the machine, and ``ln(1/delta)``."""
        return self.description.total - math.log(self.delta)

    @property
    def rate(self) -> float:
        """The share of errors in the sample."""
        return self.errors / self.sequences

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than guessing: at least ``1 - 1/C``."""
        return self.value >= 1 - 1 / self.classes

    def sequences_for(self, target: float) -> int:
        """How many sequences would bring the bound down to a target, if the share of errors stayed the same.

        Args:
            target: above the share of errors, below 1.
        """
        if not self.rate < target < 1:
            wanted = f"above the share of errors, {self.rate:g}, and below 1"
            raise ArgumentError(where="AutomatonCertificate.sequences_for.target", got=target, wanted=wanted)
        return math.ceil(self.nats / binary_kl(self.rate, target))

    @property
    def sentence(self) -> str:
        """The result in one sentence that can be quoted."""
        found = (
            f"{_machine(self.states)} over {self.symbols} symbols takes {self.description.total:.1f} nats to say, and "
            f"{self.errors:,} of {self.sequences:,} independent sequences were wrong"
        )
        if self.vacuous:
            return (
                f"Nothing is proved of {self.predictor}: {found}, which is too little data for the bound to say more."
            )
        most = f"{math.ceil(self.value * 1e4) / 1e4:.2%}"  # what is quoted must not be less than what was proved
        return f"With probability {1 - self.delta:.6g}, {self.predictor} errs on at most {most} of sequences: {found}."

    def to_dict(self) -> dict[str, Any]:
        """All entries by name, for JSON."""
        derived = {"nats": self.nats, "rate": self.rate, "vacuous": self.vacuous, "sentence": self.sentence}
        return {**asdict(self), **derived}

    def __str__(self) -> str:
        given = [f"  [{'x' if each.holds else ' '}] {each.statement}: {each.check}" for each in self.assumptions]
        return "\n".join([self.sentence, *given, *([self.remark] if self.remark else [])])


def bound_automaton(
    machine: MooreMachine, *, sequences: int, errors: int = 0, delta: float = 0.05
) -> AutomatonCertificate:
    """The certificate of a machine whose errors have been counted.

    Args:
        machine: any.
        sequences: how many independent ones there were.
        errors: of the machine on them.
        delta: the probability that the statement fails.

    >>> from statewise.automata import from_regex
    >>> round(bound_automaton(from_regex("1*", "01"), sequences=265).value, 4)
    0.0321
    """
    if sequences < 1:
        raise LengthError(where="the sample of a certificate", got=f"{sequences} sequences", wanted="at least 1")
    if not 0 <= errors <= sequences:
        raise ArgumentError(where="the errors of a certificate", got=errors, wanted=f"from 0 to {sequences}")
    if not 0 < delta < 1:
        raise ArgumentError(where="the delta of a certificate", got=delta, wanted="a number between 0 and 1")
    description = describe_machine(machine)
    return AutomatonCertificate(
        predictor="the machine",
        states=description.states,
        symbols=len(machine.alphabet),
        classes=len(machine.classes),
        sequences=sequences,
        errors=errors,
        delta=delta,
        description=description,
        value=kl_inverse(errors / sequences, (description.total - math.log(delta)) / sequences),
    )


def certify_automaton(
    machine: MooreMachine, words: Sequence[Word], labels: Labels, *, delta: float = 0.05
) -> AutomatonCertificate:
    """Bound how often a machine errs, from the words that it was found with.

    Args:
        machine: any, also one that was chosen by these very words.
        words: independent draws of one law, equal ones as often as they were drawn.
        labels: their classes, by number.
        delta: the probability that the statement fails.

    >>> from statewise.automata import from_regex, random_words
    >>> words = random_words("01", 1000, max_length=20, seed=0)
    >>> found = certify_automaton(from_regex("1*", "01"), words, [int("0" not in word) for word in words])
    >>> found.sentence
    'With probability 0.95, the machine errs on at most 0.87% of sequences: a machine of 2 states over 2 symbols takes
    5.7 nats to say, and 0 of 1,000 independent sequences were wrong.'
    """
    if len(words) == 0 or len(labels) != len(words):
        got = f"{len(words)} words and {len(labels)} labels"
        raise LengthError(where="the sample of a certificate", got=got, wanted="at least 1 word, and a label for each")
    truth = numbers_below(labels, "the labels of a certificate", (len(words),), len(machine.classes))
    errors = int(np.count_nonzero(machine.classify(words) != truth))
    return bound_automaton(machine, sequences=len(words), errors=errors, delta=delta)


def certify_extraction(
    source: Extraction | SequenceClassifier, words: Sequence[Word], labels: Labels, *, delta: float = 0.05
) -> AutomatonCertificate:
    """Bound how often a memory-less network errs, as the machine that was read off its weights.

    The machine equals the network at argmax. Where :func:`~statewise.automata.certify` proves that the soft network
    gives every word the same class, the certificate speaks of that too; its ``predictor`` says which.

    Args:
        source: a memory-less classifier of tokens with centroids, or what :func:`~statewise.automata.extract` found.
        words: independent draws of one law, in the symbols of the network.
        labels: their classes, by number.
        delta: the probability that the statement fails.

    >>> from statewise.automata import compile_machine, from_regex, random_words
    >>> words = random_words("01", 1000, max_length=20, seed=0)
    >>> model = compile_machine(from_regex("1*", "01"))
    >>> certify_extraction(model, words, [int("0" not in word) for word in words]).predictor
    'the network as it is'
    """
    extraction = source if isinstance(source, Extraction) else extract(source)
    if extraction.network.start is None and not all(map(len, words)):
        wanted, remedy = "words of at least 1 symbol", "A network without START has no class for the empty word."
        raise LengthError(where="the sample of a certificate", got="an empty word", wanted=wanted, remedy=remedy)
    certificate = certify_automaton(extraction.machine, words, labels, delta=delta)
    predictor, proofs, remark = _equal_to_machine(extraction)
    return replace(certificate, predictor=predictor, assumptions=(*certificate.assumptions, *proofs), remark=remark)


def disagreement(machine: MooreMachine, truth: MooreMachine, *, lengths: Iterable[int]) -> float:
    """The exact probability that two machines give a word different classes, for evenly drawn lengths and symbols.

    With the machine that defines the labels it is the true error of the other; no word is run, all are counted.

    Args:
        machine: a machine.
        truth: another, over the same symbols; classes are compared by name.
        lengths: each as likely as the others.

    >>> from statewise.automata import from_regex
    >>> disagreement(from_regex("1*", "01"), from_regex("1*0?", "01"), lengths=(0, 1, 2))  # on 0, and on 10
    0.25
    """
    differ = product(machine, truth, lambda one, other: int(machine.classes[one] != truth.classes[other]))
    shares = [Fraction(differ.count(length)[1], len(machine.alphabet) ** length) for length in lengths]
    if not shares:
        raise LengthError(where="disagreement.lengths", got="none", wanted="at least one")
    return float(sum(shares) / len(shares))


def _equal_to_machine(extraction: Extraction) -> tuple[str, tuple[Assumption, ...], str]:
    """Which form of a network equals its machine, why that is so, and why no more can be said."""
    network = extraction.network
    if unsure := extraction.ambiguous:
        where = " on ".join(part for part in unsure[0] if part)
        remark = (
            f"Rounding could overturn {len(unsure)} steps of the network, first {where}: it may be another machine."
        )
        return "the machine that was read off the network", (), remark
    table = Assumption(
        "the network at argmax equals the machine on every word",
        f"its finite table was read off the weights; the smallest lead of a step is {extraction.min_margin:.3g}",
        True,
    )
    if network.hard:
        return "the network as it is (it moves by argmax)", (table,), ""
    at_argmax = "the network at argmax"
    if network.samples:
        return at_argmax, (table,), "The network as it is draws its states, which no machine describes."
    if why := why_not_certifiable(extraction):
        return at_argmax, (table,), f"There is no bound on the soft network: it has {why}."
    proof = certify(extraction)
    if not as_it_is(extraction, proof.holds):
        lower = "certified_temperature(extraction) says whether a lower one would do."
        return at_argmax, (table,), f"Of the soft network: {proof.sentence} {lower}"
    return "the network as it is", (table, Assumption("the soft network follows the machine", proof.sentence, True)), ""


def _machine(states: int) -> str:
    return "a machine of 1 state" if states == 1 else f"a machine of {states:,} states"
