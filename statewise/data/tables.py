r"""The rows of TSV and CSV files and the objects of JSONL files, each with the line that it begins in, from 1.

Lines end at ``"\n"`` only, so that a field may hold other signs that Unicode calls line ends.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from statewise.data.text import ENDINGS, Text
from statewise.errors import DataError

Column = str | int


def name_ending(path: Path) -> str:
    """What a file's name ends in, in lower case and without a dot, and without the ending of an archive.

    >>> name_ending(Path("reviews.TSV.xz")), name_ending(Path("notes"))
    ('tsv', 'notes')
    """
    return without_archive(path).rpartition(".")[2].lower()


def without_archive(path: Path) -> str:
    """The name of a file without the ending of an archive.

    >>> without_archive(Path("corpora/eng.train.xz"))
    'eng.train'
    """
    name = path.name
    for ending in ENDINGS[1:]:
        name = name.removesuffix(ending)
    return name


def refuse_row(
    path: Path, line: int, got: str, wanted: str, remedy: str = "", *, field: Column | None = None
) -> NoReturn:
    """Raise the error of a row: it names the file, the line and the field."""
    where = f"{path}, line {line}" + ("" if field is None else f", field {field!r}")
    raise DataError(where=where, got=got, wanted=wanted, remedy=remedy)


def tsv_rows(path: Path, columns: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file with tabs between the fields; a blank line is no row.

    Args:
        path: the file, plain or compressed.
        columns: how many columns each row has, so that a tab in the last one is part of it; None for any number.
    """
    most = -1 if columns is None else columns - 1
    for line, content in enumerate(Text(path=path).lines(), start=1):
        if not content.strip(" \r"):
            continue
        fields = content.split("\t", most)
        if columns is not None and len(fields) != columns:
            refuse_row(path, line, f"{len(fields)} fields", f"{columns}")
        yield line, fields


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file with commas between the fields, which may stand in quotes; a blank line is no row."""
    reader = csv.reader((content + "\n" for content in Text(path=path).lines()), strict=True)
    line = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            # The limit on a field is one for the whole process, and not ours to change.
            remedy = "Write such long texts as JSONL or TSV." if "field limit" in str(error) else ""
            refuse_row(path, line, str(error), "a row of CSV", remedy)
        if fields is None:
            return
        if fields:
            yield line, fields
        line = reader.line_num + 1


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one JSON object a line; a blank line is none."""
    for line, content in enumerate(Text(path=path).lines(), start=1):
        if not content.strip():
            continue
        try:
            found = json.loads(content)
        except ValueError as error:
            refuse_row(path, line, str(error), "one JSON object a line")
        except RecursionError:
            refuse_row(path, line, "lists or objects nested too deep", "one JSON object a line")
        if not isinstance(found, dict):
            refuse_row(path, line, f"a {type(found).__name__}", "one JSON object a line")
        yield line, found
