"""Empty figures, files of figures, and an axis of tokens, for all figures alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statewise.errors import ArgumentError, MissingExtraError
from statewise.files import atomic_file

_TICKS = 60  # more tokens than this are marked only now and then


def new_page(width: float, height: float) -> Any:
    """A figure without a window, and without matplotlib's global state.

    Args:
        width: in inches.
        height: in inches.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError.of("figure", package="matplotlib", extra="report") from error
    return Figure(figsize=(min(width, 40.0), min(height, 60.0)), layout="constrained")


def saved(figure: Any, path: Path | str | None) -> Any:
    """The figure, written into a file if there is a path; the ending says in which format.

    Args:
        figure: of matplotlib.
        path: the file.
    """
    if path is None:
        return figure
    path = Path(path)
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".") not in known:
        raise ArgumentError(where="path", got=path.suffix or "no ending", wanted=f"one of {', '.join(sorted(known))}")
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lstrip("."))
    return figure


def token_axis(axes: Any, tokens: Sequence[str]) -> None:
    """Mark the steps of the horizontal axis by their tokens, upright if they are short.

    Args:
        axes: of matplotlib.
        tokens: the text of each step.
    """
    stride = 1 + (len(tokens) - 1) // _TICKS
    shown = range(0, len(tokens), stride)
    upright = all(len(token) <= 2 or token == "START" for token in tokens) and len(tokens) <= _TICKS
    texts = ["S" if upright and tokens[step] == "START" else tokens[step] for step in shown]
    # A dollar sign would begin a formula.
    axes.set_xticks(list(shown), [text.replace("$", r"\$") for text in texts], rotation=0 if upright else 90)
    axes.set_xlim(-0.5, max(len(tokens) - 0.5, 0.5))
