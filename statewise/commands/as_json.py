"""What a command has found, as a program reads it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from statewise.report.tables import Table
from statewise.train.run import RunFolder


def result_of(folder: Path, *, within: Iterable[str] = ()) -> dict[str, Any]:
    """A run that has ended: where it is, what it was told, and its last record; of several runs, each by name.

    Args:
        folder: of the run, or of several.
        within: the names of the runs in it, if they are several.
    """
    names = tuple(within)
    if names:
        return {"folder": str(folder), "runs": {name: result_of(folder / name) for name in names}}
    run = RunFolder(folder)
    records = run.metrics()
    return {"folder": str(folder), "config": run.config(), "result": records[-1] if records else None}


def table_of(table: Table) -> dict[str, Any]:
    """A table, a row an object.

    Args:
        table: as it is printed.

    >>> table_of(Table(columns=("text", "line"), rows=[["a cat", "1"]], notes=["All of it."]))
    {'rows': [{'text': 'a cat', 'line': '1'}], 'notes': ['All of it.']}
    """
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return {"rows": rows, "notes": list(table.notes)}
