"""Studies whose networks are trained side by side: the seeds of a line are replicas, not cases of their own."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console

from statewise.recipes.request import Request
from statewise.recipes.studies import Study, StudyCase
from statewise.sweep.folders import folder_name, reopen
from statewise.sweep.replicas import train_replicas
from statewise.sweep.trial import Outcome, Trial

RUNS = "runs"


class ReplicaCase(StudyCase):
    """A line of such a study; its row and its size say some settings, and --seeds and --precision others."""

    said = frozenset(("depth", "width", "budget", "seeds", "precision"))


class Place(NamedTuple):
    """Where the networks of a study are trained.

    Args:
        folder: of the study.
        device: where to compute.
        console: where to tell of the progress; None for silence.
        data: what the tasks themselves do not hold.
    """

    folder: Path
    device: torch.device
    console: Console | None
    data: Any

    def runs(self, case: StudyCase) -> Path:
        """Where the runs of a case are.

        Args:
            case: which.
        """
        return self.folder / case.name / RUNS

    def train(self, case: StudyCase, trials: Sequence[Trial], **options: Any) -> list[Outcome]:
        """Train networks of one shape side by side, each in the folder of its run.

        Args:
            case: that they belong to.
            trials: the networks.
            **options: of :func:`~statewise.sweep.train_replicas`.
        """
        folders = [self.runs(case) / folder_name(trial) for trial in trials]
        for folder in folders:
            reopen(folder)  # a line is made again when it may take longer: what the clock had ended goes on
        where: dict[str, Any] = {"device": self.device, "data": self.data, "console": self.console}
        return train_replicas(trials, folders, **where, **options)


class ReplicaStudy(Study):
    """A study of one case a line, whose settings say how many ``seeds`` it has.

    Attributes:
        exact: whether products are made in single precision whatever is asked: what is rounded does not last long.
    """

    exact = True
    case = ReplicaCase

    def made_with(self, request: Request, seeds: Sequence[int]) -> str:
        precision = "single precision" if self.exact else request.precision
        return f"Seeds of every network: 0 to {(request.seeds or 1) - 1}, side by side. Products in {precision}."

    def steps(self, request: Request) -> list[Any]:
        seeds = request.seeds or self.usual_seeds
        return [
            self.case(line=line, settings=replace(self.settings(line, smoke=request.smoke), seeds=seeds))
            for line in self.lines(request)
        ]

    def given(
        self, loaded: Any, request: Request, folder: Path, device: torch.device, console: Console | None
    ) -> Place:
        return Place(folder, device, console, loaded)


def spread(outcomes: Iterable[Outcome]) -> Mapping[str, Any]:
    """What several runs came to, in a few numbers.

    Args:
        outcomes: of the runs.
    """
    found = list(outcomes)
    accuracies = [outcome.accuracy for outcome in found]
    return {
        "median": statistics.median(accuracies),
        "best": max(accuracies),
        "least": min(accuracies),
        "accuracies": accuracies,
        "iterations": [outcome.iterations for outcome in found],
        "reasons": [outcome.reason for outcome in found],
        "orthogonality": max(outcome.orthogonality for outcome in found),
        "largest_entry": max(outcome.largest_entry for outcome in found),
    }
