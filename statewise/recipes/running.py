"""Making the runs of a recipe, each once: what is finished is read, what was interrupted goes on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.data import Corpus
from statewise.errors import DivergedError
from statewise.files import write_atomically
from statewise.models import LanguageModelConfig
from statewise.recipes.cases import Adaptation, Case, Measured, Request, Step
from statewise.recipes.recipe import Recipe
from statewise.train.adapting import dynamic_perplexity, language_statistics
from statewise.train.averaging import NonMonotone
from statewise.train.fit import MAY_DIFFER, describe, load_language_model, train_language_model
from statewise.train.metrics import strict
from statewise.train.precision import precisely, while_evaluating
from statewise.train.run import RunFolder, differences
from statewise.train.schedules import EarlyStopping
from statewise.train.settings import TrainingSettings
from statewise.train.telling import say

ADAPTED = "adapted.json"


@dataclass(frozen=True)
class Outcome:
    """What a recipe came to, as far as it has come.

    Args:
        recipe: the recipe.
        request: what was asked of it, completed.
        corpus: the text.
        measured: the finished runs.
        steps: how each was made, by its name.
        failed: why the others came to nothing, by name.
    """

    recipe: Recipe
    request: Request
    corpus: Corpus
    measured: list[Measured] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def reproduce(
    recipe: Recipe,
    request: Request,
    folder: Path | str,
    *,
    data: Path | str | None = None,
    device: torch.device | str = "cpu",
    console: Console | None = None,
    after_each: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Make the runs behind a table, those that are still to be made.

    A run that diverges is noted, and the others are made.

    Args:
        recipe: of the table.
        request: what of it.
        folder: where the runs are, each in a folder of its own.
        data: where the data set is; None for the usual places.
        device: where to compute.
        console: where to tell of the progress; None for silence.
        after_each: called when a run is finished, or was found to be.
    """
    request = recipe.complete(request)
    outcome = Outcome(recipe, request, recipe.corpus(request, data))
    source = recipe.source(request, data)
    maker = _Maker(outcome.corpus, source, Path(folder), torch.device(device), console)
    steps = recipe.steps(request)
    made: dict[str, Case] = {}  # by the name under which it was asked for, with the epochs that it has
    for number, asked in enumerate(steps, start=1):
        if asked.after is not None and asked.after.name in outcome.failed:
            outcome.failed[asked.name] = f"{asked.after.name} came to nothing"
            continue
        step = asked if asked.after is None else replace(asked, after=made[asked.after.name])
        try:
            measured, found = maker.make(step, f"{number}/{len(steps)}")
        except DivergedError as error:
            outcome.failed[asked.name] = str(error)
            say(console, f"{asked.name} came to nothing: {error}")
            continue
        if isinstance(step, Case):
            made[asked.name] = replace(step, settings=replace(step.settings, epochs=measured.epochs))
        outcome.measured.append(measured)
        outcome.steps[step.name] = step
        verb = "found" if found else "done"
        say(console, f"{step.name}: valid {measured.valid:.2f}, test {measured.test:.2f} ({verb})")
        if after_each is not None:
            after_each(outcome)
    return outcome


