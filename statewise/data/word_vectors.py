"""Vectors of words that somebody trained before, such as GloVe's, from text or from arrays."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float32

from statewise.data import npz
from statewise.data.tables import name_ending, refuse_row, without_archive
from statewise.data.text import Text
from statewise.errors import ArgumentError, DataError, LengthError
from statewise.models.lexicon import spellings

_SHOWN = 40


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """Words, and a vector for each.

    Args:
        words: each once.
        vectors: (words, width), in single precision.
        name: what to call them.

    >>> vectors = WordVectors(("the", "00"), np.eye(2, dtype=np.float32))
    >>> vectors.lookup("The"), vectors.lookup("42"), vectors.lookup("cat")
    (0, 1, -1)
    >>> rows, found = vectors.matrix(["42", "cat"])
    >>> rows.tolist(), found.tolist()
    ([[0.0, 1.0], [0.0, 0.0]], [True, False])
    """

    words: tuple[str, ...]
    vectors: Float32[np.ndarray, "words width"]
    name: str = ""

    def __post_init__(self) -> None:
        if self.vectors.shape[0] != len(self.words):
            got, wanted = f"{self.vectors.shape[0]} vectors", f"{len(self.words)}, one for each word"
            raise LengthError(where="WordVectors.vectors", got=got, wanted=wanted)
        if len(self._rows) < len(self.words):
            twice = next(word for row, word in enumerate(self.words) if self._rows[word] != row)
            raise ArgumentError(where="WordVectors.words", got=f"{twice!r} twice", wanted="each word once")

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    def lookup(self, word: str) -> int:
        """The row of a word, in the first spelling of `spellings` that has one; -1 if none has.

        Args:
            word: as it stands in a text.
        """
        return next((self._rows[form] for form in spellings(word) if form in self._rows), -1)

    def matrix(self, words: Iterable[str]) -> tuple[Float32[np.ndarray, "asked width"], Bool[np.ndarray, "asked"]]:
        """A row for each of some words, zero where there is none, and which of them were found.

        Args:
            words: to be looked up, each as in `lookup`.
        """
        at = np.array([self.lookup(word) for word in words], dtype=np.int64)
        found = at >= 0
        rows = np.zeros((len(at), self.width), dtype=np.float32)
        rows[found] = self.vectors[at[found]]
        return rows, found

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        """Whether a word is there, in exactly this spelling."""
        return word in self._rows

    def __repr__(self) -> str:
        return f"WordVectors({self.name + ': ' if self.name else ''}{len(self)} words, width {self.width})"


def read_vectors(
    path: Path | str, *, vocabulary: Iterable[str] | None = None, width: int | None = None, name: str | None = None
) -> WordVectors:
    """Read vectors of words.

    A name that ends in ``.npz`` is of arrays ``words`` and ``vectors``. Any other is text, plain or compressed: a line
    is a word and then its numbers, with blanks between, as GloVe's and word2vec's are. A first line of two whole
    numbers, how many words and how wide, is read as such. A word may have blanks inside, as some of GloVe's have, but
    may not end in a number behind a blank: the numbers are the last of a line. Of a word that comes twice the first
    vector is kept.

    Args:
        path: the file.
        vocabulary: words that will be looked up; what none of them would find is left out while reading, and takes no
            memory. None for all.
        width: how many numbers a vector has; None for as many as the first line has behind its first word.
        name: what to call them; None for the name of the file.

    Raises:
        DataError: the file is absent or malformed; names the line and the field.
    """
    place = Path(path)
    wanted = None if vocabulary is None else {form for word in set(vocabulary) for form in spellings(word)}
    called = without_archive(place) if name is None else name
    if name_ending(place) == "npz":
        return _from_arrays(place, wanted, called)
    return _from_text(place, wanted, width, called)


def _from_text(path: Path, wanted: set[str] | None, width: int | None, name: str) -> WordVectors:
    rows: dict[str, int] = {}
    numbers, places = array("f"), array("q")
    for line, word, fields in _lines(path, width):
        if word in rows or (wanted is not None and word not in wanted):
            continue
        rows[word] = len(rows)
        try:
            numbers.extend(map(float, fields))
        except ValueError:
            bad = next(field for field in fields if not _is_number(field))
            refuse_row(path, line, repr(bad[:_SHOWN]), f"{len(fields)} numbers behind {word[:_SHOWN]!r}")
        places.append(line)
        size = len(fields)
    if not rows:
        raise DataError(where=str(path), got="no words that are wanted", wanted="a word and its numbers in each line")
    vectors = np.frombuffer(numbers, dtype=np.float32).reshape(len(rows), size)
    if len(wrong := np.flatnonzero(~np.isfinite(vectors).all(axis=1))):
        refuse_row(path, places[int(wrong[0])], "a number that is not finite", "finite numbers")
    return WordVectors(tuple(rows), vectors, name)


def _lines(path: Path, width: int | None) -> Iterator[tuple[int, str, list[str]]]:
    """The lines of a text: their numbers, their words, and the fields behind them."""
    told, count, asked = None, 0, width is not None
    for line, content in enumerate(Text(path=path).lines(), start=1):
        content = content.rstrip(" \t")
        if not content:
            continue
        if line == 1 and (told := _header(content)) is not None:
            width = told[1] if width is None else width
            continue
        width = len(content.split(" ")) - 1 if width is None else width
        fields = content.rsplit(" ", width)
        if len(fields) != width + 1 or width < 1 or not fields[0]:
            wanted = f"a word and {max(width, 1)} numbers, with a blank between each"
            refuse_row(path, line, f"{len(content.split(' '))} fields", wanted)
        if " " in fields[0] and _is_number(fields[0].rsplit(" ", 1)[1]):
            wanted = f"{width}, as {'was said' if asked else 'the first line says or has'}"
            refuse_row(path, line, f"more than {width} numbers", wanted, "Look at this line and at the first one.")
        count += 1
        yield line, fields[0], fields[1:]
    if told is not None and count != told[0]:
        remedy = "The file is cut off, or its first line is wrong."
        raise DataError(
            where=str(path), got=f"{count} words", wanted=f"{told[0]}, as its first line says", remedy=remedy
        )


def _header(content: str) -> tuple[int, int] | None:
    fields = content.split(" ")
    if len(fields) != 2 or not all(re.fullmatch("[0-9]{1,18}", field) for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _from_arrays(path: Path, wanted: set[str] | None, name: str) -> WordVectors:
    words, vectors = _arrays(path)
    if words.ndim != 1 or words.dtype.kind != "U":
        got, fit = f"{words.dtype} of shape {words.shape}", "strings in one dimension"
        raise DataError(where=f"{path}, array 'words'", got=got, wanted=fit)
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(words):
        got, fit = (
            f"{vectors.dtype} of shape {vectors.shape}",
            f"floating-point numbers, a row for each of {len(words)}",
        )
        raise DataError(where=f"{path}, array 'vectors'", got=got, wanted=fit)
    rows: dict[str, int] = {}
    for row, word in enumerate(words.tolist()):
        if wanted is None or word in wanted:
            rows.setdefault(word, row)
    if not rows:
        raise DataError(where=str(path), got="no words that are wanted", wanted="one or more")
    kept = vectors[list(rows.values())].astype(np.float32)
    if len(wrong := np.flatnonzero(~np.isfinite(kept).all(axis=1))):
        row = list(rows.values())[int(wrong[0])]
        raise DataError(where=f"{path}, array 'vectors', row {row}", got="no finite number", wanted="finite numbers")
    return WordVectors(tuple(rows), kept, name)


def _arrays(path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    fit = "an .npz of arrays 'words' and 'vectors', without pickles"
    try:
        with npz.opened(path) as archive:
            return npz.read_array(archive, "words"), npz.read_array(archive, "vectors")
    except KeyError as error:
        raise DataError(where=str(path), got=f"no array {error.args[0]!r}", wanted=fit) from error
    except (OSError, ValueError) as error:
        got = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(where=str(path), got=got, wanted=fit) from error
