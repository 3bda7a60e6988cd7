"""What a person's data is: a text, tagged words, labelled texts, or sequences of numbers; told from its first rows."""

from __future__ import annotations

import itertools
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from statewise.data.column_names import LABELS, TEXTS, place_of
from statewise.data.corpus import find_parts
from statewise.data.spans import OUTSIDE
from statewise.data.tables import csv_rows, json_objects, name_ending, tsv_rows
from statewise.data.tagged_tables import MANY_TAGS, MANY_TOKENS, ONE_TOKEN, SENTENCES
from statewise.data.text import Text
from statewise.errors import ArgumentError, DataError

KINDS = ("lm", "tag", "classify", "series", "forecast")
#: What is embedded, and of which kind it is.
SAMPLES = {
    "sample": "lm",
    "sample-tags": "tag",
    "sample-words": "classify",
    "sample-series": "series",
    "sample-next": "forecast",
}
IN_WORDS = {
    "lm": "a text, for a language model",
    "tag": "tagged words, for a tagger",
    "classify": "labelled texts, for a classifier",
    "series": "labelled sequences of numbers, for a classifier of series",
    "forecast": "sequences of numbers whose next values are predicted",
}
LOOKED_AT = 200  # rows
_TAGGED = ("conllu", "conll", "conll03", "iob", "iob2", "bio", "bioes")
_TABLES = ("csv", "tsv")
_PARTS = {"train": ("train",), "valid": ("valid", "dev", "validation"), "test": ("test",)}
#: What sequences of numbers are called in an object, and what is asked of them.
_NUMBERS = ("values", "value", "x", "series", "features", "sequence", "signal")
_NEXT = ("next", "target", "y", "future")
#: What the columns of numeric tables are called that hold none of the numbers.
_SEQUENCES = ("sequence", "series", "id", "sequence_id", "series_id", "case", "trial", "unit")
_TIMES = ("time", "timestamp", "datetime", "date", "step", "t")


@dataclass(frozen=True)
class Recognised:
    """What a person's data is.

    Attributes:
        kind: one of :data:`KINDS`.
        why: by what it was recognised, as half a sentence.
        files: the parts of a folder: "train", and perhaps "valid" and "test"; of a file "train" only; of an embedded
            sample none.
    """

    kind: str
    why: str
    files: Mapping[str, Path] = field(default_factory=dict)


def recognise(data: Path | str, kind: str | None = None) -> Recognised:
    r"""Tell what data is, from its name and its first rows.

    Args:
        data: a file, a folder with train, valid and test, or the name of an embedded sample.
        kind: what it is, where a person has said so: then nothing is guessed.

    Raises:
        DataError: the file is absent or unreadable, or could be of two kinds; then the message says which ``--kind`` to
            give.

    >>> recognise("sample-tags").kind
    'tag'
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reviews.csv")
    ...     _ = path.write_text("label,text\ngood,a joy\nbad,a bore\n")
    ...     found = recognise(path)
    >>> found.kind, found.why
    ('classify', 'it has the columns label and text')
    """
    place = Path(data).expanduser()
    if str(data) in SAMPLES and not place.exists():
        return _embedded(str(data), kind)
    if place.is_dir():
        return _folder(place, kind)
    if not place.exists():
        remedy = f"Look at the spelling; {', '.join(SAMPLES)} need no file."
        raise DataError(where=str(data), got="no such file or folder", wanted="data to compare on", remedy=remedy)
    found, why = (kind, "--kind says so") if kind else _of_file(place)
    return Recognised(found, why, {"train": place})


def _embedded(name: str, kind: str | None) -> Recognised:
    """A sample, which is of one kind only; taken for another, other data than it names would be compared on."""
    if kind not in (None, SAMPLES[name]):
        right = next(each for each, its in SAMPLES.items() if its == kind)
        remedy = f"Leave it out, or take the sample of that kind: {right}."
        raise ArgumentError(where="--kind", got=f"{kind} with {name}", wanted=SAMPLES[name], remedy=remedy)
    return Recognised(SAMPLES[name], "it is embedded")


