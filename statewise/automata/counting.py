"""The automaton of a network by counting which centroids follow each other on data: the paper's Algorithm 1."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from statewise.automata.freeze import LSTAR, alphabet_of, class_names, freeze, token_embedding
from statewise.automata.moore import MooreMachine, Word
from statewise.automata.symbols import encode_word, numbering
from statewise.errors import ArgumentError, LengthError, NotMemorylessError
from statewise.models import SequenceClassifier

RUNS = ("soft", "hard")


@runtime_checkable
class Numbered(Protocol):
    """Words as places in an alphabet, such as ``statewise.data.Sequences``."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The alphabet."""

    def __len__(self) -> int: ...

    def word(self, index: int) -> list[int]:
        """The symbols of one word, by their places in the alphabet."""


class ApproximateExtractionWarning(UserWarning):
    """The network keeps more than its centroids, so that no automaton over them equals it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Counting:
    """What :func:`count` found.

    Attributes:
        machine: reachable, minimal, canonical.
        table: the machine over the states that were seen, and the sink if one is needed.
        counts: (states, symbols, states), how often each step was taken.
        ambiguity: the share of steps that went elsewhere than their most frequent successor.
        unseen: how many (state, symbol) pairs no word took; they lead to the sink.
        steps: how many steps were counted.
        approximate: whether the network keeps more than its centroids, or its states were read by majority.
        unread: states where no word ended, of a network with memory; they count as the first class.
    """

    machine: MooreMachine
    table: MooreMachine
    counts: np.ndarray
    ambiguity: float
    unseen: int
    steps: int
    approximate: bool
    unread: int

    def __repr__(self) -> str:
        return (
            f"Counting({self.machine!r}, ambiguity {self.ambiguity:.2%} of {self.steps} steps, "
            f"{self.unseen} unseen pairs{', approximate' if self.approximate else ''})"
        )


def count(
    model: SequenceClassifier,
    words: Sequence[Word] | Numbered,
    *,
    run: str = "soft",
    classes: Sequence[str] | None = None,
    batch: int = 1024,
) -> Counting:
    """Count the steps between the best centroids while a network reads words, and keep the most frequent ones.

    ``T[i, a, j]`` counts ``argmax alpha_t = j`` after token a and ``argmax alpha_{t-1} = i``;
    ``δ(i, a) = argmax_j T[i, a, j]`` (Wang & Niepert 2019, Algorithm 1). Every word starts anew. Exact extraction,
    :func:`extract`, is better where it is possible; for cells with memory this is the only way, and approximate: the
    class of a state is then the network's on most words that end there.

    Args:
        model: a classifier of tokens with centroids in at least one layer.
        words: at least one; or labelled words such as ``statewise.data.Sequences``, whose labels do not count.
        run: "soft" only labels the network's own states; "hard" moves it onto the best centroid at every step.
        classes: the names of the classes.
        batch: how many words run at once.

    >>> from statewise.automata import all_words, compile_machine, from_regex
    >>> found = count(compile_machine(from_regex("(0|10*1)*")), list(all_words("01", 3)))
    >>> len(found.machine), found.ambiguity, found.unseen
    (2, 0.0, 0)
    """
    words = _spelt(words)
    layers = _checked(model, words, run)
    if run == "hard":
        model = model.with_transition("argmax")
    names, before, symbols, after, ends = _walk(model, words, layers, batch)
    states, alphabet = len(names), alphabet_of(model)
    counts = np.zeros((states, len(alphabet), states), dtype=np.int64)
    np.add.at(counts, (before, symbols, after), 1)
    seen = counts.any(2)
    successors = np.where(seen, counts.argmax(2), states)
    approximate = not model.memoryless
    if approximate:
        outputs, unread = _by_majority(model, words, ends, states, batch)
        warnings.warn(
            f"{model.why_not_memoryless}: the machine over its centroids is approximate.",
            ApproximateExtractionWarning,
            stacklevel=2,
        )
    else:
        outputs, unread = _read_out(model, names), 0
    unseen = int((~seen).sum())
    labels = tuple("start" if -1 in name else ",".join(map(str, name)) for name in names)
    if unseen:
        successors = np.concatenate([successors, np.full((1, len(alphabet)), states)])
        outputs, labels = np.append(outputs, 0), (*labels, "sink")
    table = MooreMachine(
        alphabet=alphabet,
        transitions=successors,
        outputs=outputs,
        start=0,
        classes=class_names(model, classes),
        labels=labels,
    )
    total = int(counts.sum())
    return Counting(
        machine=table.minimise(),
        table=table,
        counts=counts,
        ambiguity=1 - int(counts.max(2).sum()) / total if total else 0.0,
        unseen=unseen,
        steps=total,
        approximate=approximate,
        unread=unread,
    )


def _spelt(words: Sequence[Word] | Numbered) -> Sequence[Word]:
    if not isinstance(words, Numbered):
        return words
    return [[words.symbols[token] for token in words.word(index)] for index in range(len(words))]


def _checked(model: SequenceClassifier, words: Sequence[Word], run: str) -> list[int]:
    """The layers that have centroids."""
    token_embedding(model, where="count")
    if run not in RUNS:
        raise ArgumentError(where="count run", got=run, wanted=f"one of {', '.join(RUNS)}")
    if len(words) == 0:
        raise LengthError(where="count words", got="no words", wanted="at least one")
    layers = [layer for layer in range(model.layer.num_layers) if model.centroids_of(layer) is not None]
    if not layers:
        raise NotMemorylessError(
            where="count model", got=model.why_not_memoryless, wanted="centroids in at least one layer", remedy=LSTAR
        )
    return layers


def _walk(
    model: SequenceClassifier, words: Sequence[Word], layers: list[int], batch: int
) -> tuple[list[tuple[int, ...]], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All steps of all words as (state, symbol, state), and the state where each word ends; state 0 is the start."""
    numbers = numbering(alphabet_of(model))
    coded = [encode_word(word, numbers) for word in words]
    begin = model.config.start_token
    known: dict[tuple[int, ...], int] = {} if begin else {(-1,) * len(layers): 0}
    triples: list[np.ndarray] = []
    ends = np.empty(len(coded), dtype=np.int64)
    device = model.head.weight.device
    for first in range(0, len(coded), batch):
        some = coded[first : first + batch]
        lengths = torch.tensor([len(word) for word in some])
        tokens = torch.zeros(len(some), int(lengths.max()), dtype=torch.int64)
        for row, word in enumerate(some):
            tokens[row, : len(word)] = torch.tensor(word, dtype=torch.int64)
        trace = model.states(tokens.to(device), lengths, collect=("probabilities",))
        paths = torch.stack([trace.path(layer) for layer in layers], dim=2).cpu().tolist()
        for row, word in enumerate(some):
            walked = [known.setdefault(tuple(state), len(known)) for state in paths[row][: len(word) + begin]]
            visited = np.array(walked if begin else [0, *walked], dtype=np.int64)
            triples.append(np.stack([visited[:-1], np.array(word, dtype=np.int64), visited[1:]]))
            ends[first + row] = visited[-1]
    before, symbols, after = np.concatenate(triples, axis=1)
    return list(known), before, symbols, after, ends


def _read_out(model: SequenceClassifier, names: list[tuple[int, ...]]) -> np.ndarray:
    """The class that the read-out gives each tuple of centroids."""
    network = freeze(model)
    with torch.no_grad():
        inner = torch.tensor([[max(index, 0) for index in name] for name in names])
        outputs = network.read_out(network.at_centroids(inner)).argmax(1).numpy()
        if names and -1 in names[0]:
            outputs[0] = int(network.read_out(network.initial(1), fresh=True).argmax())
    return outputs


def _by_majority(
    model: SequenceClassifier, words: Sequence[Word], ends: np.ndarray, states: int, batch: int
) -> tuple[np.ndarray, int]:
    numbers = numbering(alphabet_of(model))
    votes = np.zeros((states, model.classes), dtype=np.int64)
    np.add.at(votes, (ends, model.classify([encode_word(word, numbers) for word in words], batch=batch)), 1)
    return votes.argmax(1), int((votes.sum(1) == 0).sum())
