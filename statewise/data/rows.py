r"""Labelled texts in files: TSV, CSV or JSONL, plain or compressed, one text a row.

Lines end at ``"\n"`` only, so that a text may hold other signs that Unicode calls line ends.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from statewise.data.text import ENDINGS, Text
from statewise.errors import ArgumentError, DataError

KINDS = ("tsv", "csv", "jsonl")
_LABEL, _TEXT = "label", "text"
Column = str | int


class Row(NamedTuple):
    """One text, its label, and the line that it stands in, from 1."""

    label: str
    text: str
    line: int


@dataclass(frozen=True, kw_only=True)
class LabelledFile:
    r"""A file of texts with labels.

    Args:
        path: the file; its ending says what it is: ``.tsv``, ``.csv`` or ``.jsonl``, perhaps with ``.gz``, ``.xz`` or
            ``.bz2`` behind.
        label: the column of the labels, by name or by place from 0; None for the name ``label``, or else the first.
        text: the column of the texts; None for the name ``text``, or else the last.
        header: whether the first row of a table names the columns; None if it does wherever a column is asked for by
            name, and where it holds ``label`` and ``text``.
        columns: how many columns a TSV has, so that a tab in the last one is part of it; None for as many as the first
            row has.
        kind: ``"tsv"``, ``"csv"`` or ``"jsonl"``, where the name does not say.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reviews.tsv")
    ...     _ = path.write_text("label\ttext\n1\tA joy.\n0\tA bore.\n")
    ...     list(LabelledFile(path=path).rows())
    [Row(label='1', text='A joy.', line=2), Row(label='0', text='A bore.', line=3)]
    """

    path: Path
    label: Column | None = None
    text: Column | None = None
    header: bool | None = None
    columns: int | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise ArgumentError(where="LabelledFile.kind", got=self.kind, wanted=f"one of {', '.join(KINDS)}")
        if self.columns is not None and self.columns < 2:
            raise ArgumentError(where="LabelledFile.columns", got=self.columns, wanted="2 or more")

    def rows(self) -> Iterator[Row]:
        """The rows one by one.

        Raises:
            DataError: the file is absent or malformed; names the line and the field.
        """
        return self._objects() if self._kind() == "jsonl" else self._table()

    def refuse(self, line: int, got: str, wanted: str, remedy: str = "", *, field: Column | None = None) -> NoReturn:
        """Raise the error of a row."""
        where = f"{self.path}, line {line}" + ("" if field is None else f", field {field!r}")
        raise DataError(where=where, got=got, wanted=wanted, remedy=remedy)

    def _kind(self) -> str:
        name = self.path.name
        for ending in ENDINGS[1:]:
            name = name.removesuffix(ending)
        found = self.kind or name.rpartition(".")[2].lower()
        if found not in KINDS:
            wanted = f"a name that ends in {', '.join('.' + kind for kind in KINDS)}, perhaps compressed"
            raise DataError(where=str(self.path), got="another name", wanted=wanted, remedy="Or say kind=...")
        return found

    def _objects(self) -> Iterator[Row]:
        names = (_LABEL if self.label is None else self.label, _TEXT if self.text is None else self.text)
        for line, content in enumerate(Text(path=self.path).lines(), start=1):
            if not content.strip():
                continue
            try:
                found = json.loads(content)
            except ValueError as error:
                self.refuse(line, str(error), "one JSON object a line")
            if not isinstance(found, dict):
                self.refuse(line, f"a {type(found).__name__}", "one JSON object a line")
            for name in names:
                if name not in found:
                    self.refuse(line, f"only {', '.join(map(repr, found))}", "a label and a text", field=name)
            label, text = (found[name] for name in names)
            if not isinstance(text, str):
                self.refuse(line, f"a {type(text).__name__}", "a text", field=names[1])
            yield self._row(self._said(label, line, names[0]), text, line, names[0])

    def _said(self, label: Any, line: int, field: Column) -> str:
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            return self.refuse(line, repr(label), "a label: a string or an integer", field=field)
        return str(label)

    def _table(self) -> Iterator[Row]:
        rows = self._csv() if self._kind() == "csv" else self._tsv()
        first = next(rows, None)
        if first is None:
            raise DataError(where=str(self.path), got="no rows", wanted="a label and a text in each row")
        line, names = first
        asked = [name for name in (self.label, self.text) if isinstance(name, str)]
        header = self.header if self.header is not None else bool(asked) or {_LABEL, _TEXT} <= set(names)
        columns = (self._place(self.label, _LABEL, 0, names, header), self._place(self.text, _TEXT, -1, names, header))
        width = len(names)
        if not header:
            yield self._row(names[columns[0]], names[columns[1]], line, columns[0])
        for line, fields in rows:
            if len(fields) != width:
                remedy = "" if self._kind() == "csv" else "If the last column has tabs, say columns=..."
                self.refuse(line, f"{len(fields)} fields", f"{width}, as in the first row", remedy)
            yield self._row(fields[columns[0]], fields[columns[1]], line, columns[0])

    def _place(self, asked: Column | None, usual: str, otherwise: int, names: list[str], header: bool) -> int:
        """Where in a row a column stands."""
        if len(names) < 2:
            self.refuse(1, f"{len(names)} field", "two or more", "Is it separated by tabs (TSV) or by commas (CSV)?")
        wanted = asked if asked is not None else usual if header and usual in names else otherwise % len(names)
        if isinstance(wanted, str):
            if not header:
                raise ArgumentError(where="LabelledFile.header", got=False, wanted="a header, for a column by its name")
            if wanted not in names:
                self.refuse(1, ", ".join(map(repr, names)), f"a column {wanted!r}", "Say label=... and text=...")
            return names.index(wanted)
        if not 0 <= wanted < len(names):
            self.refuse(1, f"{len(names)} fields", f"a column {wanted}, counted from 0")
        return wanted

    def _row(self, label: str, text: str, line: int, field: Column) -> Row:
        if not label.strip():
            self.refuse(line, "nothing", "a label", field=field)
        return Row(label.strip(), text, line)

    def _tsv(self) -> Iterator[tuple[int, list[str]]]:
        most = -1 if self.columns is None else self.columns - 1
        for line, content in enumerate(Text(path=self.path).lines(), start=1):
            fields = content.split("\t", most)
            if self.columns is not None and len(fields) != self.columns:
                self.refuse(line, f"{len(fields)} fields", f"{self.columns}")
            yield line, fields

    def _csv(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader((content + "\n" for content in Text(path=self.path).lines()), strict=True)
        line = 1
        while True:
            try:
                fields = next(reader, None)
            except csv.Error as error:
                self.refuse(line, str(error), "a row of CSV")
            if fields is None:
                return
            if fields:
                yield line, fields
            line = reader.line_num + 1
