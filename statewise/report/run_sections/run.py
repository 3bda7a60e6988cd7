"""A run as a page sees it: what it was told, what it measured, and its model where somebody asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from statewise.bounds import Certificate
from statewise.errors import RunFolderError
from statewise.train import (
    RunFolder,
    load_classifier,
    load_forecaster,
    load_language_model,
    load_steps,
    load_tagger,
)
from statewise.train.forecast_measure import FORECASTS
from statewise.train.language_folder import TASK as LANGUAGE_TASK
from statewise.train.tag_folder import TASK as TAGGER_TASK
from statewise.train.tasks import CLASSES, STEPS

#: What runs are of, as their folders say it.
LANGUAGE, TAGGER, CLASSIFIER, STEP_CLASSIFIER = LANGUAGE_TASK, TAGGER_TASK, CLASSES.name, STEPS.name
FORECASTER = FORECASTS.name


@runtime_checkable
class Sources(Protocol):
    """What only the commands know of a run: where its examples are, and how it was asked for."""

    def examples(self, run: Run) -> Any:
        """The sets that a classifier was trained, chosen and tested on: ``train``, ``valid`` and ``tests``.

        Args:
            run: of a classifier.
        """
        ...

    def certificate(self, run: Run) -> Certificate:
        """What can be proved of a classifier whose sequences somebody vouches for.

        Args:
            run: of a classifier.
        """
        ...

    def command(self, run: Run) -> str:
        """What was typed for the run, or would make the same one.

        Args:
            run: any.
        """
        ...

    def resume(self, run: Run) -> str:
        """What goes on with the run; empty where nothing does.

        Args:
            run: any.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A run's folder.

    Args:
        folder: of the run.
        name: what it is called on the page.
        told: its ``config.json``.
        records: its ``metrics.jsonl``, a record a line.
        sources: who knows where its examples are; None for nobody.
        quick: leave out what takes long.
        iid: somebody vouches that its sequences are independent draws of one law.
    """

    folder: Path
    name: str
    told: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    sources: Sources | None = None
    quick: bool = False
    iid: bool = False

    @property
    def task(self) -> str:
        """What it is of: "language model", "classifier", "step classifier", "tagger", "forecaster"."""
        return str(self.told.get("task", "unknown"))

    @property
    def epochs(self) -> list[Mapping[str, Any]]:
        """The records of its epochs."""
        return [record for record in self.records if "epoch" in record]

    @property
    def final(self) -> Mapping[str, Any]:
        """What it came to; nothing if it has not ended."""
        return next((record for record in reversed(self.records) if "epoch" not in record), {})

    @property
    def tests(self) -> dict[str, Mapping[str, Any]]:
        """The scores on its test sets, by name, and on the validation set where there is no other."""
        found = self.final.get("tests") or self.final.get("sets") or {}
        held = self.final.get("valid")
        return {**({"validation": held} if isinstance(held, Mapping) else {}), **found}

    @cached_property
    def model(self) -> nn.Module:
        """The best model, in eval mode."""
        if self.task == LANGUAGE:
            return load_language_model(self.folder)[0]
        loaders = {CLASSIFIER: load_classifier, STEP_CLASSIFIER: load_steps, TAGGER: load_tagger}
        loaders |= {FORECASTER: load_forecaster}
        if self.task not in loaders:
            raise RunFolderError(where=str(self.folder), got=f"task {self.task!r}", wanted="a task that is known here")
        return loaders[self.task](self.folder)[0]

    @cached_property
    def examples(self) -> Any:
        """The sets of a classifier, read again; an error says why they cannot be."""
        if self.sources is None:
            raise RunFolderError(
                where=str(self.folder),
                got="nobody who reads its examples",
                wanted="the sets it was trained on",
                remedy="statewise report reads them again.",
            )
        return self.sources.examples(self)

    @property
    def of_numbers(self) -> bool:
        """Whether it is of numeric sequences, as ``statewise train series`` makes it."""
        return bool(self.told.get("data", {}).get("kind") == "series")

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of a classifier's classes."""
        from statewise.train.classify_folder import read_about

        return tuple(read_about(self.folder)["classes"])


def read_run(folder: Path, *, name: str = "", **options: Any) -> Run:
    """The run in a folder.

    Args:
        folder: with a ``config.json``.
        name: on the page; else that of the folder.
        options: of :class:`Run`.
    """
    held = RunFolder(folder)
    return Run(folder=folder, name=name or folder.resolve().name, told=held.config(), records=held.metrics(), **options)
