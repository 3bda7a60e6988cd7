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
        names = {field.name for field in fields(RankRow)}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{path}, line {number}"
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                raise DataError(where=where, got=line[:40], wanted="a line of JSON") from None
            if number == 1:
                self._check_head(where, entry)
            elif not isinstance(entry, dict) or set(entry) != names:
                raise DataError(where=where, got=line[:40], wanted=f"a row with {', '.join(sorted(names))}")
            else:
                held: dict[str, Any] = {
                    name: tuple(one) if isinstance(one, list) else one for name, one in entry.items()
                }
                row = RankRow(**held)
                self.rows[row.shape] = row

    def _check_head(self, where: str, entry: Any) -> None:
        if not isinstance(entry, dict) or entry.get("kind") != KIND:
            raise DataError(where=where, got=str(entry)[:40], wanted="the first line of a table of ranks")
        other = [name for name, value in self.told.items() if entry.get(name) != value]
        if other:
            got = ", ".join(f"{name} = {entry.get(name)}" for name in other)
            wanted = ", ".join(f"{name} = {self.told[name]}" for name in other)
            raise RunFolderError(where=where, got=got, wanted=wanted, remedy="Name another file for another table.")
        self.told = entry
