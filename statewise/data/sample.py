"""A small text made by a grammar: enough to see a network learn, and overfit, within seconds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from statewise.data.corpus import Corpus
from statewise.data.stream import TokenStream
from statewise.data.vocabulary import Vocabulary

Choice = TypeVar("Choice")
_SIZES = {"train": 600, "valid": 150, "test": 150}  # sentences

_NOUNS = (
    ("sailor", "sailors"), ("teacher", "teachers"), ("gardener", "gardeners"), ("painter", "painters"),
    ("baker", "bakers"), ("miller", "millers"), ("child", "children"), ("neighbour", "neighbours"),
    ("fox", "foxes"), ("horse", "horses"), ("goose", "geese"), ("crow", "crows"),
    ("woman", "women"), ("singer", "singers"), ("farmer", "farmers"), ("king", "kings"),
)  # fmt: skip
_PLACES = ("garden", "harbour", "kitchen", "forest", "market", "tower", "mill", "river", "bridge", "church")
_ADJECTIVES = ("old", "young", "tall", "quiet", "clever", "tired", "brave", "hungry", "happy", "strange")
_ADVERBS = ("often", "never", "gladly", "slowly", "always", "rarely")
_VERBS = (
    ("sleeps", "sleep"), ("sings", "sing"), ("waits", "wait"), ("laughs", "laugh"), ("works", "work"),
    ("dances", "dance"), ("rests", "rest"),
)  # fmt: skip
_TRANSITIVE = (
    ("sees", "see"), ("follows", "follow"), ("likes", "like"), ("helps", "help"), ("calls", "call"),
    ("fears", "fear"), ("meets", "meet"), ("paints", "paint"),
)  # fmt: skip
_SAYING = (("says", "say"), ("thinks", "think"), ("knows", "know"))
_PREPOSITIONS = ("near", "behind", "in", "beside")
_ARTICLES = (("the", "the"), ("a", "some"), ("this", "these"), ("every", "all"))


@cache
def sample_corpus() -> Corpus:
    """A corpus made by this package: sentences whose verbs agree with subjects some words back.

    The same words in every process: about 6,000 tokens to train on, 1,500 each to validate and to test.

    >>> corpus = sample_corpus()
    >>> print(*corpus.vocabulary.decode(corpus.train[:22]))
    the young gardeners in the mill fear some bakers . <eos> the quiet horse calls every woman . <eos> a brave gardener
    """
    speaker = _Speaker(random.Random(1990))
    parts = {split: [" ".join(speaker.sentence()) for _ in range(size)] for split, size in _SIZES.items()}
    vocabulary = Vocabulary.build(parts["train"])
    streams = {split: TokenStream(_encoded(lines, vocabulary)) for split, lines in parts.items()}
    return Corpus("sample", vocabulary, **streams)


def _encoded(lines: Sequence[str], vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    words = (word for line in lines for word in (*line.split(), vocabulary.end))
    return np.array(vocabulary.encode(words))


class _Speaker:
    """Says one sentence after the other. Number 0 is the singular and 1 the plural."""

    def __init__(self, source: random.Random) -> None:
        # Of Python's generator only random() gives the same numbers in all versions.
        self._uniform: Callable[[], float] = source.random

    def sentence(self) -> list[str]:
        """Subject and predicate, sometimes inside the words of somebody else."""
        number = self._number()
        subject, kind = self._noun_phrase(number, depth=0), self._uniform()
        if kind < 0.35:
            return [*subject, *self._adverb(), self._of(_VERBS)[number], *self._place(), "."]
        if kind < 0.8:
            return [*subject, *self._adverb(), *self._deed(number), "."]
        return [*subject, self._of(_SAYING)[number], "that", *self.sentence()]

    def _noun_phrase(self, number: int, *, depth: int) -> list[str]:
        adjective = [self._of(_ADJECTIVES)] if self._uniform() < 0.35 else []
        phrase = [self._of(_ARTICLES)[number], *adjective, self._of(_NOUNS)[number]]
        kind = self._uniform() + depth
        if kind < 0.25:
            return [*phrase, *self._place(1.0)]
        if kind < 0.4:
            return [*phrase, "who", *self._adverb(), *self._deed(number)]
        if kind < 0.5:
            other = self._number()
            return [*phrase, "whom", *self._noun_phrase(other, depth=1), self._of(_TRANSITIVE)[other]]
        return phrase

    def _deed(self, number: int) -> list[str]:
        return [self._of(_TRANSITIVE)[number], *self._noun_phrase(self._number(), depth=1)]

    def _place(self, chance: float = 0.5) -> list[str]:
        return [self._of(_PREPOSITIONS), "the", self._of(_PLACES)] if self._uniform() < chance else []

    def _adverb(self) -> list[str]:
        return [self._of(_ADVERBS)] if self._uniform() < 0.2 else []

    def _number(self) -> int:
        return int(self._uniform() < 0.5)

    def _of(self, choices: Sequence[Choice]) -> Choice:
        return choices[int(self._uniform() * len(choices))]
