"""Numeric sequences in tables: a row a step (long), or a row a sequence (wide)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

from statewise.data.column_names import place_of
from statewise.data.series_file import LABELS, SEQUENCES, TIMES, Found, SeriesFile, label_text
from statewise.data.series_parts import VALUE, usual_features
from statewise.data.tables import Column, csv_rows, tsv_rows
from statewise.errors import ArgumentError, DataError

PEEK = 100  # rows that tell what a table is
_NAMES = {*LABELS, *SEQUENCES, *TIMES, VALUE} - {"t"}  # a letter may be a label too
Row = tuple[int, list[str]]


def read_table(file: SeriesFile) -> Found:
    """What a CSV or TSV file has.

    Args:
        file: what is said of it.
    """
    rows = csv_rows(file.path) if file.found_kind == "csv" else tsv_rows(file.path)
    seen = list(islice(rows, PEEK))
    if not seen:
        raise DataError(where=str(file.path), got="no rows", wanted="numbers in rows and columns")
    layout = Layout.of(file, seen)
    rest = _of_one_width(file, chain(seen, rows), len(seen[0][1]))
    if layout.names is not None:
        next(rest)
    return _wide(file, layout, rest) if layout.wide else _long(file, layout, rest)


@dataclass(frozen=True)
class Layout:
    """Where in a table is what.

    Attributes:
        wide: whether a row is a whole sequence.
        names: of the columns, where there is a header.
        sequence: the place of the column that names the sequences.
        label: of that of the labels.
        time: of that of the times.
        values: the places of the numbers.
    """

    wide: bool
    names: list[str] | None
    sequence: int | None
    label: int | None
    time: int | None
    values: tuple[int, ...]

    @classmethod
    def of(cls, file: SeriesFile, seen: Sequence[Row]) -> Layout:
        """Tell it by the first rows of a file, and by what is said of it."""
        (line, first), width = seen[0], len(seen[0][1])
        header = _has_header(file, first)
        names = [name.strip() for name in first] if header else None
        _check_names(file, line, names)
        rows = [fields for _, fields in seen[header:] if len(fields) == width]
        find = _Finder(file, line, names, width)
        sequence, time = find(file.sequence, SEQUENCES, "sequence"), find(file.time, TIMES, "time")
        label = None if file.label is False else find(file.label, LABELS, "label")
        wide = _is_wide(file, rows, sequence=sequence, time=time, label=label, header=header)
        if wide and label is None and file.label is None and not header:
            label = 0
        taken = {place for place in (sequence, label, time) if place is not None}
        values = tuple(place for place in range(width) if place not in taken and (names is None or names[place]))
        if file.features is not None and not wide and names is not None:
            values = tuple(find.named(name) for name in file.features)
        if not values:
            file.refuse(line, ", ".join(map(repr, first)), "a column of numbers besides the others")
        return cls(wide, names, sequence, label, time, values)

    def name(self, place: int) -> Column:
        """What a column is called in an error: by its name, else by its place from 0."""
        return place if self.names is None else self.names[place]


class _Finder(NamedTuple):
    """Finds columns in the header of a file."""

    file: SeriesFile
    line: int
    names: list[str] | None
    width: int

    def __call__(self, asked: Column | None, usual: tuple[str, ...], option: str) -> int | None:
        if asked is None:
            return None if self.names is None else place_of(usual, self.names)
        if isinstance(asked, int):
            if not 0 <= asked < self.width:
                self.file.refuse(self.line, f"{self.width} fields", f"a column {asked}, counted from 0")
            return asked
        return self.named(asked, option)

    def named(self, name: str, option: str = "features") -> int:
        """The place of a column that was asked for by its name."""
        if self.names is None:
            raise ArgumentError(where="read_series.header", got=False, wanted="a header, for a column by its name")
        place = self.names.index(name) if name in self.names else place_of((name,), self.names)
        if place is None:
            shown, remedy = ", ".join(map(repr, self.names)), f"Say which one is meant: {option}=..., or --{option}."
            self.file.refuse(self.line, shown, f"a column {name!r}", remedy)
        return place


def _has_header(file: SeriesFile, first: Sequence[str]) -> bool:
    if file.header is not None:
        return file.header
    asked = (file.sequence, file.label, file.time)
    named = any(isinstance(each, str) for each in asked)
    known = any(name.strip().casefold() in _NAMES for name in first)
    return named or known or not any(_is_number(text) for text in first)


def _check_names(file: SeriesFile, line: int, names: list[str] | None) -> None:
    present = [name for name in names or () if name]
    if twice := next((name for name in present if present.count(name) > 1), None):
        file.refuse(line, f"two columns called {twice!r}", "names, each of them once", field=twice)


def _is_wide(
    file: SeriesFile,
    rows: Sequence[Sequence[str]],
    *,
    sequence: int | None,
    time: int | None,
    label: int | None,
    header: bool,
) -> bool:
    if file.form is not None:
        return file.form == "wide"
    if time is not None:
        return False
    if sequence is not None:
        names = [fields[sequence] for fields in rows]
        # A row a step repeats the name of its sequence.
        return len(names) > 1 and len(set(names)) == len(names) and len(rows[0]) > 3
    if header or label is not None:
        return label is not None
    # As the files of the UCR archive: a label, then values.
    return bool(rows) and len(rows[0]) > 2 and all(_is_label(fields[0]) for fields in rows)


def _long(file: SeriesFile, layout: Layout, rows: Iterator[Row]) -> Found:
    """A row a step; the rows of several sequences may stand mixed."""
    found = Found(
        features=_features(file, layout), label="label" if layout.label is None else layout.name(layout.label)
    )
    numbers: dict[str, int] = {}
    latest: dict[int, _Moment] = {}
    for line, fields in rows:
        key = "" if layout.sequence is None else fields[layout.sequence].strip()
        if layout.sequence is not None and not key:
            file.refuse(line, "nothing", "the name of a sequence", field=layout.name(layout.sequence))
        at = numbers.setdefault(key, len(numbers))
        if at == len(found.sequences):
            found.sequences.append([])
            found.lines.append(line)
        if layout.time is not None:
            latest[at] = _checked_time(file, fields[layout.time], line, layout.name(layout.time), latest.get(at))
        if layout.label is not None and file.labels:
            _same_label(file, found, at, fields[layout.label], line, key)
        found.sequences[at].append([file.number(fields[place], line, layout.name(place)) for place in layout.values])
    if not found.sequences:
        raise DataError(where=str(file.path), got="a header and no rows", wanted="a row for each step")
    if layout.sequence is not None:
        found.names = list(numbers)
        if len(numbers) > 1 and max(map(len, found.sequences)) == 1:
            name = layout.name(layout.sequence)
            got, remedy = f"another name in each of {len(numbers)} rows", "Say which column it is: --sequence."
            file.refuse(found.lines[0], got, "the name of its sequence in each row", remedy, field=name)
    return found


def _same_label(file: SeriesFile, found: Found, at: int, text: str, line: int, key: str) -> None:
    """Keep the label of a sequence; all its rows have the same."""
    label = label_text(text)
    if not label:
        file.refuse(line, "nothing", "a label", field=found.label)
    if at == len(found.labels):
        found.labels.append(label)
    elif label != found.labels[at]:
        whose = f"the sequence {key!r}" if key else "the sequence"
        wanted = f"{found.labels[at]!r}, as in line {found.lines[at]}: {whose} has one label"
        remedy = "If each row is a sequence, say form='wide', or --form wide."
        file.refuse(line, repr(label), wanted, remedy, field=found.label)


def _wide(file: SeriesFile, layout: Layout, rows: Iterator[Row]) -> Found:
    """A row a sequence; behind its end a shorter one has empty cells."""
    found = Found(
        features=_features(file, layout), label="label" if layout.label is None else layout.name(layout.label)
    )
    for line, fields in rows:
        cells = [fields[place] for place in layout.values]
        while cells and not cells[-1].strip():
            cells.pop()
        if not cells:
            file.refuse(line, "no values", "at least one number", field=layout.name(layout.values[0]))
        named = zip(cells, layout.values, strict=False)
        found.sequences.append([[file.number(text, line, layout.name(place))] for text, place in named])
        found.lines.append(line)
        if layout.label is not None and file.labels:
            label = label_text(fields[layout.label])
            if not label:
                file.refuse(line, "nothing", "a label", field=found.label)
            found.labels.append(label)
        if layout.sequence is not None:
            found.names.append(fields[layout.sequence].strip())
    if not found.sequences:
        raise DataError(where=str(file.path), got="a header and no rows", wanted="a row for each sequence")
    return found


def _features(file: SeriesFile, layout: Layout) -> tuple[str, ...]:
    if layout.wide:
        found: tuple[str, ...] = usual_features(1)
    elif layout.names is None:
        found = usual_features(len(layout.values))
    else:
        return tuple(layout.names[place] for place in layout.values)
    return found if file.features is None or len(file.features) != len(found) else file.features


def _of_one_width(file: SeriesFile, rows: Iterator[Row], width: int) -> Iterator[Row]:
    for line, fields in rows:
        if len(fields) != width:
            remedy = "Behind the end of a shorter sequence a row of values has empty fields." if width > 3 else ""
            file.refuse(line, f"{len(fields)} fields", f"{width}, as in the first row", remedy)
        yield line, fields


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_label(text: str) -> bool:
    """Whether a cell may be a label: a word or a whole number."""
    return bool(text.strip()) and (not _is_number(text) or label_text(text).lstrip("-").isdecimal())


_Moment = float | datetime


def _checked_time(file: SeriesFile, text: str, line: int, name: Column, before: _Moment | None) -> _Moment:
    """A time, as a number or a date; within a sequence it does not fall."""
    now: _Moment
    try:
        now = float(text) if _is_number(text) else datetime.fromisoformat(text.strip())
    except ValueError:
        file.refuse(line, repr(text), "a number or a date such as 2024-05-31 or 2024-05-31T12:00", field=name)
    if before is None:
        return now
    try:
        falls = now < before  # type: ignore[operator]
    except TypeError:
        file.refuse(line, repr(text), f"a time that can be compared with {before}", field=name)
    if falls or now != now:
        remedy = "Sort the rows of each sequence by time."
        file.refuse(line, text.strip(), f"a time that is not before {before}, the row above", remedy, field=name)
    return now
