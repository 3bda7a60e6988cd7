"""Is a network the machine that it should be? By test on many words, and where possible by proof for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from statewise.automata.black_box import Agreement, CounterExample, agreement
from statewise.automata.compare import witness
from statewise.automata.extract import Extraction, extract
from statewise.automata.faithfulness import as_it_is
from statewise.automata.freeze import alphabet_of, token_embedding
from statewise.automata.moore import MooreMachine, Word
from statewise.automata.proof.certificate import Certificate
from statewise.automata.proof.certify import certify, why_not_certifiable
from statewise.errors import ArgumentError
from statewise.models import SequenceClassifier


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What holds for words of every length.

    Attributes:
        equal: whether the network at argmax is the machine: their finite tables are equivalent.
        witness: the shortest word on which they differ; None if they are equal.
        certificate: whether the soft network follows the automaton that was read from it; None where no bound is known.
        extraction: that automaton, with all that was found on the way.
    """

    equal: bool
    witness: str | tuple[str, ...] | None
    certificate: Certificate | None
    extraction: Extraction

    @property
    def soft(self) -> bool:
        """Whether the network as it is provably equals the machine on every word."""
        return self.equal and as_it_is(self.extraction, self.certificate is not None and self.certificate.holds)

    @property
    def sentence(self) -> str:
        """The result in one sentence that can be quoted."""
        if not self.equal:
            return f"At argmax the network differs from the machine, first on the word {self.witness!r}."
        hard = "At argmax the network equals the machine on every word, of every length (in exact arithmetic)"
        if unsure := self.extraction.ambiguous:
            where = " on ".join(part for part in unsure[0] if part)
            hard += f"; rounding could overturn {len(unsure)} of its steps, first {where}"
        if self.extraction.network.hard:
            return f"{hard}. The network as it is moves by argmax."
        if self.certificate is None:
            return f"{hard}. There is no bound on the soft network: it has {why_not_certifiable(self.extraction)}."
        draws = (
            " It draws its states instead, of which neither says anything." if self.extraction.network.samples else ""
        )
        return f"{hard}. {self.certificate.sentence}{draws}"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What :func:`verify` found.

    Attributes:
        soft: the agreement of the network as it is with the machine.
        hard: that of the network at argmax; None for a network without centroids.
        proof: for words of every length; None where there can be none.
        no_proof: why there can be none; empty where there is one.
    """

    soft: Agreement
    hard: Agreement | None
    proof: Proof | None
    no_proof: str

    @property
    def counter_examples(self) -> tuple[CounterExample, ...]:
        """The shortest words found on which the network as it is differs from the machine."""
        return self.soft.counter_examples

    @property
    def proven(self) -> bool:
        """Whether the network as it is provably equals the machine on words of every length."""
        return self.proof is not None and self.proof.soft

    def __str__(self) -> str:
        hard = "" if self.hard is None else f"\nat argmax: {self.hard}"
        why = f"none, since {self.no_proof}" if self.proof is None else self.proof.sentence
        return f"as it is: {self.soft}{hard}\nproof: {why}"


def verify(
    model: SequenceClassifier,
    machine: MooreMachine,
    *,
    max_length: int | None = None,
    random_words: int = 1000,
    random_lengths: tuple[int, int] | None = None,
    seed: int = 0,
    keep: int = 10,
    generator: torch.Generator | None = None,
) -> Verification:
    """Compare a network with a machine on all short and on random words, and prove their equality if possible.

    Args:
        model: a classifier of tokens.
        machine: over the same symbols, whose classes are numbered as the network's.
        max_length: all words up to this length are asked; None means up to 10,000 words.
        random_words: how many longer words are drawn.
        random_lengths: their smallest and largest length; None means from past max_length to ten times that.
        seed: of the random words.
        keep: how many counter-examples are kept, the shortest ones.
        generator: source of what a network with transition "sample" draws.

    >>> from statewise.automata import compile_machine, from_regex
    >>> even = from_regex("(0|10*1)*")
    >>> verify(compile_machine(even), even, max_length=6, random_words=50).proven
    True
    """
    _same_alphabet(model, machine)
    options: dict[str, Any] = {"max_length": max_length, "random": random_words, "random_lengths": random_lengths}
    options |= {"seed": seed, "keep": keep}
    soft = agreement(machine, classifier_of(model, machine, generator=generator), **options)
    hard = None
    if any(model.centroids_of(layer) is not None for layer in range(model.layer.num_layers)):
        hard = agreement(machine, classifier_of(model.with_transition("argmax"), machine), **options)
    if not model.memoryless:
        return Verification(soft=soft, hard=hard, proof=None, no_proof=model.why_not_memoryless)
    return Verification(soft=soft, hard=hard, proof=prove(model, machine), no_proof="")


def prove(model: SequenceClassifier, machine: MooreMachine) -> Proof:
    """The part of :func:`verify` that speaks of all words: no word is run.

    Args:
        model: a memory-less classifier of tokens.
        machine: over the same symbols.
    """
    _same_alphabet(model, machine)
    extraction = extract(model, classes=machine.classes)
    difference = witness(comparable(extraction, machine), machine)
    return Proof(
        equal=difference is None,
        witness=difference,
        certificate=None if why_not_certifiable(extraction) else certify(extraction),
        extraction=extraction,
    )


def comparable(extraction: Extraction, machine: MooreMachine) -> MooreMachine:
    """The machine of a network, as far as another can be held against it.

    Where words begin without START the network has no empty word, and the other machine answers for it.

    Args:
        extraction: of the network, with the other's classes.
        machine: the other.
    """
    if extraction.network.start is not None:
        return extraction.machine
    outputs = extraction.table.outputs.copy()
    outputs[extraction.table.start] = machine.outputs[machine.start]  # which no other state leads to
    return replace(extraction.table, outputs=outputs)


def classifier_of(
    model: SequenceClassifier, machine: MooreMachine, *, generator: torch.Generator | None = None
) -> Callable[[Sequence[Word]], np.ndarray]:
    """The model as a function of words in the machine's symbols.

    Where words begin without START the network has no empty word, and the machine answers for it.

    Args:
        model: a classifier of tokens.
        machine: over its symbols.
        generator: source of what a network with transition "sample" draws.
    """
    numbers = {symbol: number for number, symbol in enumerate(alphabet_of(model))}
    empty = None if model.config.start_token else int(machine.outputs[machine.start])

    def classify(words: Sequence[Word]) -> np.ndarray:
        coded = [[numbers[symbol] for symbol in word] for word in words]
        if empty is None:
            return model.classify(coded, generator=generator)
        found = np.full(len(coded), empty, dtype=np.int64)
        asked = [place for place, word in enumerate(coded) if word]
        found[asked] = model.classify([coded[place] for place in asked], generator=generator)
        return found

    return classify


def _same_alphabet(model: SequenceClassifier, machine: MooreMachine) -> None:
    token_embedding(model, where="verify")
    own = alphabet_of(model)
    if set(own) != set(machine.alphabet):
        raise ArgumentError(
            where="verify machine", got=f"the alphabet {machine.alphabet}", wanted=f"the network's symbols {own}"
        )
    if len(machine.classes) != model.classes:
        raise ArgumentError(
            where="verify machine", got=f"{len(machine.classes)} classes", wanted=f"the network's {model.classes}"
        )
