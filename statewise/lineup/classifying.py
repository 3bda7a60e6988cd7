"""Labelled texts: a classifier, tested by its accuracy and by the likelihood that it gives to the right classes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from statewise.analysis import calibration
from statewise.data import LabelledFile, Sequences, read_labelled, sample_words, tomita
from statewise.data.class_names import class_names
from statewise.data.rows import Row
from statewise.errors import ArgumentError, DataError
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
from statewise.lineup.splits import grouped_split
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.train import ClassifierSettings, load_classifier, train_classifier
from statewise.train.classify_data import EpochBatches, OnDevice

#: For a person's own file on a small machine; the rate is constant, so that a run can be prolonged.
MODEL: Mapping[str, Any] = {"hidden": 64}
TRAINING: Mapping[str, Any] = {"batch": 32}
CONSTANT: Mapping[str, Any] = {"schedule": "constant", "patience": None}
UNITS = ("auto", "words", "characters", "symbols")
_GRAMMAR, _LENGTHS = 5, range(2, 15)  # of the sample: as many of both digits, which few words do not give away
_BATCH = 512


def accuracy(sums: Float[np.ndarray, "*any columns"]) -> Float[np.ndarray, "*any"]:
    """Hits over examples.

    Args:
        sums: examples, hits and negative log-likelihoods.
    """
    return np.asarray(sums[..., 1] / sums[..., 0])


def mean_nll(sums: Float[np.ndarray, "*any columns"]) -> Float[np.ndarray, "*any"]:
    """Negative log-likelihood of an example, in nats.

    Args:
        sums: examples, hits and negative log-likelihoods.
    """
    return np.asarray(sums[..., 2] / sums[..., 0])


ACCURACY = Metric("accuracy", accuracy, higher=True, share=True, least=0.0, most=1.0, digits=2)
NLL = Metric("NLL", mean_nll, higher=False, least=0.0)


class Classifying(Adaptor):
    """Texts with labels, divided such that each class has its share; the same text is never in two parts."""

    kind, ending, unit = "classify", "jsonl", "texts"
    readings: ClassVar[tuple[str, ...]] = ("label", "text", "group", "unit", "limit", "truncate")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (ACCURACY, NLL)

    def prepare(self, files: Mapping[str, Path], sample: str | None, told: Told, folder: Path) -> dict[str, Any]:
        rows, unit = _sample(told) if sample is not None else _read(files, told)
        for part in PARTS:
            lines = (json.dumps({"label": row.label, "text": row.text}, ensure_ascii=False) for row in rows[part])
            write_atomically(folder / f"{part}.{self.ending}", "".join(f"{line}\n" for line in lines))
        reading = {"unit": unit, **{name: told.reading.get(name) for name in ("limit", "truncate")}}
        found = self.load(folder, reading)
        sizes = {f"{part} texts": len(found[part]) for part in PARTS}
        kinds = {"classes": len(found["train"].classes), "symbols": len(found["train"].symbols)}
        return {"sizes": {**sizes, **kinds}, "reading": reading}

    def load(self, folder: Path, reading: Mapping[str, Any]) -> dict[str, Sequences]:
        files = {part: folder / f"{part}.{self.ending}" for part in PARTS}
        if reading["unit"] == "words":
            length, limit = reading.get("truncate"), reading.get("limit")
            options: dict[str, Any] = {"truncate": None if length is None else ("last", length)}
            options |= {} if limit is None else {"limit": limit}
            return dict(read_labelled(files, **options).parts)
        rows = {part: list(LabelledFile(path=path).rows()) for part, path in files.items()}
        cut = {part: [_symbols(row.text, reading["unit"]) for row in each] for part, each in rows.items()}
        symbols = sorted({symbol for word in cut["train"] for symbol in word})
        classes = class_names([row.label for row in rows["train"]], where=str(files["train"]))
        numbers = {name: at for at, name in enumerate(classes)}
        return {
            part: Sequences.from_words(
                cut[part], [numbers[row.label] for row in rows[part]], symbols=symbols, classes=classes
            )
            for part in PARTS
        }

    def plain(self, told: Told) -> tuple[ClassifierConfig, ClassifierSettings]:
        settings = ClassifierSettings(**{**TRAINING, **told.training, **CONSTANT})
        return ClassifierConfig(**{**MODEL, **told.model}), settings

    def train(
        self, sets: Any, config: Any, settings: Any, folder: Path, source: Mapping[str, Any], device: torch.device
    ) -> Trained:
        options: dict[str, Any] = {"device": device, "resume": True, "source": source}
        parts = sets["train"], sets["valid"], {"test": sets["test"]}
        result = train_classifier(config, settings, *parts, folder, **options)
        judged = result.valid.soft
        return Trained(1 - judged.error, judged.loss, result.epochs, seconds_of(folder))

    def test(self, sets: Any, folder: Path, device: torch.device) -> Tested:
        model, _ = load_classifier(folder, device=device)
        return tested(model, OnDevice(sets["test"], device))


def tested(model: SequenceClassifier, examples: OnDevice) -> Tested:
    """What a classifier does on each example, in their order.

    Args:
        model: in eval mode, on the device of the examples.
        examples: the test set.
    """
    batches = EpochBatches.sorted(examples.lengths, batch=_BATCH)
    rows = torch.from_numpy(batches.places).to(examples.device)
    found = torch.empty(len(examples), model.classes, dtype=torch.float64)
    with torch.no_grad():
        for part in batches.slices():
            inputs, lengths, _, _ = examples.batch(rows[part], batches.places[part])
            found[batches.places[part]] = model(inputs, lengths).double().log_softmax(-1).cpu()
    labels = examples.targets.long().cpu()
    right = (found.argmax(-1) == labels).double()
    nll = -found[torch.arange(len(labels)), labels]
    columns = torch.stack([torch.ones_like(right), right, nll], dim=1)
    return Tested(columns.numpy(), parameters_of(model), calibration(found, labels).ece)


def _read(files: Mapping[str, Path], told: Told) -> tuple[dict[str, list[Row]], str]:
    """The rows of each part, and what a step reads of a text."""
    label, text, group = (column(told.reading.get(name)) for name in ("label", "text", "group"))
    rows = {part: list(LabelledFile(path=path, label=label, text=text).rows()) for part, path in files.items()}
    for part, each in rows.items():
        if not each:
            raise DataError(where=str(files[part]), got="no rows", wanted="a label and a text in each row")
    unit = _unit(told.reading.get("unit") or "auto", rows["train"])
    _check_classes(rows["train"], files["train"])
    missing = [part for part in PARTS if part not in rows]
    if missing:
        whole = rows["train"]
        groups: list[Any] = [row.text for row in whole]
        if group is not None:
            groups = [row.label for row in LabelledFile(path=files["train"], label=group, text=text).rows()]
        needs = [_needed(row, unit) for row in whole]
        options: dict[str, Any] = {"parts": ("train", *missing), "seed": told.seed, "where": str(files["train"])}
        divided = grouped_split(groups, [row.label for row in whole], needs, **options)
        rows |= {part: [whole[place] for place in places.tolist()] for part, places in divided.items()}
        _check_classes(rows["train"], files["train"])
    _check_known(rows, files, unit)
    return rows, unit


def _unit(unit: str, rows: Sequence[Row]) -> str:
    if unit not in UNITS:
        raise ArgumentError(where="--unit", got=unit, wanted=f"one of {', '.join(UNITS)}")
    if unit != "auto":
        return unit
    return "words" if any(" " in row.text.strip() for row in rows) else "characters"


def _needed(row: Row, unit: str) -> frozenset[str]:
    """What must have been seen in training: the class, and symbols where none may be unknown."""
    symbols = () if unit == "words" else _symbols(row.text, unit)
    return frozenset((f"class {row.label}", *(f"symbol {symbol}" for symbol in symbols)))


def _symbols(text: str, unit: str) -> list[str]:
    return text.split() if unit == "symbols" else list(text)


def _check_classes(rows: Sequence[Row], path: Path) -> None:
    classes = {row.label for row in rows}
    if len(classes) < 2:
        remedy = "Is it the right column? Say --label. Or add examples of another class."
        got = f"one class only, {next(iter(classes))!r}"
        raise DataError(where=str(path), got=got, wanted="examples of two classes or more", remedy=remedy)


def _check_known(rows: Mapping[str, Sequence[Row]], files: Mapping[str, Path], unit: str) -> None:
    """Refuse, in files that a person has named, what no example to train on has."""
    seen = {one for row in rows["train"] for one in _needed(row, unit)}
    for part in ("valid", "test"):
        for row in rows[part] if part in files else ():
            if strange := sorted(_needed(row, unit) - seen):
                what, _, which = strange[0].partition(" ")
                got, wanted = f"the {what} {which!r}", f"a {what} that {files['train'].name} has"
                raise DataError(where=f"{files[part]}, line {row.line}", got=got, wanted=wanted)


def _sample(told: Told) -> tuple[dict[str, list[Row]], str]:
    words = sample_words(tomita(_GRAMMAR), lengths=_LENGTHS, seed=told.seed)
    labels = [words.classes[label] for label in words.labels.tolist()]
    rows = [Row(label, text, at) for at, (label, text) in enumerate(zip(labels, words.texts(), strict=True), start=1)]
    needs = [_needed(row, "characters") for row in rows]
    divided = grouped_split(
        [row.text for row in rows], labels, needs, parts=PARTS, seed=told.seed, where="sample-words"
    )
    return {part: [rows[place] for place in places.tolist()] for part, places in divided.items()}, "characters"
