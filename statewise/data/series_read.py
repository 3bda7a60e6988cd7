"""Read numeric sequences from files that a person has: tables, JSONL, archives of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from statewise.data.class_names import class_names
from statewise.data.series import Series
from statewise.data.series_file import Found, SeriesFile
from statewise.data.series_objects import read_arrays, read_objects
from statewise.data.series_tables import read_table
from statewise.data.tables import Column
from statewise.errors import DataError

_READERS: Mapping[str, Callable[[SeriesFile], Found]] = {
    "csv": read_table,
    "tsv": read_table,
    "jsonl": read_objects,
    "npz": read_arrays,
}


def read_series(
    path: Path | str,
    *,
    form: str | None = None,
    sequence: Column | None = None,
    label: Column | Literal[False] | None = None,
    time: Column | None = None,
    features: Sequence[str] | None = None,
    header: bool | None = None,
    kind: str | None = None,
    labels: bool = True,
    classes: Sequence[str] | None = None,
) -> Series:
    r"""Read numeric sequences from a file: CSV, TSV or JSONL, plain or compressed, or ``.npz``.

    A table is long, with a row a step, or wide, with a row a sequence. It is taken for a long one if it has a column of
    times, a column that repeats the names of sequences, or a header that names no label; for a wide one if a header
    names a label, or if there is none and the first column has words or whole numbers, as the files of the UCR archive.
    In a wide row the cells behind the end of a shorter sequence are empty. Columns without a name are left out.

    Args:
        path: the file.
        form: ``"long"`` or ``"wide"``, where that is not what is meant.
        sequence: the column that names the sequence of each row, by name or by place from 0; None for the one called
            ``sequence``, ``series``, ``id`` and the like; a long table without one is a single sequence.
        label: the column of the labels, which within a sequence are the same; None for the one called ``label``,
            ``class`` or ``target``, and without a header the first of a wide table; False for none.
        time: a column of numbers or dates that must not fall within a sequence, and is not read otherwise; None for the
            one called ``time``, ``timestamp``, ``date``, ``step`` and the like.
        features: the columns of the numbers of a step, by name; None for all others.
        header: whether the first row names the columns; None to tell by what it holds.
        kind: ``"csv"``, ``"tsv"``, ``"jsonl"`` or ``"npz"``, where the name of the file does not say.
        labels: whether labels are kept; else their column is only left out.
        classes: the names of the classes in their order; None for the labels that occur, sorted.

    Raises:
        DataError: the file is absent or malformed; names the line and the field.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sensors.csv")
    ...     _ = path.write_text("id,label,x,y\na,up,1,5\na,up,2,5\nb,flat,7,6\n")
    ...     series = read_series(path)
    >>> series.features, series.lengths.tolist(), series.names, series.classes
    (('x', 'y'), [2, 1], ('a', 'b'), ('flat', 'up'))
    """
    asked = SeriesFile(
        path=Path(path).expanduser(),
        form=form,
        sequence=sequence,
        label=label,
        time=time,
        features=None if features is None else tuple(features),
        header=header,
        kind=kind,
        labels=labels,
    )
    found = _READERS[asked.found_kind](asked)
    series = _assembled(asked, found, None if classes is None else tuple(classes))
    return series if features is None else series.with_features(features, where=str(asked.path))


def _assembled(file: SeriesFile, found: Found, classes: tuple[str, ...] | None) -> Series:
    lengths = [len(each) for each in found.sequences]
    labels = None
    if found.labels:
        classes = _class_names(file, found) if classes is None else classes
        numbers = {name: number for number, name in enumerate(classes)}
        for line, label in zip(found.lines, found.labels, strict=True):
            if label not in numbers:
                file.refuse(line, repr(label), f"one of {', '.join(classes)}", field=found.label)
        labels = np.array([numbers[label] for label in found.labels], dtype=np.int64)
    return Series(
        values=np.concatenate([np.asarray(each, dtype=np.float64) for each in found.sequences]),
        starts=np.concatenate(([0], np.cumsum(lengths))),
        features=found.features,
        labels=labels,
        classes=classes or () if labels is not None else (),
        names=tuple(found.names),
    )


def _class_names(file: SeriesFile, found: Found) -> tuple[str, ...]:
    try:
        return class_names(found.labels, where=f"{file.path}, field {found.label!r}")
    except DataError as error:
        raise error.told(
            remedy="Name the column of the labels (label=..., --label), or say form=... (--form)."
        ) from None
