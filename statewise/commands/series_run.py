"""A model of numeric sequences that was trained, and the sequences that it is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statewise.commands.series_sets import READING, read_file
from statewise.data import Series
from statewise.errors import DataError
from statewise.train import RunFolder
from statewise.train.tasks import CLASSES

#: What the run of a classifier of numeric sequences is called where it is told from one of texts.
SERIES_CLASSES = "classifier of numbers"


def kind_of_run(folder: str, task: str) -> str:
    """The task of a run, but for classifiers of numeric sequences, which are asked otherwise than those of texts.

    Args:
        folder: of the run.
        task: of the run.
    """
    if task != CLASSES.name:
        return task
    numbers = RunFolder(folder).config().get("data", {}).get("kind") == "series"
    return SERIES_CLASSES if numbers else task


def read_like(told: Mapping[str, Any], asked: Any, name: str, *, labels: bool) -> Series:
    """A file of sequences in the features of a run, read as the run's own were unless something else is said.

    Args:
        told: what the run was told, with its examples.
        asked: the options.
        name: of the file.
        labels: whether labels are read; they are then among the run's classes.
    """
    path, about = Path(name).expanduser(), told["examples"]
    given = {name: value for name in (*READING, "kind") if (value := getattr(asked, name, None)) is not None}
    source = {**told.get("source", {}), **given, "features": ",".join(about["features"])}
    classes = tuple(about["classes"]) if labels else None
    try:
        return read_file(path, source, labels=labels, classes=classes)
    except DataError as error:
        if "columns of the numbers" not in error.remedy:
            raise
        remedy = (
            f"The run reads the features {', '.join(about['features'])}; see also --sequence, --label, --time, --form."
        )
        raise error.told(remedy=remedy) from None
