"""Pictures of generalization bounds: how they grow, how vacuous they are, and what certificates are worth.

================================= ===================================================================
picture                           function
================================= ===================================================================
powers of t, printed and measured :func:`plot_powers`
growth with the number of steps   :func:`plot_growth`
bounds of many networks           :func:`plot_penalties`
bounds of one network             :func:`plot_certificates`
certificate less true error       :func:`plot_gaps`
certificates and true errors      :func:`plot_against_truth`
margins of training sequences     :func:`plot_margins`
================================= ===================================================================

Each gives a matplotlib figure, which belongs to nobody and opens no window, and writes it if a path is given. The same
numbers give the same bytes of a PNG file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from statewise.errors import ArgumentError
from statewise.report.pages import new_page, saved

_STYLES = ("-", "--", "-.", ":")
Shown = TypeVar("Shown", bound=Mapping[str, Any])


def plot_powers(panels: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path | str | None = None) -> Any:
    """Bars beside each other, such as the printed and the measured power of t of each bound; a panel for each range.

    Args:
        panels: by title, by the bound's name, by whose number it is.
        path: a file to write.
    """
    figure = new_page(4.0 * len(_some(panels, "plot_powers.panels")) + 0.6, 3.8)
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (title, bounds) in zip(grid, panels.items(), strict=True):
        _bars(axes, {name: dict(powers) for name, powers in _some(bounds, title).items()})
        axes.set_title(title)
        axes.grid(visible=True, axis="y", alpha=0.3)
    grid[0].set_ylabel("power of t")
    grid[0].legend(fontsize="small")
    return saved(figure, path)


def plot_growth(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    steps: Sequence[int],
    path: Path | str | None = None,
    *,
    highest: float = 60.0,
) -> Any:
    """The logarithm of what bounds add, against the number of steps; a panel for each class of networks.

    Above the grey line, ln 1 = 0, a bound says nothing. Curves that leave at the top grow exponentially.

    Args:
        panels: by title, by the bound's name: a logarithm for each number of steps.
        steps: the numbers of steps.
        path: a file to write.
        highest: where the vertical axis ends, at most.
    """
    figure = new_page(3.6 * len(_some(panels, "plot_growth.panels")) + 2.2, 4.2)
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    shown: list[float] = []
    for axes, (title, curves) in zip(grid, panels.items(), strict=True):
        for number, (name, curve) in enumerate(_some(curves, title).items()):
            if len(curve) != len(steps):
                where = f"plot_growth.panels[{title!r}][{name!r}]"
                raise ArgumentError(where=where, got=f"{len(curve)} numbers", wanted=f"{len(steps)}, one for each t")
            axes.plot(steps, curve, _STYLES[number // 10 % 4], label=name, color=f"C{number % 10}")
            shown += [value for value in curve if math.isfinite(value)]
        axes.axhline(0, color="grey", linewidth=1)
        axes.set(title=title, xlabel="steps t", xscale="log")
        axes.grid(visible=True, alpha=0.3)
    grid[0].set(ylabel="ln(penalty)", ylim=(min(shown, default=0.0) - 1, min(highest, max(shown, default=0.0) + 1)))
    grid[-1].legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return saved(figure, path)


def plot_penalties(
    networks: Mapping[str, Mapping[str, float]], path: Path | str | None = None, *, highest: float = 12.0
) -> Any:
    """Bars on a logarithmic scale: what each bound adds to the risk of each network.

    Bars that reach the top are longer than the picture; their exponent is written there. Above the black line, 1, a
    bound says nothing.

    Args:
        networks: by the network's name, by the bound's name: the logarithm to base 10.
        path: a file to write.
        highest: where the axis ends: 10 to this power.
    """
    figure = new_page(1.0 * len(_some(networks, "plot_penalties.networks")) + 3.5, 4.8)
    axes = figure.subplots()
    lowest = min(min(bounds.values()) for bounds in networks.values() if bounds) - 0.5
    lowest = min(lowest, -1.0)
    heights = {name: {bound: min(value, highest) for bound, value in each.items()} for name, each in networks.items()}
    bars = _bars(axes, heights, bottom=lowest)
    for name, bound, across, height in bars:
        if height >= highest:
            text = rf"$10^{{{networks[name][bound]:.0f}}}$"
            axes.text(across, highest, text, ha="center", va="bottom", fontsize=6, rotation=90)
    axes.axhline(0, color="black", linewidth=1)
    axes.set(ylim=(lowest, highest + 1.5), ylabel="what the bound adds to the risk")
    marks = [mark for mark in range(math.ceil(lowest), math.floor(highest) + 1) if mark % 2 == 0]
    axes.set_yticks(marks, [rf"$10^{{{mark}}}$" for mark in marks])
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return saved(figure, path)


def plot_certificates(
    networks: Mapping[str, Mapping[str, float]],
    path: Path | str | None = None,
    *,
    errors: Mapping[str, float] | None = None,
) -> Any:
    """All bounds that were proved of trained networks, on a logarithmic scale, a panel for each network.

    Args:
        networks: by the network's name, by the bound's name: the bound, at most 1.
        path: a file to write.
        errors: the errors on fresh sequences, by the network's name; a line where they are not 0.
    """
    most = max(len(bounds) for bounds in _some(networks, "plot_certificates.networks").values())
    figure = new_page(2.9 * len(networks) + 1.0, 0.28 * most + 1.6)
    grid = figure.subplots(1, len(networks), squeeze=False, sharey=True)[0]
    names = list(dict.fromkeys(name for bounds in networks.values() for name in bounds))
    for axes, (title, bounds) in zip(grid, networks.items(), strict=True):
        for place, name in enumerate(names):
            if name in bounds:
                axes.barh(place, bounds[name], color="C0" if bounds[name] < 1 else "C7")
                axes.text(bounds[name], place, f" {bounds[name]:.3g}", va="center", fontsize="x-small")
        error = (errors or {}).get(title, 0.0)
        if error > 0:
            axes.axvline(error, color="C3", linestyle="--", linewidth=1)
        told = "" if errors is None else f"\ntest error {error:.3g}"
        axes.set_title(title + told, fontsize="medium")
        axes.set(xscale="log", xlim=(1e-3, 8), xlabel="bound on the error")
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    return saved(figure, path)


def plot_gaps(
    panels: Mapping[str, Mapping[str, Sequence[float]]], path: Path | str | None = None, *, columns: int = 3
) -> Any:
    """How far certificates are above the true error, over many samples; left of 0 they fail. A panel for each law.

    Args:
        panels: by title, by what was paid: a number for each sample.
        path: a file to write.
        columns: panels beside each other.
    """
    columns = min(columns, len(_some(panels, "plot_gaps.panels")))
    rows = -(-len(panels) // columns)
    figure = new_page(3.6 * columns + 0.4, 2.5 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, kinds) in zip(grid.flat, panels.items(), strict=False):
        every = np.concatenate([np.asarray(gaps) for gaps in _some(kinds, title).values()])
        edges = np.linspace(min(float(every.min()), -0.05), max(float(every.max()), 0.05), 31)
        for number, (name, gaps) in enumerate(kinds.items()):
            fails = float(np.mean(np.asarray(gaps) < 0))
            axes.hist(gaps, edges, alpha=0.6, color=f"C{number}", label=f"{name}: {fails:.1%} fail")
        axes.axvline(0, color="black", linewidth=1)
        axes.set_title(title, fontsize="medium")
        axes.legend(fontsize="x-small")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel("certificate - true error")
    return saved(figure, path)


def plot_against_truth(
    points: Mapping[str, Sequence[tuple[float, float]]],
    path: Path | str | None = None,
    *,
    reference: Mapping[str, float] | None = None,
) -> Any:
    """Certificates and true errors, one column for each name; a true error of 0 is drawn at the bottom.

    Args:
        points: by name: pairs of a certificate and a true error.
        path: a file to write.
        reference: by name, what a certificate is held against.
    """
    figure = new_page(0.9 * len(_some(points, "plot_against_truth.points")) + 2.4, 3.8)
    axes = figure.subplots()
    above = [value for pairs in points.values() for pair in pairs for value in pair if value > 0]
    bottom = min(above, default=1e-3) / 4
    for place, (name, pairs) in enumerate(points.items()):
        first = place == 0
        certificates, errors = ([pair[side] for pair in pairs] for side in (0, 1))
        spread = np.linspace(-0.15, 0.15, len(pairs)) if len(pairs) > 1 else np.zeros(1)
        axes.plot(place + spread, certificates, "v", color="C0", label="certificate" if first else None)
        below = [max(error, bottom) for error in errors]
        axes.plot(
            place + spread,
            below,
            "o",
            color="C3",
            fillstyle="none",
            label="true error (0 at the bottom)" if first else None,
        )
        if reference is not None and name in reference:
            label = "of the true machine" if first else None
            axes.hlines(reference[name], place - 0.3, place + 0.3, color="black", linewidth=1, label=label)
    axes.set(yscale="log", ylim=(bottom / 1.5, 1), ylabel="error probability")
    axes.set_xticks(range(len(points)), list(points))
    axes.grid(visible=True, axis="y", which="both", alpha=0.3)
    axes.legend(fontsize="small")
    return saved(figure, path)


def _bars(
    axes: Any, groups: Mapping[str, Mapping[str, float]], *, bottom: float = 0.0
) -> list[tuple[str, str, float, float]]:
    """Grouped bars; gives group, name, middle and height of each."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    width, drawn = 0.8 / max(1, len(names)), []
    for number, name in enumerate(names):
        places = [place for place, group in enumerate(groups.values()) if name in group]
        values = [group[name] for group in groups.values() if name in group]
        across = [place - 0.4 + (number + 0.5) * width for place in places]
        heights = [value - bottom for value in values]
        axes.bar(across, heights, width, bottom=bottom, label=name, color=f"C{number % 10}")
        keys = [key for key, group in groups.items() if name in group]
        drawn += list(zip(keys, [name] * len(keys), across, values, strict=True))
    axes.set_xticks(range(len(groups)), list(groups), rotation=30, ha="right", fontsize="small")
    return drawn


def _some(shown: Shown, where: str) -> Shown:
    if len(shown) == 0:
        raise ArgumentError(where=where, got="nothing", wanted="at least one")
    return shown


def plot_margins(networks: Mapping[str, Mapping[str, Sequence[float]]], path: Path | str | None = None) -> Any:
    """Histograms of normalised margins as curves: the share of sequences against the margin.

    Args:
        networks: by name, the "counts" of bins and their "edges", one more.
        path: a file to write.
    """
    figure = new_page(6.4, 3.8)
    axes = figure.subplots()
    for place, (name, histogram) in enumerate(_some(networks, "plot_margins.networks").items()):
        counts, edges = np.asarray(histogram["counts"], dtype=float), np.asarray(histogram["edges"])
        shares = counts / max(1.0, counts.sum())
        style = _STYLES[place // 10 % len(_STYLES)]
        axes.stairs(shares / np.diff(edges), edges, label=name, linestyle=style, linewidth=1.4)
    axes.axvline(0.0, color="C7", linewidth=1)
    axes.set(xlabel="margin / longest logits of the class", ylabel="density of training sequences")
    axes.legend(fontsize="small")
    return saved(figure, path)