def _folder(place: Path, kind: str | None) -> Recognised:
    texts = find_parts(place)
    if "train" in texts and kind in (None, "lm"):
        return Recognised("lm", "the folder has a training text", texts)
    files = {
        part: entry
        for part, names in _PARTS.items()
        for entry in sorted(place.iterdir())
        if entry.is_file() and entry.name.partition(".")[0].lower() in names
    }
    if "train" not in files:
        held = ", ".join(sorted(entry.name for entry in place.iterdir())[:8]) or "no files at all"
        wanted = "a file called train with an ending such as .txt, .conll, .csv or .jsonl"
        raise DataError(where=str(place), got=held, wanted=wanted, remedy="Rename one, or name a single file.")
    found, why = (kind, "--kind says so") if kind else _of_file(files["train"])
    return Recognised(found, why, files)


def _of_file(path: Path) -> tuple[str, str]:
    ending = name_ending(path)
    if ending in _TAGGED:
        next(Text(path=path).pieces())  # what cannot be read, or is empty, is told now
        return "tag", f"its name ends in .{ending}"
    if ending == "npz":
        return _arrays(path)
    if ending == "jsonl":
        return _objects(path)
    if ending in _TABLES:
        return _table(path, ending)
    return _plain(path)


def _arrays(path: Path) -> tuple[str, str]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive.files)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(where=str(path), got=str(error), wanted="an archive of arrays (.npz)") from error
    if "labels" in names:
        return "series", "its archive has labels"
    return "forecast", "its archive has numbers and no labels"


def _objects(path: Path) -> tuple[str, str]:
    first = [found for _, found in itertools.islice(json_objects(path), LOOKED_AT)]
    if not first:
        raise DataError(where=str(path), got="no objects", wanted="one JSON object a line")
    names = list(first[0])

    def called(usual: Sequence[str], fits: Callable[[Any], bool]) -> str | None:
        return next((name for name in names if name.lower() in usual and fits(first[0][name])), None)

    tokens = called(MANY_TOKENS, _texts)
    tags = called(MANY_TAGS, lambda value: isinstance(value, list))
    if tokens and tags:
        return "tag", f"its objects have the lists {tokens} and {tags}"
    label = called(LABELS, lambda value: isinstance(value, str | int))
    numbers = called(_NUMBERS, _numeric) or next((name for name in names if _numeric(first[0][name])), None)
    text = called(TEXTS, lambda value: isinstance(value, str))
    following = called(_NEXT, lambda value: isinstance(value, int | float) and not isinstance(value, bool))
    if label and text:
        return "classify", f"its objects have the entries {label} and {text}"
    if numbers and following and not label:
        return "forecast", f"its objects have the numbers {numbers} and the value {following}"
    if numbers and label and (label != following or isinstance(first[0][label], str)):
        return "series", f"its objects have the numbers {numbers} and the label {label}"
    if numbers:
        _ambiguous(path, f"objects with {_named(names)}", ("series", "forecast"))
    return _ambiguous(path, f"objects with {_named(names)}", ("tag", "classify"))


def _table(path: Path, ending: str) -> tuple[str, str]:
    rows = [fields for _, fields in itertools.islice(_rows(path, ending), LOOKED_AT + 1)]
    if not rows:
        raise DataError(where=str(path), got="no rows", wanted="a table")
    head, rest = rows[0], rows[1:]
    words, tags = place_of(ONE_TOKEN, head), place_of(SENTENCES, head)
    if words is not None and tags is not None:
        return "tag", f"it has the columns {head[words]} and {head[tags]}"
    label, text = place_of(LABELS, head), place_of((*TEXTS, *MANY_TOKENS), head)
    tags = place_of((*MANY_TAGS, *LABELS), head)
    if text is not None and tags is not None and _as_many(rest, text, tags):
        return "tag", f"{head[tags]} has as many words as {head[text]} in each row"
    if label is not None and text is not None:
        return "classify", f"it has the columns {head[label]} and {head[text]}"
    if ending == "tsv" and _tag_column(rows):
        return "tag", "its last column has tags"
    return _by_numbers(path, head, rest, label)


