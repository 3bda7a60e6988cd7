"""Tagged sentences in JSONL, CSV and TSV: a sentence a row, or a token a row with the number of its sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from statewise.data.column_names import place_of
from statewise.data.tables import Column, csv_rows, json_objects, refuse_row, tsv_rows
from statewise.data.tagged_columns import RawSentence, split_blanks
from statewise.errors import ArgumentError, DataError

#: What the columns are called where nobody says it, in any case: a sentence a row, and a token a row.
MANY_TOKENS, MANY_TAGS = ("tokens", "words", "text"), ("tags", "labels", "ner_tags")
ONE_TOKEN, ONE_TAG = ("token", "word"), ("tag", "label", "ner_tag", "ner")
SENTENCES = ("sentence", "sentence_id", "sent_id", "sentence #", "sentence_number")

_LAYOUTS = (
    "A table has a token a row, with columns called sentence, token and tag, the first one with the number of the "
    "sentence; or a sentence a row, with columns called tokens and tags, and blanks between."
)


def names_tagged(row: Sequence[str]) -> bool:
    """Whether a row is the header of a table of tokens.

    >>> names_tagged(["Sentence #", "Word", "Tag"]), names_tagged(["EU", "B-ORG"])
    (True, False)
    """
    whole = place_of(MANY_TOKENS, row) is not None and place_of((*MANY_TAGS, *ONE_TAG), row) is not None
    return whole or (place_of(ONE_TOKEN, row) is not None and place_of((*SENTENCES, *ONE_TAG), row) is not None)


def json_sentences(
    path: Path, token: str | None, tag: str | None, *, tagged: bool, tag_names: Sequence[str] | None
) -> Iterator[RawSentence]:
    """The sentences of a file with an object a line, which has a list of tokens and one of tags.

    Args:
        path: the file, plain or compressed.
        token: the entry of the tokens; None for ``tokens``, ``words`` or ``text``.
        tag: the entry of the tags; None for ``tags``, ``labels`` or ``ner_tags``.
        tagged: whether tags are wanted.
        tag_names: the names of tags that are numbers.
    """
    for line, found in json_objects(path):
        token = token or _entry(path, line, found, MANY_TOKENS, "token")
        tokens = _many(path, line, token, found, None)
        if not tokens:
            refuse_row(path, line, "none", "one token or more", field=token)
        if "" in tokens:
            refuse_row(path, line, f"nothing at {tokens.index('')}", "a token", field=token)
        if not tagged:
            yield RawSentence(tokens, (), [line] * len(tokens))
            continue
        tag = tag or _entry(path, line, found, MANY_TAGS, "tag")
        if tag == token:
            refuse_row(path, line, f"{tag!r} for both", "tokens and tags in two entries")
        tags = _many(path, line, tag, found, tag_names)
        if len(tags) != len(tokens):
            refuse_row(path, line, f"{len(tags)} tags", f"{len(tokens)}, one for each token", field=tag)
        yield RawSentence(tokens, tags, [line] * len(tokens), tag)


def table_sentences(
    path: Path, kind: str, *, token: Column | None, tag: Column | None, sentence: Column | None, tagged: bool
) -> Iterator[RawSentence]:
    """The sentences of a CSV or TSV with a header.

    With a column of sentences, a token stands in each row, and rows of one sentence stand together; where the sentence
    is left empty it is that of the row before. Otherwise each row has a sentence, with blanks between its tokens and
    between its tags.

    Args:
        path: the file, plain or compressed.
        kind: ``"csv"`` or ``"tsv"``.
        token: the column of the tokens, by name or place; None for one of the usual names.
        tag: the column of the tags, likewise.
        sentence: the column of the sentences' names or numbers, likewise.
        tagged: whether tags are wanted.
    """
    rows = csv_rows(path) if kind == "csv" else tsv_rows(path)
    first = next(rows, None)
    if first is None:
        raise DataError(where=str(path), got="no rows", wanted="a header and a token in each row")
    line, names = first
    numbered = place_of(SENTENCES, names) if sentence is None else -1
    # A column called sentence may hold the whole one.
    if isinstance(token, str) and place_of((token,), names) == numbered:
        numbered = None
    whole = sentence is None and (numbered is None or place_of(MANY_TOKENS, names) is not None)
    usual = (MANY_TOKENS, MANY_TAGS + ONE_TAG) if whole else (ONE_TOKEN, ONE_TAG + MANY_TAGS)
    at = _place(path, line, names, token, usual[0], "token")
    tag_at = _place(path, line, names, tag, usual[1], "tag") if tagged else None
    if at == tag_at:
        refuse_row(path, line, f"{names[at]!r} for both", "tokens and tags in two columns")
    if whole and place_of(ONE_TOKEN, [names[at]]) is not None:
        # Each row would become a sentence of one word.
        refuse_row(path, line, f"a column {names[at]!r}, and none of sentences", "where each sentence ends", _LAYOUTS)
    checked = _of_width(path, rows, names)
    if whole:
        yield from _whole_rows(path, checked, names, at, tag_at)
    else:
        sentence_at = _place(path, line, names, sentence, SENTENCES, "sentence")
        yield from _token_rows(path, checked, names, at, tag_at, sentence_at)


def _whole_rows(
    path: Path, rows: Iterator[tuple[int, list[str]]], names: list[str], at: int, tag_at: int | None
) -> Iterator[RawSentence]:
    for line, fields in rows:
        tokens = split_blanks(fields[at])
        if not tokens:
            refuse_row(path, line, "none", "one token or more", field=names[at])
        tags = [] if tag_at is None else split_blanks(fields[tag_at])
        if tag_at is not None and len(tags) != len(tokens):
            refuse_row(path, line, f"{len(tags)} tags", f"{len(tokens)}, one for each token", field=names[tag_at])
        yield RawSentence(tokens, tags, [line] * len(tokens), "tag" if tag_at is None else names[tag_at])


def _token_rows(
    path: Path,
    rows: Iterator[tuple[int, list[str]]],
    names: list[str],
    at: int,
    tag_at: int | None,
    sentence_at: int,
) -> Iterator[RawSentence]:
    current, seen, held = "", set[str](), list[tuple[int, str, str]]()

    def finished() -> RawSentence:
        lines, tokens, tags = zip(*held, strict=True)
        return RawSentence(tokens, () if tag_at is None else tags, lines, "tag" if tag_at is None else names[tag_at])

    for line, fields in rows:
        number = fields[sentence_at].strip()
        for place in (at, *([] if tag_at is None else [tag_at])):
            if not fields[place].strip():
                refuse_row(path, line, "nothing", "a token" if place == at else "a tag", field=names[place])
        if number and number != current:
            if number in seen:
                wanted = "the rows of a sentence together"
                refuse_row(path, line, f"sentence {number!r} again", wanted, field=names[sentence_at])
            seen.add(number)
            current = number
            if held:
                yield finished()
                held = []
        if not current:
            refuse_row(path, line, "nothing", "the name or the number of a sentence", field=names[sentence_at])
        held.append((line, fields[at].strip(), "" if tag_at is None else fields[tag_at].strip()))
    if held:
        yield finished()


def _of_width(path: Path, rows: Iterator[tuple[int, list[str]]], names: list[str]) -> Iterator[tuple[int, list[str]]]:
    for line, fields in rows:
        if len(fields) != len(names):
            refuse_row(path, line, f"{len(fields)} fields", f"{len(names)}, as in the header")
        yield line, fields


def _place(path: Path, line: int, names: list[str], asked: Column | None, usual: tuple[str, ...], what: str) -> int:
    if isinstance(asked, int):
        if not -len(names) <= asked < len(names):
            refuse_row(path, line, f"{len(names)} fields", f"a column {asked} of {what}s, counted from 0")
        return asked % len(names)
    place = place_of(usual if asked is None else (asked,), names)
    if place is None:
        wanted = f"a column {asked!r}" if asked else f"a column of {what}s, called {' or '.join(usual)}"
        single = what == "token" and usual == MANY_TOKENS and place_of(ONE_TOKEN, names) is not None
        remedy = _LAYOUTS if single else f"Say {what}=..., the name of the column."
        refuse_row(path, line, ", ".join(map(repr, names)), wanted, remedy)
    return place


def _entry(path: Path, line: int, found: dict[str, Any], usual: tuple[str, ...], what: str) -> str:
    at = place_of(usual, list(found))
    if at is None:
        got = f"only {', '.join(map(repr, found))}" if found else "nothing"
        refuse_row(path, line, got, f"an entry {' or '.join(usual)}", f"Say {what}=..., the name of the entry.")
    return list(found)[at]


def _many(path: Path, line: int, name: str, found: dict[str, Any], tag_names: Sequence[str] | None) -> list[str]:
    """The tokens or tags of an object: a list, or a text with blanks between them."""
    if name not in found:
        refuse_row(path, line, f"only {', '.join(map(repr, found))}", f"an entry {name}", field=name)
    given = found[name]
    if isinstance(given, str):
        return split_blanks(given)
    if not isinstance(given, list):
        refuse_row(path, line, f"a {type(given).__name__}", "a list of strings", field=name)
    return [_one(path, line, name, entry, tag_names) for entry in given]


def _one(path: Path, line: int, name: str, entry: Any, tag_names: Sequence[str] | None) -> str:
    if isinstance(entry, str):
        return entry.strip(" \t")
    if isinstance(entry, bool) or not isinstance(entry, int):
        refuse_row(path, line, repr(entry), "a string", field=name)
    if tag_names is None:
        refuse_row(path, line, repr(entry), "a string", "If tags are numbers, say tag_names=..., in order.", field=name)
    if not 0 <= entry < len(tag_names):
        refuse_row(path, line, repr(entry), f"a number under {len(tag_names)}, the number of tag_names", field=name)
    return tag_names[entry]


def name_of(where: str, asked: Column | None) -> str | None:
    """The name of an object's entry that was asked for; objects have no places."""
    if isinstance(asked, int):
        raise ArgumentError(where=where, got=asked, wanted="the name of an entry, for JSONL")
    return asked
