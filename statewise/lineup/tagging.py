"""Tagged words: a tagger, tested by the F1 of the spans that it finds, or by its accuracy where tags mark none."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from statewise.data import TaggedSentences, hidden_markov_sentences, read_tagged
from statewise.data.span_scores import each_sentence
from statewise.data.spans import split_tag
from statewise.data.tagged_columns import DOCUMENT
from statewise.errors import DataError
from statewise.files import write_atomically
from statewise.lineup.adaptor import (
    PARTS,
    Adaptor,
    Metric,
    Tested,
    Told,
    Trained,
    column,
    parameters_of,
    seconds_of,
)
from statewise.lineup.splits import enough_groups, grouped_split
from statewise.models import TaggerConfig
from statewise.train import TaggerSettings, load_tagger, train_tagger
from statewise.train.tag_data import TagSet, calibrate, predict

#: For a person's own sentences on a small machine; the rate is constant, so that a run can be prolonged.
MODEL: Mapping[str, Any] = {"hidden": 64, "words": 50, "dropout": 0.0, "word_dropout": 0.0, "character_hidden": 16}
TRAINING: Mapping[str, Any] = {"batch": 16, "bucket": 10, "optimizer": "adam", "lr": 0.004}
_CONSTANT: Mapping[str, Any] = {"schedule": "constant", "patience": None, "keep": "best"}
ENCODING = "bioes"  # of tags that mark spans, while they are learnt
_BATCH = 256


def _f1(sums: Float[np.ndarray, "*any columns"]) -> Float[np.ndarray, "*any"]:
    """Twice the correct over the true and the predicted; of tags that mark no spans that is the accuracy."""
    return np.asarray(2 * sums[..., 2] / np.maximum(sums[..., 0] + sums[..., 1], 1))


class Tagging(Adaptor):
    """Tagged sentences, divided by documents where the file marks many; else no sentence is in two parts."""

    kind, ending, unit = "tag", "jsonl", "sentences"
    readings = ("token", "tag", "sentence", "scheme", "repair", "comments")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("F1", _f1, higher=True, share=True, least=0.0, most=1.0, digits=2),)

    def prepare(self, files: Mapping[str, Path], sample: str | None, told: Told, folder: Path) -> dict[str, Any]:
        sets = _sample(told.seed) if sample is not None else _read(files, told)
        for part in PARTS:
            rows = (
                json.dumps({"tokens": list(words), "tags": list(tags)}, ensure_ascii=False)
                for words, tags in sets[part]
            )
            write_atomically(folder / f"{part}.{self.ending}", "".join(f"{row}\n" for row in rows))
        scheme = sets["train"].scheme
        sizes = {f"{part} sentences": len(sets[part]) for part in PARTS}
        kinds = {"tags": len(sets["train"].tag_names), "scheme": scheme}
        return {"sizes": {**sizes, **kinds}, "reading": {"scheme": scheme, "encoding": ENCODING}}

    def load(self, folder: Path, reading: Mapping[str, Any]) -> dict[str, TaggedSentences]:
        read = {part: read_tagged(folder / f"{part}.{self.ending}", scheme=reading["scheme"]) for part in PARTS}
        return {part: _encoded(each, reading["encoding"]) for part, each in read.items()}

    def plain(self, told: Told) -> tuple[TaggerConfig, TaggerSettings]:
        return TaggerConfig(**{**MODEL, **told.model}), TaggerSettings(**{**TRAINING, **told.training, **_CONSTANT})

    def train(
        self, sets: Any, config: Any, settings: Any, folder: Path, source: Mapping[str, Any], device: torch.device
    ) -> Trained:
        options: dict[str, Any] = {"device": device, "resume": True, "source": source}
        result = train_tagger(config, settings, sets["train"], sets["valid"], {"test": sets["test"]}, folder, **options)
        assert result.valid is not None
        return Trained(result.valid.f1, result.valid.loss, result.epochs, seconds_of(folder))

    def test(self, sets: Any, folder: Path, device: torch.device) -> Tested:
        tagger, _ = load_tagger(folder, device=device)
        gold: TaggedSentences = sets["test"]
        examples = TagSet(tagger.lexicon, gold, where="test")
        _, tagged = predict(tagger, examples, batch=_BATCH)
        return Tested(_counts(gold, tagged), parameters_of(tagger), calibrate(tagger, examples, batch=_BATCH).ece)


def _counts(gold: TaggedSentences, tagged: Sequence[Sequence[str]]) -> Float[np.ndarray, "units columns"]:
    """Of each sentence the true spans, the predicted ones and the correct ones; without spans, tags for all three."""
    if gold.scheme == "none":
        right = [sum(map(str.__eq__, true, given)) for true, given in zip(gold.tags, tagged, strict=True)]
        lengths = gold.lengths.astype(np.float64)
        return np.stack([lengths, lengths, np.array(right, dtype=np.float64)], axis=1)
    pairs = each_sentence(gold, tagged, "conll", None)
    found = [(len(true), len(given), len(true & given)) for true, given in pairs]
    return np.array(found, dtype=np.float64).reshape(-1, 3)


def _read(files: Mapping[str, Path], told: Told) -> dict[str, TaggedSentences]:
    options: dict[str, Any] = {name: column(told.reading.get(name)) for name in ("token", "tag", "sentence")}
    options |= {"comments": bool(told.reading.get("comments")), "documents": "keep"}
    options |= {"malformed": "repair" if told.reading.get("repair") else "refuse"}
    whole = read_tagged(files["train"], scheme=told.reading.get("scheme") or "auto", **options)
    others = {part: read_tagged(files[part], scheme=whole.scheme, **options) for part in files if part != "train"}
    missing = [part for part in PARTS if part not in files]
    sets = {part: _without_documents(each) for part, each in others.items()}
    if not missing:
        return {"train": _without_documents(whole), **sets}
    documents = _documents(whole, least=enough_groups(("train", *missing)))
    kept = np.array([tuple(words) != (DOCUMENT,) for words in whole.sentences])
    sentences, groups = whole.select(kept), [group for group, stays in zip(documents, kept, strict=True) if stays]
    needs = [frozenset(_needed(tags, whole.scheme)) for tags in sentences.tags]
    drawn: dict[str, Any] = {"parts": ("train", *missing), "seed": told.seed, "where": str(files["train"])}
    divided = grouped_split(groups, [""] * len(sentences), needs, **drawn)
    return {**sets, **{part: sentences.select(places) for part, places in divided.items()}}


def _documents(sentences: TaggedSentences, *, least: int) -> list[Hashable]:
    """To which document each sentence belongs; where too few are marked to be divided, the sentence itself."""
    begins = [tuple(words) == (DOCUMENT,) for words in sentences.sentences]
    if sum(begins) < least:
        return list(sentences.sentences)
    return [int(number) for number in np.cumsum(begins)]


def _needed(tags: Sequence[str], scheme: str) -> set[str]:
    """What a tagger must have seen to know these tags: they themselves, or the types of their spans."""
    return set(tags) if scheme == "none" else {str(kind) for tag in tags if (kind := split_tag(tag)[1])}


def _without_documents(sentences: TaggedSentences) -> TaggedSentences:
    kept = sentences.select(np.array([tuple(words) != (DOCUMENT,) for words in sentences.sentences]))
    if not len(kept):
        raise DataError(where=sentences.name, got="no sentences", wanted="a token and its tag in each row")
    return kept


def _encoded(sentences: TaggedSentences, encoding: str) -> TaggedSentences:
    return sentences if sentences.scheme == "none" else sentences.converted(encoding)


def _sample(seed: int) -> dict[str, TaggedSentences]:
    made = hidden_markov_sentences(seed=seed)
    return {part: getattr(made, part) for part in PARTS}
