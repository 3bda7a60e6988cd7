"""The inputs that a run was trained and chosen by, read again from where the run says that they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from statewise.commands.labelled import read_examples
from statewise.commands.tagged import read_sets
from statewise.commands.texts import made_lower, read_part
from statewise.data import Sequences, Vocabulary
from statewise.data.vocabulary import UNKNOWN
from statewise.errors import StatewiseError
from statewise.explorer import Example, Explored, Subject, load_subject
from statewise.explorer.speaking import LanguageSubject
from statewise.explorer.tagging import TaggerSubject
from statewise.train import RunFolder

TRAIN_SHARE = 0.8  # of the examples that are kept; the others are of those that the model was chosen by
PORTION = 50_000  # tokens of a text that are looked at in one go


def explored(folder: str, *, most: int) -> Explored:
    """A run, with examples of its data if they can still be read.

    Args:
        folder: of the run.
        most: how many examples are kept.
    """
    subject = load_subject(folder)
    if most == 0:
        return Explored(subject=subject, why_none="The command was told to read none (--examples 0).")
    told = RunFolder(Path(folder)).config()
    if "data" not in told.get("source", {}):
        return Explored(subject=subject, why_none="The run does not say where its data is.")
    try:
        found = tuple(read_again(subject, told, most=most))
    except (StatewiseError, OSError, KeyError) as error:
        # The page shows it to whoever has started the command, in the words that the command itself would use.
        return Explored(subject=subject, why_none=f"The data of the run could not be read again: {_said(error)}")
    if not found:
        return Explored(subject=subject, why_none="The data of the run has no example that is short enough.")
    return Explored(subject=subject, examples=found)


def read_again(subject: Subject, told: Mapping[str, Any], *, most: int) -> Iterator[Example]:
    """Examples of the data of a run, those to train on first.

    Args:
        subject: the network of the run.
        told: what the run was told.
        most: how many.
    """
    train = max(1, round(TRAIN_SHARE * most))
    for part, count in (("train", train), ("valid", most - train)):
        yield from islice((each for each in _part(subject, told, part) if _fits(subject, each)), count)


def _fits(subject: Subject, example: Example) -> bool:
    least = 0 if subject.start is not None else 1
    return least <= len(example.tokens) <= subject.most_tokens


def _part(subject: Subject, told: Mapping[str, Any], part: str) -> Iterator[Example]:
    if isinstance(subject, LanguageSubject):
        yield from _sentences(subject.vocabulary, told, part)
    elif isinstance(subject, TaggerSubject):
        yield from _tagged(subject, told, part)
    else:
        yield from _words(subject, told, part)


def _words(subject: Subject, told: Mapping[str, Any], part: str) -> Iterator[Example]:
    training = told["training"]
    found = read_examples(told["source"], seed=training["seed"], hold="restarts" not in training)
    sequences = getattr(found, part)
    assert isinstance(sequences, Sequences)
    if part == "valid" and sequences is found.train:
        return
    known = set(subject.outcomes)
    for place in range(len(sequences)):
        label = sequences.classes[int(sequences.labels[place])]
        tokens = tuple(sequences.symbols[token] for token in sequences.word(place))
        if label in known and all(subject.known(token) or token == UNKNOWN for token in tokens):
            yield Example(tokens=tokens, answer=(label,), part=part)


def _tagged(subject: TaggerSubject, told: Mapping[str, Any], part: str) -> Iterator[Example]:
    training, source = told["training"], {name: entry for name, entry in told["source"].items() if name != "context"}
    sets = read_sets(source, seed=training["seed"], valid=training.get("keep") == "best")
    known, sentences = set(subject.outcomes), getattr(sets, part)
    for words, tags in sentences or ():
        if known.issuperset(tags):
            yield Example(tokens=tuple(words), answer=tuple(tags), part=part)


def _sentences(vocabulary: Vocabulary, told: Mapping[str, Any], part: str) -> Iterator[Example]:
    """The sentences of a text, which may be long: it is read portion by portion."""
    _, stream = read_part(str(told["source"]["data"]), part, vocabulary, lower=made_lower(told))
    left = np.zeros(0, dtype=np.int64)
    for begin in range(0, len(stream), PORTION):
        ids = np.concatenate((left, np.asarray(stream[begin : begin + PORTION])))
        *whole, left = np.split(ids, np.flatnonzero(ids == vocabulary.end_id) + 1)
        for sentence in whole:
            if len(sentence) > 1:
                yield Example(tokens=tuple(vocabulary.decode(sentence[:-1])), answer=(), part=part)


def _said(error: Exception) -> str:
    return f"it does not say its {error}." if isinstance(error, KeyError) else str(error)
