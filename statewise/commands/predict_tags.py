"""The tags of sentences, as lines to print or to write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from statewise.commands.tagged import column, typed_advice
from statewise.commands.tagger_run import encode_for, load_for
from statewise.data import read_sentences
from statewise.data.tag_schemes import convert_tags
from statewise.errors import DataError
from statewise.models import Tagger
from statewise.models.encoded import Encoded
from statewise.train.classify_data import EpochBatches

BATCH = 256  # sentences that run at once
DIGITS = 4


class Given(NamedTuple):
    """The tags of a sentence, and how probable each is."""

    tags: tuple[str, ...]
    probabilities: tuple[float, ...]


def predict_tags(asked: Any, *, device: torch.device) -> Iterator[str]:
    """A text for each sentence of a file, in its order: its words and their tags.

    Args:
        asked: the options.
        device: where to compute.
    """
    path = Path(asked.file).expanduser()
    columns = {"token": column(asked.token), "sentence": column(asked.sentence)}
    with typed_advice():
        sentences = read_sentences(path, **columns, kind=asked.kind, comments=asked.comments, documents="keep")
    tagger, told = load_for(asked.run, sentences, vectors=asked.vectors, device=device)
    encoded = encode_for(tagger, sentences, context=asked.context)
    learnt = told["lexicon"]["scheme"]
    scheme = told.get("source", {}).get("scheme", learnt)
    if asked.format != "jsonl":
        _check_words(path, sentences)
    written = _objects if asked.format == "jsonl" else _columns
    for words, given in zip(sentences, tag(tagger, encoded, probabilities=asked.probabilities), strict=True):
        yield written(words, given._replace(tags=convert_tags(given.tags, learnt, scheme)))


def tag(tagger: Tagger, encoded: Encoded, *, probabilities: bool) -> list[Given]:
    """The likeliest tags of sentences, and how probable each is where that is wanted.

    Args:
        tagger: the model, in eval mode.
        encoded: the sentences.
        probabilities: whether they are wanted.
    """
    found: list[Given] = [Given((), ())] * len(encoded)
    batches, names = EpochBatches.sorted(encoded.lengths, batch=BATCH), tagger.lexicon.tags
    with torch.no_grad():
        for part in batches.slices():
            which = batches.places[part]
            tokens = tagger.batch(encoded, which)
            best = tagger.decode(tokens)
            shares = best.double()
            if probabilities:
                # Beyond an end there is no tag.
                shares = tagger.probabilities(tokens).gather(2, best.clamp(min=0).unsqueeze(2)).squeeze(2)
            rows = zip(which.tolist(), tokens.lengths.tolist(), best.T.tolist(), shares.T.tolist(), strict=True)
            for place, length, numbers, likely in rows:
                tags = tuple(names[number] for number in numbers[:length])
                found[place] = Given(tags, tuple(likely[:length]) if probabilities else ())
    return found


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


def _objects(words: Sequence[str], given: Given) -> str:
    told: dict[str, Any] = {"tokens": list(words), "tags": list(given.tags)}
    if given.probabilities:
        told["probabilities"] = [round(share, DIGITS) for share in given.probabilities]
    return json.dumps(told, ensure_ascii=False) + "\n"
