"""A text as one long row of word ids, kept in a file and read where it is needed."""

from __future__ import annotations

import io
import os
import re
import weakref
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from statewise.data.text import Text
from statewise.data.vocabulary import Vocabulary
from statewise.errors import ArgumentError, DataError, DtypeError
from statewise.files import atomic_file

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER_BYTES = 128
_WINDOW = 2**20


class TokenStream:
    """Word ids one after the other, each sentence ended by the id of the vocabulary's ``end``.

    A stream from a file takes no memory: what is asked for is read from its place. It is not mapped into memory, where
    a disk that fails, or somebody who cuts the file off, would end the process instead of raising an error.

    Args:
        ids: the ids in memory, of one dimension and not negative; for a file see `write` and `open`.

    >>> stream = TokenStream(np.array([4, 7, 1, 5, 1]))
    >>> len(stream), stream[1:3], stream[-1]
    (5, tensor([7, 1]), 1)
    """

    def __init__(self, ids: npt.NDArray[Any]) -> None:
        ids = np.asarray(ids)
        if ids.dtype.kind not in "iu":
            raise DtypeError(where="TokenStream.ids", got=str(ids.dtype), wanted="an array of integers")
        if ids.ndim != 1 or (len(ids) and int(ids.min()) < 0):
            wanted = "ids in one dimension, none of them negative"
            raise ArgumentError(where="TokenStream.ids", got=f"an array of shape {ids.shape}", wanted=wanted)
        self._source: _InMemory | _InFile = _InMemory(ids.astype(np.int64))

    @classmethod
    def write(cls, path: Path | str, lines: Text | Iterable[str], vocabulary: Vocabulary) -> TokenStream:
        """Encode lines into a file, which is whole or not there at all, and open it.

        Args:
            path: the file to make; a ``.npy`` of numpy's, with a checksum behind the array.
            lines: a text file, or sentences without their line ends.
            vocabulary: the words and their ids.

        Raises:
            DataError: the text is malformed, or has no words.
        """
        path = Path(path)
        pieces = lines.pieces() if isinstance(lines, Text) else _joined(lines)
        kind = np.dtype("<u2" if len(vocabulary) <= 2**16 else "<i4")
        with atomic_file(path) as file:
            file.write(_header(kind, 0))
            count, checksum, words = 0, 0, False
            for ids in _encoded(pieces, vocabulary, kind):
                words = words or bool((ids != vocabulary.end_id).any())
                count, checksum = count + len(ids), zlib.crc32(ids.data, checksum)
                file.write(ids.data)
            if not words:
                where = str(lines.path) if isinstance(lines, Text) else "TokenStream.write.lines"
                raise DataError(where=where, got="a text without words", wanted="one sentence a line")
            file.write(_seal(checksum))
            file.seek(0)
            file.write(_header(kind, count))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path | str) -> TokenStream:
        """Open a file that `write` made, after a look at all of it.

        Raises:
            DataError: the file is absent, cut off, damaged, or something else.
        """
        stream = cls.__new__(cls)
        stream._source = _InFile(Path(path))
        return stream

    @property
    def path(self) -> Path | None:
        """The file that is read; None for a stream in memory."""
        return self._source.path

    def __len__(self) -> int:
        return self._source.tokens

    def __getitem__(self, index: int | slice) -> Any:
        """The id at a place as an int, or the ids of a slice as a tensor of its own."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ArgumentError(where="TokenStream slice", got=index, wanted="a slice without a step")
            start, stop, _ = index.indices(len(self))
            return torch.from_numpy(self.read(start, max(start, stop)))
        if not -len(self) <= index < len(self):
            raise IndexError(f"id {index} of a stream of {len(self)}")
        place = index % len(self)
        return int(self.read(place, place + 1)[0])

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """The ids from ``start`` up to, not including, ``stop``, as an array of its own.

        Raises:
            ArgumentError: these places are not all in the stream.
            DataError: the file can no longer be read.
        """
        if not 0 <= start <= stop <= len(self):
            got, wanted = f"{start} to {stop}", f"places from 0 to {len(self)}"
            raise ArgumentError(where="TokenStream.read", got=got, wanted=wanted)
        return self._source.read(start, stop)

    def __repr__(self) -> str:
        return f"TokenStream({len(self)} tokens{'' if self.path is None else f', {self.path}'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (TokenStream, (self[:].numpy(),)) if self.path is None else (TokenStream.open, (self.path,))


class _InMemory:
    """Ids in an array."""

    path: Path | None = None

    def __init__(self, ids: npt.NDArray[np.int64]) -> None:
        self._ids, self.tokens = ids, len(ids)

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        return self._ids[start:stop].copy()


class _InFile:
    """Ids in a file, which was checked and stays open: who replaces it later does not change them."""

    def __init__(self, path: Path) -> None:
        self.path: Path | None = path
        try:
            # Without a buffer, since reads jump from column to column.
            self._file = path.open("rb", buffering=0)
            weakref.finalize(self, self._file.close)
            layout = _read_header(self._file)
            _check_body(self._file, layout)
        except (OSError, ValueError) as error:
            got = (str(error).splitlines() or [type(error).__name__])[0]
            wanted = "a file as TokenStream.write makes it"
            raise DataError(where=str(path), got=got, wanted=wanted, remedy="Write it again.") from error
        self._kind, self.tokens = layout

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        wanted = (stop - start) * self._kind.itemsize
        try:
            found = _read_at(self._file, _HEADER_BYTES + start * self._kind.itemsize, wanted)
            if len(found) != wanted:
                raise OSError("a file cut off")
        except OSError as error:
            remedy = "Start again: it is then written again."
            raise DataError(where=str(self.path), got=str(error), wanted="the whole file", remedy=remedy) from error
        return np.frombuffer(found, self._kind).astype(np.int64)


class _Layout(NamedTuple):
    kind: np.dtype[Any]
    tokens: int


def _encoded(pieces: Iterable[str], vocabulary: Vocabulary, kind: np.dtype[Any]) -> Iterator[npt.NDArray[Any]]:
    """The ids of pieces of text that break between words."""
    look_up, end = vocabulary.encoder().__getitem__, f" {vocabulary.end} "
    for piece in pieces:
        words = piece.replace("\n", end).split()
        yield np.fromiter(map(look_up, words), kind, len(words))


def _joined(lines: Iterable[str]) -> Iterator[str]:
    source = iter(lines)
    while some := list(islice(source, 1000)):
        yield "\n".join(some) + "\n"


def _header(kind: np.dtype[Any], tokens: int) -> bytes:
    """The header of numpy's format 1.0, always of the same length, so that it can be written over another one."""
    said = f"{{'descr': '{kind.str}', 'fortran_order': False, 'shape': ({tokens},), }}"
    room = _HEADER_BYTES - len(_MAGIC) - 2
    return _MAGIC + room.to_bytes(2, "little") + said.ljust(room - 1).encode() + b"\n"


