"""Learning an automaton: noise that grows until the soft network is a finite one, and restarts side by side."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from rich.console import Console

from statewise.automata import Extraction, MooreMachine, extract
from statewise.data import Sequences
from statewise.errors import ArgumentError, DivergedError
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.train.harden_search import Search
from statewise.train.telling import say

#: The network that learns automata when none is named.
AUTOMATON = ClassifierConfig(cell="multiplicative", hidden=32, embedding=16, centroids=(20,))


@dataclass(frozen=True, kw_only=True)
class Hardening:
    """How an automaton is learnt.

    The noise is that of transition "noisy", ``h = S softmax(z + noise * gumbel)``: at 0 the mixture of Wang & Niepert
    2019, eq. 6, at 1 the relaxed draw of eq. 5. Mixtures of centroids do not survive it; a network that classifies well
    all the same has become an automaton.

    Args:
        restarts: how many networks are trained side by side, each from weights of its own.
        steps: the most steps of training.
        lr: the learning rate of Adam.
        clip: the largest norm of the gradient of one network.
        threshold: the loss under which noise and curriculum advance.
        ramp: by how much the noise grows with each step under the threshold.
        noise: how far it grows.
        begin: the longest words at first; the curriculum lengthens them one by one.
        nodes: how many prefixes of the shortest words are trained on; longer words only check the machine, until one is
            misjudged.
        suffixes: the most suffixes after which states are trained to tell prefixes apart, beside the words; 0 for none.
        stable: how many looks in a row must find the same faultless machine.
        seed: of weights and noise.

    >>> Hardening().restarts
    10
    """

    restarts: int = 10
    steps: int = 1500
    lr: float = 0.005
    clip: float = 1.0
    threshold: float = 0.1
    ramp: float = 0.01
    noise: float = 1.0
    begin: int = 4
    nodes: int = 1500
    suffixes: int = 24
    stable: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("restarts", "steps", "nodes", "stable"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ArgumentError(
                    where=f"Hardening.{name}", got=getattr(self, name), wanted="a whole number of at least 1"
                )
        for name in ("begin", "suffixes", "seed"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 0:
                raise ArgumentError(where=f"Hardening.{name}", got=getattr(self, name), wanted="a whole number >= 0")
        for name in ("lr", "clip", "threshold", "ramp", "noise"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ArgumentError(where=f"Hardening.{name}", got=value, wanted="a finite number > 0")


@dataclass(frozen=True, kw_only=True)
class LearntAutomaton:
    """What :func:`learn_automaton` came to.

    Attributes:
        model: the network, to be used as it is; its transition is the mixture.
        machine: what it computes at argmax, minimal.
        extraction: the machine with margins and the faithfulness card.
        exact: whether the machine classifies every word of the training set rightly, and was stable.
        accuracy: of the machine, on the training set.
        soft_accuracy: of the network as it is, on the training set.
        accuracies: of the machine of every network that was trained.
        steps: of training.
        seconds: of the clock.
        message: one sentence on how it went.
    """

    model: SequenceClassifier
    machine: MooreMachine
    extraction: Extraction = field(repr=False)
    exact: bool
    accuracy: float
    soft_accuracy: float
    accuracies: tuple[float, ...]
    steps: int
    seconds: float
    message: str


def learn_automaton(
    words: Sequences,
    config: ClassifierConfig = AUTOMATON,
    *,
    hardening: Hardening | None = None,
    console: Console | None = None,
) -> LearntAutomaton:
    """Learn a finite automaton from labelled words, as a network that computes it.

    Several state-regularized networks are trained side by side, on the prefix tree of the shortest words: first the
    shortest of all, then longer ones; with noise on their transitions that grows while they classify well. Now and then
    the machine of each is read off its weights and run on the whole set. The first that makes no mistake, and does not
    change any more, is the answer; nothing but the training set decides. If none does, the best is given, and
    ``exact`` is False.

    Args:
        words: of two or more classes.
        config: of the network: one layer of a memory-less cell with centroids; k bounds the states of the machine.
        hardening: how it is trained.
        console: where to tell of the progress; None for silence.

    >>> from statewise.data import Sequences
    >>> texts = ["", "1", "0", "11", "01", "10", "00", "111", "110", "101", "011", "000", "1111", "1101"]
    >>> learnt = learn_automaton(Sequences.from_words(texts, [int("0" not in text) for text in texts]))
    >>> learnt.exact, learnt.machine.accepts("1" * 100), learnt.machine.accepts("1" * 100 + "0")
    (True, True, False)
    """
    words.check_classes()
    began = time.monotonic()
    search = Search(words, config, hardening or Hardening())
    with torch.random.fork_rng(devices=[]):
        replica, exact = search.run(console)
    learnt = _result(search, replica, exact, time.monotonic() - began)
    say(console, learnt.message)
    return learnt


def _result(search: Search, replica: int, exact: bool, seconds: float) -> LearntAutomaton:
    model, words = search.replicas.model(replica), search.words
    if not search.replicas.finite()[replica]:
        raise DivergedError(
            where="learn_automaton",
            got="weights that are not finite in every network",
            wanted="finite weights",
            remedy="Lower Hardening.lr.",
            step=search.steps,
        )
    extraction = extract(model, classes=words.classes)
    soft = float((model.classify([words.word(i) for i in range(len(words))]) == words.labels).mean())
    # Of the machine that is handed out, which was read in double precision.
    tokens, lengths, _ = words.padded(range(len(words)))
    accuracy = float((extraction.machine.classify_ids(tokens.numpy(), lengths.numpy()) == words.labels).mean())
    told: dict[str, Any] = {"accuracy": accuracy, "soft_accuracy": soft, "exact": exact}
    return LearntAutomaton(
        model=model,
        machine=extraction.machine,
        extraction=extraction,
        accuracies=tuple(search.accuracies.tolist()),
        steps=search.steps,
        seconds=seconds,
        message=_message(search, len(extraction.machine), accuracy, exact, seconds),
        **told,
    )


def _message(search: Search, states: int, accuracy: float, exact: bool, seconds: float) -> str:
    spent = f"{search.steps} steps of {search.settings.restarts} networks, {seconds:.1f} s"
    if exact:
        return f"A machine of {states} states classifies all {len(search.words)} words rightly ({spent})."
    if accuracy == 1.0:
        return (
            f"The last machine, of {states} states, classifies all words rightly, but had not come to rest ({spent}). "
            "Try more steps."
        )
    return (
        f"No machine classifies all words rightly; the best, of {states} states, agrees with {accuracy:.2%} ({spent}). "
        f"Try more centroids than {search.replicas.centroids.k} (the language may need more states), "
        "more steps or restarts, another seed, or more short words."
    )
