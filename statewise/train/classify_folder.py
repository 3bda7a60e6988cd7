"""What the folder of a classifier's run says of its examples, and the best model in it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from statewise.data import Copying, Images, Series
from statewise.errors import RunFolderError
from statewise.files import read_object, write_atomically
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.models.steps import StepClassifier, StepConfig
from statewise.train.run import RunFolder
from statewise.train.stored import as_written, filled
from statewise.train.tasks import CLASSES, STEPS, Task

EXAMPLES = "examples.json"
IMDB_WORDS = 400  # that the benchmark keeps of a review where nobody says how many
_HUGE = 1e300
Fits = Callable[[Any], bool]


def about_examples(examples: Any) -> dict[str, Any]:
    """What a reader of a model must know of the examples: classes, alphabet, how pictures are read, scale of numbers.

    Args:
        examples: the training set.

    >>> from statewise.data import Sequences
    >>> about_examples(Sequences.from_words(["ab", ""], [1, 0]))["symbols"]
    ['a', 'b']
    """
    if isinstance(examples, Copying):
        names = [f"c{number}" for number in range(examples.tokens)]
        return {"kind": "copying", "classes": names, "symbols": names}
    if isinstance(examples, Series):
        mean, deviation = examples.scale()
        scale = {"features": list(examples.features), "mean": list(mean), "deviation": list(deviation)}
        return {"kind": "series", "classes": list(examples.classes), "symbols": None, **scale}
    found: dict[str, Any] = {"kind": type(examples).__name__.lower(), "classes": list(examples.classes)}
    if not isinstance(examples, Images):
        return {**found, "symbols": list(examples.symbols)}
    order = examples.permutation
    found |= {"symbols": None, "height": examples.height, "width": examples.width}
    found |= {"permutation": None if order is None else order.tolist()}
    # Only where it is said: the runs of before know of pixels alone.
    return found if examples.by == "pixels" else {**found, "by": examples.by}


def sizes_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a model of such examples is built with: how many tokens or features, and how many classes.

    Args:
        about: what :func:`about_examples` gave.

    >>> sizes_of({"symbols": None, "classes": ["0", "1"], "height": 28, "width": 14, "by": "rows"})
    {'features': 14, 'classes': 2}
    """
    features = about["width"] if about.get("by") == "rows" else len(about.get("features", "1"))
    inputs = {"features": features} if about["symbols"] is None else {"tokens": len(about["symbols"])}
    return {**inputs, "classes": len(about["classes"])}


def standardise(model: Any, about: Mapping[str, Any]) -> Any:
    """Let a model of numeric sequences read them by the scale of its training set; gives the model, and others as is.

    Args:
        model: a classifier.
        about: what :func:`about_examples` gave.
    """
    if "mean" in about:
        model.standardise(about["mean"], about["deviation"])
    return model


def describe_examples(train: Any, valid: Any, tests: Mapping[str, Any]) -> dict[str, Any]:
    """The sets of a run, such that others are told apart from them: their sizes, and a checksum of each.

    Args:
        train: the training set.
        valid: the validation set.
        tests: the test sets, by name.
    """
    about = about_examples(train)
    sizes = {"kind": about["kind"], "classes": len(about["classes"])}
    sizes |= {"symbols": None if about["symbols"] is None else len(about["symbols"])}
    sizes |= {"by": about["by"]} if "by" in about else {}
    sizes |= {"alphabet": f"{zlib.crc32(json.dumps(about).encode()):08x}"}
    parts = {"train": _counted(train), "valid": _counted(valid)}
    return {**sizes, **parts, "tests": {name: _counted(each) for name, each in tests.items()}}


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write what :func:`about_examples` gave beside the files of a run.

    Args:
        folder: of the run.
        about: what is written.
    """
    write_atomically(folder / EXAMPLES, json.dumps(about, ensure_ascii=False) + "\n")


def read_about(folder: Path) -> dict[str, Any]:
    """What :func:`write_about` wrote.

    Args:
        folder: of the run.
    """
    path = folder / EXAMPLES
    found = read_object(path, wanted="classes and symbols as JSON")
    for name, (fits, wanted) in _wanted(found).items():
        if name not in found or not fits(found[name]):
            got = repr(found[name]) if name in found else "nothing"
            raise RunFolderError(where=f"{path}, field {name!r}", got=got, wanted=wanted)
    return found


def stored_run(
    folder: Path | str, task: Task
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor], dict[str, Any]]:
    """What a folder has: its examples in words, what the run was told, the best weights, and the model's settings."""
    run = RunFolder(folder)
    told = run.config()
    if told.get("task") != task.name:
        raise RunFolderError(where=str(run.config_path), got=f"task {told.get('task')!r}", wanted=repr(task.name))
    about, (state, best) = read_about(Path(folder)), run.load_model()
    # The temperature is that of the best epoch: a schedule may have gone on since.
    with as_written(run.config_path, "the settings of a classifier"):
        model = {**told["model"], "centroids": tuple(told["model"]["centroids"]), "temperature": best["temperature"]}
    return about, {**told, "examples": about}, state, model