def _by_numbers(path: Path, head: list[str], rest: list[list[str]], label: int | None) -> tuple[str, str]:
    """What a table is whose columns are not called as texts are."""
    numbers = [place for place in range(len(head)) if rest and all(_number(row, place) for row in rest)]
    beside = {place_of((name,), head) for name in (*_SEQUENCES, *_TIMES)} - {None}
    texts = [place for place in range(len(head)) if place not in numbers and place not in beside]
    values = [place for place in numbers if place not in beside and place != label]
    if label is not None and set(texts) <= {label} and values and _classes(rest, label):
        return "series", f"it has the label {head[label]} and numbers beside it"
    if label is None and not texts and values and beside:
        named = head[next(place for place in range(len(head)) if place in beside)]
        return "forecast", f"it has the column {named}, numbers beside it, and no label"
    if numbers and not texts:
        _ambiguous(path, f"numbers only ({_named(head)})", ("series", "forecast"))
    if numbers and len(texts) == 1:
        _ambiguous(path, f"numbers and a column of texts ({_named(head)})", ("classify", "series", "forecast"))
    if len(head) >= 2:
        # Labels are few and short, texts are many and long: what statewise train classify takes without a header.
        rows = [row for row in (head, *rest) if len(row) == len(head)]
        distinct = [len({row[place] for row in rows}) for place in (0, len(head) - 1)]
        if rest and distinct[0] < distinct[1]:
            return "classify", f"its first column has {distinct[0]} labels, its last one texts"
    return _ambiguous(path, f"the columns {_named(head)}", KINDS[1:])


def _plain(path: Path) -> tuple[str, str]:
    """A file without an ending that says more: a text, unless its lines are columns of words and tags."""
    lines = list(itertools.islice(Text(path=path).lines(), 10 * LOOKED_AT))
    rows = [line.split() for line in lines]
    if not any(rows):
        raise DataError(where=str(path), got="no words", wanted="a text, or data with a name that says what it is")
    if any(line.startswith("{") and _object(line) for line in lines[:3]):
        _ambiguous(path, "JSON objects under a name that does not end in .jsonl", ("tag", "classify", "series"))
    if not _tag_column([row for row in rows if row]):
        return "lm", "it is plain text"
    if not all(rows[:-1]):
        return "tag", "its lines are columns, the last of which has tags, and blank lines end sentences"
    return _ambiguous(path, "lines of as many words each, the last of which look like tags", ("lm", "tag"))


def _tag_column(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows are as wide, and the last column holds tags: a few, one of them O, or B- and I-."""
    widths = {len(row) for row in rows}
    if len(widths) != 1 or widths.pop() < 2:
        return False
    tags = {row[-1] for row in rows}
    marked = sum(tag[:2] in ("B-", "I-", "S-", "E-", "L-", "U-") for tag in tags)
    return OUTSIDE in tags or marked * 2 > len(tags)


def _rows(path: Path, ending: str) -> Iterator[tuple[int, list[str]]]:
    return csv_rows(path) if ending == "csv" else tsv_rows(path)


def _as_many(rows: list[list[str]], text: int, tags: int) -> bool:
    pairs = [(len(row[text].split()), len(row[tags].split())) for row in rows if len(row) > max(text, tags)]
    return all(one == other for one, other in pairs) and any(one > 1 for one, _ in pairs)


def _classes(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether a column holds classes: texts or whole numbers, and not another in each row."""
    found = [row[place] for row in rows]
    whole = all(not _number(row, place) or float(row[place]).is_integer() for row in rows)
    return whole and (len(set(found)) < len(found) or len(found) < 3)


def _number(row: Sequence[str], place: int) -> bool:
    try:
        float(row[place])
    except (ValueError, IndexError):
        return False
    return True


def _numeric(value: Any) -> bool:
    flat = value[0] if isinstance(value, list) and value and isinstance(value[0], list) else value
    return isinstance(flat, list) and bool(flat) and all(isinstance(one, int | float) for one in flat)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _named(names: Sequence[str]) -> str:
    shown = [name if len(name) <= 20 else f"{name[:17]}..." for name in names[:6]]
    return ", ".join(map(repr, shown)) + (" and more" if len(names) > 6 else "")


def _ambiguous(path: Path, got: str, kinds: Sequence[str]) -> NoReturn:
    said = "; ".join(f"--kind {kind} ({IN_WORDS[kind]})" for kind in kinds)
    raise DataError(where=str(path), got=got, wanted="data that can be of one kind only", remedy=f"Say it: {said}.")
