"""Labelled words of a language, drawn length by length with both classes kept near each other in number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from statewise.automata.symbols import encode_words, numbering
from statewise.data.examples import Sequences
from statewise.data.languages import Language, Word
from statewise.errors import ArgumentError

#: All words of a length are listed where there are at most so many times more of them than are wanted.
_LISTED = 50


def sample_words(
    language: Language,
    *,
    lengths: Iterable[int],
    per_length: int = 1000,
    cap: int = 150,
    margin: int = 20,
    seed: int = 0,
    given: Sequence[Word] = (),
) -> Sequences:
    """Words of each length by the rules of Weiss, Goldberg & Yahav (2018), which Wang & Niepert (2019) used.

    Of each length ``per_length`` different words are drawn uniformly, or all there are. Of each class the first ``cap``
    are kept; then all classes are cut to the size of the smallest plus ``margin``. So the classes differ by at most
    ``margin`` at each length; a rare class stays rare.

    Args:
        language: what labels the words.
        lengths: each once.
        per_length: how many words are drawn of each length.
        cap: the most words of a class at a length.
        margin: how many words more than the smallest a class may have at a length.
        seed: what the draw depends on; the same seed gives the same words on every machine.
        given: words that come before those that are drawn, where their length is among ``lengths``.

    >>> words = sample_words(Language.predicate(lambda word: "00" not in word, "01"), lengths=[0, 1, 2, 3], seed=0)
    >>> words
    Sequences(15: 4 reject, 11 accept; 2 symbols)
    """
    for name, value, least in (("per_length", per_length, 1), ("cap", cap, 1), ("margin", margin, 0)):
        if value < least:
            raise ArgumentError(where=f"sample_words.{name}", got=value, wanted=f"an integer >= {least}")
    wanted = list(dict.fromkeys(lengths))
    if not wanted or min(wanted) < 0:
        raise ArgumentError(where="sample_words.lengths", got=wanted, wanted="lengths, none of them negative")
    generator = np.random.Generator(np.random.PCG64(seed))
    symbols, drawn, labels = len(language.alphabet), [], []
    for length in wanted:
        tokens = distinct(draw_words(length, symbols, per_length, generator), _of_length(given, length, language))
        found = language.classify(tokens)
        for number in _kept(found, len(language.classes), cap, margin):
            drawn.append(tokens[number])
            labels.append(found[number])
    sizes = np.repeat([part.shape[1] for part in drawn], [len(part) for part in drawn])
    return Sequences(
        tokens=np.concatenate([part.ravel() for part in drawn]),
        starts=np.concatenate([[0], np.cumsum(sizes)]),
        labels=np.concatenate(labels),
        symbols=language.alphabet,
        classes=language.classes,
    )


def draw_words(length: int, symbols: int, count: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Different words of one length in random order, as places in the alphabet: so many, or all there are."""
    if symbols**length <= _LISTED * count:
        numbers = generator.permutation(symbols**length)[:count]
        powers = symbols ** np.arange(length - 1, -1, -1, dtype=np.int64)
        return (numbers[:, None] // powers) % symbols
    tokens = np.empty((0, length), dtype=np.int64)
    while len(tokens) < count:
        tokens = distinct(generator.integers(symbols, size=(count, length)), tokens)
    return tokens[:count]


def distinct(tokens: npt.NDArray[Any], before: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Words of one length behind others of that length, each at its first place only."""
    rows = np.concatenate([before, tokens])
    if rows.shape[1] == 0:
        return rows[:1]
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def _of_length(words: Sequence[Word], length: int, language: Language) -> npt.NDArray[np.int64]:
    some = [word for word in words if len(word) == length]
    tokens, _ = encode_words(some, numbering(language.alphabet))
    return tokens.reshape(len(some), length)


def _kept(labels: npt.NDArray[np.int64], classes: int, cap: int, margin: int) -> list[npt.NDArray[np.int64]]:
    """For each class the places of its words that are kept."""
    found = [np.flatnonzero(labels == label)[:cap] for label in range(classes)]
    least = min(map(len, found))
    return [part[: least + margin] for part in found]
