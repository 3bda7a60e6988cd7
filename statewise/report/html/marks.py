"""Marks by which series are told apart: a colour, a dash and a shape each, so that no colour is needed."""

from __future__ import annotations

from collections.abc import Sequence

from statewise.automata.captions import text_width
from statewise.report.html.markup import Markup, element, text

#: The sizes of texts in drawings, as the style sheet has them.
FONT = 12.5
SMALL = 11.5
COLOURS = 6
_DASHES = (None, "7 4", "2 4", "9 3 2 3", "4 2", "12 4")
_SHAPES = ("circle", "square", "triangle", "diamond", "cross", "plus")
_LEGEND_LINE = 20.0


def text_room(words: str, size: float = FONT) -> float:
    """The place that a text needs in the widest of the fonts that a reader's system may have.

    Args:
        words: on one line.
        size: of the font.

    >>> text_room("abc") < text_room("abcd")
    True
    """
    return 1.12 * text_width(words, size)


def dash(series: int) -> str | None:
    """The dash of a series; the first one is drawn through.

    Args:
        series: counted from 0.

    >>> dash(0), dash(1)
    (None, '7 4')
    """
    return _DASHES[series % len(_DASHES)]


def marker(series: int, x: float, y: float, *, title: str = "", size: float = 3.4) -> Markup:
    """The mark of a point of a series.

    Args:
        series: counted from 0.
        x: where, in pixels.
        y: where, in pixels.
        title: what shows when the pointer rests on it.
        size: half of its width.

    >>> marker(0, 10, 20)
    '<circle cx="10" cy="20" r="3.4" class="open c0"></circle>'
    """
    shape = _SHAPES[(series + series // COLOURS) % len(_SHAPES)]
    tip = (element("title", text(title)),) if title else ()
    style = f"open c{series % COLOURS}"
    if shape == "circle":
        return element("circle", *tip, cx=x, cy=y, r=size, class_=style)
    if shape == "square":
        s = size * 0.9
        return element("rect", *tip, x=x - s, y=y - s, width=2 * s, height=2 * s, class_=style)
    paths = {
        "triangle": f"M{x:.1f},{y - size * 1.15:.1f}l{size * 1.1:.1f},{size * 2:.1f}h{-size * 2.2:.1f}z",
        "diamond": f"M{x:.1f},{y - size * 1.25:.1f}l{size * 1.2:.1f},{size * 1.25:.1f}l{-size * 1.2:.1f},"
        f"{size * 1.25:.1f}l{-size * 1.2:.1f},{-size * 1.25:.1f}z",
        "cross": f"M{x - size:.1f},{y - size:.1f}l{2 * size:.1f},{2 * size:.1f}m0,{-2 * size:.1f}"
        f"l{-2 * size:.1f},{2 * size:.1f}",
        "plus": f"M{x - size * 1.2:.1f},{y:.1f}h{size * 2.4:.1f}m{-size * 1.2:.1f},{-size * 1.2:.1f}v{size * 2.4:.1f}",
    }
    return element("path", *tip, d=paths[shape], class_=style)


def legend(names: Sequence[str], *, width: float, left: float = 0.0, lines: bool = True) -> tuple[Markup, float]:
    """The names of series beside their marks, in as many rows as they need, and how high that is.

    Args:
        names: of the series, in their order.
        width: that there is, in pixels.
        left: where it begins.
        lines: whether the series are drawn as lines.

    >>> drawn, height = legend(["train", "valid"], width=300)
    >>> height
    20.0
    """
    sample = 30.0 if lines else 14.0
    parts, x, y = [], left, _LEGEND_LINE / 2
    for series, name in enumerate(names):
        shown = name if len(name) <= 40 else f"{name[:39]}…"
        needed = sample + 7 + text_room(shown) + 14
        if x > left and x + needed > left + width:
            x, y = left, y + _LEGEND_LINE
        if lines:
            style = f"line c{series % COLOURS}"
            parts.append(element("line", x1=x, y1=y, x2=x + sample, y2=y, class_=style, stroke_dasharray=dash(series)))
        parts.append(marker(series, x + sample / 2, y))
        tip = (element("title", text(name)),) if shown != name else ()
        parts.append(element("text", *tip, text(shown), x=x + sample + 7, y=y + 4.4))
        x += needed
    return Markup("".join(parts)), y + _LEGEND_LINE / 2
