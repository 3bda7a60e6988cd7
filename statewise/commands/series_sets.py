"""The numeric sequences that ``--data`` names: files of the user's, or a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from statewise.commands.labelled import HELD, file_name, named_apart
from statewise.commands.shared import split_list
from statewise.data import Series, read_series, sample_bursts, sample_seasons
from statewise.data.series_file import FORMS
from statewise.errors import ArgumentError, DataError

#: What may be said of a file of the user's, besides its name.
READING = ("form", "sequence", "label", "time", "features")
TARGETS = ("label", "next")
SAMPLES = {"sample": "label", "sample-next": "next"}
WINDOW = 100  # steps, through which the gradients of a forecaster flow
MANY = 10  # sequences from which whole ones are held back; of fewer the end of each
NONE = "none"


@dataclass(frozen=True)
class SeriesSets:
    """Sets of numeric sequences.

    Attributes:
        name: what to call them.
        target: what is learnt: "label" or "next".
        train: to train on.
        valid: to choose the best model by.
        tests: to report, by name.
    """

    name: str
    target: str
    train: Series
    valid: Series
    tests: dict[str, Series] = field(default_factory=dict)


def add_reading(made: ArgumentParser, of: str = "") -> None:
    """Add the options of :data:`READING`, but for the features.

    Args:
        made: gets them.
        of: what is said before each.
    """
    add = made.add_argument
    add("--form", choices=FORMS, help=f"{of}whether a row of a table is a step (long) or a whole sequence (wide), "
        "where it cannot be told")  # fmt: skip
    add("--sequence", type=str, help=f"{of}the column that names the sequence of each row, by name or by number from "
        "0; else the one called sequence, series, id and the like; without one the file is one sequence")  # fmt: skip
    add("--label", type=str, help=f"{of}the column of the labels, likewise; else the one called label, class or "
        "target, or the first of a wide table without names; none for none")  # fmt: skip
    add("--time", type=str, help=f"{of}a column of times, which must not fall within a sequence and are not read")


def read_sets(source: Mapping[str, Any], *, seed: int) -> SeriesSets:
    """The sets that a source names.

    Args:
        source: ``data``, and perhaps ``valid``, ``test``, ``target``, ``window`` and what :data:`READING` has.
        seed: of what is drawn: the sequences of a sample, and those that are held back.
    """
    data = str(source["data"])
    if data in SAMPLES and not Path(data).is_file():
        return _sample(source, data, seed)
    path = Path(data).expanduser()
    if not path.is_file():
        wanted = "a file of numbers (.csv, .tsv, .jsonl, .npz), sample, or sample-next"
        raise DataError(where="--data", got=f"{data}, which is no file", wanted=wanted, remedy="Look at the spelling.")
    target = source.get("target")
    train = read_file(path, source, labels=target != "next")
    target = target or ("next" if train.labels is None else "label")
    if target == "label":
        train.check_classes(where=str(path))
    train = train if target == "label" else train.unlabelled()
    like: dict[str, Any] = {"labels": target == "label", "classes": train.classes or None}
    places = {"valid": Path(source["valid"]).expanduser()} if source.get("valid") else {}
    tests = named_apart([Path(each).expanduser() for each in source.get("test") or ()])
    parts = {
        name: read_file(place, {**source, "features": ",".join(train.features)}, **like)
        for name, place in {**places, **{f"test {name}": place for name, place in tests.items()}}.items()
    }
    if "valid" not in parts:
        train, parts["valid"] = held_back(train, target, seed=seed, where=str(path))
    found = {"train": train, **parts}
    if target == "next":
        found = {name: windowed(each, source) for name, each in found.items()}
    tested = {name: found[f"test {name}"] for name in tests}
    return SeriesSets(file_name(path), target, found["train"], found["valid"], tested)


def read_file(
    path: Path, source: Mapping[str, Any], *, labels: bool = True, classes: tuple[str, ...] | None = None
) -> Series:
    """A file of numeric sequences, by what is said of it.

    Args:
        path: the file.
        source: some of :data:`READING`, and perhaps ``kind``.
        labels: whether labels are kept.
        classes: their names; None for those that occur.
    """
    said = {name: value for name in ("sequence", "label", "time") if (value := source.get(name)) is not None}
    columns: dict[str, Any] = {name: int(value) if value.isdecimal() else value for name, value in said.items()}
    if columns.get("label") == NONE:
        columns["label"] = False
    features = split_list(source["features"]) if source.get("features") else None
    return read_series(
        path,
        form=source.get("form"),
        kind=source.get("kind"),
        features=features,
        labels=labels,
        classes=classes,
        **columns,
    )


def held_back(train: Series, target: str, *, seed: int, where: str) -> tuple[Series, Series]:
    """What remains to train on, and a tenth to choose by: whole sequences, or what comes last of few that are foretold.

    Args:
        train: all.
        target: what is learnt.
        seed: of the draw.
        where: the file, for errors.
    """
    if target == "next" and len(train) < MANY:
        parts = [part.longer_than(1) for part in train.split_steps(1 - HELD)]
        if not all(map(len, parts)):
            wanted = f"some {2 / HELD:.0f} steps or more, of which the last are held back"
            remedy = "Add steps, or name a file to choose by: --valid."
            raise DataError(where=where, got=f"{len(train.values)} steps", wanted=wanted, remedy=remedy)
        return parts[0], parts[1]
    kept, held = train.split(1 - HELD, seed=seed)
    if target == "label":
        kept.check_classes(where=f"{where}, less the {HELD:.0%} that are held back")
    if not len(held):
        remedy = "Add some, or name a file to choose by: --valid."
        raise DataError(where=where, got=f"{len(train)} sequences", wanted=f"{MANY} or more", remedy=remedy)
    return kept, held


def windowed(series: Series, source: Mapping[str, Any]) -> Series:
    """The sequences cut into the windows of a source.

    Args:
        series: as they are.
        source: with ``window``, or without for the usual one; 0 cuts nothing.
    """
    window = source.get("window")
    return series if window == 0 else series.windows(WINDOW if window is None else window)


def _sample(source: Mapping[str, Any], data: str, seed: int) -> SeriesSets:
    idle = [f"--{name}" for name in ("valid", "test", *READING) if source.get(name)]
    target = SAMPLES[data]
    if source.get("target") not in (None, target):
        idle.append(f"--target {source['target']}")
    if idle:
        raise ArgumentError(
            where=f"--data {data}", got=f"{' and '.join(idle)} with it", wanted="the sample as it is",
            remedy="Leave it out, or name a file of yours.",
        )  # fmt: skip
    whole = sample_bursts(seed=seed) if target == "label" else sample_seasons(seed=seed)
    train, rest = whole.split(0.7, seed=seed)
    valid, test = rest.split(1 / 3, seed=seed)
    parts = (
        (train, valid, test) if target == "label" else tuple(windowed(each, source) for each in (train, valid, test))
    )
    return SeriesSets(data, target, parts[0], parts[1], {"test": parts[2]})
