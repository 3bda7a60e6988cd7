"""A whole comparison: which regularizer helps on a person's data, and by how much."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.errors import StatewiseError
from statewise.lineup.adaptor import Metric, Tested
from statewise.lineup.best import BEST, copy_run
from statewise.lineup.candidates import Candidate
from statewise.lineup.course import Course
from statewise.lineup.crew import Crew
from statewise.lineup.jobs import adaptor_of, run_name
from statewise.lineup.state import Asked, State
from statewise.lineup.verdict import Line, lines_of, sentences


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What a comparison came to.

    Attributes:
        folder: where everything lies.
        kind: of the data.
        lines: the finalists, from the best by validation to the worst.
        says: what may be said of them.
        best: the name of the best by validation.
        best_run: the run whose copy lies in ``best/``.
        units: how many test sequences there were.
        called: what they are called.
        epochs: that the finalists had.
        seeds: of the runs.
        dropped: who fell out, after how many epochs, and with which validation score.
        failed: who came to nothing, and why.
        unavailable: which families could not take part, and why.
        no_time: which strengths were left out, since there was no time for them.
    """

    folder: Path
    kind: str
    lines: tuple[Line, ...]
    says: tuple[str, ...]
    best: str
    best_run: str
    units: int
    called: str
    epochs: int
    seeds: tuple[int, ...]
    dropped: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    no_time: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is reported; the first one ranks."""
        return adaptor_of(self.kind).metrics

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        metrics = [{"name": each.name, "higher": each.higher, "unit": each.unit} for each in self.metrics]
        return {
            "kind": self.kind,
            "metrics": metrics,
            "lines": [line.document() for line in self.lines],
            "says": list(self.says),
            "best": self.best,
            "best_run": self.best_run,
            "units": self.units,
            "called": self.called,
            "epochs": self.epochs,
            "seeds": list(self.seeds),
            "dropped": {name: {"epochs": at, "valid": valid} for name, (at, valid) in self.dropped.items()},
            "failed": dict(self.failed),
            "unavailable": dict(self.unavailable),
            "no_time": list(self.no_time),
        }

    @classmethod
    def of(cls, folder: Path, document: Mapping[str, Any]) -> Comparison:
        """What :meth:`document` gave.

        Args:
            folder: of the comparison.
            document: of a file.
        """
        known = {name: document[name] for name in ("kind", "best", "best_run", "units", "called", "epochs")}
        dropped = {name: (each["epochs"], float(each["valid"])) for name, each in document["dropped"].items()}
        return cls(
            folder=folder,
            lines=tuple(Line.of(line) for line in document["lines"]),
            says=tuple(document["says"]),
            seeds=tuple(document["seeds"]),
            dropped=dropped,
            failed=document["failed"],
            unavailable=document["unavailable"],
            no_time=tuple(document["no_time"]),
            **known,
        )


def compare_on(
    asked: Asked,
    folder: Path | str,
    *,
    why: str = "",
    workers: int | None = None,
    device: torch.device | str = "cpu",
    console: Console | None = None,
) -> Comparison:
    """Find out which regularizer helps on some data, and by how much.

    Candidates are trained in rungs; after each the worse strengths are dropped, by their mean validation score over
    seeds. The plain network and the best of each family reach the end, and are tested once. Killed at any moment it
    goes on with :func:`go_on`; with ``epochs``, it ends with the same table as one that was not.

    Args:
        asked: what is wanted.
        folder: new or empty; gets ``lineup.json``, ``data/``, ``runs/``, ``scores/`` and ``best/``.
        why: by what the data was recognised.
        workers: processes; None for one a core, or one for an accelerator.
        device: where to compute.
        console: where to tell of the progress; None for silence.
    """
    state = State.begin(Path(folder), asked, why)
    try:
        return _finish(state, workers=workers, device=device, console=console)
    except StatewiseError:
        if state.document["prepared"] is None:
            state.abandon()  # nothing was begun: the same may be asked again
        raise


def go_on(
    folder: Path | str,
    *,
    workers: int | None = None,
    device: torch.device | str = "cpu",
    console: Console | None = None,
) -> Comparison:
    """Go on with a comparison that was stopped; one that is complete is read.

    Args:
        folder: of the comparison.
        workers: processes; None for one a core, or one for an accelerator.
        device: where to compute.
        console: where to tell of the progress; None for silence.

    Raises:
        RunFolderError: there is none, or its data has changed since.
    """
    state = State.found(Path(folder))
    if state.document["result"] is not None and (state.folder / BEST).exists():
        return Comparison.of(state.folder, state.document["result"])
    state.check_inputs()
    return _finish(state, workers=workers, device=device, console=console)


def _finish(state: State, *, workers: int | None, device: torch.device | str, console: Console | None) -> Comparison:
    with state.locked(), Crew(workers=workers, device=device) as crew:
        course = Course(state, crew, console)
        tested = course.go()
        found = _judged(course, tested)
        copy_run(state.run(found.best_run), state.folder / BEST)
        state.document["result"] = found.document()
        state.save()
    return found


def _judged(course: Course, tested: Mapping[str, Sequence[Tested]]) -> Comparison:
    state, adaptor, metric = course.state, course.adaptor, course.adaptor.metrics[0]
    document, seeds, runs = state.document, state.asked.all_seeds, state.document["runs"]
    candidates: Mapping[str, Candidate] = state.candidates
    valid = document["rungs"][-1]["valid"]
    seconds = {name: statistics.median(runs[run_name(name, seed)]["seconds"] for seed in seeds) for name in tested}
    families = {name: candidates[name].family for name in tested}
    lines = lines_of(tested, families, valid, seconds, adaptor.metrics, seed=state.asked.told.seed)
    best, units = lines[0].name, len(next(iter(tested.values()))[0].rows)
    by_seed = [runs[run_name(best, seed)] for seed in seeds]
    chosen = min(by_seed, key=lambda run: (metric.loss(float(run["score"])), float(run["tie"]), run["seed"]))
    failed: dict[str, str] = {}
    for run in sorted(runs.values(), key=lambda run: int(run["seed"])):
        if run["failed"]:
            failed.setdefault(run["candidate"], run["failed"])
    dropped = {
        name: (rung["epochs"], float(rung["valid"][name]))
        for rung in document["rungs"]
        for name in rung["dropped"]
        if name not in failed
    }
    return Comparison(
        folder=state.folder,
        kind=state.asked.kind,
        lines=tuple(lines),
        says=tuple(sentences(lines, metric, units=units, called=adaptor.unit, seeds=len(seeds))),
        best=best,
        best_run=run_name(best, int(chosen["seed"])),
        units=units,
        called=adaptor.unit,
        epochs=document["rungs"][-1]["epochs"],
        seeds=seeds,
        dropped=dropped,
        failed=failed,
        unavailable=document["unavailable"],
        no_time=tuple(document["no_time"]),
    )
