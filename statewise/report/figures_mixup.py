"""The figures of Karamzade et al. (2020), and the reliability of probabilities.

================================= ===================================================================
figure of the paper               function
================================= ===================================================================
1                                 :func:`plot_boundaries`
4                                 :func:`plot_against_rho`
5                                 :func:`plot_singular_values`
none                              :func:`plot_reliability`
================================= ===================================================================

Each gives a matplotlib figure, which belongs to nobody and opens no window, and writes it if a path is given. The same
numbers give the same bytes of a PNG file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from statewise.analysis import Calibration, SingularValues
from statewise.errors import ArgumentError, ShapeError
from statewise.report.pages import new_page, saved

_NORMALIZED = {None: r"$\sigma$", "sqrt_n": r"$\sigma / \sqrt{n}$", "sum": r"$\sigma / \sum \sigma$"}
_MARKS = ("o", "^", "s", "D")
_COLOURS = ("#1f5fa8", "#b8440e", "#3c7a2e", "#6a3d9a")  # of classes: dark enough on a light map


@dataclass(frozen=True, kw_only=True, eq=False)
class Boundary:
    """What a network says on a grid of the plane, and the points that it was trained on.

    Args:
        probabilities: of class 1, a row for each height from the lowest upwards.
        left: the first column's coordinate.
        right: the last column's.
        bottom: the first row's.
        top: the last row's.
        points: to draw over it.
        labels: their classes.
    """

    probabilities: Float[np.ndarray, "rows columns"]
    left: float
    right: float
    bottom: float
    top: float
    points: Float[np.ndarray, "points 2"]
    labels: Int[np.ndarray, " points"]

    def __post_init__(self) -> None:
        if min(self.probabilities.shape) < 2 or not (self.left < self.right and self.bottom < self.top):
            got = f"{self.probabilities.shape} on [{self.left}, {self.right}] x [{self.bottom}, {self.top}]"
            raise ArgumentError(where="Boundary", got=got, wanted="two rows and columns at least, on a rectangle")
        if len(self.points) != len(self.labels):
            raise ShapeError(where="Boundary.labels", got=len(self.labels), wanted=f"{len(self.points)}, one a point")


def plot_boundaries(
    panels: Mapping[str, Boundary], path: Path | str | None = None, *, columns: int = 3, band: float = 0.1
) -> Any:
    """Probability maps of a classifier of the plane with its training points, a panel for each training (Figure 1).

    Between the dashed lines the network is unsure; the full line is where it changes its mind.

    Args:
        panels: by title, such as ``{"noisy, pre-output": boundary}``.
        path: a file to write; its ending names the format.
        columns: panels beside each other.
        band: the dashed lines are at this probability and at its complement.
    """
    if not 0 < band < 0.5:
        raise ArgumentError(where="plot_boundaries.band", got=band, wanted="a number between 0 and 0.5")
    columns = min(columns, len(_some(panels, "plot_boundaries.panels")))
    rows = -(-len(panels) // columns)
    figure = new_page(3.4 * columns + 0.8, 2.55 * rows + 0.3)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, (title, panel) in zip(grid.flat, panels.items(), strict=False):
        image = _map(axes, panel, band)
        axes.set_title(title, fontsize="medium")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(grid.flat), label="probability of class 1", shrink=0.8)
    return saved(figure, path)


def plot_singular_values(
    spectra: Mapping[str, Sequence[SingularValues]],
    path: Path | str | None = None,
    *,
    classes: Sequence[str] | None = None,
) -> Any:
    """The largest singular values of the states of some classes, a line for each training (Figure 5).

    A row for each class, a column for each way to centre and normalize, since the paper does not say which it took.

    Args:
        spectra: by the name of the training; of each the same ways, such as :func:`~statewise.analysis.every_spectrum`
            gives them.
        path: a file to write.
        classes: which; None for all.
    """
    first = next(iter(_some(spectra, "plot_singular_values.spectra").values()))
    ways = [(each.center, each.normalize) for each in _some(first, "plot_singular_values.spectra")]
    for name, each in spectra.items():
        if [(one.center, one.normalize) for one in each] != ways or each[0].classes != first[0].classes:
            wanted = f"the ways and classes of {next(iter(spectra))!r}"
            raise ArgumentError(where=f"plot_singular_values.spectra[{name!r}]", got="others", wanted=wanted)
    chosen = _some(first[0].classes if classes is None else classes, "plot_singular_values.classes")
    places = [_place(first[0], name) for name in chosen]
    figure = new_page(2.5 * len(ways) + 0.8, 2.2 * len(places) + 0.6)
    grid = figure.subplots(len(places), len(ways), squeeze=False, sharex=True)
    for row, (place, called) in enumerate(zip(places, chosen, strict=True)):
        for column, (center, normalize) in enumerate(ways):
            axes = grid[row, column]
            for number, (name, each) in enumerate(spectra.items()):
                values = each[column].values[place]
                axes.plot(range(1, len(values) + 1), values, label=name, color=f"C{number % 10}", marker=".")
            axes.set_ylim(bottom=0)
            axes.grid(visible=True, alpha=0.3)
            if row == 0:
                centred = "centred" if center else "not centred"
                axes.set_title(f"{_NORMALIZED[normalize]}, {centred}", fontsize="medium")
        grid[row, 0].set_ylabel(f"class {called}")
    for axes in grid[-1]:
        axes.set_xlabel("index")
    grid[0, 0].legend(fontsize="small")
    return saved(figure, path)


def plot_against_rho(
    measures: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    path: Path | str | None = None,
    *,
    standard: Mapping[str, Sequence[float]] | None = None,
) -> Any:
    """Numbers of runs against the decorrelation rho of their coefficients, a panel for each number (Figure 4).

    Points are means over the seeds, bars a standard deviation.

    Args:
        measures: by the number's name, by the site of the mixing, by rho: one number a seed, such as
            ``{"test F1": {"pre-output": {0.0: [73.8, 73.5], 0.5: [73.1, 73.3]}}}``.
        path: a file to write.
        standard: by the number's name, those of training without mixing; drawn as a dashed line.
    """
    figure = new_page(4.2 * len(_some(measures, "plot_against_rho.measures")) + 0.4, 3.6)
    grid = figure.subplots(1, len(measures), squeeze=False)[0]
    for axes, (measure, sites) in zip(grid, measures.items(), strict=True):
        for number, (site, by_rho) in enumerate(sites.items()):
            rhos = sorted(_some(by_rho, f"plot_against_rho.measures[{measure!r}][{site!r}]"))
            means = [float(np.mean(_some(by_rho[rho], f"{site}, rho = {rho:g}"))) for rho in rhos]
            spreads = [float(np.std(by_rho[rho], ddof=1)) if len(by_rho[rho]) > 1 else 0.0 for rho in rhos]
            axes.errorbar(rhos, means, spreads, label=site, marker=_MARKS[number % len(_MARKS)], capsize=3)
        if standard is not None and measure in standard:
            axes.axhline(float(np.mean(standard[measure])), color="black", linestyle="--", label="standard")
        axes.set(xlabel=r"decorrelation $\rho$", ylabel=measure)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="small")
    return saved(figure, path)


def plot_reliability(calibrations: Mapping[str, Calibration], path: Path | str | None = None) -> Any:
    """How often a network is right against how sure it is, a panel for each network; below, how often it is so sure.

    Where bars end under the diagonal the network is over-confident.

    Args:
        calibrations: by the title of their panel.
        path: a file to write.
    """
    count = len(_some(calibrations, "plot_reliability.calibrations"))
    figure = new_page(3.2 * count + 0.6, 4.2)
    grid = figure.subplots(2, count, squeeze=False, sharex=True, height_ratios=(3, 1))
    for (above, below), (title, found) in zip(grid.T, calibrations.items(), strict=True):
        some = found.counts > 0
        lefts, widths = found.edges[:-1][some], np.diff(found.edges)[some]
        above.bar(lefts, found.accuracies[some], widths, align="edge", edgecolor="white", color="C0", label="accuracy")
        above.plot([0, 1], [0, 1], color="black", linestyle="--", linewidth=1)
        above.plot(found.confidences[some], found.accuracies[some], "o", color="C1", markersize=4, label="mean")
        above.set(title=title, xlim=(0, 1), ylim=(0, 1))
        above.text(0.04, 0.96, f"ECE {found.ece:.3f}\nNLL {found.nll:.3f}", va="top", fontsize="small")
        below.bar(lefts, found.counts[some] / found.count, widths, align="edge", edgecolor="white", color="C7")
        below.axvline(found.mean_confidence, color="C1", linewidth=1)
        below.axvline(found.accuracy, color="C0", linewidth=1, linestyle="--")
        below.set(xlabel="confidence", ylim=(0, 1))
    grid[0, 0].set_ylabel("accuracy")
    grid[1, 0].set_ylabel("share")
    return saved(figure, path)


def _map(axes: Any, panel: Boundary, band: float) -> Any:
    rows, columns = panel.probabilities.shape
    across, up = np.linspace(panel.left, panel.right, columns), np.linspace(panel.bottom, panel.top, rows)
    # The pixels' middles are the grid's points, so the picture is half a pixel wider on each side.
    halves = (panel.right - panel.left) / (2 * columns - 2), (panel.top - panel.bottom) / (2 * rows - 2)
    extent = (panel.left - halves[0], panel.right + halves[0], panel.bottom - halves[1], panel.top + halves[1])
    image = axes.imshow(
        panel.probabilities, vmin=0, vmax=1, cmap="RdBu_r", alpha=0.75, origin="lower", extent=extent, aspect="equal"
    )
    for level, line in ((band, "--"), (0.5, "-"), (1 - band, "--")):
        if panel.probabilities.min() < level < panel.probabilities.max():
            axes.contour(across, up, panel.probabilities, [level], colors="black", linewidths=0.8, linestyles=line)
    for one in np.unique(panel.labels):
        points = panel.points[panel.labels == one]
        colour, mark = _COLOURS[int(one) % len(_COLOURS)], _MARKS[int(one) % len(_MARKS)]
        axes.scatter(*points.T, s=9, c=colour, marker=mark, edgecolors="white", linewidths=0.3)
    axes.set(xlim=(panel.left, panel.right), ylim=(panel.bottom, panel.top))
    return image


def _place(found: SingularValues, name: str) -> int:
    if name not in found.classes:
        wanted = f"some of {', '.join(found.classes)}"
        raise ArgumentError(where="plot_singular_values.classes", got=name, wanted=wanted)
    return found.classes.index(name)


def _some(things: Any, where: str) -> Any:
    if not len(things):
        raise ArgumentError(where=where, got="none", wanted="at least one")
    return things
