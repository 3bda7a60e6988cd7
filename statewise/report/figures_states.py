"""The figures of Wang & Niepert (2019) by kind: what a network does along an input, what its centroids stand for.

================================= ===================================================================
figure of the paper               function
================================= ===================================================================
3 (left), 13 (right), 15, 16      :func:`plot_probabilities`, one panel a temperature or a model
3 (right), 4, 9                   :func:`statewise.report.draw_machine`
5, 8, 10, 11                      :func:`plot_error_curves`, with a baseline for 8
6, 12, 14                         :func:`plot_states`
7, 17                             :func:`plot_pixel_prototypes`
13 (left)                         :func:`plot_centroids`
13 (centre)                       :func:`plot_ranked`
18                                :func:`plot_image_maps`
================================= ===================================================================

Each gives a matplotlib figure, which belongs to nobody and opens no window, and writes it if a path is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from statewise.automata import PixelPrototypes, Reading, Usage
from statewise.errors import ArgumentError
from statewise.report.pages import new_page, saved, token_axis


def plot_probabilities(readings: Mapping[str, Reading], path: Path | str | None = None) -> Any:
    """Transition probabilities along an input, tokens on one axis and centroids on the other (figures 3, 13, 15, 16).

    Args:
        readings: by the title of their panel, such as ``{"tau = 0.5": read(model, "10")}``.
        path: a file to write; its ending names the format.
    """
    longest = max((len(reading.tokens) for reading in _some(readings, "readings").values()), default=1)
    figure = new_page(max(4.0, 0.28 * longest + 1.5), 1.2 + 1.8 * len(readings))
    grid = figure.subplots(len(readings), 1, squeeze=False)[:, 0]
    for axes, (name, reading) in zip(grid, readings.items(), strict=True):
        if reading.probabilities is None:
            raise ArgumentError(where=f"readings[{name!r}]", got="no probabilities", wanted="a layer with centroids")
        image = axes.imshow(reading.probabilities.T, vmin=0, vmax=1, cmap="Greys", aspect="auto", origin="lower")
        axes.set(title=name, ylabel="centroid", yticks=range(reading.probabilities.shape[1]))
        token_axis(axes, reading.tokens)
    figure.colorbar(image, ax=list(grid), label="probability")
    return saved(figure, path)


def plot_states(
    readings: Mapping[str, Reading], path: Path | str | None = None, *, bold: Mapping[str, int] | None = None
) -> Any:
    """States and memories along an input, a line for each unit, over the tokens (figures 6, 12 and 14).

    Args:
        readings: by the name of their model; a row of panels for each, its memory beside its state.
        path: a file to write.
        bold: the unit of a model's memory to draw bold, such as a counter.
    """
    columns = 2 if any(reading.cells is not None for reading in _some(readings, "readings").values()) else 1
    longest = max(len(reading.tokens) for reading in readings.values())
    figure = new_page(columns * max(4.0, 0.16 * longest + 1.0), 0.6 + 2.2 * len(readings))
    grid = figure.subplots(len(readings), columns, squeeze=False)
    for row, (name, reading) in zip(grid, readings.items(), strict=True):
        _lines(row[0], reading.states, f"{name}: state $h_t$", reading.tokens, None)
        if reading.cells is not None:
            _lines(row[1], reading.cells, f"{name}: memory $c_t$", reading.tokens, (bold or {}).get(name))
        elif columns == 2:
            row[1].set_axis_off()
    return saved(figure, path)


def plot_error_curves(
    curves: Mapping[str, Sequence[float]],
    path: Path | str | None = None,
    *,
    xlabel: str = "epoch",
    ylabel: str = "validation error",
    title: str = "",
    baseline: float | None = None,
    every: float = 1.0,
) -> Any:
    """Errors or losses during training, a line for each model or k (figures 5, 10, 11; 8 with its baseline).

    Args:
        curves: by name, from the first measurement on.
        path: a file to write.
        xlabel: of the horizontal axis.
        ylabel: of the vertical axis.
        title: over it.
        baseline: drawn dashed, such as ``10 ln 8 / (T + 20)`` of a copier without a memory.
        every: how much of the horizontal axis lies between two measurements.
    """
    if not any(len(values) for values in curves.values()):
        raise ArgumentError(where="plot_error_curves.curves", got="no points", wanted="at least one")
    figure = new_page(6.0, 4.0)
    axes = figure.add_subplot()
    for name, values in curves.items():
        axes.plot(every * np.arange(1, len(values) + 1), values, label=name, marker="o" if len(values) == 1 else "")
    if baseline is not None:
        axes.axhline(baseline, color="black", linestyle="--", label=f"baseline {baseline:.4g}")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title, ylim=(0, None))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")
    return saved(figure, path)


def plot_pixel_prototypes(
    prototypes: PixelPrototypes, path: Path | str | None = None, *, classes: Sequence[int] | None = None
) -> Any:
    """Mean probabilities by pixel: a row for each class, a column for each centroid (figures 7 and 17).

    Args:
        prototypes: from ``pixel_prototypes``.
        path: a file to write.
        classes: the rows; None for all, one for figure 7.
    """
    rows = list(range(len(prototypes.classes)) if classes is None else classes)
    maps = prototypes.maps[_some(rows, "classes")]
    names = [prototypes.classes[row] for row in rows]
    heads = [f"centroid {number}" for number in range(maps.shape[1])]
    return saved(_gallery(maps, names, heads), path)


def plot_image_maps(
    pictures: Float[np.ndarray, "images height width"],
    maps: Float[np.ndarray, "images k height width"],
    path: Path | str | None = None,
) -> Any:
    """Some pictures, and beside each where the network moves to each centroid (figure 18).

    Args:
        pictures: from ``image_maps``.
        maps: from ``image_maps``.
        path: a file to write.
    """
    if len(pictures) != len(maps) or not len(maps):
        wanted = f"as many maps as pictures, and some: {len(pictures)} pictures"
        raise ArgumentError(where="plot_image_maps.maps", got=f"{len(maps)} maps", wanted=wanted)
    heads = ["input", *(f"centroid {number}" for number in range(maps.shape[1]))]
    beside = np.concatenate([pictures[:, None], maps], 1)
    return saved(_gallery(beside, [""] * len(maps), heads), path)


def plot_ranked(usages: Mapping[str, Usage], path: Path | str | None = None) -> Any:
    """Mean probability by rank: how spiky the transitions are (figure 13, centre).

    Args:
        usages: by name.
        path: a file to write.
    """
    figure = new_page(5.0, 3.5)
    axes = figure.add_subplot()
    width = 0.8 / len(_some(usages, "usages"))
    for number, (name, usage) in enumerate(usages.items()):
        places = np.arange(1, len(usage.ranked) + 1) + width * (number - (len(usages) - 1) / 2)
        axes.bar(places, usage.ranked, width=width, label=name)
    axes.set(xlabel="rank", ylabel="mean transition probability", ylim=(0, 1))
    axes.legend(fontsize="small")
    return saved(figure, path)


def plot_centroids(centroids: Float[np.ndarray, "k hidden"], path: Path | str | None = None) -> Any:
    """The centroids themselves, a row each (figure 13, left).

    Args:
        centroids: as the layer holds them.
        path: a file to write.
    """
    figure = new_page(6.0, 1.0 + 0.3 * len(centroids))
    axes = figure.add_subplot()
    reach = float(np.abs(centroids).max())
    image = axes.imshow(centroids, cmap="RdBu_r", vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")
    axes.set(xlabel="unit", ylabel="centroid", yticks=range(len(centroids)))
    figure.colorbar(image, ax=axes)
    return saved(figure, path)


def _lines(axes: Any, values: np.ndarray, title: str, tokens: Sequence[str], bold: int | None) -> None:
    for unit, line in enumerate(values.T):
        axes.plot(range(len(line)), line, linewidth=2.6 if unit == bold else 0.9, label=f"unit {unit}")
    axes.set(title=title)
    axes.grid(visible=True, alpha=0.3)
    token_axis(axes, tokens)


def _gallery(maps: Float[np.ndarray, "rows columns height width"], names: Sequence[str], heads: Sequence[str]) -> Any:
    rows, columns = maps.shape[:2]
    figure = new_page(0.9 * columns + 0.8, 0.95 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False)
    for row in range(rows):
        for column in range(columns):
            axes = grid[row, column]
            axes.imshow(maps[row, column], vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            if row == 0:
                axes.set_title(heads[column], fontsize="x-small")
        grid[row, 0].set_ylabel(names[row], fontsize="small")
    return figure


def _some(things: Any, where: str) -> Any:
    if not len(things):
        raise ArgumentError(where=where, got="none", wanted="at least one")
    return things
