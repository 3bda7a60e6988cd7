"""The pictures of the recipes that train networks to remember: how hard, how deep, how well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from statewise.recipes import Outcome
from statewise.recipes.memory_capacity import RECIPES, CapacityFigure, network_of
from statewise.recipes.memory_pixels import PUBLISHED
from statewise.recipes.studies import Studied
from statewise.report.figures_capacity import plot_accuracies, plot_against_size, plot_capacity
from statewise.sweep.capacity_result import CapacityResult


def _capacity(outcome: Outcome, folder: Path) -> list[Path]:
    recipe = cast("CapacityFigure", outcome.recipe)
    networks = tuple(network_of(one) for one in cast("list[Studied]", outcome.measured))
    result = CapacityResult(search={}, networks=networks)
    plot_capacity(result, folder / "capacity.png", hardness=f"largest {recipe.measure} solved", title=recipe.title)
    return [folder / "capacity.png"]


def _depths(outcome: Outcome, folder: Path) -> list[Path]:
    found = {one.line.row: one.found["accuracies"] for one in cast("list[Studied]", outcome.measured)}
    plot_accuracies(found, folder / "depths.png")
    return [folder / "depths.png"]


def _pixels(outcome: Outcome, folder: Path) -> list[Path]:
    ours, published = {}, {}
    for one in cast("list[Studied]", outcome.measured):
        channels = int(one.line.row.split("x")[1])
        ours[one.line.row] = (one.found["true"], channels, 100 * one.found["accuracy"])
        published[one.line.row] = (one.found["true"], channels, PUBLISHED[one.line.row][1])
    plot_against_size({"ours": ours, "published": published}, folder / "pixels.png")
    return [folder / "pixels.png"]


#: What is drawn, by the name of the recipe.
PICTURES: Mapping[str, Callable[[Outcome, Path], list[Path]]] = {
    **{recipe.name: _capacity for recipe in RECIPES},
    "depth-memory/reduced": _depths,
    "depth-memory/tableC1": _pixels,
}
