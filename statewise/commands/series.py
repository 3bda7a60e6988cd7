"""``statewise train series``: classes of numeric sequences, or their next values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.as_json import result_of
from statewise.commands.curves import curves
from statewise.commands.fields import add_fields, from_fields
from statewise.commands.judged import tell_sets
from statewise.commands.series_sets import READING, TARGETS, WINDOW, SeriesSets, add_reading, read_sets
from statewise.commands.series_told import tell_forecasts
from statewise.commands.shared import DEVICE, JSON, absolute, check_new, command_parser, find_device
from statewise.commands.way_on import way_on
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError, RunFolderError
from statewise.models import ClassifierConfig, ForecastConfig
from statewise.train import (
    ClassifierResult,
    ClassifierSettings,
    ForecastResult,
    RunFolder,
    train_classifier,
    train_forecaster,
)
from statewise.train.forecast_measure import FORECASTS
from statewise.train.tasks import CLASSES
from statewise.train.telling import say

MEMORY = ("lstm", "peephole")
SMALL = 128  # units up to which one thread is faster than several
_SOURCE = ("data", "valid", "test", "target", "window", *READING)
Config = ClassifierConfig | ForecastConfig


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Train on sequences of numbers: sensors, events, time series. With --target label it learns the class of each "
        "sequence, with --target next the law of each next value. Features are standardised by the training set. "
        "Killed at any moment, it goes on with --resume.",
        "statewise train series --data sample --out runs/bursts",
        "statewise train series --data walks.csv --sequence trial --label activity --out runs/walks",
        "statewise train series --data load.csv --target next --time hour --cell lstm --out runs/load",
        "statewise train series --resume --out runs/walks --epochs 40",
    )
    add = made.add_argument
    add("--data", type=str, help="a file: .csv or .tsv with a row a step or a row a sequence, .jsonl with objects "
        '{"values": [...], "label": ...}, or .npz with the arrays values, labels, lengths; or sample (classes), or '
        "sample-next (next values)")  # fmt: skip
    add("--target", choices=TARGETS, help="what is learnt: the label of a sequence, or the next value (default: label "
        "if there are labels)")  # fmt: skip
    add("--valid", type=str, help="a file to choose the best model by; else a tenth is held back: of the sequences, or "
        "for --target next, where there are few, of the end of each")  # fmt: skip
    add("--test", type=str, nargs="+", help="files to test the best model on")
    add_reading(made)
    add("--features", type=str, help="the columns of the numbers, with commas between (default: all others)")
    add("--window", type=int, help="--target next: the most steps through which gradients flow; longer sequences are "
        f"cut into pieces, 0 cuts nothing (default: {WINDOW})")  # fmt: skip
    add("--out", type=str, help="the folder of the run; else runs/ and the name of the file")
    add("--resume", action="store_true", help="go on with the run in the folder, with its settings; more --epochs than "
        "it had continue it, unless rate or temperature fall to the last one")  # fmt: skip
    add("--device", **DEVICE)
    add("--tensorboard", action="store_true", help="write curves for TensorBoard too (the extra 'track')")
    add("--quiet", action="store_true", help="print the result only")
    add("--json", **JSON)
    add("--readout", type=str, help="--target label: what the head reads: the final h, c, or hc side by side (default: "
        "h, or hc of a cell with a memory)")  # fmt: skip
    add_fields(made, ForecastConfig, title="the model", defaults={})
    add_fields(made, ClassifierSettings, title="its training", defaults={})
    return made


def run(asked: Any, console: Console) -> dict[str, Any]:
    """Train, and tell what to do next.

    Args:
        asked: the options.
        console: where to print.
    """
    device = find_device(asked.device)
    there = _there(asked) if asked.resume else {}
    settings = ClassifierSettings(**{**there.get("training", {}), **from_fields(ClassifierSettings, vars(asked))})
    source = source_of(asked, there)
    sets = read_sets(source, seed=settings.seed)
    source["target"] = sets.target
    config = config_of(asked, there.get("model", {}), sets.target)
    folder = Path(asked.out or f"runs/{sets.name}")
    check_new(folder, asked.resume)
    told = None if asked.quiet else console
    say(told, describe_run(config, settings, sets, device, folder))
    options: dict[str, Any] = {"device": device, "resume": asked.resume, "source": source, "console": told}
    few = device.type == "cpu" and config.hidden <= SMALL
    parts = (sets.train, sets.valid, sets.tests, folder)
    region = way_on("statewise train series", folder, console)
    with one_thread(few), region, curves(folder, wanted=asked.tensorboard) as write:
        result: ClassifierResult | ForecastResult
        if isinstance(config, ForecastConfig):
            result = train_forecaster(config, settings, *parts, on_epoch=write, **options)
        else:
            result = train_classifier(config, settings, *parts, on_epoch=write, **options)
    _tell(console, result, settings, sets)
    return result_of(folder)


def source_of(asked: Any, there: Mapping[str, Any]) -> dict[str, Any]:
    """Where the sequences are, and how they are read.

    Args:
        asked: the options.
        there: what the run that goes on was told.
    """
    before = there.get("source", {})
    found = {name: before.get(name) if getattr(asked, name) is None else getattr(asked, name) for name in _SOURCE}
    if found["data"] is None:
        remedy = "Name a file; --data sample takes bursts of three kinds of waves, --data sample-next a season."
        raise ArgumentError(where="--data", got="nothing", wanted="sequences of numbers", remedy=remedy)
    found = {name: value for name, value in found.items() if value is not None}
    for name in ("data", "valid"):
        if name in found:
            found[name] = absolute(found[name])
    return {**found, **({"test": [absolute(each) for each in found["test"]]} if "test" in found else {})}


def config_of(asked: Any, there: Mapping[str, Any], target: str) -> Config:
    """The model: what was given, else what the run in the folder has, else what suits the target.

    Args:
        asked: the options.
        there: the model of a run that goes on.
        target: what is learnt.
    """
    kind: type[Config] = ForecastConfig if target == "next" else ClassifierConfig
    idle = {"next": ("readout",), "label": ("around", "window")}[target]
    for name in idle:
        if getattr(asked, name) is not None:
            wanted = f"no such option with --target {target}"
            raise ArgumentError(where=f"--{name}", got=str(getattr(asked, name)), wanted=wanted)
    given = from_fields(kind, vars(asked))
    if there:
        return kind(**{**there, "centroids": tuple(there["centroids"]), **given})
    usual = {} if target == "next" else {"readout": "hc" if given.get("cell") in MEMORY else "h"}
    return kind(**{**usual, **given})


def describe_run(
    config: Config, settings: ClassifierSettings, sets: SeriesSets, device: torch.device, folder: Path
) -> str:
    """A run in two lines, before it begins."""
    train = sets.train
    sizes = f"{len(train):,} sequences of {train.lengths.min()} to {train.lengths.max()} steps to train on"
    features = f"{len(train.features)} feature{'s' if len(train.features) > 1 else ''}"
    what = f"{len(train.classes)} classes" if sets.target == "label" else "the next value of each"
    network = f"{config.cell} of {config.layers} x {config.hidden} units"
    return (
        f"{sets.name}: {sizes}, {len(sets.valid):,} to choose by; {features}, {what}\n"
        f"{network}; {settings.epochs} epochs on {device}, in {folder}"
    )


def _there(asked: Any) -> dict[str, Any]:
    """What the run that goes on was told; nothing if there is none yet."""
    if not asked.out:
        raise ArgumentError(where="--resume", got="no --out", wanted="the folder of the run: --out runs/NAME")
    if not (Path(asked.out) / "config.json").exists():
        return {}
    told = RunFolder(asked.out).config()
    if told.get("task") not in (CLASSES.name, FORECASTS.name) or told.get("data", {}).get("kind") != "series":
        got, remedy = f"a run of the task {told.get('task')!r}", "Name another folder (--out)."
        raise RunFolderError(where=asked.out, got=got, wanted="a run of statewise train series", remedy=remedy)
    return told


def _tell(
    console: Console,
    result: ClassifierResult | ForecastResult,
    settings: ClassifierSettings,
    sets: SeriesSets,
) -> None:
    parts: dict[str, Any] = {"valid": result.valid, **result.tests}
    if isinstance(result, ForecastResult):
        tell_forecasts(console, parts, sets.train.features)
    else:
        tell_sets(console, parts, sets.train.classes)
    say(console, f"Best after epoch {result.best_epoch} of {result.epochs} ({result.seconds:.0f} s).")
    folder = shlex.quote(str(result.folder))
    say(console, f"Next:\n  statewise predict {folder} FILE{' --steps 5' if sets.target == 'next' else ''}")
    if result.epochs < settings.epochs:
        say(console, f"  statewise train series --resume --out {folder} --patience {2 * (settings.patience or 1)}")
    elif not settings.plans_ahead:
        say(console, f"  statewise train series --resume --out {folder} --epochs {2 * result.epochs}")
