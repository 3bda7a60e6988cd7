"""Sparklines: a curve the size of a word."""

from __future__ import annotations

import math
from collections.abc import Sequence

from statewise.report.html.axes import covering
from statewise.report.html.markup import Markup, element, joined
from statewise.report.html.pieces import Drawing


def sparkline(values: Sequence[float], *, width: float = 96.0, height: float = 22.0) -> Drawing:
    """A small curve for a cell of a table, with a dot at its end; the row says its numbers.

    Args:
        values: from left to right; what is not finite is left out.
        width: in pixels.
        height: in pixels.

    >>> sparkline([3.0, 2.0, 1.5]).width
    96.0
    """
    held = [(place, float(value)) for place, value in enumerate(values) if math.isfinite(value)]
    if not held:
        return Drawing(width, height, Markup(""))
    y = covering([value for _, value in held], start=height - 4, end=4.0)
    x = covering([place for place, _ in held], start=4.0, end=width - 5, tight=True)
    points = [f"{x.place(place):.1f},{y.place(value):.1f}" for place, value in held]
    line = element("polyline", points=" ".join(points), class_="thin c0")
    last_x, last_y = x.place(held[-1][0]), y.place(held[-1][1])
    return Drawing(width, height, joined(line, element("circle", cx=last_x, cy=last_y, r=2.6, class_="f0")))
