"""Words of a language as token ids, in batches of like lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from statewise.errors import ArgumentError, UnknownSymbolError

Word = Sequence[str] | Sequence[int]
Ids = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Words:
    """Words as ids, one behind the other.

    Attributes:
        ids: of all words.
        starts: where each word begins, and the end of the last.
    """

    ids: Ids
    starts: Ids

    @classmethod
    def of(cls, words: Sequence[Word], *, tokens: int, symbols: Sequence[str] | None, where: str) -> Words:
        """Words from texts, sequences of symbols or sequences of ids.

        Args:
            words: a text counts as its characters.
            tokens: how many there are.
            symbols: the text of each token; needed for texts.
            where: the model's name, for errors.

        >>> Words.of(["ab", "", [1, 1]], tokens=2, symbols=("a", "b"), where="model").ids
        array([0, 1, 1, 1])
        """
        if isinstance(words, str):
            raise ArgumentError(
                where=f"{where} words", got="one text", wanted="a sequence of words", remedy="Write [word]."
            )
        numbers: dict[Any, int] = dict(zip(symbols or (), range(tokens), strict=False))
        numbers |= {index: index for index in range(tokens)}
        encoded = []
        for index, word in enumerate(words):
            try:
                encoded.append([numbers[entry] for entry in word])
            except KeyError as missing:
                raise _unknown(word, index, missing.args[0], symbols, tokens, where) from None
        ids = np.fromiter(chain.from_iterable(encoded), dtype=np.int64)
        starts = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(word) for word in encoded], out=starts[1:])
        return cls(ids, starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def batches(self, size: int) -> Iterator[tuple[Ids, Ids, Ids]]:
        """Batches of words of like lengths: their indices, padded ids (batch, longest), and lengths.

        Args:
            size: of a batch.
        """
        if type(size) is not int or size < 1:
            raise ArgumentError(where="batch", got=size, wanted="a whole number of at least 1")
        lengths = np.diff(self.starts)
        order = np.argsort(lengths, kind="stable")
        for begin in range(0, len(order), size):
            rows = order[begin : begin + size]
            own = lengths[rows]
            steps = np.arange(own.max(initial=0))
            places = self.starts[rows, None] + steps
            inside = steps < own[:, None]
            padded = np.zeros(inside.shape, dtype=np.int64)
            padded[inside] = self.ids[places[inside]]
            yield rows, padded, own


def _unknown(
    word: Word, index: int, entry: object, symbols: Sequence[str] | None, tokens: int, where: str
) -> UnknownSymbolError:
    said = f"a token from 0 to {tokens - 1}"
    if isinstance(entry, str):
        said = "ids of tokens: the model has no symbols" if symbols is None else f"one of {', '.join(symbols)}"
    return UnknownSymbolError(
        where=f"{where} words[{index}][{list(word).index(entry)}]",
        got=repr(entry),
        wanted=said,
        remedy="Build it with symbols=." if isinstance(entry, str) and symbols is None else "",
    )
