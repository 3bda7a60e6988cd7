"""How well a trained model names the classes of numeric sequences, or foretells their next values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.commands.judged import tell_sets
from statewise.commands.series_run import SERIES_CLASSES, read_like
from statewise.commands.series_sets import READING, read_sets, windowed
from statewise.commands.series_told import tell_forecasts
from statewise.data import Scale, Series
from statewise.errors import ArgumentError, DataError
from statewise.train import Judged, load_classifier, load_forecaster, measure_forecasts
from statewise.train.classify_data import OnDevice
from statewise.train.classify_folder import describe_examples
from statewise.train.forecast_data import NextSteps
from statewise.train.precision import precisely, while_evaluating
from statewise.train.tasks import measure

#: What a run on numeric sequences listens to; features are the run's own.
HEARD = ("run", "data", "split", "batch", "json", "device", *(name for name in READING if name != "features"))
BATCH = 256


def evaluate_series(asked: Any, console: Console, device: torch.device, *, kind: str) -> dict[str, Any]:
    """Score sequences, and print what was found for each set.

    Args:
        asked: the options.
        console: where to print.
        device: where to compute.
        kind: of the run.
    """
    for name, value in vars(asked).items():
        if name not in HEARD and value not in (None, "off", False):
            wanted = "no such option for a run on numeric sequences"
            raise ArgumentError(where=f"--{name}", got=str(value), wanted=wanted)
    if asked.batch is not None and asked.batch < 1:
        raise ArgumentError(where="--batch", got=asked.batch, wanted="a whole number of at least 1")
    classes = kind == SERIES_CLASSES
    load: Callable[..., tuple[Any, dict[str, Any]]] = load_classifier if classes else load_forecaster
    model, told = load(asked.run, device=device)
    about, batch = told["examples"], asked.batch or BATCH
    found: dict[str, Any] = {}
    with precisely(while_evaluating(told["training"]["precision"]), device):
        for name, series in _sets(asked, told, labels=classes):
            if classes:
                examples, centroids = OnDevice(series, device), any(model.config.centroids)
                hard = measure(model, examples, batch=batch, hard=True) if centroids else None
                found[name] = Judged(measure(model, examples, batch=batch), hard)
            else:
                steps = NextSteps(series, device, Scale(tuple(about["mean"]), tuple(about["deviation"])), where=name)
                found[name] = measure_forecasts(model, steps, batch=batch)
    if classes:
        tell_sets(console, found, tuple(about["classes"]))
    else:
        tell_forecasts(console, found, about["features"])
    return {"run": asked.run, "sets": {name: each.record() for name, each in found.items()}}


def _sets(asked: Any, told: Mapping[str, Any], *, labels: bool) -> Iterator[tuple[str, Series]]:
    """The sets that are asked for: a file, or some of those that the run has."""
    source = told.get("source", {})
    if asked.data is not None:
        if asked.split is not None:
            raise ArgumentError(where="--split", got=asked.split, wanted="no such option for a file of its own")
        series = read_like(told, asked, asked.data, labels=labels)
        if labels and series.labels is None:
            raise DataError(
                where=asked.data, got="no labels", wanted="the class of each sequence", remedy="See --label."
            )
        yield Path(asked.data).name, series if labels else windowed(series, source)
        return
    for name in READING:
        if getattr(asked, name, None):
            raise ArgumentError(where=f"--{name}", got=getattr(asked, name), wanted="a file for it: --data FILE")
    if "data" not in source:
        remedy = "The run does not say where its sequences were: name some."
        raise ArgumentError(where="--data", got="nothing", wanted="sequences", remedy=remedy)
    own = read_sets(source, seed=told["training"]["seed"])
    _check_unchanged(told["data"], describe_examples(own.train, own.valid, own.tests))
    parts = {"train": {"train": own.train}, "valid": {"valid": own.valid}, "test": own.tests}
    chosen = parts[asked.split] if asked.split else own.tests or parts["valid"]
    if not chosen:
        raise ArgumentError(where="--split", got="no such set in the run", wanted="sequences: --data FILE")
    yield from chosen.items()


def _check_unchanged(trained: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse files that have changed since the training: what is held back of them now may have been trained on."""
    changed = [name for name in ("train", "valid") if trained[name] != found[name]]
    changed += [name for name, each in found["tests"].items() if trained["tests"].get(name) != each]
    if changed:
        raise DataError(
            where="--data",
            got=f"nothing, and other sequences than the run was trained with: {', '.join(changed)}",
            wanted="the files of the run as they were, or one of sequences that it has not seen",
            remedy="Name it: --data FILE.",
        )
