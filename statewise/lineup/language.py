"""Texts: a language model, tested by its perplexity; consecutive lines of the test text are its sequences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from statewise.data import Corpus, Text, read_corpus, sample_corpus
from statewise.errors import DataError
from statewise.files import atomic_file, write_atomically
from statewise.lineup.adaptor import PARTS, Adaptor, Metric, Tested, Told, Trained, parameters_of, seconds_of
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.models.text import in_mode
from statewise.train import TrainingSettings, load_language_model, train_language_model
from statewise.train.evaluation import columns_of

#: For a person's own text on a small machine; the rate is constant, so that a run can be prolonged.
MODEL: Mapping[str, Any] = {"hidden": 128}
TRAINING: Mapping[str, Any] = {
    "batch": 10,
    "bptt": 20,
    "optimizer": "adam",
    "lr": 0.006,
    "clip": 1.0,
    "test_batch": 10,
}
_CONSTANT: Mapping[str, Any] = {"divide": None, "averaging": "never", "patience": None}
LEAST_LINES = 40
BLOCKS = 200  # of the test text at most: neighbouring lines are alike, and are drawn together
_SHARES = (80, 90, 100)  # the text in its order: what is told later is not trained on
_COLUMNS = 10
_AT_ONCE = 4096  # tokens


def _mean_nll(sums: Float[np.ndarray, "*any columns"]) -> Float[np.ndarray, "*any"]:
    return np.asarray(sums[..., 0] / sums[..., 1])


class Language(Adaptor):
    """A text, whose first 80 % of lines are trained on, the next 10 % choose, and the rest reports."""

    kind, ending, unit = "lm", "txt", "blocks of lines"
    readings = ("limit", "min_count", "lower")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("perplexity", _mean_nll, higher=False, logarithmic=True, least=0.0, digits=2),)

    def prepare(self, files: Mapping[str, Path], sample: str | None, told: Told, folder: Path) -> dict[str, Any]:
        places = {part: folder / f"{part}.{self.ending}" for part in PARTS}
        if sample is not None:
            _write_sample(places)
        else:
            _write_texts(files, places)
        reading = {
            "limit": told.reading.get("limit"),
            # Words that train has once are unknown, so that something is learnt of those that it has never seen.
            "min_count": told.reading.get("min_count") or (1 if sample else 2),
            "lower": bool(told.reading.get("lower")),
        }
        found = self.load(folder, reading)
        sizes = {f"{part} tokens": len(getattr(found, part)) for part in PARTS}
        for part in ("valid", "test"):
            if len(getattr(found, part)) < 2:
                raise DataError(where=str(files.get(part, part)), got="hardly a word", wanted=f"a text for {part}")
        return {"sizes": {**sizes, "words": len(found.vocabulary)}, "reading": reading}

    def load(self, folder: Path, reading: Mapping[str, Any]) -> Corpus:
        return read_corpus(folder, **reading)

    def source(self, folder: Path, reading: Mapping[str, Any]) -> dict[str, Any]:
        return {"data": str(folder.resolve()), **reading}

    def plain(self, told: Told) -> tuple[LanguageModelConfig, TrainingSettings]:
        model = {**MODEL, **told.model}
        hidden = (int(model.pop("hidden")),) * int(model.pop("layers", 1))
        return LanguageModelConfig(hidden=hidden, **model), TrainingSettings(
            **{**TRAINING, **told.training, **_CONSTANT}
        )

    def train(
        self, sets: Any, config: Any, settings: Any, folder: Path, source: Mapping[str, Any], device: torch.device
    ) -> Trained:
        options: dict[str, Any] = {"device": device, "resume": True, "source": source}
        result = train_language_model(config, settings, sets, folder, **options)
        nll = float(np.log(result.valid_perplexity))
        return Trained(nll, nll, result.epochs, seconds_of(folder))

    def test(self, sets: Any, folder: Path, device: torch.device) -> Tested:
        model, vocabulary, _ = load_language_model(folder, device=device)
        nll = token_losses(model, sets, device)
        # The first token of a stream is not predicted.
        ends = np.asarray(sets.test[:])[:-1] == vocabulary.end_id
        lines = np.cumsum(ends)
        lines -= lines[0]
        blocks = lines * min(BLOCKS, int(lines[-1]) + 1) // (int(lines[-1]) + 1)
        rows = np.stack([np.bincount(blocks, nll), np.bincount(blocks)], axis=1).astype(np.float64)
        return Tested(rows[rows[:, 1] > 0], parameters_of(model))


def token_losses(model: LanguageModel, corpus: Corpus, device: torch.device) -> Float[np.ndarray, " tokens"]:
    """The negative log-likelihood of every token of the test text but the first, in its order.

    Args:
        model: on the device.
        corpus: with the text.
        device: where to compute.
    """
    columns, state, found, asked = columns_of(corpus.test, _COLUMNS, device), None, [], []
    with in_mode(model, training=False), torch.no_grad():
        for tokens, targets in columns.segments(max(1, _AT_ONCE // columns.batch_size)):
            features, _, state = model.features(tokens, state)
            found.append(model.head.nll(features, targets.clamp(min=0)).double().cpu())
            asked.append(targets.cpu() >= 0)
    # A column is a stretch of the text.
    losses: Float[np.ndarray, " tokens"] = torch.cat(found).T[torch.cat(asked).T].numpy()
    return losses


def _write_sample(places: Mapping[str, Path]) -> None:
    corpus = sample_corpus()
    for part, place in places.items():
        words = corpus.vocabulary.decode(getattr(corpus, part)[:])
        lines = " ".join(words).split(f" {corpus.vocabulary.end}")
        write_atomically(place, "".join(f"{line.strip()}\n" for line in lines if line))


def _write_texts(files: Mapping[str, Path], places: Mapping[str, Path]) -> None:
    given = {part: Text(path=files[part]) for part in PARTS if part in files}
    missing = [part for part in PARTS if part not in given]
    if missing:
        given |= _cut(files["train"], missing)
    for part, place in places.items():
        with atomic_file(place, "w") as file:
            for piece in given[part].pieces():
                file.write(piece)


def _cut(path: Path, missing: list[str]) -> dict[str, Text]:
    """Lines in their order: the first to train on, and of the rest as many for each part that has no file."""
    lines = Text(path=path).count_lines()
    if lines < LEAST_LINES:
        raise DataError(
            where=str(path),
            got=f"{lines} line{'s' * (lines != 1)}",
            wanted=f"at least {LEAST_LINES}, a sentence each, to be split into train, {' and '.join(missing)}",
            remedy="Put a line end after each sentence, or name texts of your own: --valid and --test.",
        )
    shares = _SHARES if len(missing) == 2 else (_SHARES[1], _SHARES[2])
    ends = [0, *(lines * share // 100 for share in shares)]
    parts = ["train", *missing]
    return {part: Text(path=path, start=ends[at], stop=ends[at + 1]) for at, part in enumerate(parts)}
