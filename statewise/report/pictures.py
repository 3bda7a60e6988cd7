"""The pictures of recipes that are pictures: drawn from the finished runs, beside their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from statewise.recipes import Outcome
from statewise.recipes import mixup_halfmoons as moons
from statewise.recipes import mixup_surrogate as surrogate
from statewise.recipes.mixing import MixingCase
from statewise.recipes.mixup_tagging import TEST
from statewise.recipes.tag_spectra import singular_values
from statewise.recipes.tags import Tagged
from statewise.report import figures_orthogonality, pictures_bounds, pictures_capacity, pictures_memory
from statewise.report.figures_mixup import (
    Boundary,
    plot_against_rho,
    plot_boundaries,
    plot_reliability,
    plot_singular_values,
)

#: The panels of Figure 1 of Karamzade et al. 2020, and beside them what the paper does not show.
_PANELS = (
    *(("clean", "standard"), ("noisy", "standard"), ("noisy", "pre-output")),
    *(("clean", "pre-output"), ("noisy", "input"), ("noisy", "through-time")),
)


def draw_pictures(outcome: Outcome, folder: Path) -> list[Path]:
    """Draw the pictures of a recipe that has some; gives where they are.

    Args:
        outcome: finished runs.
        folder: of the runs, where the pictures go.
    """
    draw = _PICTURES.get(outcome.recipe.name)
    return draw(outcome, folder) if draw is not None and outcome.measured else []


def _firsts(outcome: Outcome) -> dict[tuple[str, str], MixingCase]:
    """The first seed of every line, by size and row."""
    found: dict[tuple[str, str], MixingCase] = {}
    for step in outcome.steps.values():
        assert isinstance(step, MixingCase)
        found.setdefault((step.line.size, step.line.row), step)
    return found


def _moons(outcome: Outcome, folder: Path) -> list[Path]:
    cases = _firsts(outcome)
    panels = [key for key in _PANELS if key in cases] or list(cases)
    boundaries = {f"{size}, {row}": _boundary(cases[size, row], folder) for size, row in panels}
    plot_boundaries(boundaries, folder / "boundaries.png")
    calibrations = {
        f"{size}, {row}": moons.calibration_of(case, moons.trained_network(case, folder))
        for (size, row), case in cases.items()
        if size == panels[-1][0]
    }
    plot_reliability(calibrations, folder / "reliability.png")
    return [folder / "boundaries.png", folder / "reliability.png"]


def _surrogate(outcome: Outcome, folder: Path) -> list[Path]:
    networks = {row: (case, surrogate.trained_network(case, folder)) for (_, row), case in _firsts(outcome).items()}
    spectra = {row: surrogate.spectra_of(*network) for row, network in networks.items()}
    plot_singular_values(spectra, folder / "spectra.png", classes=("0", "1"))  # two labels, as in the paper
    calibrations = {row: surrogate.calibration_of(*network) for row, network in networks.items()}
    plot_reliability(calibrations, folder / "reliability.png")
    return [folder / "spectra.png", folder / "reliability.png"]


def _against_rho(outcome: Outcome, folder: Path) -> list[Path]:
    """Figure 4: a point for each site and rho."""
    mixed: dict[str, dict[str, dict[float, list[float]]]] = {}
    standard: dict[str, list[float]] = {}
    for run in outcome.measured:
        assert isinstance(run, Tagged)
        site, _, rho = run.line.row.rpartition("-")
        for measure, value in (("test F1, %", 100 * run.tests[TEST]["f1"]), ("test loss", run.tests[TEST]["loss"])):
            if site:
                mixed.setdefault(measure, {}).setdefault(site, {}).setdefault(float(rho), []).append(value)
            else:
                standard.setdefault(measure, []).append(value)
    if not mixed:
        return []
    plot_against_rho(mixed, folder / "rho.png", standard=standard)
    return [folder / "rho.png"]


def _spectra(outcome: Outcome, folder: Path) -> list[Path]:
    """Figure 5: the first seed of every row."""
    found: dict[str, Tagged] = {}
    for run in outcome.measured:
        assert isinstance(run, Tagged)
        found.setdefault(run.line.row, run)
    spectra = {row: singular_values(run.extra["spectra"]) for row, run in found.items()}
    plot_singular_values(spectra, folder / "spectra.png")
    return [folder / "spectra.png"]


def _boundary(case: MixingCase, folder: Path) -> Boundary:
    points, labels = moons.half_moons(case.settings.points, case.settings.noise, case.settings.seed)
    (left, right, _), (bottom, top, _) = moons.ACROSS, moons.UP
    return Boundary(
        probabilities=moons.probability_map(moons.trained_network(case, folder)),
        left=left,
        right=right,
        bottom=bottom,
        top=top,
        points=points,
        labels=labels,
    )


_PICTURES: Mapping[str, Callable[[Outcome, Path], list[Path]]] = {
    **pictures_bounds.PICTURES,
    **pictures_memory.PICTURES,
    **pictures_capacity.PICTURES,
    **figures_orthogonality.PICTURES,
    "sequence-mixup/halfmoons": _moons,
    "sequence-mixup/surrogate": _surrogate,
    "sequence-mixup/figure4": _against_rho,
    "sequence-mixup/figure5": _spectra,
}
