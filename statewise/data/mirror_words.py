"""Palindromes and near misses of them (Wang & Niepert 2019, Table 3)."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from statewise.data import edits
from statewise.data.examples import Sequences
from statewise.data.generate import distinct, draw_words
from statewise.data.languages import Language
from statewise.data.task import TaskSets
from statewise.errors import ArgumentError, DataError

_MOST_ROUNDS = 300


def mirrored(word: str) -> bool:
    """Whether a word is some letters and then the same from the last to the first.

    >>> mirrored("abba"), mirrored("aba"), mirrored("")
    (True, False, True)
    """
    return len(word) % 2 == 0 and word == word[::-1]


def palindrome_language(letters: str = ascii_lowercase) -> Language:
    """The palindromes of even length over some letters; no finite automaton has them."""
    return Language.predicate(mirrored, letters, name="palindromes")


def palindromes(
    count: int,
    *,
    lengths: Sequence[int],
    accepted: int | None = None,
    letters: str = ascii_lowercase,
    seed: int = 0,
) -> Sequences:
    """Different words: palindromes ``w w⁻¹``, and near misses, palindromes with one or two letters changed.

    Every length gets the same number of palindromes, or all there are; both classes have the same law of lengths, and
    near misses cannot be told by their first and last letters, as random words can.

    Args:
        count: how many words.
        lengths: the total lengths, even and at least 2.
        accepted: how many words are palindromes; None for half of them.
        letters: the alphabet.
        seed: what the draw depends on.

    >>> words = palindromes(8, lengths=[4, 6], seed=0)
    >>> words.by_length(), all(mirrored(words.text(i)) == bool(words.labels[i]) for i in range(8))
    ({4: (2, 2), 6: (2, 2)}, True)
    """
    sizes = sorted(set(lengths))
    if not sizes or min(sizes) < 2 or any(size % 2 for size in sizes):
        raise ArgumentError(where="palindromes.lengths", got=list(lengths), wanted="even lengths of 2 or more")
    if len(letters) < 2:
        raise ArgumentError(where="palindromes.letters", got=letters, wanted="two letters or more")
    good = (count + 1) // 2 if accepted is None else accepted
    if not 0 <= good <= count:
        raise ArgumentError(where="palindromes.accepted", got=good, wanted=f"0 to {count}, the number of words")
    generator = np.random.Generator(np.random.PCG64(seed))
    rooms = [len(letters) ** (size // 2) for size in sizes]
    parts = []
    for size, right, wrong in zip(sizes, _shares(good, rooms), _shares(count - good, rooms), strict=True):
        halves = draw_words(size // 2, len(letters), right, generator) if right else np.empty((0, size // 2), int)
        tokens = np.concatenate([np.hstack([halves, halves[:, ::-1]]), _misses(size, wrong, len(letters), generator)])
        ends = np.full(right + wrong, size)
        parts.append(Sequences.from_padded(tokens, ends, np.arange(right + wrong) < right, symbols=letters))
    whole = Sequences.join(parts)
    return whole.select(generator.permutation(len(whole)))


def palindrome_sets(*, seed: int) -> TaskSets[Sequences]:
    """The sets of Table 3 of Wang & Niepert (2019): 229984 words (115040 palindromes), 50000 (25000), three of 1000.

    Lengths, counted in all letters: 2 to 24 to train, 26 to 50 to choose, 52 to 100, 200 or 500 to report. So no word
    of one part can occur in another.

    Args:
        seed: what the draw depends on.
    """
    seeds = np.random.SeedSequence(seed).generate_state(5).tolist()
    train = palindromes(229984, accepted=115040, lengths=range(2, 25, 2), seed=seeds[0])
    valid = palindromes(50000, lengths=range(26, 51, 2), seed=seeds[1])
    tests = {
        f"l {longest}": palindromes(1000, lengths=range(52, longest + 1, 2), seed=part)
        for longest, part in zip((100, 200, 500), seeds[2:], strict=True)
    }
    return TaskSets(train, valid, tests)


def _misses(size: int, count: int, letters: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Different words of one length, each a palindrome with one or two letters changed."""
    found = np.empty((0, size), dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        if len(found) >= count:
            return found[:count]
        rows = count - len(found)
        halves = generator.integers(letters, size=(rows, size // 2))
        tokens = np.hstack([halves, halves[:, ::-1]])
        one, shift = generator.integers(size, size=rows), generator.integers(1, size, size=rows)
        once = _changed(tokens, one, letters, generator)
        twice = _changed(once, (one + shift) % size, letters, generator)
        tokens = np.where(generator.random(rows)[:, None] < 0.5, once, twice)
        found = distinct(tokens[(tokens != tokens[:, ::-1]).any(axis=1)], found)
    wanted = f"{count} near misses of length {size}"
    raise DataError(where="palindromes", got=f"{len(found)}", wanted=wanted, remedy="Ask for fewer, or longer ones.")


def _changed(
    tokens: edits.Table, places: npt.NDArray[np.int64], letters: int, generator: np.random.Generator
) -> edits.Table:
    other = generator.integers(1, letters, size=len(tokens))
    return edits.put(tokens, places, (tokens[np.arange(len(tokens)), places] + other) % letters)


def _shares(count: int, rooms: Sequence[int]) -> list[int]:
    """As equal numbers as there is room for, with that sum; the longest words get one more."""
    shares, left = [0] * len(rooms), count
    # From the least room up: what a length cannot take is spread over those that follow.
    for done, index in enumerate(sorted(range(len(rooms)), key=rooms.__getitem__)):
        shares[index] = min(rooms[index], left // (len(rooms) - done))
        left -= shares[index]
    if left:
        wanted, remedy = f"{count} different palindromes", "Ask for fewer, or for longer ones."
        raise DataError(where="palindromes", got=f"room for {sum(rooms)}", wanted=wanted, remedy=remedy)
    return shares
