"""The classes of texts, as lines to print or to write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from statewise.commands.shared import column
from statewise.data import Text, split_words
from statewise.data.column_names import TEXTS, place_of
from statewise.data.tables import csv_rows, json_objects, name_ending, refuse_row, tsv_rows
from statewise.data.vocabulary import UNKNOWN
from statewise.errors import ArgumentError, DataError, RunFolderError
from statewise.train import load_classifier
from statewise.train.classify_folder import IMDB_WORDS

DIGITS = 4


class Line(NamedTuple):
    """A text, and the line of the file in which it stands."""

    text: str
    line: int


def predict_classes(asked: Any, *, device: torch.device) -> Iterator[str]:
    """A line for each text of a file, in its order: its class, how probable that is, and the text.

    Args:
        asked: the options.
        device: where to compute.
    """
    model, told = load_classifier(asked.run, device=device)
    about = told["examples"]
    if about["symbols"] is None:
        raise RunFolderError(where=asked.run, got="a classifier of pictures", wanted="a classifier of texts")
    path = Path(asked.file).expanduser()
    texts = list(read_texts(path, asked.kind, column(asked.text)))
    if not texts:
        raise DataError(where=str(path), got="no texts", wanted="one or more")
    words = Words(tuple(about["symbols"]), told.get("source", {}))
    shares = model.probabilities([words.of(text, path) for text in texts])
    for text, row in zip(texts, shares.tolist(), strict=True):
        best = max(range(len(row)), key=row.__getitem__)
        if asked.format == "jsonl":
            found: dict[str, Any] = {"text": text.text, "class": about["classes"][best]}
            found["probability"] = round(row[best], DIGITS)
            if asked.probabilities:
                found["probabilities"] = dict(zip(about["classes"], (round(one, DIGITS) for one in row), strict=True))
            yield json.dumps(found, ensure_ascii=False) + "\n"
        else:
            numbers = row if asked.probabilities else [row[best]]
            said = "\t".join(f"{number:.{DIGITS}f}" for number in numbers)
            yield f"{about['classes'][best]}\t{said}\t{text.text}\n"


def read_texts(path: Path, kind: str | None, asked: str | int | None) -> Iterator[Line]:
    """The texts of a file: a line each, or those in a column of a table or in an entry of objects.

    Args:
        path: the file, plain or compressed.
        kind: "text", "jsonl", "csv" or "tsv", where the name does not say.
        asked: the column or the entry; None for the usual names.
    """
    kind = kind or name_ending(path)
    if kind == "jsonl":
        yield from _entries(path, asked)
    elif kind in ("csv", "tsv"):
        rows = csv_rows(path) if kind == "csv" else tsv_rows(path)
        yield from _cells(path, rows, asked)
    elif kind == "columns":
        raise ArgumentError(where="--kind", got=kind, wanted="text, jsonl, csv or tsv for a classifier")
    else:
        yield from (Line(text, line) for line, text in enumerate(Text(path=path).lines(), start=1))


class Words:
    """How the texts of a run are cut into its symbols.

    Args:
        symbols: that the model knows.
        source: how the run read its texts.

    >>> Words(("a", "b"), {}).of(Line("ab", 1), Path("x"))
    ['a', 'b']
    """

    def __init__(self, symbols: tuple[str, ...], source: Mapping[str, Any]) -> None:
        self._known, self._unit = frozenset(symbols), source.get("unit", "auto")
        if self._unit == "auto":
            self._unit = "words" if UNKNOWN in self._known else "characters"
        self._last = source.get("truncate") or (IMDB_WORDS if source.get("data") == "imdb" else 0)

    def of(self, text: Line, path: Path) -> list[str]:
        """The symbols of a text; of a language that has no unknown ones a strange one is refused.

        Args:
            text: as the file has it.
            path: of the file.
        """
        if self._unit == "words":
            words = [word if word in self._known else UNKNOWN for word in split_words(text.text)]
            return words[-self._last :]
        found = text.text.split() if self._unit == "symbols" else list(text.text)
        if strange := next((symbol for symbol in found if symbol not in self._known), None):
            wanted = f"one of {', '.join(map(repr, sorted(self._known)[:12]))}"
            refuse_row(path, text.line, f"the symbol {strange!r}", wanted)
        return found


def _entries(path: Path, asked: str | int | None) -> Iterator[Line]:
    for line, found in json_objects(path):
        names = list(found)
        at = place_of(TEXTS if asked is None else (str(asked),), names)
        if at is None or not isinstance(found[names[at]], str):
            wanted = f"a text called {' or '.join(TEXTS) if asked is None else asked}"
            refuse_row(path, line, ", ".join(map(repr, names)), wanted, "Say which one is meant: --text.")
        yield Line(found[names[at]], line)


def _cells(path: Path, rows: Iterator[tuple[int, list[str]]], asked: str | int | None) -> Iterator[Line]:
    """The cells of a column; the first row is a header unless the column is counted and the row does not name one."""
    first = next(rows, None)
    if first is None:
        return
    line, names = first
    at = asked if isinstance(asked, int) else place_of(TEXTS if asked is None else (asked,), names)
    if at is None or not -len(names) <= at < len(names):
        wanted = f"a column {' or '.join(TEXTS) if asked is None else asked}"
        refuse_row(path, line, ", ".join(map(repr, names)), wanted, "Say which one is meant: --text, from 0.")
    if isinstance(asked, int) and place_of(TEXTS, [names[at]]) is None:
        yield Line(names[at], line)
    for line, fields in rows:
        if len(fields) != len(names):
            refuse_row(path, line, f"{len(fields)} fields", f"{len(names)}, as in the first row")
        yield Line(fields[at], line)
