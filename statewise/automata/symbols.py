"""Words as numbers: the place of each symbol in the alphabet, for one word or for many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from statewise.errors import UnknownSymbolError

Word = Sequence[str]


def numbering(alphabet: Sequence[str]) -> dict[str, int]:
    """The number of each symbol.

    >>> numbering(("a", "b"))
    {'a': 0, 'b': 1}
    """
    return {symbol: number for number, symbol in enumerate(alphabet)}


def encode_word(word: Word, numbers: Mapping[str, int]) -> list[int]:
    """The numbers of the word's symbols.

    Args:
        word: a sequence of symbols; a plain text counts as its characters.
        numbers: the number of each symbol.

    >>> encode_word("ba", {"a": 0, "b": 1})
    [1, 0]
    """
    try:
        return [numbers[symbol] for symbol in word]
    except (KeyError, TypeError):
        raise _unknown(word, numbers) from None


def encode_words(words: Sequence[Word], numbers: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """All the words' numbers in one row, and where each word starts in it, with the end of the last one.

    Args:
        words: each a sequence of symbols.
        numbers: the number of each symbol.

    >>> [array.tolist() for array in encode_words(["ab", "", "a"], {"a": 0, "b": 1})]
    [[0, 1, 0], [0, 2, 2, 3]]
    """
    starts = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum([len(word) for word in words], out=starts[1:])
    tokens = look_up(in_one_row(words), numbers)
    if len(tokens) and tokens.min() < 0:
        first = int(np.searchsorted(starts, int(np.argmax(tokens < 0)), side="right")) - 1
        raise _unknown(words[first], numbers, f" of word {first}")
    return tokens, starts


def in_one_row(words: Sequence[Word]) -> Word:
    """The symbols of all words one behind the other: a text if all words are texts, which is looked up faster.

    >>> in_one_row(["ab", "", "a"]), in_one_row(["ab", ["go"]])
    ('aba', ['a', 'b', 'go'])
    """
    if all(type(word) is str for word in words):
        return "".join(words)  # type: ignore[arg-type]
    return list(chain.from_iterable(words))


def look_up(symbols: Word, numbers: Mapping[str, int]) -> np.ndarray:
    """The number of each symbol; -1 for one that has none.

    Args:
        symbols: in a row; a plain text counts as its characters.
        numbers: the number of each symbol of the alphabet.

    >>> look_up("abc", {"a": 0, "b": 1}).tolist()
    [0, 1, -1]
    """
    if not (type(symbols) is str and all(len(symbol) == 1 for symbol in numbers)):
        return np.fromiter((numbers.get(symbol, -1) for symbol in symbols), np.int64, len(symbols))
    # Characters are looked up as code points, all at once: some thirty times faster.
    points = np.frombuffer(symbols.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    largest = max(map(ord, numbers), default=0)
    table = np.full(largest + 2, -1, dtype=np.int64)
    table[[ord(symbol) for symbol in numbers]] = list(numbers.values())
    return np.asarray(table[np.minimum(points, largest + 1)])


def _unknown(word: Word, numbers: Mapping[str, int], which: str = "") -> UnknownSymbolError:
    place, symbol = next((place, symbol) for place, symbol in enumerate(word) if not _known(symbol, numbers))
    shown = " ".join(map(repr, list(numbers)[:20])) + (" ..." if len(numbers) > 20 else "")
    remedy = "Words are texts, or sequences of symbols." if not isinstance(symbol, str) else ""
    return UnknownSymbolError(
        where=f"symbol {place}{which}", got=repr(symbol), wanted=f"one of the alphabet: {shown}", remedy=remedy
    )


def _known(symbol: object, numbers: Mapping[str, int]) -> bool:
    return isinstance(symbol, str) and symbol in numbers


def text_or_tuple(symbols: Sequence[str], alphabet: Sequence[str]) -> str | tuple[str, ...]:
    """A word as people write it: a text if all symbols of the alphabet are single characters, else a tuple.

    Args:
        symbols: of the word.
        alphabet: of the machine.

    >>> text_or_tuple(["1", "0"], ("0", "1")), text_or_tuple(["go"], ("go", "stop"))
    ('10', ('go',))
    """
    return "".join(symbols) if all(len(symbol) == 1 for symbol in alphabet) else tuple(symbols)