def load_classifier(
    folder: Path | str, *, device: torch.device | str = "cpu"
) -> tuple[SequenceClassifier, dict[str, Any]]:
    """The best model of a run, and what the run was told; under "examples" its classes, alphabet, order of pixels.

    Under "callbacks" are those that acted on its weights, if any did.

    Args:
        folder: of the run.
        device: where the model goes.
    """
    about, told, state, model = stored_run(folder, CLASSES)
    run = RunFolder(folder)
    with as_written(run.config_path, "the settings of a classifier"):
        config, sizes = ClassifierConfig(**model), sizes_of(about)
        built = filled(
            lambda: standardise(config.build(**sizes, symbols=about["symbols"]), about),
            state,
            layers=config.layers,
            path=run.model_path,
        )
    return built.to(device).eval(), told


def load_steps(folder: Path | str, *, device: torch.device | str = "cpu") -> tuple[StepClassifier, dict[str, Any]]:
    """The best model of a run of :func:`train_steps`, and what the run was told.

    Args:
        folder: of the run.
        device: where the model goes.
    """
    about, told, state, model = stored_run(folder, STEPS)
    run = RunFolder(folder)
    with as_written(run.config_path, "the settings of a classifier of steps"):
        config, sizes = StepConfig(**model), sizes_of(about)
        built = filled(lambda: config.build(**sizes), state, layers=config.layers, path=run.model_path)
    return built.to(device).eval(), told


def _wanted(found: Mapping[str, Any]) -> dict[str, tuple[Fits, str]]:
    """What each entry must be: all have classes; beside them lie an alphabet, the scale of numbers, or pictures."""
    entries: dict[str, tuple[Fits, str]] = {"classes": (_texts, "texts")}
    if found.get("kind") == "series" or {"features", "mean", "deviation"} & set(found):
        return {**entries, **_scaled(found.get("features"))}
    if found.get("symbols", ...) is not None:
        return {**entries, "symbols": (_texts, "texts")}
    return {**entries, **dict.fromkeys(("height", "width"), (_whole, "what describes pictures"))}


def _scaled(features: Any) -> dict[str, tuple[Fits, str]]:
    """What must be known of numbers; they have no alphabet."""
    count = len(features) if isinstance(features, list) else 0

    def scale(value: Any) -> bool:
        return _numbers(value) and len(value) == count

    return {
        "symbols": (lambda value: value is None, "null: numbers have no alphabet"),
        "features": (lambda value: _texts(value) and bool(value), "the names of the numbers of a step"),
        "mean": (scale, "a finite number for each feature"),
        "deviation": (lambda value: scale(value) and min(value) > 0, "a finite number above 0 for each feature"),
    }


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _whole(value: Any) -> bool:
    return type(value) is int


def _numbers(value: Any) -> bool:
    # Neither NaN nor a whole number beyond all floats is between the two.
    return isinstance(value, list) and all(type(entry) in (int, float) and -_HUGE < entry < _HUGE for entry in value)


def _counted(examples: Any) -> dict[str, Any]:
    names = ("tokens", "starts", "values", "shown", "labels")
    arrays = [getattr(examples, name) for name in names if isinstance(getattr(examples, name, None), np.ndarray)]
    checksum = 0
    for array in arrays:
        checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
    steps = {"steps": examples.steps} if isinstance(examples, Copying) else {}
    return {"examples": len(examples), **steps, "checksum": f"{checksum:08x}"}
