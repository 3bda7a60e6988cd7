"""Machines as pixels, by matplotlib from the same layout as the SVG; and as files of every kind by their ending."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from statewise.automata import MooreMachine, to_dot, to_json, to_svg, to_table
from statewise.automata.drawing.compose import compose
from statewise.automata.drawing.palette import fill
from statewise.automata.drawing.picture import FONT, LINE, Arrow, Picture
from statewise.errors import ArgumentError, MissingExtraError
from statewise.files import atomic_file, write_atomically

_POINTS = 0.72  # of a point a picture unit has, at 100 units an inch


def draw_machine(machine: MooreMachine, axes: Any = None, *, title: str = "", **options: Any) -> Any:
    """Draw a machine on matplotlib axes, for the paper's figures 3 (right), 4 and 9; gives the figure.

    Args:
        machine: to be drawn.
        axes: where; without them on a new figure of the right size.
        title: over the picture.
        **options: those of ``statewise.automata.to_svg``: hide_sinks, label_width, seed.
    """
    drawn = compose(machine, **options)
    if axes is None:
        axes = _page(drawn, bool(title))
    axes.set(xlim=(0, drawn.size.real), ylim=(drawn.size.imag, 0), aspect="equal", title=title)
    axes.axis("off")
    for arrow in drawn.arrows:
        _draw_arrow(axes, arrow)
    for circle in drawn.circles:
        x, y = circle.at.real, circle.at.imag
        colour = "white" if drawn.rings else fill(circle.kind)
        _ring(axes, (x, y), drawn.radius, facecolor=colour, linewidth=1.2)
        if drawn.rings and circle.kind == 1:
            _ring(axes, (x, y), drawn.radius - 3.5, facecolor="none", linewidth=0.9)
        axes.text(x, y, _plain(circle.text), ha="center", va="center", fontsize=FONT * _POINTS, zorder=4)
    _draw_foot(axes, drawn)
    return axes.figure


def save_drawing(machine: MooreMachine, path: Path | str, *, title: str = "", **options: Any) -> Path:
    """Write a machine into a file; the ending of its name says how: .svg, .png, .dot, .json or .txt (a table).

    Args:
        machine: to be drawn.
        path: the file.
        title: over the picture, for .svg and .png.
        **options: of the picture: hide_sinks, label_width, seed.
    """
    path = Path(path)
    texts = {".dot": to_dot, ".json": to_json, ".txt": to_table}
    if path.suffix == ".svg":
        write_atomically(path, to_svg(machine, title=title, **options))
    elif path.suffix == ".png":
        figure = draw_machine(machine, title=title, **options)
        with atomic_file(path) as file:
            figure.savefig(file, format="png", dpi=144)
    elif path.suffix in texts:
        write_atomically(path, texts[path.suffix](machine))
    else:
        wanted = ".svg, .png, .dot, .json or .txt"
        raise ArgumentError(where="save_drawing.path", got=path.suffix or "no ending", wanted=wanted)
    return path


def _page(drawn: Picture, titled: bool) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError.of("draw_machine", package="matplotlib", extra="report") from error
    height = drawn.size.imag + (30 if titled else 0)
    figure = Figure(figsize=(drawn.size.real / 100, height / 100))
    return figure.add_axes((0.0, 0.0, 1.0, drawn.size.imag / height))


def _draw_arrow(axes: Any, arrow: Arrow) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Curve

    corners = np.stack([arrow.curve.real, arrow.curve.imag], -1)
    curve = Curve(corners, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
    axes.add_patch(PathPatch(curve, facecolor="none", edgecolor="#57606a", linewidth=1.0, zorder=1))
    head = np.stack([arrow.head.real, arrow.head.imag], -1)
    axes.add_patch(Polygon(head, closed=True, facecolor="#57606a", linewidth=0, zorder=3))
    if arrow.box is not None:
        middle = (arrow.box[:2] + arrow.box[2:]) / 2
        axes.text(*middle, _plain(arrow.text), fontsize=FONT * _POINTS, zorder=5, **_LABEL, path_effects=_halo())


_LABEL = {"ha": "center", "va": "center"}


def _halo() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


def _ring(axes: Any, at: tuple[float, float], radius: float, **style: Any) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(at, radius, edgecolor="#1b1f24", zorder=2, **style))


def _draw_foot(axes: Any, drawn: Picture) -> None:
    y = drawn.size.imag - 1.15 * FONT
    for note in reversed(drawn.notes):
        axes.text(drawn.size.real / 2, y, _plain(note), fontsize=FONT * _POINTS, **_LABEL)
        y -= LINE
    for kind in reversed(range(len(drawn.classes)) if not drawn.rings else ()):
        _ring(axes, (24, y), 6, facecolor=fill(kind), linewidth=1.0)
        axes.text(38, y, _plain(drawn.classes[kind]), ha="left", va="center", fontsize=FONT * _POINTS)
        y -= LINE


def _plain(text: str) -> str:
    """Text that matplotlib takes as it is: a dollar sign would begin a formula."""
    return text.replace("$", r"\$")