class _Maker:
    """Makes one step, or finds it made."""

    def __init__(
        self, corpus: Corpus, source: str, folder: Path, device: torch.device, console: Console | None
    ) -> None:
        self.corpus, self.source, self.folder, self.device, self.console = corpus, source, folder, device, console

    def make(self, step: Step, number: str) -> tuple[Measured, bool]:
        """The numbers of a step, and whether they were there."""
        if isinstance(step, Adaptation):
            return self._adapt(step, number)
        found = finished(step, self.corpus, self.folder / step.name)
        if found is not None:
            return found, True
        say(self.console, f"[{number}] {step.name}")
        weights = None if step.after is None else RunFolder(self.folder / step.after.name).load_model()[0]
        train_language_model(
            step.config,
            step.settings,
            self.corpus,
            self.folder / step.name,
            device=self.device,
            resume=True,
            console=self.console,
            weights=weights,
            source={"data": self.source},
        )
        return _measured(step, self.corpus, RunFolder(self.folder / step.name).metrics()), False

    def _adapt(self, step: Adaptation, number: str) -> tuple[Measured, bool]:
        path = self.folder / step.name / ADAPTED
        told = {**step.told, "epochs": len(_epochs(self.folder / step.after.name))}
        there = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if there.get("settings") == told:
            return self._adapted(step, there), True
        parts = "gradient statistics of the training text, then validation and test"
        say(self.console, f"[{number}] {step.name}: {parts}")
        numbers = strict({"settings": told, **self._perplexities(step)}, "adapted")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(numbers, indent=2, allow_nan=False) + "\n")
        return self._adapted(step, numbers), False

    def _perplexities(self, step: Adaptation) -> dict[str, float]:
        began = time.monotonic()
        model, _, _ = load_language_model(self.folder / step.after.name, device=self.device)
        with precisely(while_evaluating(step.after.settings.precision), self.device):
            batch = step.statistics_batch
            where: dict[str, Any] = {"device": self.device, "console": self.console}
            statistics = language_statistics(model, self.corpus.train, batch=batch, **where)
            valid, test = (
                dynamic_perplexity(
                    model,
                    statistics,
                    stream,
                    lr=step.lr,
                    decay=step.decay,
                    epsilon=step.epsilon,
                    convention=step.convention,
                    **where,
                ).perplexity
                for stream in (self.corpus.valid, self.corpus.test)
            )
        return {"valid": valid, "test": test, "seconds": round(time.monotonic() - began, 3)}

    def _adapted(self, step: Adaptation, numbers: Mapping[str, Any]) -> Measured:
        return Measured(
            name=step.name,
            line=step.line,
            seed=step.after.settings.seed,
            valid=_number(numbers["valid"]),
            test=_number(numbers["test"]),
            seconds=numbers["seconds"],
            parameters=parameters(step.after.config, len(self.corpus.vocabulary)),
        )


def finished(case: Case, corpus: Corpus, folder: Path) -> Measured | None:
    """The numbers of a run, if it has all its epochs or stopped early, and was tested.

    More epochs than asked for are taken too.

    Args:
        case: what is asked.
        corpus: the text.
        folder: of the run.
    """
    if not (folder / "config.json").exists():
        return None
    run = RunFolder(folder)
    wanted, there = describe(case.config, case.settings, corpus), run.config()
    other = differences({part: there.get(part) for part in wanted}, wanted, MAY_DIFFER)
    records = run.metrics()
    if other or not records or "test_perplexity" not in records[-1]:
        return None
    measured = _measured(case, corpus, records)
    valid = [record["valid_perplexity"] for record in measured.curve]
    whole = measured.epochs >= case.settings.epochs or stopped_early(case.settings, valid)
    return measured if whole else None


def stopped_early(settings: TrainingSettings, valid: Sequence[float]) -> bool:
    """Whether a run with these validation perplexities ended by one of its rules, however many epochs it had left.

    Args:
        settings: with the rules.
        valid: after each epoch.

    >>> patient = TrainingSettings(patience=2)
    >>> stopped_early(patient, [90.0, 80.0, 81.0]), stopped_early(patient, [90.0, 80.0, 81.0, 82.0])
    (False, True)
    """
    rules: list[EarlyStopping | NonMonotone] = []
    if settings.patience is not None:
        rules.append(EarlyStopping(settings.patience))
    if settings.stop_non_monotone:
        rules.append(NonMonotone(settings.non_monotone))
    return any(rule.observe(each) for rule in rules for each in valid)


@cache
def parameters(config: LanguageModelConfig, words: int) -> int:
    """How many parameters a model has; it is built for that, once.

    >>> parameters(LanguageModelConfig(hidden=(8, 8)), 50)
    1602
    """
    return sum(parameter.numel() for parameter in config.build(words, generator=torch.Generator()).parameters())


def _measured(case: Case, corpus: Corpus, records: Sequence[Mapping[str, Any]]) -> Measured:
    curve, last = [_numbers(record) for record in records if "epoch" in record], records[-1]
    return Measured(
        name=case.name,
        line=case.line,
        seed=case.settings.seed,
        valid=_number(last["valid_perplexity"]),
        test=_number(last["test_perplexity"]),
        best_epoch=last["best_epoch"],
        epochs=len(curve),
        seconds=last["seconds"],
        curve=curve,
        parameters=parameters(case.config, len(corpus.vocabulary)),
    )


def _epochs(folder: Path) -> list[dict[str, Any]]:
    return [record for record in RunFolder(folder).metrics() if "epoch" in record]


def _numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of an epoch with its perplexities as numbers."""
    return {name: _number(value) if name.endswith("perplexity") else value for name, value in record.items()}


def _number(value: Any) -> float:
    """A number of a metrics file, where NaN is None and infinity a text."""
    return math.nan if value is None else float(value)
