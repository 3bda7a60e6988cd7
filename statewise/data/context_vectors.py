"""Vectors of tokens in their sentences, made once by a network that is not trained further, and kept in a file.

A file has two arrays: ``vectors`` (tokens, width), in half or single precision, with the tokens of all sentences one
behind the other, and ``lengths`` (sentences,), the number of tokens of each. It is a ``.safetensors`` or an ``.npz``.
Unless it is compressed it is mapped into memory, so that only what is used is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from statewise.data.context_files import NAMES, open_npz, open_safetensors, write_npz, write_safetensors
from statewise.data.labels import Indices, places
from statewise.data.tagged import TaggedSentences
from statewise.errors import ArgumentError, DataError, LengthError, ShapeError
from statewise.files import atomic_file

_WANTED = "arrays 'vectors' (tokens, width) and 'lengths' (sentences,)"


@dataclass(frozen=True, eq=False, repr=False)
class ContextVectors:
    """A vector for each token of each sentence of a data set.

    Args:
        vectors: (tokens, width), the sentences one behind the other; perhaps mapped from a file.
        lengths: (sentences,), how many tokens each has.
        name: what to call them, such as their file.

    >>> found = ContextVectors(np.arange(6, dtype=np.float16).reshape(3, 2), np.array([1, 2]))
    >>> len(found), found.width, found[1].tolist()
    (2, 2, [[2.0, 3.0], [4.0, 5.0]])
    >>> found.batch([1, 0]).shape  # steps first, zero behind the end of a shorter sentence
    torch.Size([2, 2, 2])
    """

    vectors: Float[np.ndarray, "tokens width"]
    lengths: npt.NDArray[np.integer[Any]]
    name: str = "ContextVectors"

    def __post_init__(self) -> None:
        if self.lengths.ndim != 1 or (self.lengths < 1).any():
            raise ArgumentError(where=f"{self.name}, lengths", got="others", wanted="numbers from 1 in a row")
        if int(self.lengths.sum()) != len(self.vectors):
            got, wanted = f"{len(self.vectors)} vectors", f"{int(self.lengths.sum())}, the sum of lengths"
            raise LengthError(where=f"{self.name}, vectors", got=got, wanted=wanted)

    @cached_property
    def starts(self) -> Int64[np.ndarray, "places"]:
        """Where each sentence begins; one more entry says where the last one ends."""
        return np.concatenate(([0], np.cumsum(self.lengths, dtype=np.int64)))

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    def check(self, sentences: TaggedSentences | Sequence[Sequence[str]]) -> None:
        """Refuse vectors that are not those of some sentences.

        Args:
            sentences: with their tags or without.

        Raises:
            DataError: the sentences are not as many or as long; names the first that differs, from 0.
        """
        rows = sentences.sentences if isinstance(sentences, TaggedSentences) else sentences
        remedy = "Make the vectors again, from the sentences as they are read now."
        wanted = np.fromiter(map(len, rows), np.int64, len(rows))
        common = min(len(wanted), len(self))
        if len(differ := np.flatnonzero(self.lengths[:common] != wanted[:common])):
            at = int(differ[0])
            where, got = f"{self.name}, sentence {at}", f"vectors of {int(self.lengths[at])} tokens"
            raise DataError(where=where, got=got, wanted=f"those of {int(wanted[at])}", remedy=remedy)
        if len(wanted) != len(self):
            got = (
                f"vectors of {len(self)} sentences, of which sentence {common} is the first that is too many or missing"
            )
            raise DataError(where=self.name, got=got, wanted=f"those of {len(wanted)}", remedy=remedy)

    def batch(self, indices: Indices) -> Float32[Tensor, "steps batch width"]:
        """The vectors of some sentences in single precision, zero behind the end of a shorter one.

        Args:
            indices: the places of the sentences.
        """
        at = places(indices, len(self)).tolist()
        steps = int(self.lengths[at].max(initial=0)) if at else 0
        filled = np.zeros((steps, len(at), self.width), dtype=np.float32)
        for column, place in enumerate(at):
            filled[: int(self.lengths[place]), column] = self[place]
        return torch.from_numpy(filled)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Float[np.ndarray, "steps width"]:
        """The vectors of one sentence, as they are kept."""
        at = int(places([index], len(self))[0])
        return np.asarray(self.vectors[self.starts[at] : self.starts[at + 1]])

    def __repr__(self) -> str:
        return f"{self.name}({len(self)} sentences, {len(self.vectors)} tokens, width {self.width})"


def read_context_vectors(
    path: Path | str, sentences: TaggedSentences | Sequence[Sequence[str]] | None = None
) -> ContextVectors:
    """Open a file of vectors; what is not compressed is mapped into memory.

    Args:
        path: a ``.safetensors`` or ``.npz``, such as `write_context_vectors` makes.
        sentences: whose they should be; None for no check.

    Raises:
        DataError: the file is absent, damaged or something else, or has vectors of other sentences.
    """
    place = Path(path)
    opened = open_npz if _is_npz(place) else open_safetensors
    try:
        found = opened(place)
        vectors, lengths = found["vectors"], np.asarray(found["lengths"])
    except KeyError as error:
        raise DataError(where=str(path), got=f"no array {error.args[0]!r}", wanted=_WANTED) from error
    except (OSError, ValueError, TypeError, EOFError, OverflowError) as error:
        got = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(where=str(path), got=got, wanted=_WANTED) from error
    fits = vectors.ndim == 2 and vectors.dtype.kind == "f" and lengths.ndim == 1 and lengths.dtype.kind in "iu"
    if not fits:
        got = f"vectors {vectors.dtype} of shape {vectors.shape}, lengths {lengths.dtype} of shape {lengths.shape}"
        raise DataError(where=str(path), got=got, wanted=_WANTED)
    # Of whole numbers near the largest that there are a sum may be a small one.
    if (lengths < 1).any() or (lengths > len(vectors)).any() or int(lengths.sum()) != len(vectors):
        got = f"lengths that sum up to {sum(lengths.tolist())}"
        raise DataError(where=str(path), got=got, wanted=f"lengths from 1 that sum up to {len(vectors)}, the tokens")
    read = ContextVectors(vectors, lengths, str(path))
    if sentences is not None:
        read.check(sentences)
    return read


def write_context_vectors(path: Path | str, vectors: Iterable[npt.NDArray[np.floating[Any]]]) -> ContextVectors:
    """Write vectors into a file, which is whole or not there at all, and open it.

    No more than one sentence is held in memory; the folder needs room for two copies meanwhile.

    Args:
        path: the file to make, a ``.safetensors`` or ``.npz``.
        vectors: of each sentence (tokens, width), in the order of the sentences; the first says the precision.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write_context_vectors(Path(folder) / "a.npz", [np.ones((2, 3), dtype=np.float16)] * 4)
    ...     len(made), made.width, made.vectors.dtype.name
    (4, 3, 'float16')
    """
    place = Path(path)
    npz = _is_npz(place)
    with tempfile.TemporaryFile(dir=place.parent) as spool:
        kind, width, lengths = _spooled(spool, vectors)
        spool.seek(0)
        shape = (int(lengths.sum()), width)
        with atomic_file(place) as file:
            (write_npz if npz else write_safetensors)(file, spool, kind, shape, lengths)
    return read_context_vectors(place)


def _is_npz(path: Path) -> bool:
    if path.suffix not in (".npz", ".safetensors"):
        wanted = "a name that ends in .safetensors or .npz"
        raise ArgumentError(where="context vectors", got=path.name, wanted=wanted)
    return path.suffix == ".npz"


def _spooled(
    spool: IO[bytes], vectors: Iterable[npt.NDArray[np.floating[Any]]]
) -> tuple[np.dtype[Any], int, npt.NDArray[np.int64]]:
    """Write all vectors one behind the other; how many tokens there are is known only then."""
    kind, width, lengths = np.dtype("<f4"), -1, list[int]()
    for place, some in enumerate(vectors):
        if width < 0 and some.ndim == 2:
            kind, width = some.dtype.newbyteorder("<"), int(some.shape[1])
        if some.ndim != 2 or some.shape[1] != width or not len(some) or kind not in NAMES or kind.kind != "f":
            where, wanted = f"write_context_vectors, sentence {place}", "(tokens, width) of one width, with a token"
            raise ShapeError(where=where, got=f"{some.dtype} of shape {some.shape}", wanted=wanted)
        spool.write(np.ascontiguousarray(some, dtype=kind).tobytes())
        lengths.append(len(some))
    if not lengths:
        raise ArgumentError(where="write_context_vectors.vectors", got="none", wanted="those of one sentence or more")
    return kind, width, np.array(lengths, dtype="<i8")
