r"""Plain text, one sentence a line, plain or compressed, read in pieces so that no file is ever held in memory.

Lines end at ``"\n"`` only; a ``"\r"`` before it counts as white space. Words are what ``str.split()`` finds: white
space is that of Unicode, as in the scripts that the published counts come from. A line without words is a sentence
without words. A word of the text may be as long as half a mebibyte, a line as long as it likes.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from statewise.errors import ArgumentError, DataError

ENDINGS = ("", ".gz", ".xz", ".bz2")

_PIECE = 2**16  # a piece and its words fit into the cache of a processor; larger pieces are slower
_LONGEST_WORD = 2**19
_LINE_END = b"\n"
_SPACES = (_LINE_END, b" ", b"\t", b"\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SIGNATURES = {
    b"\x1f\x8b": "It looks like a gzip archive: let its name end in .gz.",
    b"\xfd7zXZ": "It looks like an xz archive: let its name end in .xz.",
    b"BZh": "It looks like a bzip2 archive: let its name end in .bz2.",
    b"PK\x03\x04": "It looks like a zip archive: unpack it first.",
    b"\x28\xb5\x2f\xfd": "It looks like a zstd archive: unpack it first.",
    b"\xff\xfe": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
    b"\xfe\xff": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
}


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text file, or some consecutive lines of one.

    Args:
        path: the file. An ending ``.gz``, ``.xz`` or ``.bz2`` says how it is compressed.
        start: the first line, from 0.
        stop: the line after the last one; None for the end of the file.
        lower: whether letters are made lower case.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.txt")
    ...     _ = path.write_text("The cat sleeps .")
    ...     list(Text(path=path, lower=True).lines())
    ['the cat sleeps .']
    """

    path: Path
    start: int = 0
    stop: int | None = None
    lower: bool = False

    def __post_init__(self) -> None:
        if self.start < 0 or (self.stop is not None and self.stop < self.start):
            raise ArgumentError(where="Text", got=f"lines {self.start} to {self.stop}", wanted="0 <= start <= stop")

    def pieces(self) -> Iterator[str]:
        r"""The text in pieces that break between words, each line with its ``"\n"``, the last one too.

        Raises:
            DataError: the file is absent, empty, damaged, binary or not UTF-8.
        """
        line, behind, last = self.start, 0, "\n"
        for raw in self._raw_pieces():
            last = self._decoded(raw, line, behind)
            line, behind = line + raw.count(b"\n"), _behind(raw, behind)
            yield last.lower() if self.lower else last
        if not last.endswith("\n"):
            yield "\n"

    def lines(self) -> Iterator[str]:
        """The lines one by one, without their ends."""
        begun: list[str] = []
        for piece in self.pieces():
            first, *more = piece.split("\n")
            begun.append(first)
            for line in more:
                yield "".join(begun).removesuffix("\r")
                begun = [line]

    def count_lines(self) -> int:
        """How many lines there are; a last one without an end counts."""
        return sum(piece.count("\n") for piece in replace(self, lower=False).pieces())

    def fingerprint(self) -> str:
        """A name for what the file holds now, by its place, size and times, and for which lines of it are meant.

        Raises:
            DataError: the file is absent.
        """
        return hashlib.sha256(repr((self.stamp(), self.start, self.stop, self.lower)).encode()).hexdigest()

    def stamp(self) -> str:
        """A name for the state of the whole file: another one after any change.

        Raises:
            DataError: the file is absent.
        """
        try:
            found = self.path.stat()
        except OSError as error:
            self._refuse_file(error)
        # The time of the last change of status too: a copy that keeps the old file's date is still another file.
        parts = (str(self.path.resolve()), found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _raw_pieces(self) -> Iterator[bytes]:
        """The chosen lines in bytes; a piece ends after white space, hence between words and between letters."""
        passed = 0
        for raw in self._whole_file():
            ends = raw.count(b"\n")
            last = self.stop is not None and passed + ends >= self.stop
            if last and self.stop is not None:
                raw = _first_lines(raw, self.stop - passed)
            if passed < self.start:
                raw = _without_lines(raw, self.start - passed)
            if raw:
                yield raw
            if last:
                return
            passed += ends

    def _whole_file(self) -> Iterator[bytes]:
        rest, passed, empty = b"", 0, True
        for block in self._blocks():
            if empty:
                block, empty = block.removeprefix(_BYTE_ORDER_MARK), False
            whole, rest = _between_words(rest + block)
            passed += whole.count(b"\n")
            if len(rest) > _LONGEST_WORD:
                wanted = f"white space after at most {_LONGEST_WORD} bytes"
                self._refuse("a longer word", wanted, "This is no text of words; is it the right file?", line=passed)
            if whole:
                yield whole
        if empty:
            self._refuse("an empty file", "some text", "Was it written, and is it the right file?")
        if rest:
            yield rest

    def _blocks(self) -> Iterator[bytes]:
        """What the file holds, decompressed."""
        try:
            with _opened(self.path) as file:
                while block := file.read(_PIECE):
                    yield block
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            self._refuse_archive(error)
        except OSError as error:
            # An archive is called damaged by an error without a number of the system's.
            if error.errno is None:
                self._refuse_archive(error)
            self._refuse_file(error)

    def _decoded(self, raw: bytes, line: int, behind: int) -> str:
        if (zero := raw.find(b"\0")) >= 0:
            remedy = "This is no text, or in another encoding: convert it, e.g. with `iconv -f UTF-16 -t UTF-8`."
            self._refuse("a NUL byte", "text in UTF-8", remedy, line=line, raw=raw[:zero], behind=behind)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            got = f"the bytes {raw[error.start : error.end].hex(' ')} ({error.reason})"
            remedy = "Convert it, e.g. with `iconv -f LATIN1 -t UTF-8`."
            self._refuse(got, "text in UTF-8", remedy, line=line, raw=raw[: error.start], behind=behind)

    def _refuse(
        self, got: str, wanted: str, remedy: str = "", *, line: int = 0, raw: bytes | None = None, behind: int = 0
    ) -> NoReturn:
        """Raise, and name the place: so many line ends before, then the bytes of a piece up to the fault."""
        where = f"{self.path}, line {line + (raw or b'').count(_LINE_END) + 1}"
        if raw is not None:
            where += f", byte {_behind(raw, behind) + 1}"
        raise DataError(where=where, got=got, wanted=wanted, remedy=self._guess() or remedy)

    def _refuse_archive(self, error: Exception) -> NoReturn:
        wanted = f"a whole {self.path.suffix} archive"
        remedy = "The archive is cut off or damaged: get it again."
        raise DataError(where=str(self.path), got=str(error), wanted=wanted, remedy=remedy) from error

    def _refuse_file(self, error: OSError) -> NoReturn:
        got = (error.strerror or type(error).__name__).lower()
        raise DataError(where=str(self.path), got=got, wanted="a text file that can be read") from error

    def _guess(self) -> str:
        """What the first bytes give away, as a remedy; nothing of a file that is said to be an archive."""
        if self.path.suffix in ENDINGS[1:]:
            return ""
        with self.path.open("rb") as file:
            begin = file.read(8)
        return next((remedy for signature, remedy in _SIGNATURES.items() if begin.startswith(signature)), "")


def _opened(path: Path) -> io.BufferedIOBase:
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".xz":
        return lzma.open(path)
    if path.suffix == ".bz2":
        return bz2.open(path)
    return path.open("rb")


def _between_words(raw: bytes) -> tuple[bytes, bytes]:
    end = max(raw.rfind(space) for space in _SPACES) + 1
    return raw[:end], raw[end:]


def _first_lines(raw: bytes, count: int) -> bytes:
    return raw[: len(raw) - len(raw.split(b"\n", count)[-1])]


def _without_lines(raw: bytes, count: int) -> bytes:
    parts = raw.split(b"\n", count)
    return parts[count] if len(parts) > count else b""


def _behind(raw: bytes, behind: int) -> int:
    """How many bytes of the last line have passed after a piece, when it was so many before."""
    end = raw.rfind(b"\n") + 1
    return len(raw) - end + (0 if end else behind)
