"""A file of numeric sequences: what is said of it, and what was found in it before it becomes a set."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from statewise.data.tables import Column, name_ending, refuse_row
from statewise.errors import ArgumentError, DataError

FORMS = ("long", "wide")
KINDS = ("csv", "tsv", "jsonl", "npz")
#: What columns are called where nobody says which ones are meant; the first is what is told.
#: Not "y", which names a coordinate as often.
LABELS = ("label", "class", "target")
SEQUENCES = ("sequence", "series", "id", "sequence_id", "series_id", "case", "trial", "unit")
TIMES = ("time", "timestamp", "datetime", "date", "step", "t")
FILL = "Leave the row out, or fill the gap."
#: What rounds to infinity in float32 begins here.
TOO_LARGE = (2 - 2.0**-24) * 2.0**127


@dataclass(frozen=True, kw_only=True)
class SeriesFile:
    """A file of numeric sequences; see :func:`read_series` for what each field means."""

    path: Path
    form: str | None = None
    sequence: Column | None = None
    label: Column | Literal[False] | None = None
    time: Column | None = None
    features: tuple[str, ...] | None = None
    header: bool | None = None
    kind: str | None = None
    labels: bool = True

    def __post_init__(self) -> None:
        for name, known in (("form", FORMS), ("kind", KINDS)):
            if (value := getattr(self, name)) is not None and value not in known:
                raise ArgumentError(where=f"read_series.{name}", got=value, wanted=f"one of {', '.join(known)}")

    @property
    def found_kind(self) -> str:
        """What the file is: as it was said, else by its name."""
        found = self.kind or name_ending(self.path)
        if found not in KINDS:
            wanted = "a name that ends in .csv, .tsv, .jsonl (perhaps compressed) or .npz"
            remedy = "Give it such a name, or say kind=..., or --kind."
            raise DataError(where=str(self.path), got="another name", wanted=wanted, remedy=remedy)
        return found

    @property
    def label_names(self) -> tuple[str, ...]:
        """How an entry with the label may be called; nothing where there is none."""
        if self.label is False:
            return ()
        return LABELS if self.label is None else (str(self.label),)

    @property
    def sequence_names(self) -> tuple[str, ...]:
        """How an entry with the name of a sequence may be called."""
        return SEQUENCES if self.sequence is None else (str(self.sequence),)

    def refuse(self, line: int, got: str, wanted: str, remedy: str = "", *, field: Column | None = None) -> NoReturn:
        """Raise the error of a row."""
        refuse_row(self.path, line, got, wanted, remedy, field=field)

    def number(self, text: str, line: int, name: Column) -> float:
        """The number that a cell holds.

        Args:
            text: of the cell.
            line: where it stands.
            name: of its column.
        """
        found = None
        with suppress(ValueError):
            found = float(text)
        if found is None or "_" in text:
            gap = not text.strip()
            remedy = FILL if gap else "Name the columns of the numbers (--features), or that of the labels (--label)."
            self.refuse(line, "nothing" if gap else repr(text), "a number", remedy, field=name)
        return self.finite(found, line, name)

    def finite(self, number: float, line: int, name: Column) -> float:
        """A number that is one, and that float32 can hold.

        Args:
            number: as it was read.
            line: where it stands.
            name: of its column.
        """
        if not abs(number) < TOO_LARGE:
            wanted = "a finite number" if not math.isfinite(number) else "a number that float32 can hold"
            self.refuse(line, f"{number}", wanted, FILL, field=name)
        return number


@dataclass
class Found:
    """What a file has, before it becomes a set.

    Attributes:
        features: the names of the numbers of a step.
        sequences: for each its steps.
        labels: of the sequences, in words; empty where they have none.
        names: of the sequences; empty where they have none.
        lines: in which each begins.
        label: the column of the labels.
    """

    features: tuple[str, ...] = ()
    sequences: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    label: Column = LABELS[0]


def label_text(text: str) -> str:
    """A label as a class is called: a whole number in any way of writing is that number.

    >>> label_text(" 1.0000000e+00 "), label_text("-1"), label_text("walk")
    ('1', '-1', 'walk')
    """
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return text
    whole = math.isfinite(number) and number == int(number) and abs(number) < 1e15
    return str(int(number)) if whole else text
