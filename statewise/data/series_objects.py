"""Numeric sequences in JSONL files, one object a sequence, and in ``.npz`` archives of arrays."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

from statewise.data.column_names import place_of
from statewise.data.series_file import TOO_LARGE, Found, SeriesFile, label_text
from statewise.data.series_parts import usual_features
from statewise.data.tables import json_objects
from statewise.errors import DataError

VALUES = "values"


def read_objects(file: SeriesFile) -> Found:
    """What a JSONL file has: ``{"values": [...], "label": ...}`` a line, the label optional.

    Args:
        file: what is said of it.
    """
    found, width = Found(), 0
    for line, entry in json_objects(file.path):
        steps = _steps(file, entry, line)
        if found.sequences and len(steps[0]) != width:
            wanted = f"{width}, as in line {found.lines[0]}"
            file.refuse(line, f"{len(steps[0])} numbers a step", wanted, field=VALUES)
        width = len(steps[0])
        found.sequences.append(steps)
        found.lines.append(line)
        _keep_words(file, found, entry, line)
    if not found.sequences:
        raise DataError(where=str(file.path), got="no objects", wanted='{"values": [...]} in each line')
    found.features = _named(file, width)
    return found


def _steps(file: SeriesFile, entry: dict[str, Any], line: int) -> list[list[float]]:
    given = entry.get(VALUES)
    if VALUES not in entry:
        file.refuse(line, f"only {', '.join(map(repr, entry)) or 'nothing'}", "the numbers of a sequence", field=VALUES)
    if not isinstance(given, list) or not given:
        got = "an empty list" if given == [] else f"a {type(given).__name__}"
        file.refuse(line, got, "a list of numbers, or of lists of numbers", field=VALUES)
    width = len(given[0]) if isinstance(given[0], list) else None
    steps = []
    for number, step in enumerate(given):
        place = f"{VALUES}[{number}]"
        if (len(step) if isinstance(step, list) else None) != width or width == 0:
            got = f"{len(step)} numbers" if isinstance(step, list) else f"{step!r}, no list"
            wanted = "a number" if width is None else f"{width or 'one or more'} numbers, as in the first step"
            file.refuse(line, got, wanted, field=place)
        parts = step if isinstance(step, list) else [step]
        names = [place] if width is None else [f"{place}[{each}]" for each in range(len(parts))]
        steps.append([_number(file, part, line, name) for part, name in zip(parts, names, strict=True)])
    return steps


def _number(file: SeriesFile, given: Any, line: int, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        file.refuse(line, "nothing" if given is None else repr(given), "a number", field=name)
    try:
        return file.finite(float(given), line, name)
    except OverflowError:
        file.refuse(line, "a number of hundreds of digits", "a number that float32 can hold", field=name)


def _keep_words(file: SeriesFile, found: Found, entry: dict[str, Any], line: int) -> None:
    """Keep the label and the name of an object; all have one, or none has."""
    count, names = len(found.sequences), list(entry)
    for wanted, kept, what in (
        (file.label_names if file.labels else (), found.labels, "label"),
        (file.sequence_names, found.names, "name"),
    ):
        at = place_of(wanted, names) if wanted else None
        if at is None:
            asked = file.label if what == "label" else file.sequence
            if kept or (wanted and asked is not None):
                before = f", as line {found.lines[0]} has" if kept else ""
                file.refuse(line, "nothing", f"a {what}{before}", field=found.label if what == "label" else wanted[0])
            continue
        if len(kept) < count - 1:
            file.refuse(line, f"a {what}", f"none, as in line {found.lines[0]}", field=names[at])
        word = entry[names[at]]
        if isinstance(word, bool) or not isinstance(word, str | int) or not str(word).strip():
            file.refuse(line, repr(word), f"a {what}: a string or an integer", field=names[at])
        if what == "label":
            found.label = names[at]
        kept.append(label_text(str(word)) if what == "label" else str(word))


def read_arrays(file: SeriesFile) -> Found:
    """What an ``.npz`` archive has: ``values`` (n, steps) or (n, steps, features), ``lengths`` and ``labels`` optional.

    Args:
        file: what is said of it.
    """
    arrays = _arrays(file)
    values = _array(file, arrays, VALUES, kinds="fiu", dims=(2, 3))
    values = values[:, :, None] if values.ndim == 2 else values
    count, steps, width = values.shape
    if 0 in values.shape:
        _refuse(file, VALUES, f"the shape {values.shape}", "sequences, steps and features, one of each at least")
    lengths = np.full(count, steps)
    if "lengths" in arrays:
        lengths = _array(file, arrays, "lengths", kinds="iu", dims=(1,))
        if lengths.shape != (count,) or lengths.min() < 1 or lengths.max() > steps:
            _refuse(file, "lengths", f"{lengths.tolist()[:8]}", f"{count} whole numbers from 1 to {steps}")
    inside = np.arange(steps) < lengths[:, None]
    wrong = np.argwhere(inside[:, :, None] & ~(np.abs(values.astype(np.float64)) < TOO_LARGE))
    if len(wrong):
        place = ", ".join(map(str, wrong[0].tolist()))
        _refuse(file, f"{VALUES}[{place}]", str(values[tuple(wrong[0])]), "a finite number that float32 can hold")
    found = Found(sequences=[row[:length] for row, length in zip(values, lengths.tolist(), strict=True)])
    found.lines, found.features = list(range(1, count + 1)), _named(file, width, arrays.get("features"))
    for name, kept in (("labels", found.labels), ("names", found.names)):
        if name in arrays and (file.labels and file.label is not False if name == "labels" else True):
            words = _array(file, arrays, name, kinds="iuU", dims=(1,))
            if len(words) != count:
                _refuse(file, name, f"{len(words)} of them", f"{count}, one for each sequence")
            kept.extend(map(str, words.tolist()))
    return found


def _arrays(file: SeriesFile) -> dict[str, Any]:
    try:
        # Never pickle: an archive of somebody else's must not run code.
        with file.path.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        got = (error.strerror or "no archive of arrays").lower()
        raise DataError(where=str(file.path), got=got, wanted="an .npz archive that can be read") from error
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        got, remedy = str(error).split(".")[0], "Write it with numpy.savez: arrays of numbers and of strings only."
        raise DataError(where=str(file.path), got=got, wanted="an .npz archive of arrays", remedy=remedy) from error


def _array(
    file: SeriesFile, arrays: dict[str, Any], name: str, *, kinds: str, dims: tuple[int, ...]
) -> npt.NDArray[Any]:
    if name not in arrays:
        _refuse(file, name, f"only {', '.join(map(repr, arrays)) or 'nothing'}", "an array of this name")
    array: npt.NDArray[Any] = arrays[name]
    if array.dtype.kind not in kinds or array.ndim not in dims:
        sizes = " or ".join(f"{each}" for each in dims)
        said = {"fiu": "numbers", "iu": "whole numbers", "iuU": "strings or whole numbers"}[kinds]
        _refuse(file, name, f"{array.dtype} of shape {array.shape}", f"{said} in {sizes} dimensions")
    return array


def _named(file: SeriesFile, width: int, given: Any = None) -> tuple[str, ...]:
    """The names of features: those that the archive has, else those that are said, else the usual ones."""
    names = usual_features(width) if file.features is None or len(file.features) != width else file.features
    if given is not None:
        if given.dtype.kind != "U" or given.shape != (width,):
            _refuse(file, "features", f"{given.dtype} of shape {given.shape}", f"{width} strings")
        names = tuple(given.tolist())
    return names


def _refuse(file: SeriesFile, name: str, got: str, wanted: str) -> None:
    raise DataError(where=f"{file.path}, field {name!r}", got=got, wanted=wanted)