def _read_header(file: io.FileIO) -> _Layout:
    # Not by numpy's reader, which takes a damaged header for a program and raises whatever a program can.
    begin = _read_at(file, 0, _HEADER_BYTES)
    found = re.search(rb"'descr': '(<u2|<i4)'.*'shape': \((\d{1,18}),\)", begin)
    if found is None:
        raise ValueError("a file that begins otherwise")
    layout = _Layout(np.dtype(found[1].decode()), int(found[2]))
    length = len(begin) + layout.tokens * layout.kind.itemsize + len(_seal(0))
    if begin != _header(*layout) or os.fstat(file.fileno()).st_size != length:
        raise ValueError("a file that is damaged or cut off")
    return layout


def _read_at(file: io.FileIO, offset: int, size: int) -> bytes:
    parts = []
    while size:
        # By place where the system can: processes that were forked share the position of a file.
        if hasattr(os, "pread"):
            part = os.pread(file.fileno(), size, offset)
        else:
            file.seek(offset)
            part = file.read(size) or b""
        if not part:
            break
        parts.append(part)
        offset, size = offset + len(part), size - len(part)
    return b"".join(parts)


def _seal(checksum: int) -> bytes:
    return b"statewise tokens 1 crc32 %08x\n" % checksum


def _check_body(file: io.FileIO, layout: _Layout) -> None:
    place, checksum = _HEADER_BYTES, 0
    end = place + layout.tokens * layout.kind.itemsize
    while place < end:
        block = _read_at(file, place, min(end - place, _WINDOW))
        if not block:
            raise ValueError("a file that is cut off")
        place, checksum = place + len(block), zlib.crc32(block, checksum)
    if _read_at(file, end, _WINDOW) != _seal(checksum):
        raise ValueError("a file that is damaged: its checksum is another")
