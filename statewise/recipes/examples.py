"""Making the runs of classifiers, each once: what is finished is read, what was interrupted goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.models import ClassifierConfig
from statewise.models.steps import StepConfig
from statewise.recipes.lines import Made, SeededCase, override
from statewise.train import ClassifierSettings, RunFolder, train_classifier, train_steps
from statewise.train.classify_folder import about_examples, describe_examples, sizes_of
from statewise.train.classify_run import may_differ
from statewise.train.run import differences
from statewise.train.settings import as_json, defaults_of
from statewise.train.stored import as_written
from statewise.train.tasks import CLASSES, STEPS
from statewise.train.telling import say


@dataclass(frozen=True)
class Sets:
    """Examples to train on, to choose by, and to report; all of one kind.

    Args:
        train: what a model is trained on.
        valid: what the best epoch is chosen by.
        tests: what is reported, by name.
    """

    train: Any
    valid: Any
    tests: Mapping[str, Any]

    @property
    def counts(self) -> dict[str, Any]:
        """How many examples each set has."""
        tests = {name: len(each) for name, each in self.tests.items()}
        return {"train": len(self.train), "valid": len(self.valid), "tests": tests}


@dataclass(frozen=True, kw_only=True)
class ExampleCase(SeededCase):
    """One run: a classifier to be trained.

    Args:
        line: where its numbers belong.
        config: the model; a :class:`StepConfig` classifies every step.
        settings: how it is trained.
    """

    config: ClassifierConfig | StepConfig
    settings: ClassifierSettings

    def overridden(self, values: Mapping[str, Any]) -> ExampleCase:
        """The same with other settings; centroids only where there are some.

        Args:
            values: by name.
        """
        own = {name: value for name, value in values.items() if name != "centroids" or self.config.centroids}
        return replace(self, config=override(self.config, own), settings=override(self.settings, own))


@dataclass(frozen=True, kw_only=True)
class Scored(Made):
    """What one run of a classifier came to.

    Args:
        valid: loss and error of the best model on what it was chosen by.
        tests: the same on each test set; with centroids also the error at argmax.
    """

    valid: Mapping[str, Any] = field(default_factory=dict)
    tests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def skipped(self) -> int:
        """How many updates were left out, because their gradient overflowed."""
        return sum(record.get("skipped", 0) for record in self.curve)

    def __str__(self) -> str:
        told = {"valid": self.valid, **self.tests}
        parts = (f"{name} {100 * number(one['error']):.2f} % ({number(one['loss']):.4f})" for name, one in told.items())
        return f"errors (losses): {', '.join(parts)}"

    def numbers(self) -> dict[str, Any]:
        """What was measured."""
        tests = {name: dict(one) for name, one in self.tests.items()}
        return {"valid": dict(self.valid), "tests": tests, "skipped": self.skipped}


class ExampleMaker:
    """Makes one run of a classifier, or finds it made.

    Args:
        load: gives the sets of a size; asked once for each.
        folder: where the runs are, each in a folder of its own.
        device: where to compute.
        console: where to tell of the progress; None for silence.
    """

    def __init__(
        self, load: Callable[[str], Sets], folder: Path, device: torch.device, console: Console | None
    ) -> None:
        self.load, self.folder, self.device, self.console = load, folder, device, console
        self.data: dict[str, Sets] = {}

    def make(self, step: ExampleCase, number: str) -> tuple[Scored, bool]:
        """What a run came to, and whether it was there.

        Args:
            step: what is asked.
            number: such as 2/5.
        """
        size = step.line.size
        if size not in self.data:
            self.data[size] = self.load(size)
        sets, place = self.data[size], self.folder / step.name
        found = finished(step, sets, place)
        if found is not None:
            return found, True
        say(self.console, f"[{number}] {step.name}")
        train: Any = train_steps if isinstance(step.config, StepConfig) else train_classifier
        options: dict[str, Any] = {"device": self.device, "resume": True, "console": self.console}
        train(step.config, step.settings, sets.train, sets.valid, sets.tests, place, **options)
        return _scored(step, sets, RunFolder(place).metrics()), False


def finished(case: ExampleCase, sets: Sets, folder: Path) -> Scored | None:
    """The numbers of a run, if it has all its epochs or ended by its own rule, and was tested on these sets.

    Args:
        case: what is asked.
        sets: the examples.
        folder: of the run.
    """
    if not (folder / "config.json").exists():
        return None
    run, task = RunFolder(folder), STEPS if isinstance(case.config, StepConfig) else CLASSES
    there, records = run.config(), run.metrics()
    wanted = {"task": task.name, "model": as_json(case.config), "training": as_json(case.settings)}
    wanted |= {"data": describe_examples(sets.train, sets.valid, sets.tests)}
    free = tuple(name for name in may_differ(case.settings) if name not in ("training.patience", "data.tests"))
    known = defaults_of(case.config, case.settings)
    other = differences({part: there.get(part) for part in wanted}, wanted, free, known)
    if other or not records or "tests" not in records[-1]:
        return None
    with as_written(folder / "metrics.jsonl", "the records of a finished run"):
        scored = _scored(case, sets, records)
        # A run that ended before the epochs it was told has ended by its patience.
        ended = scored.epochs < there["training"]["epochs"]
    return scored if ended or scored.epochs >= case.settings.epochs else None


@cache
def _parameters(config: ClassifierConfig | StepConfig, **sizes: Any) -> int:
    model = config.build(**sizes, generator=torch.Generator())
    return sum(parameter.numel() for parameter in model.parameters())


def _scored(case: ExampleCase, sets: Sets, records: Sequence[Mapping[str, Any]]) -> Scored:
    curve, last = [_numbers(record) for record in records if "epoch" in record], records[-1]
    return Scored(
        name=case.name,
        line=case.line,
        seed=case.settings.seed,
        valid=last["valid"],
        tests=last["tests"],
        best_epoch=last["best_epoch"],
        epochs=len(curve),
        seconds=last["seconds"],
        curve=curve,
        parameters=_parameters(case.config, **sizes_of(about_examples(sets.train))),
    )


def _numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of an epoch with its losses and errors as numbers."""
    return {name: number(value) if name.endswith(("loss", "error")) else value for name, value in record.items()}


def number(value: Any) -> float:
    """A number of a metrics file, where NaN is None and infinity a text.

    >>> number("inf"), number(0.5)
    (inf, 0.5)
    """
    return math.nan if value is None else float(value)
