"""Labelled sequences of symbols, of any lengths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64
from torch import Tensor

from statewise.automata.symbols import in_one_row, look_up, numbering
from statewise.data.labels import Indices, Labelled, check_labels, frozen, places
from statewise.errors import ArgumentError, DtypeError, LengthError, UnknownSymbolError

TWO_CLASSES = ("reject", "accept")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sequences(Labelled):
    """Sequences of symbols, each with its class, kept one behind the other in one array.

    Args:
        tokens: the symbols of all sequences, by their places in ``symbols``.
        starts: where each sequence begins in ``tokens``; one more entry says where the last one ends.
        labels: the class of each sequence, by its place in ``classes``.
        symbols: the alphabet.
        classes: the names of the classes.

    >>> words = Sequences.from_words(["ab", "", "b"], [1, 0, 0])
    >>> words.symbols, words.lengths.tolist(), words.text(0)
    (('a', 'b'), [2, 0, 1], 'ab')
    >>> tokens, lengths, labels = words.padded([2, 0])
    >>> tokens.tolist(), lengths.tolist(), labels.tolist()
    ([[1, 0], [0, 1]], [1, 2], [0, 1])
    """

    tokens: npt.NDArray[Any]
    starts: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    symbols: tuple[str, ...]
    classes: tuple[str, ...] = TWO_CLASSES

    def __post_init__(self) -> None:
        for name, kind in (("tokens", np.int32), ("starts", np.int64), ("labels", np.int64)):
            object.__setattr__(self, name, frozen(getattr(self, name), kind))
        object.__setattr__(self, "symbols", tuple(self.symbols))
        object.__setattr__(self, "classes", tuple(self.classes))
        check_labels(self.labels, self.classes, where="Sequences")
        self._check()

    @classmethod
    def from_words(
        cls,
        words: Iterable[Sequence[str]],
        labels: Sequence[int] | npt.NDArray[Any],
        *,
        symbols: Iterable[str] | None = None,
        classes: Iterable[str] = TWO_CLASSES,
    ) -> Sequences:
        """Number the symbols of words.

        Args:
            words: each a string, which counts as its characters, or symbols in a row.
            labels: the class of each word.
            symbols: the alphabet; None for the symbols that occur, in the order of their code points.
            classes: the names of the classes.

        Raises:
            UnknownSymbolError: a word has a symbol that the alphabet has not.
        """
        words = list(words)
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        flat = in_one_row(words)
        if not isinstance(flat, str) and not all(isinstance(symbol, str) for symbol in flat):
            raise DtypeError(where="Sequences.from_words", got="symbols of other types", wanted="strings")
        alphabet = tuple(sorted(set(flat)) if symbols is None else symbols)
        tokens = look_up(flat, numbering(alphabet))
        starts = np.concatenate(([0], np.cumsum(lengths)))
        if len(wrong := np.flatnonzero(tokens < 0)):
            at = int(np.searchsorted(starts, wrong[0], side="right")) - 1
            got, where = f"the symbol {flat[int(wrong[0])]!r}", f"word {at}, place {int(wrong[0] - starts[at])}"
            raise UnknownSymbolError(where=where, got=got, wanted=f"one of {_some(alphabet)}")
        return cls(tokens=tokens, starts=starts, labels=np.asarray(labels), symbols=alphabet, classes=tuple(classes))

    @classmethod
    def from_padded(
        cls,
        tokens: npt.NDArray[Any],
        lengths: npt.NDArray[Any],
        labels: npt.NDArray[Any],
        *,
        symbols: Iterable[str],
        classes: Iterable[str] = TWO_CLASSES,
    ) -> Sequences:
        """Sequences that stand in the rows of a table, which may go on behind their ends."""
        return cls(
            tokens=tokens[np.arange(tokens.shape[1]) < np.asarray(lengths)[:, None]],
            starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            labels=np.asarray(labels),
            symbols=tuple(symbols),
            classes=tuple(classes),
        )

    @classmethod
    def join(cls, parts: Iterable[Sequences]) -> Sequences:
        """All sequences of some sets over the same alphabet and classes, one set behind the other."""
        sets = list(parts)
        if len({(part.symbols, part.classes) for part in sets}) != 1:
            raise ArgumentError(where="Sequences.join", got=f"{len(sets)} sets", wanted="sets of one alphabet")
        lengths = np.concatenate([part.lengths for part in sets])
        return cls(
            tokens=np.concatenate([part.tokens for part in sets]),
            starts=np.concatenate(([0], np.cumsum(lengths))),
            labels=np.concatenate([part.labels for part in sets]),
            symbols=sets[0].symbols,
            classes=sets[0].classes,
        )

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many symbols each sequence has."""
        return np.diff(self.starts)

    def word(self, index: int | np.integer[Any]) -> list[int]:
        """The symbols of one sequence, by their places in the alphabet."""
        at = int(places([int(index)], len(self))[0])
        found: list[int] = self.tokens[self.starts[at] : self.starts[at + 1]].tolist()
        return found

    def text(self, index: int | np.integer[Any]) -> str:
        """One sequence as it is read: its symbols joined, by blanks if one has several characters."""
        return self._glue.join(self.symbols[token] for token in self.word(index))

    def texts(self) -> list[str]:
        """All sequences as they are read."""
        return [self.text(index) for index in range(len(self))]

    def select(self, indices: Indices) -> Sequences:
        at = places(indices, len(self))
        lengths = self.lengths[at]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        inside = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[at], lengths)
        return Sequences(
            tokens=self.tokens[inside],
            starts=starts,
            labels=self.labels[at],
            symbols=self.symbols,
            classes=self.classes,
        )

    def where_length(self, max_len: int, *, min_len: int = 0) -> Sequences:
        """The sequences of at most ``max_len`` symbols, and of at least ``min_len``."""
        return self.select((self.lengths <= max_len) & (self.lengths >= min_len))

    def without(self, other: Sequences) -> Sequences:
        """The sequences that another set has not, whatever their classes; each of them once."""
        if other.symbols != self.symbols:
            raise ArgumentError(where="Sequences.without", got=_some(other.symbols), wanted=_some(self.symbols))
        seen = set(other.keys())
        kept = [index for index, key in enumerate(self.keys()) if not (key in seen or seen.add(key))]  # type: ignore[func-returns-value]
        return self.select(kept)

    def keys(self) -> list[bytes]:
        """For each sequence some bytes that only equal sequences share; for sets and dictionaries."""
        content, ends = self.tokens.tobytes(), (self.starts * self.tokens.itemsize).tolist()
        return [content[start:end] for start, end in pairwise(ends)]

    def padded(
        self, indices: Indices
    ) -> tuple[Int64[Tensor, "batch steps"], Int64[Tensor, "batch"], Int64[Tensor, "batch"]]:
        """A batch: tokens with 0 behind the end of shorter sequences, their lengths, and their labels."""
        at = places(indices, len(self))
        lengths = self.lengths[at]
        steps = np.arange(lengths.max(initial=0))
        inside = steps < lengths[:, None]
        tokens = np.zeros(inside.shape, dtype=np.int64)
        tokens[inside] = self.tokens[(self.starts[at][:, None] + steps)[inside]]
        return torch.from_numpy(tokens), torch.from_numpy(lengths), torch.from_numpy(self.labels[at])

    def by_length(self) -> dict[int, tuple[int, ...]]:
        """How many sequences of each class there are, for every length that occurs."""
        table = np.zeros((int(self.lengths.max(initial=0)) + 1, len(self.classes)), dtype=np.int64)
        np.add.at(table, (self.lengths, self.labels), 1)
        return {length: tuple(row) for length, row in enumerate(table.tolist()) if any(row)}

    def report(self) -> str:
        """How many sequences there are, by class, and how long they are.

        >>> print(Sequences.from_words(["ab", "", "b"], [1, 0, 0]).report())
        3 sequences over 2 symbols
          reject: 2, length 0 to 1, mean 0.5
          accept: 1, length 2 to 2, mean 2.0
        """
        lines = [f"{len(self)} sequences over {len(self.symbols)} symbols"]
        for label, name in enumerate(self.classes):
            found = self.lengths[self.labels == label]
            size = f", length {found.min()} to {found.max()}, mean {found.mean():.1f}" if len(found) else ""
            lines.append(f"  {name}: {len(found)}{size}")
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequences):
            return NotImplemented
        same = (self.symbols, self.classes) == (other.symbols, other.classes)
        arrays = ((self.starts, other.starts), (self.labels, other.labels), (self.tokens, other.tokens))
        return same and all(np.array_equal(mine, yours) for mine, yours in arrays)

    def __hash__(self) -> int:
        return hash((self.symbols, self.classes, self.starts.tobytes(), self.labels.tobytes(), self.tokens.tobytes()))

    def __repr__(self) -> str:
        found = ", ".join(f"{count} {name}" for name, count in zip(self.classes, self.counts.tolist(), strict=True))
        return f"Sequences({len(self)}: {found}; {len(self.symbols)} symbols)"

    @property
    def _glue(self) -> str:
        return "" if all(len(symbol) == 1 for symbol in self.symbols) else " "

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that the arrays of a copy are read-only too.
        return partial(Sequences, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def _check(self) -> None:
        if len(set(self.symbols)) < len(self.symbols) or "" in self.symbols:
            raise ArgumentError(where="Sequences.symbols", got=_some(self.symbols), wanted="symbols, each of them once")
        if self.starts.shape != (len(self.labels) + 1,):
            wanted = f"{len(self.labels) + 1} places for {len(self.labels)} labels"
            raise LengthError(where="Sequences.starts", got=f"shape {self.starts.shape}", wanted=wanted)
        whole = self.tokens.ndim == 1 and self.starts[0] == 0 and self.starts[-1] == len(self.tokens)
        if not whole or (np.diff(self.starts) < 0).any():
            wanted = f"places that rise from 0 to {self.tokens.size}, the number of tokens"
            raise ArgumentError(where="Sequences.starts", got="others", wanted=wanted)
        if self.tokens.size and not (self.tokens.min() >= 0 and self.tokens.max() < len(self.symbols)):
            got, wanted = f"{self.tokens.min()} to {self.tokens.max()}", f"tokens under {len(self.symbols)}"
            raise UnknownSymbolError(where="Sequences.tokens", got=got, wanted=wanted)


def _some(symbols: Sequence[str]) -> str:
    shown = ", ".join(map(repr, symbols[:12]))
    return f"{shown} and {len(symbols) - 12} more" if len(symbols) > 12 else shown or "no symbols"
