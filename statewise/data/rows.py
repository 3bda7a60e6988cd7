r"""Labelled texts in files: TSV, CSV or JSONL, plain or compressed, one text a row.

Lines end at ``"\n"`` only, so that a text may hold other signs that Unicode calls line ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from statewise.data.column_names import LABELS, TEXTS, names_columns, place_of
from statewise.data.tables import Column, csv_rows, json_objects, name_ending, refuse_row, tsv_rows
from statewise.errors import ArgumentError, DataError

KINDS = ("tsv", "csv", "jsonl")
_SAY = "Say label=... and text=..., or --label and --text."


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
        label: the column of the labels, by name or by place from 0; None for the one called ``label``, ``class``,
            ``sentiment``, ``target`` or ``y``, or else the first that is not the text. Case does not matter.
        text: the column of the texts; None for the one called ``text``, ``sentence``, ``review`` or ``content``, or
            else the last that is not the label.
        header: whether the first row of a table names the columns; None if it does wherever a column is asked for by
            name, and where it holds one of the names above (``y`` only beside another).
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
        refuse_row(self.path, line, got, wanted, remedy, field=field)

    def _kind(self) -> str:
        found = self.kind or name_ending(self.path)
        if found not in KINDS:
            wanted = f"a name that ends in {', '.join('.' + kind for kind in KINDS)}, perhaps compressed"
            raise DataError(where=str(self.path), got="another name", wanted=wanted, remedy="Give it such a name.")
        return found

    def _objects(self) -> Iterator[Row]:
        names: list[Column] = []
        for line, found in json_objects(self.path):
            names = names or [self._entry(asked, usual, found) for asked, usual in self._asked()]
            for name in names:
                if name not in found:
                    self.refuse(line, f"only {', '.join(map(repr, found))}", "a label and a text", field=name)
            label, text = (found[str(name)] for name in names)
            if not isinstance(text, str):
                self.refuse(line, f"a {type(text).__name__}", "a text", field=names[1])
            yield self._row(self._said(label, line, names[0]), text, line, names[0])

    def _asked(self) -> tuple[tuple[Column | None, tuple[str, ...]], ...]:
        """Of labels and of texts: the column that was asked for, and how it may be called otherwise."""
        return (self.label, LABELS), (self.text, TEXTS)

    @staticmethod
    def _entry(asked: Column | None, usual: tuple[str, ...], found: dict[str, Any]) -> Column:
        """The name of an object's entry."""
        if asked is not None:
            return asked
        at = place_of(usual, list(found))
        return usual[0] if at is None else list(found)[at]

    def _said(self, label: Any, line: int, field: Column) -> str:
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            return self.refuse(line, repr(label), "a label: a string or an integer", field=field)
        return str(label)

    def _table(self) -> Iterator[Row]:
        rows = csv_rows(self.path) if self._kind() == "csv" else tsv_rows(self.path, self.columns)
        first = next(rows, None)
        if first is None:
            raise DataError(where=str(self.path), got="no rows", wanted="a label and a text in each row")
        line, names = first
        by_name = isinstance(self.label, str) or isinstance(self.text, str)
        header = by_name or names_columns(names) if self.header is None else self.header
        columns = self._columns(names, header)
        width = len(names)
        if not header:
            yield self._row(names[columns[0]], names[columns[1]], line, columns[0])
        for line, fields in rows:
            if len(fields) != width:
                remedy = "" if self._kind() == "csv" else "If the last column has tabs, say columns=..."
                self.refuse(line, f"{len(fields)} fields", f"{width}, as in the first row", remedy)
            yield self._row(fields[columns[0]], fields[columns[1]], line, columns[0])

    def _columns(self, names: list[str], header: bool) -> tuple[int, int]:
        """Where in a row label and text stand; what nobody names is what the other leaves."""
        if len(names) < 2:
            self.refuse(1, f"{len(names)} field", "two or more", "Is it separated by tabs (TSV) or by commas (CSV)?")
        label, text = (self._place(asked, usual, names, header) for asked, usual in self._asked())
        if label is None:
            label = next(place for place in range(len(names)) if place != text)
        if text is None:
            text = next(place for place in reversed(range(len(names))) if place != label)
        if label == text:
            self.refuse(1, f"column {label} for both", "a column of labels and one of texts", _SAY)
        return label, text

    def _place(self, asked: Column | None, usual: tuple[str, ...], names: list[str], header: bool) -> int | None:
        """Where a column stands that was asked for, or is called as usual."""
        if asked is None:
            return place_of(usual, names) if header else None
        if isinstance(asked, int):
            if not 0 <= asked < len(names):
                self.refuse(1, f"{len(names)} fields", f"a column {asked}, counted from 0")
            return asked
        if not header:
            raise ArgumentError(where="LabelledFile.header", got=False, wanted="a header, for a column by its name")
        place = names.index(asked) if asked in names else place_of((asked,), names)
        return self.refuse(1, ", ".join(map(repr, names)), f"a column {asked!r}", _SAY) if place is None else place

    def _row(self, label: str, text: str, line: int, field: Column) -> Row:
        if not label.strip():
            self.refuse(line, "nothing", "a label", field=field)
        return Row(label.strip(), text, line)
