"""The tags of sentences, as lines to print or to write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from statewise.commands.shared import column
from statewise.commands.tagged import reading_like, typed_advice
from statewise.commands.tagger_run import encode_for, load_for
from statewise.data import read_sentences
from statewise.data.spans import OUTSIDE
from statewise.data.tables import json_objects, name_ending
from statewise.data.tag_schemes import convert_tags
from statewise.data.tagged_columns import DOCUMENT, split_blanks, whole_lines
from statewise.data.tagged_read import kind_of
from statewise.errors import ArgumentError, DataError
from statewise.models import Tagger
from statewise.models.encoded import Encoded
from statewise.train import RunFolder
from statewise.train.classify_data import EpochBatches

BATCH = 256  # sentences that run at once
DIGITS = 4
TEXT, OBJECTS = "text", "jsonl"
Rows = Sequence[Sequence[str]]


class Given(NamedTuple):
    """The tags of a sentence, and how probable each is."""

    tags: tuple[str, ...]
    probabilities: tuple[float, ...]


def predict_tags(asked: Any, *, device: torch.device) -> Iterator[str]:
    """A text for each sentence of a file, in its order: its words and their tags.

    A blank line of plain text is a sentence without words. What begins a document is no sentence, as in training, but
    has its place: it is O. Of objects what else they have is kept.

    Args:
        asked: the options.
        device: where to compute.
    """
    path, source = Path(asked.file).expanduser(), RunFolder(asked.run).config().get("source", {})
    kind = asked.kind or (TEXT if name_ending(path) == "txt" else kind_of(path))
    rows = _read(path, kind, asked, source)
    asking = [bool(words) and (kind == TEXT or tuple(words) != (DOCUMENT,)) for words in rows]
    sentences = [words for words, asks in zip(rows, asking, strict=True) if asks]
    tagger, told = load_for(asked.run, sentences, vectors=asked.vectors, device=device)
    encoded = encode_for(tagger, sentences, context=asked.context)
    scheme = told.get("source", {}).get("scheme", tagger.lexicon.scheme)
    objects = asked.format == OBJECTS
    if not objects:
        _check_words(path, sentences)
    others = [found for _, found in json_objects(path)] if objects and kind == OBJECTS else [{}] * len(rows)
    found = iter(tag(tagger, encoded, scheme=scheme, probabilities=asked.probabilities))
    for words, asks, other in zip(rows, asking, others, strict=True):
        given = next(found) if asks else _unasked(words, asked.probabilities)
        yield _object(words, given, other) if objects else _columns(words, given)


def tag(tagger: Tagger, encoded: Encoded, *, scheme: str, probabilities: bool) -> list[Given]:
    """The likeliest tags of sentences, and how probable each is where that is wanted.

    The probability is that of all tags of the tagger which would be written so in this place, the tags beside it as
    they are: of a B of IOB2 that of B and S of BIOES together.

    Args:
        tagger: the model, in eval mode.
        encoded: the sentences.
        scheme: in which the tags are written.
        probabilities: whether they are wanted.
    """
    found: list[Given] = [Given((), ())] * len(encoded)
    batches, writing = EpochBatches.sorted(encoded.lengths, batch=BATCH), _Writing(tagger, scheme)
    with torch.no_grad():
        for part in batches.slices():
            which = batches.places[part]
            tokens = tagger.batch(encoded, which)
            best = tagger.decode(tokens).T.tolist()
            shares = tagger.probabilities(tokens).transpose(0, 1).tolist() if probabilities else [[]] * len(which)
            for place, length, numbers, likely in zip(
                which.tolist(), tokens.lengths.tolist(), best, shares, strict=True
            ):
                found[place] = writing.given([tagger.lexicon.tags[number] for number in numbers[:length]], likely)
    return found


class _Writing:
    """Writes the tags of a tagger in another scheme."""

    def __init__(self, tagger: Tagger, scheme: str) -> None:
        self.names, self.learnt, self.scheme = tagger.lexicon.tags, tagger.lexicon.scheme, scheme
        self._alike: dict[tuple[tuple[str, ...], str, tuple[str, ...]], list[int]] = {}

    def given(self, tags: Sequence[str], shares: Sequence[Sequence[float]]) -> Given:
        """The tags of a sentence as they are written, and their probabilities, if there are any of the learnt ones."""
        written = convert_tags(tags, self.learnt, self.scheme)
        if not shares:
            return Given(written, ())
        summed = (
            sum(shares[at][number] for number in self._written_so(tags, at, name)) for at, name in enumerate(written)
        )
        return Given(written, tuple(min(1.0, each) for each in summed))

    def _written_so(self, tags: Sequence[str], at: int, written: str) -> list[int]:
        # How a tag is written depends on itself and on the two beside it.
        before, after = tuple(tags[max(0, at - 1) : at]), tuple(tags[at + 1 : at + 2])
        key = before, written, after
        if key not in self._alike:
            self._alike[key] = [
                number
                for number, name in enumerate(self.names)
                if convert_tags((*before, name, *after), self.learnt, self.scheme)[len(before)] == written
            ]
        return self._alike[key]


def _unasked(words: Sequence[str], probabilities: bool) -> Given:
    """What the tagger is not asked: nothing, or the beginning of a document."""
    return Given((OUTSIDE,) * len(words), (1.0,) * len(words) if probabilities else ())


def _read(path: Path, kind: str, asked: Any, source: Mapping[str, Any]) -> Rows:
    """The sentences of a file, by what was typed, else as the files of the run were read."""
    if kind == TEXT:
        for name in ("token", "sentence", "comments"):
            if getattr(asked, name):
                wanted = "no such option for a text, whose words are all read"
                raise ArgumentError(where=f"--{name}", got=str(getattr(asked, name)), wanted=wanted)
        lines = [split_blanks(line) for _, line in whole_lines(path)]
        if not any(lines):
            raise DataError(where=str(path), got="no sentences", wanted="one or more")
        return lines
    like = reading_like(source, kind)
    columns = {name: column(getattr(asked, name) or like.get(name)) for name in ("token", "sentence")}
    comments = asked.comments or bool(like.get("comments"))
    try:
        with typed_advice():
            rows = read_sentences(path, **columns, kind=kind, comments=comments, documents="keep")
    except DataError as error:
        if asked.kind is not None or kind != "columns" or not path.is_file():
            raise
        advice = "If it is a text with a sentence a line, say --kind text."
        raise error.told(remedy=f"{error.remedy} {advice}".strip()) from None
    if kind == "columns" and asked.kind is None and not asked.token:
        _check_columns(path, rows)
    return rows


def _check_columns(path: Path, rows: Rows) -> None:
    """Refuse a file of one line with several words, of which all but one would be taken for other columns."""
    lines = [content for _, content in whole_lines(path) if content.strip(" \t")]
    if len(lines) == len(rows) == 1 and "\t" not in lines[0] and len(split_blanks(lines[0])) > 1:
        raise DataError(
            where=str(path),
            got="one line with blanks",
            wanted="a word a line, or a name that ends in .txt",
            remedy="If it is a sentence, say --kind text; if it is one word and its columns, say --kind columns.",
        )


def _check_words(path: Path, sentences: Sequence[Sequence[str]]) -> None:
    """Refuse words that would break columns."""
    for number, words in enumerate(sentences):
        if any(sign in word for word in words for sign in "\t\n\r"):
            raise DataError(
                where=f"{path}, sentence {number}",
                got="a word with a tab or a line end in it",
                wanted="words that columns can hold",
                remedy="Write objects: --format jsonl.",
            )


def _columns(words: Sequence[str], given: Given) -> str:
    rows: list[Sequence[str]] = [words, given.tags]
    if given.probabilities:
        rows.append([f"{share:.{DIGITS}f}" for share in given.probabilities])
    return "".join("\t".join(row) + "\n" for row in zip(*rows, strict=True)) + "\n"


def _object(words: Sequence[str], given: Given, other: Mapping[str, Any]) -> str:
    # Probabilities that are there already are those of other tags.
    told = {name: value for name, value in other.items() if name != "probabilities"}
    told |= {"tokens": list(words), "tags": list(given.tags)}
    if given.probabilities:
        told["probabilities"] = [round(share, DIGITS) for share in given.probabilities]
    text = json.dumps(told, ensure_ascii=False)
    whole = text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)
    return (text if whole else json.dumps(told)) + "\n"
