"""Coverage: how often a certificate is below the true error, on laws where that is known exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from statewise.bounds import kl_inverse
from statewise.recipes.bounds_laws import KINDS, LawSettings
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, verdicts

DELTAS = (0.05, 0.5)
LAWS: Mapping[str, LawSettings] = {
    "machines-0.2": LawSettings(kind="machines", noise=0.2, sequences=100),
    "machines-0.5": LawSettings(kind="machines", noise=0.5, sequences=30),
    "drawn-0.2": LawSettings(kind="drawn", noise=0.2, sequences=100),
    "drawn-0.5": LawSettings(kind="drawn", noise=0.5, sequences=30),
    "trained-0.1": LawSettings(kind="trained", noise=0.1, sequences=500),
    "trained-0.5": LawSettings(kind="trained", noise=0.5, sequences=100),
}


class Coverage(Study):
    """The share of samples whose certificate fails, and what it would be had the choice not been paid for."""

    name = "generalization-bounds/coverage"
    title = "How often certificates fail"
    rows = tuple(LAWS)
    usual_rows = rows
    sizes = ("exact",)
    seconds = 15.0

    def settings(self, line: Line, *, smoke: bool) -> LawSettings:
        usual = LAWS[line.row]
        return replace(usual, repetitions=3, steps=2, sequences=min(usual.sequences, 50)) if smoke else usual

    def compute(self, case: StudyCase, data: Any) -> Computed:
        return Computed(found=coverage(case.settings))

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["law", "noise", "m", "δ", "samples", "mean true error", "mean certificate"]
        columns += ["fails", "may fail", "fails if unpaid", "seconds"]
        return Sheet(columns, [_row(one, delta) for one in measured for delta in DELTAS], 1)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "A predictor is chosen by a sample and certified with the same sample, again and again; its true error is "
            "computed from the law, not estimated. Machines: the best of all 26 machines of at most two states on "
            "random words, by the automaton certificate. Drawn: the best of 1,000 Elman networks with large weights "
            "that were drawn beforehand. Trained: Elman networks of two units that are trained on the sample, by the "
            "best of the bounds that apply to small ones. Labels are flipped with the probability noise; at 0.5 "
            "nothing can be learnt, and what seems to be is chance. Fails: the share of samples whose certificate is "
            "below the true error, which may be at most δ. If unpaid: the same of kl_inverse(share of errors, "
            "ln(1/δ)/m), as if the predictor had been fixed beforehand.",
            *verdicts(claims(measured)),
        ]


def coverage(settings: LawSettings) -> dict[str, Any]:
    """How often certificates fail.

    Args:
        settings: the law.
    """
    trials = list(KINDS[settings.kind](settings, DELTAS))
    m, found = settings.sequences, {}
    for delta in DELTAS:
        gaps = [trial.bounds[delta] - trial.error for trial in trials]
        bare = [kl_inverse(trial.rate, -math.log(delta) / m) - trial.error for trial in trials]
        found[str(delta)] = {
            "certificate": fmean(trial.bounds[delta] for trial in trials),
            "fails": fmean(gap < 0 for gap in gaps),
            "fails_unpaid": fmean(gap < 0 for gap in bare),
            "gaps": gaps,
            "gaps_unpaid": bare,
        }
    return {
        "fails": found[str(DELTAS[0])]["fails"],
        "fails_unpaid": found[str(DELTAS[0])]["fails_unpaid"],
        "error": fmean(trial.error for trial in trials),
        "noise": settings.noise,
        "sequences": m,
        "samples": len(trials),
        **found,
    }


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What must be so, and whether it is; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    real = [one for one in measured if not one.smoke]
    answers = []
    for delta in DELTAS:
        shares = {one.line.row: one.found[str(delta)]["fails"] for one in real}
        if shares:
            worst = max(shares, key=lambda row: shares[row])
            text = f"δ = {delta}: certificates fail at most that often on every law"
            answers.append((f"{text} (most on {worst}, {shares[worst]:.3f})", shares[worst] <= delta))
        chance = {one.line.row: one.found[str(delta)]["fails_unpaid"] for one in real if one.found["noise"] == 0.5}
        for row in ("machines-0.5", "drawn-0.5"):
            if row in chance:
                text = f"δ = {delta}: on {row} they would fail more often than that, were the choice not paid for"
                answers.append((f"{text} ({chance[row]:.3f})", chance[row] > delta))
    return answers


def _row(one: Studied, delta: float) -> list[str]:
    found, at = one.found, one.found[str(delta)]
    return [
        *(one.line.row, f"{found['noise']:g}", str(found["sequences"]), f"{delta:g}", str(found["samples"])),
        *(f"{found['error']:.4f}", f"{at['certificate']:.4f}", f"{at['fails']:.3f}", f"{delta:g}"),
        *(f"{at['fails_unpaid']:.3f}", f"{one.seconds:.1f}"),
    ]


RECIPES = (Coverage(),)
