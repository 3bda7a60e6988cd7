"""The pictures of the studies of bounds, drawn from their finished cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statewise.recipes import Outcome
from statewise.recipes.bounds_coverage import DELTAS
from statewise.recipes.bounds_subjects import TITLES
from statewise.recipes.bounds_table1 import BOUNDS, SIGNS
from statewise.recipes.published_bounds import TABLE1, TOMITA_BOUNDS
from statewise.report.figures_bounds import (
    plot_against_truth,
    plot_certificates,
    plot_gaps,
    plot_growth,
    plot_margins,
    plot_penalties,
    plot_powers,
)


def _powers(outcome: Outcome, folder: Path) -> list[Path]:
    panels = {
        SIGNS[one.line.row] + (" (besides β^t)" if one.line.row == "above" else ""): {
            bound.title: {
                "printed": TABLE1[one.line.row][bound.column].steps,
                "identity": one.found[name]["t_identity"],
                "tanh": one.found[name]["t_tanh"],
            }
            for name, bound in BOUNDS.items()
        }
        for one in outcome.measured
    }
    plot_powers(panels, folder / "powers.png")
    return [folder / "powers.png"]


def _growth(outcome: Outcome, folder: Path) -> list[Path]:
    found = []
    for activation in dict.fromkeys(one.line.size for one in outcome.measured):
        cases = [one for one in outcome.measured if one.line.size == activation]
        panels = {
            f"β = {one.line.row}, {activation}": {
                TITLES[name]: [float(value) for value in curve] for name, curve in one.found["log_penalties"].items()
            }
            for one in cases
        }
        found.append(folder / f"growth-{activation}.png")
        plot_growth(panels, cases[0].found["steps"], found[-1])
    return found


def _penalties(outcome: Outcome, folder: Path) -> list[Path]:
    networks = {}
    for one in outcome.measured:
        bounds = {title: one.found.get(f"log10_{name}") for name, title in TITLES.items()}
        if known := {title: value for title, value in bounds.items() if value is not None}:
            networks[one.line.row] = known
    if not networks:  # gated networks alone have one bound
        return []
    plot_penalties(networks, folder / "vacuous.png")
    return [folder / "vacuous.png"]


def _certificates(outcome: Outcome, folder: Path) -> list[Path]:
    firsts = [one for one in outcome.measured if one.seed == 0]
    networks = {one.line.row: dict(one.found["claims"]) for one in firsts}
    errors = {one.line.row: float(one.found["test_error"]) for one in firsts}
    plot_certificates(networks, folder / "certificates.png", errors=errors)
    return [folder / "certificates.png"]


def _gaps(outcome: Outcome, folder: Path) -> list[Path]:
    found = []
    for delta in map(str, DELTAS):
        panels: dict[str, dict[str, Any]] = {
            f"{one.line.row}, δ = {delta}": {
                "paid": one.found[delta]["gaps"],
                "unpaid": one.found[delta]["gaps_unpaid"],
            }
            for one in outcome.measured
        }
        found.append(folder / f"coverage-{delta}.png")
        plot_gaps(panels, found[-1])
    return found


def _automata(outcome: Outcome, folder: Path) -> list[Path]:
    points: dict[str, list[tuple[float, float]]] = {}
    for one in outcome.measured:
        pair = float(one.found["certificate"]), float(one.found["true_error"])
        points.setdefault(f"Tomita {one.line.row}", []).append(pair)
    reference = {f"Tomita {row}": value for row, value in TOMITA_BOUNDS.items()}
    plot_against_truth(points, folder / "automata.png", reference=reference)
    return [folder / "automata.png"]


def _rows(outcome: Outcome, folder: Path) -> list[Path]:
    firsts = [one for one in outcome.measured if one.seed == 0]
    networks = {
        one.line.row: dict(one.found.get("claims", {one.found["best"]: one.found["certificate"]})) for one in firsts
    }
    errors = {one.line.row: float(one.found["test_error"]) for one in firsts}
    plot_certificates(networks, folder / "certificates.png", errors=errors)
    margins = {one.line.row: one.found["margins"] for one in firsts if "margins" in one.found}
    if not margins:
        return [folder / "certificates.png"]
    plot_margins(margins, folder / "margins.png")
    return [folder / "certificates.png", folder / "margins.png"]


#: What is drawn, by the name of the recipe.
PICTURES: Mapping[str, Callable[[Outcome, Path], list[Path]]] = {
    "generalization-bounds/table1": _powers,
    "generalization-bounds/scaling": _growth,
    "generalization-bounds/vacuous": _penalties,
    "generalization-bounds/trained": _certificates,
    "generalization-bounds/row-mnist": _rows,
    "generalization-bounds/coverage": _gaps,
    "generalization-bounds/automata": _automata,
}
