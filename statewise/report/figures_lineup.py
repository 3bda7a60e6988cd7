"""A comparison of regularizers as a picture; matplotlib is an extra."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from statewise.errors import ArgumentError
from statewise.files import atomic_file
from statewise.report.plots import _figure

Ends = tuple[float, float, float]


def plot_differences(differences: Mapping[str, Ends], path: Path | str, *, title: str = "", called: str = "") -> Path:
    """Draw differences with their intervals, one below the other; the ending of the file's name says the format.

    Args:
        differences: by name, from the top: value, lower and upper end.
        path: the file.
        title: over the picture.
        called: what the differences are.
    """
    path = Path(path)
    if not differences:
        raise ArgumentError(where="plot_differences.differences", got="none", wanted="at least one")
    figure = _figure(path.suffix)
    axes = figure.add_subplot()
    places = range(len(differences), 0, -1)
    for place, (value, low, high) in zip(places, differences.values(), strict=True):
        sure = low > 0 or high < 0
        axes.plot([low, high], [place, place], color="C0" if sure else "0.6", linewidth=2)
        axes.plot([value], [place], "o", color="C0" if sure else "0.6")
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set(title=title, xlabel=called, yticks=list(places), yticklabels=list(differences))
    axes.grid(visible=True, axis="x", alpha=0.3)
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lstrip("."))
    return path
