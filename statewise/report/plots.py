"""Curves as pictures; matplotlib is an extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statewise.errors import ArgumentError, MissingExtraError
from statewise.files import atomic_file


def plot_curves(
    curves: Mapping[str, Sequence[float]],
    path: Path | str,
    *,
    title: str = "",
    dashed: Mapping[str, Sequence[float]] | None = None,
    called: str = "validation perplexity",
) -> Path:
    """Draw validation perplexities, or other numbers, over the epochs; the ending of the file's name says the format.

    Args:
        curves: by name; the first number belongs to epoch 1.
        path: the file.
        title: over the picture.
        dashed: further curves by the names of those they belong to, drawn dashed in the same colours.
        called: what the numbers are; perplexities have a logarithmic axis.
    """
    path = Path(path)
    if not any(curves.values()):
        raise ArgumentError(where="plot_curves.curves", got="no points", wanted="at least one")
    figure = _figure(path.suffix)
    axes = figure.add_subplot()
    for number, (name, values) in enumerate(curves.items()):
        colour = f"C{number % 10}"
        axes.plot(range(1, len(values) + 1), values, label=name, color=colour, marker=_marker(values))
        if dashed and name in dashed:
            other = dashed[name]
            axes.plot(range(1, len(other) + 1), other, "--", label=f"{name} (training)", color=colour)
    axes.set(title=title, xlabel="epoch", ylabel=called, yscale="log" if "perplexity" in called else "linear")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize="small")
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lstrip("."))
    return path


def _figure(suffix: str) -> Any:
    """A figure without a window, and without matplotlib's global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError.of("plot", package="matplotlib", extra="report") from error
    figure = Figure(figsize=(8, 5), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if suffix.lstrip(".") not in known:
        raise ArgumentError(where="plot_curves.path", got=suffix, wanted=f"one of {', '.join(sorted(known))}")
    return figure


def _marker(values: Sequence[float]) -> str:
    return "o" if len(values) == 1 else ""
