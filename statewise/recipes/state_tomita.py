"""Section 5.1 of Wang & Niepert 2019: the automata of Tomita's grammars, and of random ones, learnt and read."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from statewise.data import Language, random_machine, sample_words, tomita, tomita_sets
from statewise.data.grammars import TRAIN_LENGTHS, VALID_LENGTHS
from statewise.models import ClassifierConfig
from statewise.recipes.automata import AutomatonCase, AutomatonMaker, Learnt, Task
from statewise.recipes.lines import Line, Sheet, group
from statewise.recipes.published_states import TOMITA
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.train.harden import AUTOMATON, Hardening

NETWORKS = {
    "multiplicative": AUTOMATON,
    "gru": ClassifierConfig(cell="gru", hidden=32, embedding=8, centroids=(20,)),
}
TRAINING = Hardening()
STATES, SYMBOLS = (4, 8), (2, 4)  # of random machines
MACHINES = 50


class TomitaTable(Recipe):
    """For each grammar, how often the automaton that was learnt is the true one."""

    name = "state-regularized/tomita"
    title = "Automata of Tomita's grammars and of random ones"
    data = "generated"
    rows = tuple(TOMITA)
    usual_rows = rows[:7]
    sizes = tuple(NETWORKS)
    epochs = 0  # it is learnt step by step, until it is exact
    usual_seeds = 10
    paces = {}  # noqa: RUF012
    curve = ("", "")
    seconds = 10.0

    def complete(self, request: Request) -> Request:
        return super().complete(replace(request, count=request.count or (2 if request.smoke else MACHINES)))

    def steps(self, request: Request) -> list[AutomatonCase]:
        found = []
        for size in request.sizes:
            for row in request.rows:
                count = request.count if row == "random" else request.seeds
                training = replace(TRAINING, steps=150, restarts=4) if request.smoke else TRAINING
                found += [
                    AutomatonCase(
                        line=Line(row=row, size=size), config=NETWORKS[size], hardening=replace(training, seed=seed)
                    )
                    for seed in range(count or 1)
                ]
        return found

    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> AutomatonMaker:
        return AutomatonMaker(task_of, folder, console)

    def describe(self, data: Any) -> dict[str, Any]:
        return {"name": self.data, "words": data}

    def sheet(self, measured: Sequence[Learnt], request: Request) -> Sheet:
        columns = ["grammar", "network", "states", "published", "recovered", "faultless", "valid %"]
        columns += ["soft %", "states used", "certified", "steps", "runs", "seconds", "at most"]
        return Sheet(columns, [_row(line, runs) for line, runs in group(measured).items()], 2)

    def notes(self, measured: Sequence[Learnt]) -> list[str]:
        found = [
            "Recovered: the minimal automaton read off the weights is equivalent to the true one. Nothing but the "
            "training words decides when the search ends, and with which network; faultless is how often a machine "
            "made no mistake on them, so that it ended by itself. Valid is the machine's accuracy on the validation "
            "words, soft the network's on the training words. Certified is how often the soft network provably equals "
            "its machine on words of every length, and in brackets the median temperature up to which it does. States "
            "used, steps and seconds are medians. Each run has words of its own.",
        ]
        if {"5", "6"} & {one.line.row for one in measured}:
            found.append("Of grammars 5 and 6 the paper reports 97.2 % of the training words and 96.8 % of the others.")
        missed = [one for one in measured if not one.found["recovered"]]
        failed = [f"{one.name} ({one.found['witness'] or 'the empty word'})" for one in missed]
        return [*found, *([f"Not recovered, with a word on which they differ: {', '.join(failed)}."] if failed else [])]


def task_of(case: AutomatonCase) -> Task:
    """The language of a case, and its words.

    Args:
        case: what is asked.
    """
    row, seed = case.line.row, case.hardening.seed
    if row != "random":
        target = tomita(int(row)).minimal
        assert target is not None
        return Task(target, *tomita_sets(int(row), seed))
    generator = np.random.default_rng(seed)
    states, symbols = (int(generator.integers(low, high + 1)) for low, high in (STATES, SYMBOLS))
    machine = random_machine(states, symbols, seed)
    language = Language.machine(machine, name=f"random {seed}")
    train, valid = (sample_words(language, lengths=of, seed=seed) for of in (TRAIN_LENGTHS, VALID_LENGTHS))
    return Task(machine, train, valid)


def _row(line: Line, runs: Sequence[Learnt]) -> list[str]:
    def column(name: str) -> list[Any]:
        return [run.found[name] for run in runs]

    def share(name: str) -> str:
        return f"{100 * statistics.fmean(column(name)):.2f}"

    states = sorted(set(column("target_states")))
    seconds = [run.seconds for run in runs]
    bound = statistics.median(each or 0.0 for each in column("certified_temperature"))
    return [
        *(line.row, line.size, "-".join(map(str, dict.fromkeys((states[0], states[-1])))), TOMITA[line.row]),
        f"{sum(column('recovered'))} of {len(runs)}",
        f"{sum(column('exact'))} of {len(runs)}",
        *(share("valid_accuracy"), share("soft_accuracy")),
        f"{statistics.median(column('used_states')):g}",
        f"{sum(column('certified'))} ({bound:.2g})",
        f"{statistics.median(column('steps')):g}",
        str(len(runs)),
        *(f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"),
    ]


RECIPES = (TomitaTable(),)
