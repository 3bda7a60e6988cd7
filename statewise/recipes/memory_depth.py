"""Depth against width in minutes: copying memory at a thousand parameters (a reduced form of Ziv 2019, Figure 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statewise.data.copying_memory import CopyingMemory
from statewise.memory.budget import orthogonal_parameters, width_within
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.recipe import Pace
from statewise.recipes.replica_studies import Place, ReplicaStudy, spread
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, StudyCase, verdicts
from statewise.sweep.trial import Trial

#: Medians of three seeds of an earlier implementation, and what must come out: below, or above.
REFERENCE = {"depth1": 0.632, "depth2": 0.995, "depth3": 0.994}
BELOW, ABOVE = 0.90, 0.95


@dataclass(frozen=True, kw_only=True)
class DepthSettings:
    """Networks of one depth.

    Args:
        depth: layers.
        budget: of parameters; the width is the largest within it.
        m: symbols to be remembered.
        n: kinds of them.
        lr: of everything but the orthogonal matrices.
        lr_recurrent: of these.
        batch: sequences of an iteration.
        iterations: at most.
        check_every: iterations from one look to the next.
        examples: held-out ones of a look, and as many at the end.
        goal: accuracy at which a run ends.
        seeds: how many networks, side by side.
        seed: of the first.
    """

    depth: int = 1
    budget: int = 1024
    m: int = 20
    n: int = 8
    lr: float = 1e-3
    lr_recurrent: float = 1e-4
    batch: int = 128
    iterations: int = 6000
    check_every: int = 500
    examples: int = 1000
    goal: float = 0.995
    seeds: int = 5
    seed: int = 0

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of a network but its width."""
        return {"depth": self.depth, "inputs": self.n + 2, "classes": self.n + 2}

    @property
    def width(self) -> int:
        """The largest within the budget."""
        return width_within(budget=self.budget, **self.sizes)

    def trials(self) -> list[Trial]:
        """The networks."""
        return [
            Trial(
                task=CopyingMemory(m=self.m, n=self.n, delay=0),
                depth=self.depth,
                width=self.width,
                lr=self.lr,
                lr_recurrent=self.lr_recurrent,
                seed=self.seed + seed,
                batch=self.batch,
                iterations=self.iterations,
                check_every=self.check_every,
                patience=self.iterations,  # one rate throughout
                validate=self.examples,
                test=self.examples,
                goal=self.goal,
            )
            for seed in range(self.seeds)
        ]


class DepthStudy(ReplicaStudy):
    """Three depths at equal numbers of parameters, all seeds of each side by side."""

    name = "depth-memory/reduced"
    title = "Copying memory at a thousand parameters"
    rows = ("depth1", "depth2", "depth3")
    usual_rows = rows
    sizes = ("1024",)
    usual_seeds = 5

    def pace_of(self, step: StudyCase) -> Pace:
        return Pace(gpu=9, cpu=92)

    def settings(self, line: Line, *, smoke: bool) -> DepthSettings:
        depth, budget = int(line.row.removeprefix("depth")), int(line.size)
        if smoke:
            return DepthSettings(
                depth=depth, budget=budget, m=2, n=2, iterations=8, check_every=4, examples=16, batch=8
            )
        return DepthSettings(depth=depth, budget=budget)

    def compute(self, case: StudyCase, data: Place) -> Computed:
        settings: DepthSettings = case.settings
        outcomes = data.train(case, settings.trials(), replicas=settings.seeds)
        parameters = orthogonal_parameters(width=settings.width, **settings.sizes)
        return Computed(found={**spread(outcomes), "width": settings.width, "network_parameters": parameters})

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = [
            "depth",
            "whose",
            "channels",
            "parameters",
            "median",
            "least",
            "best",
            "runs",
            "iterations",
            "seconds",
        ]
        rows = []
        for one in measured:
            found, row = one.found, one.line.row
            span = f"{min(found['iterations'])}-{max(found['iterations'])}"
            told = [f"{found[name]:.4f}" for name in ("median", "least", "best")]
            sizes = [str(found["width"]), str(found["network_parameters"])]
            runs = [str(len(found["accuracies"])), span, f"{one.seconds:.0f}"]
            rows.append([row, "ours", *sizes, *told, *runs])
            whose = "reference (not comparable)" if request.smoke else "reference"
            rows.append([row, whose, "-", "-", f"{REFERENCE[row]:.3f}", "-", "-", "3", "-", "-"])
        return Sheet(columns, rows, 2)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "20 symbols of 8 kinds (60 bits) are to be repeated at once, without a delay. Accuracy is the share of the "
            "symbols that are right, on 1,000 held-out examples. One rate, no decay, at most 6,000 iterations of 128 "
            "fresh sequences; a run ends above 0.995; all unless it is set otherwise. The task was made harder until "
            "depths came apart, so it is a demonstration, not a fair sample of tasks. The reference is an earlier "
            "implementation, three seeds.",
            *verdicts(claims(measured)),
        ]


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What must come out; only of what was made, and not of a smoke run.

    Args:
        measured: finished lines.
    """
    answers: list[tuple[str, bool]] = []
    for one in measured:
        if one.smoke:
            continue
        median, runs, row = one.found["median"], len(one.found["accuracies"]), one.line.row
        shallow = row == "depth1"
        wanted = f"below {BELOW}" if shallow else f"above {ABOVE}"
        text = f"{row}: the median of {runs} seeds is {wanted} ({median:.4f})"
        answers.append((text, median < BELOW if shallow else median > ABOVE))
    return answers


RECIPES: tuple[Any, ...] = (DepthStudy(),)
