"""The course of a comparison: rungs of training, after each of which the worse strengths fall out; then one test."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from statewise.errors import DivergedError
from statewise.files import write_atomically
from statewise.lineup.adaptor import Adaptor, Tested, Trained
from statewise.lineup.budget import MARKS, more_epochs, too_little
from statewise.lineup.candidates import line_up
from statewise.lineup.crew import Crew
from statewise.lineup.halving import NONE, Standing, ranked, rungs, survivors
from statewise.lineup.jobs import Job, Report, adaptor_of, run_name
from statewise.lineup.state import State, checksum_of
from statewise.train.metrics import strict
from statewise.train.run import system_errors
from statewise.train.telling import say


class Course:
    """Takes a comparison from where it is to its end.

    Args:
        state: where it is.
        crew: who does the jobs.
        console: where to tell of the progress; None for silence.
    """

    def __init__(self, state: State, crew: Crew, console: Console | None = None) -> None:
        self.state, self.crew, self.console = state, crew, console
        self.adaptor: Adaptor = adaptor_of(state.asked.kind)

    def go(self) -> dict[str, list[Tested]]:
        """Go on to the end; gives what the finalists did on the test set, a number for each seed."""
        self._prepare()
        if self.state.asked.epochs is not None:
            self._by_epochs(self.state.asked.epochs)
        else:
            self._by_minutes(60 * float(self.state.asked.minutes or 0.0))
        return self._test()

    def _prepare(self) -> None:
        state, asked = self.state, self.state.asked
        document = state.document
        if document["prepared"] is not None:
            return
        config, settings = self.adaptor.plain(asked.told)
        chosen = line_up(asked.kind, asked.lineup, config, settings)
        files = {part: Path(name) for part, name in asked.files.items()}
        with system_errors(state.folder):
            state.data.mkdir(parents=True, exist_ok=True)
        prepared = self.adaptor.prepare(files, None if files else asked.data, asked.told, state.data)
        written = sorted(path.name for path in state.data.glob(f"*.{self.adaptor.ending}"))
        document["inputs"] = {str(path): checksum_of(path) for path in files.values()}
        document["candidates"] = [each.document() for each in chosen.candidates]
        document["unavailable"] = dict(chosen.unavailable)
        document["prepared"] = {**prepared, "checksums": {name: checksum_of(state.data / name) for name in written}}
        state.save()

    def _by_epochs(self, epochs: int) -> None:
        planned = rungs(epochs)
        for number in range(len(self.state.document["rungs"]), len(planned)):
            left = self.state.left
            self._tell_rung(f"Rung {number + 1} of {len(planned)}", left, planned[number])
            self._train(left, planned[number])
            self._close_rung(planned[number], drop=number < len(planned) - 1, last=number == len(planned) - 2)

    def _by_minutes(self, budget: float) -> None:
        document = self.state.document
        if not document["rungs"]:
            self._first_epoch(budget)
        for number, mark in enumerate(MARKS):
            done = sum(rung["halved"] for rung in document["rungs"])
            if done > number:
                continue
            while True:
                left = self.state.left
                goal = self._goal(left, mark * budget)
                if goal is None:
                    break
                self._tell_rung(f"{document['spent'] / 60:.1f} of {budget / 60:g} minutes", left, goal)
                self._train(left, goal)
                self._close_rung(goal, drop=False)
            if number < len(MARKS) - 1:
                self._close_rung(document["rungs"][-1]["epochs"], drop=True, last=number == len(MARKS) - 2)

    def _goal(self, left: Sequence[str], until: float) -> int | None:
        """To which epoch all that are left are trained next; None if no time is left for one.

        It is written down before the first of them is: whoever was trained that far before a kill would otherwise be
        compared with others that, in the time that is left, get fewer epochs.
        """
        document = self.state.document
        last = int(document["rungs"][-1]["epochs"])
        if (begun := int(document.get("goal", 0))) > last:
            return begun
        more = more_epochs(left=until - document["spent"], epoch=self._cost(left))
        if not more:
            return None
        document["goal"] = last + more
        self.state.save()
        return last + more

    def _first_epoch(self, budget: float) -> None:
        """One epoch of all; before it, one of the plain network says whether there is time for it."""
        document = self.state.document
        self._train([NONE], 1)
        names = [each["name"] for each in document["candidates"]]
        each = self._cost([NONE])
        if each * len(names) > MARKS[0] * budget:
            families: dict[str, list[str]] = {}
            for one in document["candidates"]:
                families.setdefault(one["family"], []).append(one["name"])
            kept = {some[len(some) // 2] for some in families.values()}
            document["no_time"] = [name for name in names if name not in kept]
            names = [name for name in names if name in kept]
            say(self.console, "There is no time for several strengths: one of each family takes part.")
        if each * len(names) > budget:
            raise too_little(budget=budget, epoch=each * len(names), runs=len(names) * self.state.asked.seeds)
        self._tell_rung("The first epoch", names, 1)
        self._train(names, 1)
        self._close_rung(1, drop=False)

    def _cost(self, names: Sequence[str]) -> float:
        """Seconds of an epoch of some candidates, all seeds and workers together."""
        runs = self.state.document["runs"]
        seeds = self.state.asked.all_seeds
        known = [float(runs[run_name(name, seed)]["seconds"]) for name in names for seed in seeds]
        return sum(known) / min(self.crew.workers, len(known))

    def _train(self, names: Sequence[str], epochs: int) -> None:
        """Train the runs of some candidates so far; what is done already is not done again."""
        document, began = self.state.document, time.monotonic()
        before = document["spent"]
        jobs = [job for job in self._jobs(names, epochs) if not self._done(job)]
        with self._progress(len(jobs), f"to epoch {epochs}") as advance:
            for job, report in self.crew.do(jobs):
                document["runs"][job.run] = _record(job, report)
                document["spent"] = before + time.monotonic() - began
                self.state.save()
                advance()
        self._check_plain()

    def _done(self, job: Job) -> bool:
        there = self.state.document["runs"].get(job.run)
        return there is not None and (there["epochs"] >= job.epochs or bool(there["failed"]))

    def _jobs(self, names: Sequence[str], epochs: int, *, test: bool = False) -> list[Job]:
        state, asked, candidates = self.state, self.state.asked, self.state.candidates
        reading = state.document["prepared"]["reading"]
        same: dict[str, Any] = {"kind": asked.kind, "data": state.data.absolute(), "reading": reading}
        same |= {"told": asked.told, "epochs": epochs, "test": test}
        return [
            Job(candidate=candidates[name], seed=seed, folder=state.run(run_name(name, seed)).absolute(), **same)
            for name in names
            for seed in asked.all_seeds
        ]

    def standings(self, names: Sequence[str]) -> dict[str, Standing]:
        """How candidates stand on the validation set, the mean over seeds; infinite for one of which a run failed.

        Args:
            names: of the candidates.
        """
        found, runs, metric = {}, self.state.document["runs"], self.adaptor.metrics[0]
        for name in names:
            some = [runs[run_name(name, seed)] for seed in self.state.asked.all_seeds]
            if any(run["failed"] for run in some):
                found[name] = Standing(math.inf, math.inf)
            else:
                scores = [metric.loss(float(run["score"])) for run in some]
                found[name] = Standing(statistics.fmean(scores), statistics.fmean(float(run["tie"]) for run in some))
        return found

    def _close_rung(self, epochs: int, *, drop: bool, last: bool = False) -> None:
        state = self.state
        left = state.left
        known = self.standings(left)
        families = {name: each.family for name, each in state.candidates.items()}
        kept = survivors(known, families, last=last) if drop else [n for n in left if math.isfinite(known[n].loss)]
        dropped = [name for name in ranked(known) if name not in kept]
        metric = self.adaptor.metrics[0]
        shown = {name: metric.shown(metric.loss(known[name].loss)) for name in ranked(known)}
        rung = {"epochs": epochs, "valid": shown, "kept": kept, "dropped": dropped, "halved": drop}
        state.document["rungs"].append(rung)
        state.save()
        best = next(iter(shown))
        say(self.console, f"  best by validation: {best} ({metric.name} {shown[best]:.4g})")
        if dropped:
            say(self.console, f"  dropped: {', '.join(dropped)}")

    def _check_plain(self) -> None:
        for name, run in self.state.document["runs"].items():
            if run["candidate"] == NONE and run["failed"]:
                remedy = "Nothing can be compared with it. Begin anew with a smaller --lr."
                raise DivergedError(where=name, got=run["failed"], wanted="a plain network that learns", remedy=remedy)

    def _test(self) -> dict[str, list[Tested]]:
        """What the finalists do on the test set; it is looked at here, once."""
        epochs = self.state.document["rungs"][-1]["epochs"]
        jobs = self._jobs(self.state.left, epochs, test=True)
        with system_errors(self.state.folder):
            (self.state.folder / "scores").mkdir(exist_ok=True)
        found = {job.run: there for job in jobs if (there := _tested(self.state.scores(job.run), epochs))}
        fresh = [job for job in jobs if job.run not in found]
        with self._progress(len(fresh), "test") as advance:
            for job, report in self.crew.do(fresh):
                assert isinstance(report.done, Tested)
                found[job.run] = report.done
                document = {"epochs": epochs, "rows": report.done.rows.tolist(), "ece": report.done.ece}
                text = json.dumps(strict({**document, "parameters": report.done.parameters}), allow_nan=False)
                with system_errors(self.state.folder):
                    write_atomically(self.state.scores(job.run), text + "\n")
                advance()
        seeds = self.state.asked.all_seeds
        return {name: [found[run_name(name, seed)] for seed in seeds] for name in self.state.left}

    def _tell_rung(self, called: str, names: Sequence[str], epochs: int) -> None:
        seeds = self.state.asked.seeds
        runs = f"{len(names)} candidates x {seeds} seed{'s' * (seeds != 1)}"
        say(self.console, f"{called}: {runs}, to epoch {epochs}")

    @contextmanager
    def _progress(self, total: int, what: str) -> Iterator[Any]:
        """A bar on a terminal, nothing elsewhere."""
        if self.console is None or not self.console.is_terminal or not total:
            yield lambda: None
            return
        columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)


def _record(job: Job, report: Report) -> dict[str, Any]:
    known = {"candidate": job.candidate.name, "seed": job.seed, "epochs": job.epochs, "failed": report.failed}
    if not isinstance(report.done, Trained):
        return {**known, "score": None, "tie": None, "seconds": 0.0}
    return {**known, "score": report.done.score, "tie": report.done.tie, "seconds": report.done.seconds}


def _tested(path: Path, epochs: int) -> Tested | None:
    """What a run did on the test set, if that is known."""
    if not path.exists():
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    if told["epochs"] != epochs:
        return None
    return Tested(np.array(told["rows"], dtype=np.float64), told["parameters"], told["ece"])
