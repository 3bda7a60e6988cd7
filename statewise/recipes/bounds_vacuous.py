"""How vacuous the bounds of networks of usual sizes are, Elman and gated: computed from norms, nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from statewise.recipes.bounds_networks import VacuousSettings, elman_numbers, gated_numbers, named_network
from statewise.recipes.bounds_subjects import TITLES
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.published_bounds import GATED, VACUOUS
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, verdicts

SIZE = "norms"
#: What the table shows of Elman networks: heading and how many digits count.
_SHOWN = {name: TITLES[name] for name in ("thm2", "dudley", "thm3_l1", "bartlett_unrolled", "pac_bayes", "zhang_order")}


class Vacuous(Study):
    """What each bound adds to the risk of some networks, and what the certificate makes of the same."""

    name = "generalization-bounds/vacuous"
    title = "How vacuous bounds are"
    rows = (*VACUOUS, *GATED)
    usual_rows = rows
    sizes = (SIZE,)
    seconds = 0.3

    def settings(self, line: Line, *, smoke: bool) -> VacuousSettings:
        return named_network(line.row)

    def compute(self, case: StudyCase, data: Any) -> Computed:
        settings = case.settings
        return Computed(found=elman_numbers(settings) if settings.cell == "rnn" else gated_numbers(settings))

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = [
            "network",
            "whose",
            "P",
            *_SHOWN.values(),
            "m for Theorem 2 ≤ 1",
            "lnN/P",
            "θ",
            "β",
            "lnN",
            "kl, risk 0",
            "kl, risk .05",
        ]
        rows = []
        for one in measured:
            known = VACUOUS.get(one.line.row) or GATED[one.line.row]
            rows += [_row(one.line.row, "ours", one.found), _row(one.line.row, "reference", known)]
        return Sheet(columns, rows, 2)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "What each bound adds to the risk at δ = 0.05, before it is cut at 1 (a dash: it does not apply, or there "
            "is no number to hold ours against); matrices of Gaussian shape with the given spectral norms; kl: the "
            "whole certificate where no margin, or a share of 0.05, is below γ, without the price of a grid. Gates are "
            "normalised (matrices of norm 0.1, sums within ±0.2) or typical (norm 1, sums within ±10). Zhang et al.'s "
            "number is an order, and no guarantee.",
            *_refined(measured),
            *verdicts(claims(measured)),
        ]


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What the reference says, and whether it is so; only of what was made.

    Args:
        measured: finished cases.
    """
    found = {one.line.row: one.found for one in measured if not one.smoke}
    elman = {row: numbers for row, numbers in found.items() if row in VACUOUS}
    answers = []
    if elman:
        apart = max(
            abs(numbers[f"log10_{name}"] - math.log10(VACUOUS[row][name]))
            for row, numbers in elman.items()
            for name in _SHOWN
        )
        # References have two digits at least, or one behind the point of a power of ten.
        answers.append((f"Bounds are the reference's within its rounding (farthest: 10^±{apart:.3f})", apart <= 0.05))
        paper = min(numbers["log10_thm2"] for numbers in elman.values())
        answers.append((f"Theorem 2 is vacuous everywhere, at least 61 (least: {10**paper:.1f})", 10**paper >= 61))
        fewest = min(numbers["log10_needed"] for numbers in elman.values())
        answers.append((f"It needs at least 10^8.6 sequences to reach 1 (fewest: 10^{fewest:.1f})", fewest > 8.55))
    known = {row: VACUOUS.get(row) or GATED[row] for row in found}
    if found:
        apart = max(
            abs(found[row][key] - known[row][key]) for row in found for key in ("kl_0", "kl_5") if key in known[row]
        )
        answers.append((f"Certificates are the reference's to three digits (farthest: {apart:.4f})", apart <= 0.00051))
    gated = [row for row in found if row in GATED]
    if gated:
        apart = max(abs(found[row]["nats"] / GATED[row]["nats"] - 1) for row in gated)
        answers.append((f"Nats of gated networks are the reference's (farthest: {apart:.1e})", apart <= 1e-4))
    for cell in ("mgu", "lstm"):
        if {f"{cell}16-normalised", f"{cell}16-typical"} <= found.keys():
            factor = found[f"{cell}16-typical"]["nats"] / found[f"{cell}16-normalised"]["nats"]
            answers.append(
                (
                    f"Normalised gates of {cell} save a factor of about 5 to 12 of the nats ({factor:.1f})",
                    5 <= factor <= 12.5,
                )
            )
    return answers


def _refined(measured: Sequence[Studied]) -> list[str]:
    better = [
        f"{one.line.row} {one.found['refined_nats']:,.0f} instead of {one.found['nats']:,.0f}"
        for one in measured
        if "refined_nats" in one.found and one.found["refined_nats"] < 0.999 * one.found["nats"]
    ]
    text = "Bounding the gates of an LSTM once more, with the bound on its own state, leaves fewer nats (lnN): "
    return [text + "; ".join(better) + "."] if better else []


def _log10(numbers: Mapping[str, Any], name: str) -> float:
    """Of our numbers, which are logarithms, or of the reference's, which are not."""
    return float(numbers[f"log10_{name}"]) if f"log10_{name}" in numbers else math.log10(numbers[name])


def _row(network: str, whose: str, numbers: Mapping[str, Any]) -> list[str]:
    def told(name: str, form: str) -> str:
        return format(numbers[name], form) if name in numbers else "-"

    bounds = [_size(_log10(numbers, name)) if name in numbers or f"log10_{name}" in numbers else "-" for name in _SHOWN]
    needed = f"10^{numbers['log10_needed']:.1f}" if "log10_needed" in numbers else "-"
    return [
        *(network, whose, told("parameters", ",.0f"), *bounds, needed, told("nats_per_parameter", ".1f")),
        *(told("theta", ".3f"), told("beta", ".3f"), told("nats", ",.0f"), told("kl_0", ".4f"), told("kl_5", ".4f")),
    ]


def _size(log10: float) -> str:
    """A number that may be too large to read.

    >>> _size(2.5), _size(0.1), _size(142.44)
    ('316', '1.26', '10^142.4')
    """
    if log10 >= 6:
        return f"10^{log10:.1f}"
    value = 10**log10
    return f"{value:.3g}" if value < 1000 else f"{value:.2e}".replace("e+0", "e")


RECIPES = (Vacuous(),)
