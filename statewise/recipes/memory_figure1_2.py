"""Figure 1.2 of Ziv 2019: how far recurrent matrices come away from orthogonal during training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from statewise.recipes.lines import Line, Sheet, group
from statewise.recipes.memory_drift import (
    DTYPES,
    PRINTED,
    UPDATES,
    DriftSettings,
    TrainedSettings,
    deviations,
    looks_of,
    told_of,
    trained,
)
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, verdicts

#: Updates by random gradients, and real training.
TRAINED = {
    "full-capacity-trained": "full-capacity update, copying memory",
    "scornn-trained": "scoRNN, copying memory",
}
TITLES = {
    "plain": "full-capacity update, computed in the weight's dtype",
    "full-capacity": "full-capacity update, computed in float64",
    "reorthogonalised": "the same, reorthogonalised",
    "scornn": "scoRNN",
    **TRAINED,
}
#: One run of an earlier implementation. The thesis shows a curve without numbers.
REFERENCE = {
    ("float32", "plain"): dict(zip(PRINTED, (7e-6, 6e-5, 2.5e-4, 4.6e-4, 8.8e-4), strict=True)),
    ("float32", "scornn"): dict.fromkeys(PRINTED, 3e-6),
}
#: What 10,000 steps must not exceed.
LIMITS = {"float32": 1e-4, "float64": 1e-11}


class DriftCase(StudyCase):
    """A line of the figure: its row is the update, and its size the dtype."""

    said = frozenset(("update", "dtype"))


class Figure12(Study):
    """Deviation from orthogonality against iterations."""

    name = "depth-memory/figure1.2"
    title = "How far recurrent matrices come away from orthogonal"
    rows = tuple(TITLES)
    usual_rows = rows
    sizes = tuple(DTYPES)
    seconds = 20.0
    case = DriftCase

    def complete(self, request: Request) -> Request:
        return super().complete(replace(request, sizes=request.sizes or self.sizes))

    def settings(self, line: Line, *, smoke: bool) -> DriftSettings | TrainedSettings:
        if line.row in UPDATES:
            drift = DriftSettings(update=line.row, dtype=line.size)
            return replace(drift, channels=8, steps=20, reorthogonalize_every=5) if smoke else drift
        trained = TrainedSettings(update=line.row.removesuffix("-trained"), dtype=line.size)
        return replace(trained, channels=8, steps=5, batch=4) if smoke else trained

    def compute(self, case: StudyCase, data: Any) -> Computed:
        settings = case.settings
        if isinstance(settings, TrainedSettings):
            return trained(settings)
        looks = looks_of(settings.steps)
        return Computed(found=told_of(sorted(looks), list(deviations(settings, looks))))

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["update", "weight", "whose", *(f"after {step}" for step in PRINTED), "at the end", "steps"]
        rows = []
        for line, runs in group(measured).items():
            rows.append(_ours(line, runs))
            if known := REFERENCE.get((line.size, line.row)):
                whose = "reference (not comparable)" if request.smoke else "reference"
                told = [f"{known[step]:.1e}" for step in PRINTED]
                rows.append([TITLES[line.row], line.size, whose, *told, *["-"] * 4])
        return Sheet([*columns, "runs", "seconds"], rows, 3)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "The Frobenius norm of W W^T - I, in float64; of several runs or layers the largest, and of a matrix that "
            "is reorthogonalised, every 100 steps, the largest since the look before. Random gradients: 116 channels, "
            "step size 0.01, entries N(0, 0.1^2), for scoRNN the steps of A. Copying memory: 48 channels, 5 of 8 "
            "symbols over 10 steps, RMSprop of TensorFlow, rates 1e-3 and 1e-4. The thesis quotes the figure from "
            "Helfrich et al. 2018, on permuted MNIST, without numbers; the reference is an earlier implementation of "
            "the random test.",
            *verdicts(claims(measured)),
        ]


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What is known of the deviation, and whether it is so; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    answers = []
    for one in (one for one in measured if not one.smoke):
        row, dtype, found = one.line.row, one.line.size, one.found
        told, end, steps = f"{TITLES[row]}, {dtype}", found["end"], found["iterations"][-1]
        if known := REFERENCE.get((dtype, row)):
            close = all(found[f"at_{step}"] <= 2 * value for step, value in known.items() if f"at_{step}" in found)
            answers.append((f"{told}: at most twice the reference", close))
        if row == "plain" and dtype == "float32" and "at_1000" in found:
            linear = end > 0.5 * found["at_1000"] * steps / 1000
            answers.append((f"{told}: grows in proportion to the steps", linear))
        if row != "plain":
            answers.append((f"{told}: under {LIMITS[dtype]:g} after {steps} steps ({end:.1e})", end < LIMITS[dtype]))
        if row == "reorthogonalised" and "at_100" in found:
            answers.append((f"{told}: no more at the end than at first", end < 2 * found["at_100"]))
        if row in ("scornn", "scornn-trained"):
            answers.append((f"{told}: flat", end < 3 * max(found["deviation"][0], torch.finfo(DTYPES[dtype]).eps)))
        if row in TRAINED:
            accuracy = found["data_accuracy"]
            answers.append((f"{told}: learns the task (data-accuracy {accuracy:.4f})", accuracy > 0.99))
    return answers


def _ours(line: Line, runs: Sequence[Studied]) -> list[str]:
    """A row of the table: the largest deviation of any run."""

    def worst(key: str) -> str:
        return f"{max(run.found[key] for run in runs):.1e}" if key in runs[0].found else "-"

    told = [*(worst(f"at_{step}") for step in PRINTED), worst("end"), str(runs[0].found["iterations"][-1])]
    return [TITLES[line.row], line.size, "ours", *told, str(len(runs)), f"{runs[0].seconds:.1f}"]


RECIPES = (Figure12(),)
