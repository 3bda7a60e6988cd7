"""Making the runs of a recipe, each once: what is finished is read, what was interrupted goes on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from statewise.train.fit import describe, load_language_model, train_language_model
from statewise.train.language import precisely
from statewise.train.run import RunFolder

ADAPTED = "adapted.json"


@dataclass(frozen=True)
class Outcome:
    """What a recipe came to, as far as it has come.

    Args:
        recipe: the recipe.
        request: what was asked of it, completed.
        corpus: the text.
        measured: the finished runs.
        failed: why the others came to nothing, by name.
    """

    recipe: Recipe
    request: Request
    corpus: Corpus
    measured: list[Measured] = field(default_factory=list)
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
    steps = recipe.steps(request)
    for number, step in enumerate(steps, start=1):
        maker = _Maker(outcome.corpus, source, Path(folder), torch.device(device), console)
        if step.after is not None and step.after.name in outcome.failed:
            outcome.failed[step.name] = f"{step.after.name} came to nothing"
            continue
        try:
            measured, found = maker.make(step, f"{number}/{len(steps)}")
        except DivergedError as error:
            outcome.failed[step.name] = str(error)
            maker.say(f"{step.name} came to nothing: {error}")
            continue
        outcome.measured.append(measured)
        verb = "found" if found else "done"
        maker.say(f"{step.name}: valid {measured.valid:.2f}, test {measured.test:.2f} ({verb})")
        if after_each is not None:
            after_each(outcome)
    return outcome


class _Maker:
    """Makes one step, or finds it made."""

    def __init__(
        self, corpus: Corpus, source: str, folder: Path, device: torch.device, console: Console | None
    ) -> None:
        self.corpus, self.source, self.folder, self.device, self.console = corpus, source, folder, device, console

    def say(self, text: str) -> None:
        if self.console is not None:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def make(self, step: Step, number: str) -> tuple[Measured, bool]:
        """The numbers of a step, and whether they were there."""
        if isinstance(step, Adaptation):
            return self._adapt(step, number)
        found = finished(step, self.corpus, self.folder / step.name)
        if found is not None:
            return found, True
        self.say(f"[{number}] {step.name}")
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
        made = finished(step, self.corpus, self.folder / step.name)
        assert made is not None
        return made, False

    def _adapt(self, step: Adaptation, number: str) -> tuple[Measured, bool]:
        path = self.folder / step.name / ADAPTED
        told = {**step.told, "epochs": len(_epochs(self.folder / step.after.name))}
        there = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if there.get("settings") == told:
            return self._adapted(step, there), True
        self.say(f"[{number}] {step.name}: gradient statistics of the training text, then validation and test")
        numbers = {"settings": told, **self._perplexities(step)}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(numbers, indent=2, allow_nan=False) + "\n")
        return self._adapted(step, numbers), False

    def _perplexities(self, step: Adaptation) -> dict[str, float]:
        began = time.monotonic()
        model, _, _ = load_language_model(self.folder / step.after.name, device=self.device)
        precision = "single" if step.after.settings.precision == "single" else "tf32"
        with precisely(precision, self.device):
            batch = step.statistics_batch
            statistics = language_statistics(model, self.corpus.train, batch=batch, device=self.device)
            valid, test = (
                dynamic_perplexity(
                    model,
                    statistics,
                    stream,
                    lr=step.lr,
                    decay=step.decay,
                    epsilon=step.epsilon,
                    convention=step.convention,
                    device=self.device,
                ).perplexity
                for stream in (self.corpus.valid, self.corpus.test)
            )
        return {"valid": valid, "test": test, "seconds": round(time.monotonic() - began, 3)}

    def _adapted(self, step: Adaptation, numbers: Mapping[str, Any]) -> Measured:
        return Measured(
            name=step.name,
            line=step.line,
            seed=step.after.settings.seed,
            valid=numbers["valid"],
            test=numbers["test"],
            seconds=numbers["seconds"],
            parameters=parameters(step.after.config, len(self.corpus.vocabulary)),
        )


def finished(case: Case, corpus: Corpus, folder: Path) -> Measured | None:
    """The numbers of a run, if it has all its epochs and was tested; more epochs than asked for are taken too.

    Args:
        case: what is asked.
        corpus: the text.
        folder: of the run.
    """
    if not (folder / "config.json").exists():
        return None
    run = RunFolder(folder)
    wanted, there = describe(case.config, case.settings, corpus), run.config()
    same = all(_without_epochs(wanted[part]) == _without_epochs(there.get(part)) for part in wanted)
    records = run.metrics()
    if not same or not records or "test_perplexity" not in records[-1]:
        return None
    curve, last = [record for record in records if "epoch" in record], records[-1]
    if len(curve) < case.settings.epochs and case.settings.patience is None:
        return None
    return Measured(
        name=case.name,
        line=case.line,
        seed=case.settings.seed,
        valid=_number(last["valid_perplexity"]),
        test=_number(last["test_perplexity"]),
        best_epoch=last["best_epoch"],
        epochs=len(curve),
        seconds=sum(record["seconds"] for record in curve),
        curve=curve,
        parameters=parameters(case.config, len(corpus.vocabulary)),
    )


def parameters(config: LanguageModelConfig, words: int) -> int:
    """How many parameters a model has.

    >>> parameters(LanguageModelConfig(hidden=(8, 8)), 50)
    1602
    """
    return sum(parameter.numel() for parameter in config.build(words).parameters())


def _epochs(folder: Path) -> list[dict[str, Any]]:
    return [record for record in RunFolder(folder).metrics() if "epoch" in record]


def _without_epochs(part: Any) -> Any:
    return {name: value for name, value in part.items() if name != "epochs"} if isinstance(part, dict) else part


def _number(value: Any) -> float:
    """A number of a metrics file, where NaN is None and infinity a text."""
    return math.nan if value is None else float(value)
