"""Labelled sequences of numbers: a classifier, tested by its accuracy and by the likelihood of the right classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from statewise.errors import ArgumentError
from statewise.lineup.adaptor import PARTS, Adaptor, Metric, Tested, Told, Trained, column, seconds_of
from statewise.lineup.classifying import ACCURACY, CONSTANT, MODEL, NLL, TRAINING, tested
from statewise.lineup.splits import grouped_split
from statewise.models import ClassifierConfig
from statewise.train import ClassifierSettings, load_classifier, train_classifier
from statewise.train.classify_data import OnDevice

READINGS = ("form", "sequence", "label", "time", "features")


class LabelledSeries(Adaptor):
    """Sequences of numbers with labels, divided such that each class has its share."""

    kind, ending, unit = "series", "csv", "sequences"
    readings = READINGS

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (ACCURACY, NLL)

    def prepare(self, files: Mapping[str, Path], sample: str | None, told: Told, folder: Path) -> dict[str, Any]:
        data = numbers()
        if sample is not None:
            sets = {"train": data.sample_bursts(seed=told.seed)}
        else:
            sets = {"train": read(files["train"], told, labels=True)}
            like = {"classes": sets["train"].classes, "features": sets["train"].features}
            sets |= {part: read(files[part], told, labels=True, **like) for part in files if part != "train"}
        whole, where = sets["train"], str(files.get("train", sample))
        whole.check_classes(where=where)
        missing = [part for part in PARTS if part not in sets]
        if missing:
            labels = [whole.classes[label] for label in whole.labels.tolist()]
            alike = [whole.sequence(place).tobytes() for place in range(len(whole))]
            needs = [frozenset((label,)) for label in labels]
            drawn: dict[str, Any] = {"parts": ("train", *missing), "seed": told.seed, "where": where}
            divided = grouped_split(alike, labels, needs, **drawn)
            sets |= {part: whole.select(places) for part, places in divided.items()}
        for part in PARTS:
            data.write_series(folder / f"{part}.{self.ending}", sets[part])
        sizes = {f"{part} sequences": len(sets[part]) for part in PARTS}
        return {"sizes": {**sizes, "features": len(whole.features)}, "reading": {"target": "label"}}

    def load(self, folder: Path, reading: Mapping[str, Any]) -> dict[str, Any]:
        files = {part: folder / f"{part}.{self.ending}" for part in PARTS}
        train = numbers().read_series(files["train"], form="long")
        others = {
            part: numbers().read_series(files[part], form="long", classes=train.classes, features=train.features)
            for part in PARTS[1:]
        }
        return {"train": train, **others}

    def plain(self, told: Told) -> tuple[ClassifierConfig, ClassifierSettings]:
        settings = ClassifierSettings(**{**TRAINING, **told.training, **CONSTANT})
        # A number has no end token that could be read.
        return ClassifierConfig(**{**MODEL, "readout": "h", **told.model}), settings

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


def numbers() -> Any:
    """The readers of numeric sequences.

    Raises:
        ArgumentError: this version of the package has none.
    """
    from statewise import data

    if not hasattr(data, "read_series"):
        wanted = "a version of statewise that reads numeric sequences"
        raise ArgumentError(where="--kind series", got="none of its readers", wanted=wanted)
    return data


def read(path: Path, told: Told, *, labels: bool, **like: Any) -> Any:
    """A file of numeric sequences, by what was said of it.

    Args:
        path: the file.
        told: what was said.
        labels: whether labels are kept.
        **like: what must be as in the training set.
    """
    columns = {name: column(told.reading.get(name)) for name in ("sequence", "label", "time")}
    features = told.reading.get("features")
    options = {"features": [one.strip() for one in features.split(",")] if features else None, **like}
    return numbers().read_series(path, form=told.reading.get("form"), labels=labels, **columns, **options)
