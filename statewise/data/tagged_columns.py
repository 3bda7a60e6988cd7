"""Sentences as CoNLL writes them: a token a line, its tag in another column, a blank line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from statewise.data.spans import OUTSIDE
from statewise.data.tables import Column, refuse_row
from statewise.data.text import Text

#: The token that begins a document.
DOCUMENT = "-DOCSTART-"

_BLANKS = re.compile("[ \t]+")
_NO_WORD = re.compile("[0-9]+[-.][0-9]+\t")  # 1-2 and 8.1 of CoNLL-U


@dataclass(frozen=True)
class RawSentence:
    """A sentence as a file has it, and where.

    Args:
        tokens: as they are read.
        tags: one for each; none where only tokens are read.
        lines: the line of each token, from 1.
        field: the column or entry of the tags.
    """

    tokens: Sequence[str]
    tags: Sequence[str]
    lines: Sequence[int]
    field: Column = "tag"


def split_blanks(text: str) -> list[str]:
    r"""The tokens between blanks and tabs; no other white space divides, as a token may have it inside.

    >>> split_blanks(" 1\u00a0000  francs ")
    ['1\xa0000', 'francs']
    """
    return [token for token in _BLANKS.split(text) if token]


def column_sentences(
    path: Path, *, token: int, tag: int | None, documents: str, comments: bool, dependencies: bool = False
) -> Iterator[RawSentence]:
    """The sentences of a file in columns, with tabs between them if its first row has one, else with blanks.

    Args:
        path: the file, plain or compressed.
        token: the column of the tokens, from 0; from the end where it is negative.
        tag: the column of the tags; None if they are not wanted.
        documents: ``"drop"`` leaves out the lines of ``-DOCSTART-`` that begin a document, ``"keep"`` has each as a
            sentence with the tag O. Within a sentence it is a word.
        comments: whether lines that begin with ``#`` are comments; with tabs only those that have none.
        dependencies: whether the columns are those of CoNLL-U, where ranges of words and empty nodes are rows, too.

    Raises:
        DataError: a row has more or fewer columns than the first, or a token or a tag is missing, or a line has a
            carriage return inside.
    """
    reader = _Rows(path, token, tag)
    rows: list[tuple[int, str, str]] = []
    for line, content in whole_lines(path):
        if comments and content.startswith("#") and not reader.is_row(content):
            continue
        if dependencies and _NO_WORD.match(content):
            continue
        blank = not content.strip(" \t")
        document = not blank and DOCUMENT in content and reader.begins_document(content, begins=not rows)
        if not blank and not document:
            rows.append((line, *reader.row(line, content)))
            continue
        if rows:
            yield reader.sentence(rows)
            rows = []
        if document and documents == "keep":  # whatever columns it has
            yield RawSentence((DOCUMENT,), () if tag is None else (OUTSIDE,), (line,))
    if rows:
        yield reader.sentence(rows)


def whole_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""The lines of a file and their numbers, from 1.

    Args:
        path: the file, plain or compressed.

    Raises:
        DataError: a line has a ``"\r"`` inside: to some programs it ends there, and here it would be part of a word.
    """
    for line, content in enumerate(Text(path=path).lines(), start=1):
        if "\r" not in content:
            yield line, content
        elif not content.strip(" \t\r"):
            yield line, ""
        else:
            remedy = "Remove it; or, if every line ends so, convert them: `tr '\\r' '\\n'`."
            refuse_row(path, line, "a carriage return (\\r) inside", "lines that end in \\n or \\r\\n", remedy)


class _Rows:
    """What is known of the columns of a file after its first row."""

    def __init__(self, path: Path, token: int, tag: int | None) -> None:
        self._path, self._token, self._tag = path, token, tag
        self._width: int | None = None
        self._tabs = False

    def is_row(self, content: str) -> bool:
        """Whether a line that looks like a comment is a row nevertheless, whose token is a hash."""
        return "\t" in content and self._width in (None, content.count("\t") + 1)

    def begins_document(self, content: str, *, begins: bool) -> bool:
        """Whether a line marks a document: where no sentence has begun, or alone on its line, which is no row.

        Within a sentence it is a word like others.
        """
        fields = split_blanks(content)
        if begins:
            place = self._token if -len(fields) <= self._token < len(fields) else 0
            return DOCUMENT in (fields[0], fields[place])
        return fields == [DOCUMENT] and self._width != 1

    def row(self, line: int, content: str) -> tuple[str, str]:
        """The token and the tag of a line."""
        if self._width is None:
            self._tabs = "\t" in content
        # A last blank or tab is no column, but a first one has nothing before it.
        fields = content.split("\t") if self._tabs else _BLANKS.split(content.rstrip(" \t"))
        width = self._width = len(fields) if self._width is None else self._width
        if len(fields) != width:
            remedy = "If it is a comment, say comments=True." if content.startswith("#") else ""
            refuse_row(self._path, line, f"{len(fields)} columns", f"{width}, as in the first row", remedy)
        token = self._field(line, fields, self._token, "token")
        if self._tag is None:
            return token, ""
        found = self._field(line, fields, self._tag, "tag")
        if self._token % width == self._tag % width:
            got, wanted = f"column {self._token % width} of {width} for both", "a token and its tag in two columns"
            refuse_row(self._path, line, got, wanted, "Say which ones are meant: token=... and tag=..., from 0.")
        return token, found

    def sentence(self, rows: list[tuple[int, str, str]]) -> RawSentence:
        lines, tokens, tags = zip(*rows, strict=True)
        if self._tag is None or self._width is None:
            return RawSentence(tokens, (), lines)
        return RawSentence(tokens, tags, lines, self._tag % self._width)

    def _field(self, line: int, fields: list[str], place: int, name: str) -> str:
        if not -len(fields) <= place < len(fields):
            remedy = f"Say which column is meant: {name}=..., from 0."
            refuse_row(self._path, line, f"{len(fields)} columns", f"a column {place} for the {name}", remedy)
        found = fields[place].strip(" ")
        if not found:
            refuse_row(self._path, line, "nothing", f"a {name}", field=place % len(fields))
        return found
