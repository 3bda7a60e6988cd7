"""Records of a run as strict JSON, one a line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statewise.errors import RunFolderError
from statewise.files import encode_number, strict

__all__ = ["MetricsFile", "encode_number", "strict"]


class MetricsFile:
    r"""A file of records, one line of JSON each, that a killed process leaves readable.

    A line is written in one piece. What a kill tore off has no line end, and does not count.

    Args:
        path: the file; it need not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = MetricsFile(Path(folder) / "metrics.jsonl")
    ...     metrics.append({"epoch": 1, "loss": float("nan")})
    ...     metrics.path.read_text(), metrics.read(), metrics.count
    ('{"epoch": 1, "loss": null}\n', [{'epoch': 1, 'loss': None}], 1)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = len(self._lines())

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; when it returns the operating system has it."""
        line = (json.dumps(strict(record), allow_nan=False) + "\n").encode()
        # Without a buffer, which would try again to write what is left when the file is closed.
        with self.path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                while line:
                    line = line[file.write(line) :]
            except BaseException:
                # On a full disk half a line may be there, and the next record would be glued to it.
                os.truncate(self.path, before)
                raise
        self.count += 1

    def read(self) -> list[dict[str, Any]]:
        """All whole records."""
        records = []
        for number, line in enumerate(self._lines(), start=1):
            where = f"{self.path}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise RunFolderError(where=where, got=str(error), wanted="one record as JSON") from error
            if not isinstance(record, dict):
                raise RunFolderError(where=where, got=f"a {type(record).__name__}", wanted="one record as JSON")
            records.append(record)
        return records

    def cut(self, count: int) -> None:
        """Keep the first records and drop all else, a torn last line included.

        Args:
            count: how many are kept; that many must be there.
        """
        lines = self._lines()
        if len(lines) < count:
            raise RunFolderError(
                where=str(self.path),
                got=f"{len(lines)} records",
                wanted=f"the {count} that the resume point knows of",
                remedy="Put the file back from a copy, or begin a new run in another folder.",
            )
        if self.path.exists():
            # Shortening in place never touches what stays, so a kill meanwhile loses nothing.
            os.truncate(self.path, sum(len(line) for line in lines[:count]))
        self.count = count

    def sync(self) -> None:
        """Have all records on the disk, as far as the operating system can tell."""
        if self.path.exists():
            with self.path.open("ab") as file:
                os.fsync(file.fileno())

    def _lines(self) -> list[bytes]:
        content = self.path.read_bytes() if self.path.exists() else b""
        return [line + b"\n" for line in content.split(b"\n")[:-1]]
