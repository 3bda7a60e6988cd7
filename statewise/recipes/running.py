"""Making the runs of language models, each once: what is finished is read, what was interrupted goes on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.data import Corpus
from statewise.files import read_object, write_atomically
from statewise.models import LanguageModelConfig
from statewise.recipes.cases import Adaptation, Case, Measured
from statewise.train.adapting import dynamic_perplexity, language_statistics
from statewise.train.averaging import NonMonotone
from statewise.train.fit import MAY_DIFFER, describe, train_language_model
from statewise.train.language_folder import load_language_model
from statewise.train.metrics import strict
from statewise.train.precision import precisely, while_evaluating
from statewise.train.run import RunFolder, differences
from statewise.train.schedules import EarlyStopping
from statewise.train.settings import TrainingSettings, defaults_of
from statewise.train.stored import as_written
from statewise.train.telling import say

ADAPTED = "adapted.json"

_WANTED = "what an earlier run of the recipe came to"
_REMEDY = "Remove it: it is made again."


class LanguageMaker:
    """Makes one step of a recipe of language models, or finds it made.

    Args:
        corpus: the text.
        source: where it is, as ``--data`` of other commands takes it.
        folder: where the runs are, each in a folder of its own.
        device: where to compute.
        console: where to tell of the progress; None for silence.
    """

    def __init__(
        self, corpus: Corpus, source: str, folder: Path, device: torch.device, console: Console | None
    ) -> None:
        self.corpus, self.source, self.folder, self.device, self.console = corpus, source, folder, device, console
        self.data = corpus

    def make(self, step: Case | Adaptation, number: str) -> tuple[Measured, bool]:
        """The numbers of a step, and whether they were there.

        Args:
            step: what is asked.
            number: such as 2/5.
        """
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
        there = read_object(path, wanted=_WANTED, remedy=_REMEDY) if path.exists() else {}
        if there.get("settings") == told:
            with as_written(path, _WANTED):
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
    known = defaults_of(case.config, case.settings)
    other = differences({part: there.get(part) for part in wanted}, wanted, MAY_DIFFER, known)
    records = run.metrics()
    if other or not records or "test_perplexity" not in records[-1]:
        return None
    with as_written(folder / "metrics.jsonl", "the records of a finished run"):
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
    # Modules of torch draw first weights from the global generator when they are made, whatever fills them afterwards.
    with torch.random.fork_rng(devices=[]):
        return sum(parameter.numel() for parameter in config.build(words).parameters())


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
