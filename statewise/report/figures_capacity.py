"""The picture of a search for capacities: how hard a task networks solve, by their parameters and by their channels."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statewise.report.pages import new_page, saved
from statewise.sweep.capacity_result import CapacityResult

_AXES = (("parameters", "parameters"), ("width", "channels of a layer"))


def plot_capacity(
    result: CapacityResult, path: Path | str | None = None, *, hardness: str = "largest value solved", title: str = ""
) -> Any:
    """Two panels, as Ziv 2019, Figures 3.1 and 3.2, has them: the largest value solved against size and channels.

    An arrow stands at a capacity that may be larger: all values were solved, or a budget cut the search short. A cross
    at the bottom stands for a network that solved none.

    Args:
        result: of a search.
        path: a file to write; its ending says in which format.
        hardness: what the vertical axis is called.
        title: over the picture.
    """
    figure = new_page(10.0, 4.4)
    panels = figure.subplots(1, len(_AXES), sharey=True)
    lowest = min((each.values[0] for each in result.networks), default=0)
    for axes, (axis, called) in zip(panels, _AXES, strict=True):
        for number, (depth, points) in enumerate(result.points(axis).items()):
            _draw(axes, points, label=f"depth {depth}", colour=f"C{number % 10}", lowest=lowest)
        axes.set(xlabel=called)
        axes.grid(visible=True, alpha=0.3)
    panels[0].set(ylabel=hardness)
    sizes = [network.parameters for network in result.networks]
    if sizes and max(sizes) > 1.5 * min(sizes):
        panels[0].set_xscale("log", base=2)  # budgets are powers of two
    elif sizes:
        # One budget: networks differ by what a whole channel costs, which is not to look like much.
        panels[0].set_xlim(0.5 * min(sizes), 1.5 * max(sizes))
    panels[0].legend(fontsize="small")
    if title:
        figure.suptitle(title)
    return saved(figure, path)


def _draw(axes: Any, points: list[tuple[int, int | None, str]], *, label: str, colour: str, lowest: int) -> None:
    known = [(place, capacity, censored) for place, capacity, censored in points if capacity is not None]
    axes.plot([each[0] for each in known], [each[1] for each in known], "o-", color=colour, label=label)
    open_ended = [(place, capacity) for place, capacity, censored in known if censored]
    axes.plot([each[0] for each in open_ended], [each[1] for each in open_ended], "^", color=colour, markersize=11)
    none = [place for place, capacity, _ in points if capacity is None]
    if none:
        axes.plot(none, [lowest] * len(none), "x", color=colour, markersize=9)


def plot_accuracies(found: Mapping[str, Sequence[float]], path: Path | str | None = None) -> Any:
    """The accuracy of every run, a column for each kind of network, and their medians.

    Args:
        found: accuracies by the name of the network.
        path: a file to write; its ending says in which format.
    """
    figure = new_page(5.5, 4.0)
    axes = figure.subplots()
    for place, accuracies in enumerate(found.values()):
        axes.plot([place] * len(accuracies), accuracies, "o", color=f"C{place % 10}", alpha=0.6)
        axes.hlines(statistics.median(accuracies), place - 0.25, place + 0.25, color=f"C{place % 10}")
    axes.set(xticks=range(len(found)), xticklabels=list(found), ylabel="accuracy", ylim=(0, 1.02))
    axes.grid(visible=True, axis="y", alpha=0.3)
    return saved(figure, path)


def plot_against_size(found: Mapping[str, Mapping[str, tuple[int, int, float]]], path: Path | str | None = None) -> Any:
    """Accuracies in percent against parameters and against channels, as Ziv 2019 shows its networks.

    Args:
        found: by whose they are and by network: parameters, channels and accuracy.
        path: a file to write; its ending says in which format.
    """
    figure = new_page(10.0, 4.4)
    panels = figure.subplots(1, 2, sharey=True)
    for which, (axes, called) in enumerate(zip(panels, ("parameters", "channels of a layer"), strict=True)):
        for number, (whose, networks) in enumerate(found.items()):
            places = [each[which] for each in networks.values()]
            marker = "o" if number == 0 else "x"
            axes.plot(places, [each[2] for each in networks.values()], marker, color=f"C{number}", label=whose)
            for place, (name, each) in enumerate(networks.items()):
                # Names of neighbours must not meet: ours on the left, the others on the right, high and low in turn.
                high = (4, -9)[place % 2]
                offset = {"xytext": (6, high)} if number else {"xytext": (-6, high), "ha": "right"}
                axes.annotate(name, (each[which], each[2]), textcoords="offset points", fontsize="small", **offset)
        axes.margins(x=0.2)
        axes.set(xlabel=called)
        axes.grid(visible=True, alpha=0.3)
    panels[0].set(ylabel="test accuracy, %", xscale="log")
    panels[0].tick_params(axis="x", which="minor", labelsize="x-small")  # or they run into each other
    panels[0].legend(fontsize="small")
    return saved(figure, path)
