"""Labelled sequences of numbers: a classifier, tested by its accuracy and by the likelihood of the right classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from statewise.data import Series, read_series, sample_bursts, write_series
from statewise.lineup.adaptor import PARTS, Told, column
from statewise.lineup.classifying import CONSTANT, MODEL, TRAINING, Classifying
from statewise.lineup.splits import grouped_split
from statewise.models import ClassifierConfig
from statewise.train import ClassifierSettings

READINGS = ("form", "sequence", "label", "time", "features")


class LabelledSeries(Classifying):
    """Sequences of numbers with labels, divided such that each class has its share."""

    kind, ending, unit = "series", "csv", "sequences"
    readings: ClassVar[tuple[str, ...]] = READINGS

    def prepare(self, files: Mapping[str, Path], sample: str | None, told: Told, folder: Path) -> dict[str, Any]:
        if sample is not None:
            sets = {"train": sample_bursts(seed=told.seed)}
        else:
            sets = {"train": read(files["train"], told, labels=True)}
            like = {"classes": sets["train"].classes, "features": sets["train"].features}
            sets |= {part: read(files[part], told, labels=True, **like) for part in files if part != "train"}
        whole, where = sets["train"], str(files.get("train", sample))
        whole.check_classes(where=where)
        missing = [part for part in PARTS if part not in sets]
        if missing:
            assert whole.labels is not None
            labels = [whole.classes[label] for label in whole.labels.tolist()]
            needs = [frozenset((label,)) for label in labels]
            drawn: dict[str, Any] = {"parts": ("train", *missing), "seed": told.seed, "where": where}
            divided = grouped_split(contents(whole), labels, needs, **drawn)
            sets |= {part: whole.select(places) for part, places in divided.items()}
        for part in PARTS:
            write_series(folder / f"{part}.{self.ending}", sets[part])
        sizes = {f"{part} sequences": len(sets[part]) for part in PARTS}
        return {"sizes": {**sizes, "features": len(whole.features)}, "reading": {"target": "label"}}

    def load(self, folder: Path, reading: Mapping[str, Any]) -> dict[str, Series]:  # type: ignore[override]
        files = {part: folder / f"{part}.{self.ending}" for part in PARTS}
        train = read_series(files["train"], form="long")
        like: dict[str, Any] = {"form": "long", "classes": train.classes, "features": train.features}
        return {"train": train, **{part: read_series(files[part], **like) for part in PARTS[1:]}}

    def plain(self, told: Told) -> tuple[ClassifierConfig, ClassifierSettings]:
        settings = ClassifierSettings(**{**TRAINING, **told.training, **CONSTANT})
        # A number has no end token that could be read.
        return ClassifierConfig(**{**MODEL, "readout": "h", **told.model}), settings


def read(path: Path, told: Told, *, labels: bool, **like: Any) -> Series:
    """A file of numeric sequences, by what was said of it.

    Args:
        path: the file.
        told: what was said.
        labels: whether labels are kept.
        **like: what must be as in the training set.
    """
    columns: dict[str, Any] = {name: column(told.reading.get(name)) for name in ("sequence", "label", "time")}
    features = told.reading.get("features")
    options = {"features": [one.strip() for one in features.split(",")] if features else None, **like}
    return read_series(path, form=told.reading.get("form"), labels=labels, **columns, **options)


def contents(series: Series) -> list[bytes]:
    """What tells sequences apart: their numbers, so that two of the same never end on both sides.

    Args:
        series: the sequences.

    >>> one, two, three = contents(Series.from_arrays([[1.0, 2.0], [1.0], [1.0, 2.0]]))
    >>> one == three, one == two
    (True, False)
    """
    return [series.sequence(place).tobytes() for place in range(len(series))]
