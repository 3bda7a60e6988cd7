"""The picture of how far matrices come away from orthogonal: deviation against iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from statewise.errors import ArgumentError
from statewise.recipes import Outcome
from statewise.recipes.memory_figure1_2 import TITLES
from statewise.report.pages import new_page, saved

Curve = tuple[Sequence[int], Sequence[float]]


def plot_deviation(panels: Mapping[str, Mapping[str, Curve]], path: Path | str | None = None) -> Any:
    """``||W W^T - I||`` against iterations, both logarithmic; a panel for each title (Ziv 2019, Figure 1.2).

    A deviation of exactly 0 has no place on the axis and is left out.

    Args:
        panels: by title, by the name of the curve: iterations, and the deviation after each.
        path: a file to write.

    Returns:
        A matplotlib figure, which belongs to nobody and opens no window.
    """
    if not panels or not all(panels.values()):
        raise ArgumentError(where="plot_deviation.panels", got="no curve", wanted="at least one in each panel")
    figure = new_page(4.2 * len(panels) + 2.6, 4.2)
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    for axes, (title, curves) in zip(grid, panels.items(), strict=True):
        for name, (iterations, deviation) in curves.items():
            if len(iterations) != len(deviation):
                where = f"plot_deviation.panels[{title!r}][{name!r}]"
                wanted = f"{len(iterations)}, one for each number of iterations"
                raise ArgumentError(where=where, got=f"{len(deviation)} deviations", wanted=wanted)
            shown = [pair for pair in zip(iterations, deviation, strict=True) if pair[1] > 0]
            across, up = [pair[0] for pair in shown], [pair[1] for pair in shown]
            axes.plot(across, up, label=name, color=f"C{names.index(name) % 10}", marker="o" if len(up) == 1 else "")
        axes.set(title=title, xlabel="iterations", xscale="log", yscale="log")
        axes.grid(visible=True, alpha=0.3)
    grid[0].set_ylabel(r"$\|W W^T - I\|_F$")
    grid[-1].legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return saved(figure, path)


def _deviation(outcome: Outcome, folder: Path) -> list[Path]:
    panels: dict[str, dict[str, Curve]] = {}
    for one in outcome.measured:
        curves = panels.setdefault(f"weights in {one.line.size}", {})
        curves.setdefault(TITLES[one.line.row], (one.found["iterations"], one.found["deviation"]))
    plot_deviation(panels, folder / "orthogonality.png")
    return [folder / "orthogonality.png"]


#: What is drawn, by the name of the recipe.
PICTURES: Mapping[str, Callable[[Outcome, Path], list[Path]]] = {"depth-memory/figure1.2": _deviation}
