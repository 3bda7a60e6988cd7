"""The file that keeps a table of ranks while it is made."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from statewise.errors import DataError, RunFolderError
from statewise.files import write_atomically
from statewise.memory.rank_table_cases import Shape
from statewise.memory.rank_table_rows import RankRow

KIND = "statewise rank table 1"
_PAUSE = 1.0  # seconds from one writing to the next
_MAKE = "Make one: rank_table(shapes, depth=..., path=...), or statewise memory rank --inputs 2-4 ... --out FILE."
_OTHER = "Name a file that rank_table(..., path=...) wrote, or a new one."
_KINDS = {"int": "a whole number", "float": "a number", "tuple[int, ...]": "a list of whole numbers"}


class RankBook:
    """The rows that are known, and the file of JSON lines that they are kept in: the settings, then a row a line.

    Args:
        path: of the file; None to keep nothing.
        told: the settings, which those of a file that exists must equal; None to take what the file has.
    """

    def __init__(self, path: Path | None, told: Mapping[str, Any] | None) -> None:
        self.path, self.rows, self.written = path, dict[Shape, RankRow](), 0.0
        self.told = dict(told or {})
        if path is not None and (told is None or path.exists()):
            self._read(path)

    def add(self, row: RankRow) -> None:
        """Take a row down; it is in the file within a second.

        Args:
            row: of any shape.
        """
        self.rows[row.shape] = row
        if time.monotonic() - self.written > _PAUSE:
            self._write()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A region whose rows are written even if it ends with an error."""
        known = len(self.rows)
        try:
            yield
        finally:
            if len(self.rows) > known or (self.path is not None and not self.path.exists()):
                self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        lines = [self.told, *(asdict(self.rows[shape]) for shape in sorted(self.rows))]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines))
        self.written = time.monotonic()

    def _read(self, path: Path) -> None:
        lines = _lines(path)
        if not lines and not self.told:
            raise DataError(where=str(path), got="an empty file", wanted="a table of ranks", remedy=_MAKE)
        for number, line in enumerate(lines, 1):
            where = f"{path}, line {number}"
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or lists nested deep
                got = line[:40] or "an empty line"
                raise DataError(where=where, got=got, wanted="a line of JSON", remedy=_OTHER) from None
            if number == 1:
                self._check_head(where, entry)
            else:
                row = _row(where, line, entry, depth=self.told["depth"])
                self.rows[row.shape] = row

    def _check_head(self, where: str, entry: Any) -> None:
        if not isinstance(entry, dict) or entry.get("kind") != KIND or type(entry.get("depth")) is not int:
            got, wanted = str(entry)[:40], "the first line of a table of ranks, with its depth"
            raise DataError(where=where, got=got, wanted=wanted, remedy=_OTHER)
        other = [name for name, value in self.told.items() if entry.get(name) != value]
        if other:
            got = ", ".join(f"{name} = {entry.get(name)}" for name in other)
            wanted = ", ".join(f"{name} = {self.told[name]}" for name in other)
            raise RunFolderError(where=where, got=got, wanted=wanted, remedy="Name another file for another table.")
        self.told = entry


def _lines(path: Path) -> list[str]:
    """The lines of a file, or what is the matter with it."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataError(where=str(path), got="no such file", wanted="a table of ranks", remedy=_MAKE) from None
    except IsADirectoryError:
        raise DataError(where=str(path), got="a folder", wanted="a file", remedy=_OTHER) from None
    except OSError as error:
        got = error.strerror or type(error).__name__
        raise DataError(where=str(path), got=got, wanted="a file that can be read", remedy=_OTHER) from None
    except UnicodeDecodeError:
        raise DataError(where=str(path), got="bytes that are no text", wanted="lines of JSON", remedy=_OTHER) from None


def _row(where: str, line: str, entry: Any, *, depth: int) -> RankRow:
    """A row whose numbers are of the right kind."""
    kinds: dict[str, Any] = {field.name: str(field.type) for field in fields(RankRow)}
    if not isinstance(entry, dict) or set(entry) != set(kinds):
        raise DataError(where=where, got=line[:40], wanted=f"a row with {', '.join(sorted(kinds))}")
    held: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in entry.items()}
    for name, kind in kinds.items():
        if not _fits(held[name], kind):
            raise DataError(where=where, got=f"{name} = {held[name]!r}", wanted=_KINDS[kind])
    if held["depth"] != depth:
        raise DataError(where=where, got=f"depth = {held['depth']}", wanted=f"depth = {depth}, as the first line says")
    return RankRow(**held)


def _fits(value: Any, kind: str) -> bool:
    if kind == "int":
        return type(value) is int
    if kind == "float":
        return type(value) in (int, float)
    return isinstance(value, tuple) and all(type(one) is int for one in value)
