"""Balanced parentheses as Weiss, Goldberg & Yahav (2018) make them: another law of words, without depth control."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from statewise.data.bracket_words import CLOSE, LETTERS, OPEN, SYMBOLS, parentheses_language
from statewise.data.examples import Sequences
from statewise.data.generate import sample_words
from statewise.errors import ArgumentError

_THIRD = 1 / 3
_MOST_IDLE = 10_000  # words in a row that were there before


def weiss_parentheses(count: int = 15_000, *, short: int = 2, long: int = 30, seed: int = 0) -> Sequences:
    """Balanced words and near misses, at most 150 of a class at each length, besides 200 random words a length.

    A balanced word: each sign is a parenthesis with chance 1/3, else a letter, up to a length that runs from ``short``
    to ``long - 1``; then letters and closing ones until one would close too many. Near misses: two thirds of these
    after one, two and three rounds of random substitutions, insertions, duplications and omissions. All are labelled
    afresh and go through `sample_words`.

    Args:
        count: how many balanced words are made at first.
        short: the least length before the words are closed.
        long: one more than the greatest.
        seed: what the draw depends on.

    >>> words = weiss_parentheses(300, seed=0)
    >>> words.check_classes()
    """
    if count < 1 or not 0 <= short < long:
        got, wanted = f"{count} words of {short} to {long}", "1 word or more, 0 <= short < long"
        raise ArgumentError(where="weiss_parentheses", got=got, wanted=wanted)
    generator = np.random.Generator(np.random.PCG64(seed))
    chance = _uniform(generator)
    found: dict[tuple[int, ...], None] = {}
    tried = idle = 0
    while len(found) < count and idle < _MOST_IDLE:
        before = len(found)
        found[_balanced(short + tried % (long - short), chance)] = None
        tried, idle = tried + 1, idle + 1 if len(found) == before else 0
    lists = [list(found)]
    lists.append([_edited(word, chance) for word in lists[0][: 2 * count // 3]])
    for _ in range(2):
        lists.append([_edited(word, chance) for word in lists[-1]])
    given = ["".join(SYMBOLS[sign] for sign in word) for words in lists for word in words]
    lengths = sorted({len(word) for word in given})
    state = int(generator.integers(2**32))
    return sample_words(parentheses_language(), lengths=lengths, per_length=200, seed=state, given=given)


def _uniform(generator: np.random.Generator) -> Callable[[], float]:
    """Random numbers one by one, drawn many at once."""
    waiting: list[float] = []

    def draw() -> float:
        if not waiting:
            waiting.extend(generator.random(65536).tolist())
        return waiting.pop()

    return draw


def _balanced(length: int, chance: Callable[[], float]) -> tuple[int, ...]:
    word, height = list[int](), 0
    while len(word) < length:
        sign = _sign(chance)
        if sign == CLOSE and not height:
            continue
        height += (sign == OPEN) - (sign == CLOSE)
        word.append(sign)
    while True:
        sign = CLOSE if chance() < _THIRD else int(chance() * LETTERS)
        if sign == CLOSE and not height:
            return tuple(word)
        height -= sign == CLOSE
        word.append(sign)


def _edited(word: tuple[int, ...], chance: Callable[[], float]) -> tuple[int, ...]:
    """A word after one round of edits, at least one in all."""
    edited, edits = list(word), 0
    while not edits:
        substitutions, insertions = int(chance() * 3), int(chance() * 3)
        duplications, omissions = _geometric(chance), _geometric(chance)
        for _ in range(substitutions if edited else 0):
            edited[int(chance() * len(edited))] = _any_sign(chance)
        for _ in range(insertions):
            edited.insert(int(chance() * (len(edited) + 1)), _any_sign(chance))
        for _ in range(duplications if edited else 0):
            place = int(chance() * len(edited))
            edited.insert(place, edited[place])
        for _ in range(min(omissions, len(edited))):
            del edited[int(chance() * len(edited))]
        edits = substitutions + insertions + duplications + omissions
    return tuple(edited)


def _sign(chance: Callable[[], float]) -> int:
    if chance() < _THIRD:
        return OPEN if chance() < 0.5 else CLOSE
    return int(chance() * LETTERS)


def _any_sign(chance: Callable[[], float]) -> int:
    return int(chance() * len(SYMBOLS))


def _geometric(chance: Callable[[], float]) -> int:
    """None with chance 2/3, and each further one with chance 1/3."""
    times = 0
    while chance() < _THIRD:
        times += 1
    return times
