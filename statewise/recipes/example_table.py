"""A table of classifiers: what its rows have in common, and how it is laid out."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.models import ClassifierConfig
from statewise.models.steps import StepConfig
from statewise.recipes.examples import ExampleCase, ExampleMaker, Scored, Sets, number
from statewise.recipes.lines import Line, Mean, Sheet, group
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.train import ClassifierSettings

#: The four networks of Wang & Niepert 2019: the cell, and whether its state moves among centroids.
NETWORKS: Mapping[str, tuple[str, bool]] = {
    "lstm": ("lstm", False),
    "lstm-p": ("peephole", False),
    "sr-lstm": ("lstm", True),
    "sr-lstm-p": ("peephole", True),
}


@dataclass(frozen=True)
class Metric:
    """What a table prints of a test.

    Args:
        name: over the column.
        key: of the test's record: "error" or "loss".
        factor: 100 for per cent.
        right: whether the share of right answers is printed, not that of wrong ones.
        digits: behind the point.

    >>> Metric("accuracy %", factor=100, right=True, digits=1).of({"error": 0.25})
    75.0
    """

    name: str
    key: str = "error"
    factor: float = 1.0
    right: bool = False
    digits: int = 3

    def of(self, test: Mapping[str, Any]) -> float:
        """The number of one test.

        Args:
            test: its record.
        """
        value = number(test[self.key])
        return self.factor * (1 - value if self.right else value)


class ExampleTable(Recipe):
    """A table of classifiers, each row at each size with several seeds.

    Attributes:
        metric: what is printed.
        reference: what stands beside ours.
    """

    metric: Metric
    reference = "published"
    smoke_epochs = 2
    epochs_by_size: Mapping[str, int] = {}
    curve = ("valid_error", "validation error")

    @abstractmethod
    def config(self, request: Request, size: str, row: str) -> ClassifierConfig | StepConfig:
        """The model of a row."""

    @abstractmethod
    def settings(self, request: Request, size: str, row: str) -> ClassifierSettings:
        """How it is trained; epochs, seed and precision are the request's."""

    @abstractmethod
    def sets(self, request: Request, size: str, data: Path | str | None) -> Sets:
        """The examples of a size; tiny ones for a smoke run."""

    @abstractmethod
    def beside(self, size: str, row: str) -> Mapping[str, float]:
        """The published numbers of a row, by the test set."""

    def steps(self, request: Request) -> list[ExampleCase]:
        return [
            ExampleCase(
                line=Line(row=row, size=size),
                config=self.config(request, size, row),
                settings=self._told(request, size, row, seed),
            )
            for size in request.sizes
            for row in request.rows
            for seed in request.seed_numbers
        ]

    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> ExampleMaker:
        return ExampleMaker(lambda size: self.sets(request, size, data), folder, device, console)

    def describe(self, data: Mapping[str, Sets]) -> dict[str, Any]:
        return {"name": self.data, "examples": {size: sets.counts for size, sets in data.items()}}

    def sheet(self, measured: Sequence[Scored], request: Request) -> Sheet:
        foreign = " (not comparable)" if request.smoke or not self.comparable else ""
        columns = ["row", "size", "test set", f"{self.reference}{foreign}", f"{self.metric.name}, mean", "median"]
        columns += ["best by validation", "runs", "epochs", "seconds"]
        rows = [self._row(line, runs, name) for line, runs in group(measured).items() for name in runs[0].tests]
        return Sheet(columns, rows, 3)

    def notes(self, measured: Sequence[Scored]) -> list[str]:
        return [
            "The best epoch by validation; means ± standard deviations and medians over the seeds; 'best by "
            f"validation' is the seed with the {'smallest loss' if self.metric.key == 'loss' else 'fewest errors'} on "
            "the validation set.",
            *self.remarks(),
            *_skipped(measured),
        ]

    def complete(self, request: Request) -> Request:
        whole = super().complete(request)
        # What is not asked for depends on the size, of which there may be several.
        return whole if request.epochs or request.smoke else replace(whole, epochs=None)

    def remarks(self) -> list[str]:
        """What is to be said of this table."""
        return []

    def _told(self, request: Request, size: str, row: str, seed: int) -> ClassifierSettings:
        settings = self.settings(request, size, row)
        epochs = request.epochs or self.epochs_by_size.get(size, self.epochs)
        settings = replace(settings, epochs=epochs, seed=seed, precision=request.precision)
        return replace(settings, batch=16, evaluation_batch=64) if request.smoke else settings

    def _row(self, line: Line, runs: Sequence[Scored], name: str) -> list[str]:
        digits, beside = self.metric.digits, self.beside(line.size, line.row).get(name)
        values = [self.metric.of(run.tests[name]) for run in runs]
        first, then = ("loss", "error") if self.metric.key == "loss" else ("error", "loss")
        best = min(runs, key=lambda run: (number(run.valid[first]), number(run.valid[then])))
        epochs = sorted({run.epochs for run in runs})
        return [
            *(line.row, line.size, name),
            "-" if beside is None else f"{beside:.{digits}f}",
            Mean.of(values).text(digits),
            f"{statistics.median(values):.{digits}f}",
            f"{self.metric.of(best.tests[name]):.{digits}f}",
            str(len(runs)),
            "-".join(map(str, dict.fromkeys((epochs[0], epochs[-1])))),
            f"{sum(run.seconds for run in runs):,.0f}",
        ]


def _skipped(measured: Sequence[Scored]) -> list[str]:
    told = [f"{run.name} {run.skipped:,} of {run.curve[-1]['updates']:,}" for run in measured if run.skipped]
    return [f"Updates that were left out because their gradient overflowed: {', '.join(told)}."] if told else []
