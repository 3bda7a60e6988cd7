"""Write numeric sequences so that `read_series` reads the same again."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from statewise.data.series import Series
from statewise.data.series_file import KINDS
from statewise.data.tables import name_ending
from statewise.errors import ArgumentError
from statewise.files import write_atomically


def write_series(path: Path | str, series: Series) -> None:
    """Write a set as a long table (``.csv``, ``.tsv``) or ``.jsonl``, each perhaps with ``.gz`` behind, or as ``.npz``.

    Names and labels are written where there are some; a table always names its sequences. Numbers are written such
    that their float32 values are read again.

    Args:
        path: the file to make or to replace; its ending says what it is.
        series: what is written.

    >>> import tempfile
    >>> from statewise.data.series_read import read_series
    >>> two = Series.from_arrays([[0.1, 2.0], [1e-9]], labels=["a", "b"], names=["one", "two"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_series(Path(folder, "two.csv"), two)
    ...     read_series(Path(folder, "two.csv")) == two
    True
    """
    path = Path(path).expanduser()
    kind, archive = name_ending(path), path.suffix.lower()
    if kind not in KINDS or (kind != archive.removeprefix(".") and (archive != ".gz" or kind == "npz")):
        wanted = "a name that ends in .csv, .tsv, .jsonl, one of them with .gz, or .npz"
        raise ArgumentError(where="write_series.path", got=path.name, wanted=wanted)
    made = _archive(series) if kind == "npz" else "".join(_lines(series, kind)).encode()
    write_atomically(path, gzip.compress(made, mtime=0) if archive == ".gz" else made)


def _lines(series: Series, kind: str) -> Iterator[str]:
    labels = None if series.labels is None else [series.classes[label] for label in series.labels.tolist()]
    if kind == "jsonl":
        for at in range(len(series)):
            steps = [[float(str(number)) for number in step] for step in series.sequence(at)]
            entry: dict[str, object] = {"id": series.names[at]} if series.names else {}
            entry |= {} if labels is None else {"label": labels[at]}
            values: object = [step[0] for step in steps] if len(series.features) == 1 else steps
            yield json.dumps({**entry, "values": values}, ensure_ascii=False) + "\n"
        return
    buffer = io.StringIO()
    write = csv.writer(buffer, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n").writerow
    write(["sequence", *([] if labels is None else ["label"]), *series.features])
    for at in range(len(series)):
        before = [series.name(at), *([] if labels is None else [labels[at]])]
        for step in series.sequence(at):
            write([*before, *map(str, step)])
    yield buffer.getvalue()


def _archive(series: Series) -> bytes:
    values, lengths, _ = series.padded(slice(None))
    arrays = {"values": values.numpy(), "lengths": lengths.numpy(), "features": np.array(series.features)}
    if series.labels is not None:
        arrays["labels"] = np.array([series.classes[label] for label in series.labels.tolist()], dtype=np.str_)
    if series.names:
        arrays["names"] = np.array(series.names, dtype=np.str_)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
