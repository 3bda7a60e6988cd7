"""Records of a run as strict JSON, one a line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from torch import Tensor

from statewise.errors import DtypeError, RunFolderError


def encode_number(value: float) -> float | str | None:
    """A number as strict JSON has it: NaN is null, infinity the text ``"inf"``, which ``float`` reads back.

    >>> encode_number(1.5), encode_number(-math.inf), encode_number(math.nan)
    (1.5, '-inf', None)
    """
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(float(value))


def strict(value: Any, where: str = "record") -> Any:
    """What JSON can hold of a value made of mappings, sequences, texts and numbers, those of numpy and torch included.

    Args:
        value: what is to be written.
        where: its name, for the error that says which field has no form in JSON.

    >>> strict({"loss": float("inf"), "rates": (1, 2.5)})
    {'loss': 'inf', 'rates': [1, 2.5]}
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): strict(part, f"{where}.{key}") for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [strict(part, f"{where}[{index}]") for index, part in enumerate(value)]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Tensor) and value.numel() == 1:
        return strict(value.item(), where)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return encode_number(float(value))
    raise DtypeError(
        where=where,
        got=type(value).__name__,
        wanted="a number, a text, or a list or dict of them",
        remedy="Tensors belong into a file of tensors.",
    )


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
