"""Words to test with: all short ones, and random ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from statewise.automata.symbols import text_or_tuple
from statewise.errors import ArgumentError

Text = str | tuple[str, ...]


def all_words(alphabet: Sequence[str], max_length: int, *, min_length: int = 0) -> Iterator[Text]:
    """Every word up to a length, shorter ones first, and in alphabet order among those of one length.

    Args:
        alphabet: the symbols.
        max_length: of the words.
        min_length: of the words.

    >>> list(all_words("ab", 2))
    ['', 'a', 'b', 'aa', 'ab', 'ba', 'bb']
    """
    for length in range(min_length, max_length + 1):
        for symbols in itertools.product(alphabet, repeat=length):
            yield text_or_tuple(symbols, alphabet)


def number_of_words(symbols: int, max_length: int) -> int:
    """How many words up to a length there are.

    Args:
        symbols: in the alphabet.
        max_length: of the words.

    >>> number_of_words(2, 14)
    32767
    """
    return sum(symbols**length for length in range(max_length + 1))


def longest_within(symbols: int, budget: int, *, at_most: int = 100) -> int:
    """The length up to which all words are within a budget of words; 0 if already those of length 1 are not.

    Args:
        symbols: in the alphabet; of none there is but the empty word.
        budget: how many words there may be.
        at_most: no greater length is given.

    >>> longest_within(2, 1000), longest_within(1, 1000), longest_within(0, 1000)
    (8, 100, 0)
    """
    longest = 0
    while symbols and longest < at_most and number_of_words(symbols, longest + 1) <= budget:
        longest += 1
    return longest


def random_words(
    alphabet: Sequence[str], number: int, *, max_length: int, seed: int, min_length: int = 0
) -> list[Text]:
    """Words of evenly drawn lengths and evenly drawn symbols.

    Args:
        alphabet: the symbols.
        number: how many words.
        max_length: of the words.
        seed: the same seed gives the same words.
        min_length: of the words.

    >>> random_words("01", 3, max_length=6, seed=1)
    ['100', '110', '01001']
    """
    if not 0 <= min_length <= max_length:
        raise ArgumentError(
            where="random_words.min_length", got=(min_length, max_length), wanted="0 <= min_length <= max_length"
        )
    if not alphabet and max_length:
        raise ArgumentError(where="random_words.alphabet", got="no symbols", wanted="at least one")
    draw = np.random.default_rng(seed)
    lengths = draw.integers(min_length, max_length + 1, number)
    symbols = draw.integers(0, max(len(alphabet), 1), int(lengths.sum())).tolist()
    ends = np.cumsum(lengths).tolist()
    spelt = [alphabet[symbol] for symbol in symbols]
    return [
        text_or_tuple(spelt[end - length : end], alphabet) for end, length in zip(ends, lengths.tolist(), strict=True)
    ]
