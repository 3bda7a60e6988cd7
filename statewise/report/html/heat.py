"""Heat maps: a table of numbers as colours, with the scale beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from statewise.automata.captions import shortened
from statewise.errors import ArgumentError, ShapeError
from statewise.report.html.marks import SMALL, text_room
from statewise.report.html.markup import Markup, element, joined, text
from statewise.report.html.numbers import shown
from statewise.report.html.pieces import DataTable, Drawing, Figure, Words

STEPS = 10
_DARK = 6  # from this step on, the text in a cell is the other ink
_VALUES = 14  # columns up to which the cells hold their numbers
_NAME = 18  # characters of a name
_LISTED = 3000  # cells up to which the table has them all


def heat_map(
    values: Sequence[Sequence[float]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    what: str,
    caption: Words = "",
    low: float | None = None,
    high: float | None = None,
    alt: str = "",
    row_name: str = "row",
    column_name: str = "column",
) -> Figure:
    """A table as colours: the larger, the farther from the paper.

    Args:
        values: a list of numbers for each row; what is not finite stays empty.
        rows: their names.
        columns: their names.
        title: over the map.
        what: the values are.
        caption: how to read it.
        low: the value of the first colour; None takes the smallest.
        high: the value of the last one; None takes the largest.
        alt: a sentence for those who do not see it; else one is made from the numbers.
        row_name: what a row is.
        column_name: what a column is.

    >>> figure = heat_map([[0.9, 0.1], [0, 1]], rows="ab", columns="ab", title="Moves", what="probability")
    >>> figure.alt
    'Heat map of probability, 2 rows by 2 columns. The largest is 1 at b, b; the smallest 0 at b, a.'
    """
    _check(values, rows, columns)
    held = [value for row in values for value in row if math.isfinite(value)]
    bottom = min(held, default=0.0) if low is None else low
    top = max(held, default=1.0) if high is None else high
    drawn, width, height = _map(values, rows, columns, (bottom, top), (row_name, column_name))
    scale, scale_width = _scale(bottom, top, what)
    placed = element("g", scale, transform=f"translate(0 {height + 14:.1f})")
    return Figure(
        svg=Drawing(max(width, scale_width, 260.0), height + 62, joined(drawn, placed)),
        title=title,
        alt=alt or _told(values, rows, columns, what),
        caption=caption,
        table=_numbers(values, rows, columns, title, row_name),
    )


def _check(values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]) -> None:
    if not rows or not columns:
        raise ArgumentError(where="heat_map", got="no rows or no columns", wanted="one or more of each")
    if len(values) != len(rows) or any(len(row) != len(columns) for row in values):
        raise ShapeError(
            where="heat_map.values",
            got=f"{len(values)} rows of {sorted({len(row) for row in values})} numbers",
            wanted=f"{len(rows)} rows of {len(columns)}, as there are names",
        )


def _map(
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    ends: tuple[float, float],
    names: tuple[str, str],
) -> tuple[Markup, float, float]:
    """Names and cells, and how large that is."""
    written = len(columns) <= _VALUES
    cell_texts = [[_brief(value, ends[1] - ends[0]) for value in row] for row in values]
    widest = max(text_room(each, SMALL) for row in cell_texts for each in row) + 12 if written else 0.0
    cell = max(30.0 if written else min(26.0, max(10.0, 620.0 / len(columns))), widest)
    tall = 28.0 if written else cell
    heads = [shortened(name, _NAME) for name in columns]
    slanted = max(text_room(name) for name in heads) > cell - 4
    head = (0.75 * max(text_room(name) for name in heads) + 16) if slanted else 22.0
    head += 18  # the name of the columns
    left = max([*(text_room(shortened(name, _NAME)) for name in rows), text_room(names[0])]) + 12
    parts = [element("text", text(names[1]), x=left, y=12.0, class_="faint small")]
    parts.append(element("text", text(names[0]), x=left - 8, y=head - 6, class_="faint small end"))
    parts += [
        _column(name, full, left + cell * (place + 0.5), head, slanted)
        for place, (name, full) in enumerate(zip(heads, columns, strict=True))
    ]
    for number, (name, row) in enumerate(zip(rows, values, strict=True)):
        y = head + tall * number
        tip = (element("title", text(name)),)
        parts.append(element("text", *tip, text(shortened(name, _NAME)), x=left - 8, y=y + tall / 2 + 4, class_="end"))
        for place, value in enumerate(row):
            where = f"{name}, {columns[place]}: {shown(value)}"
            shape = (left + cell * place, y, cell, tall)
            parts.append(_cell(value, ends, shape, cell_texts[number][place] if written else "", where))
    tail = 0.75 * text_room(heads[-1]) if slanted else 0.0
    return joined(*parts), left + cell * len(columns) + tail + 6, head + tall * len(rows)


def _column(name: str, full: str, x: float, head: float, slanted: bool) -> Markup:
    tip = (element("title", text(full)),)
    if slanted:
        return element("text", *tip, text(name), transform=f"translate({x + 2:.1f} {head - 7:.1f}) rotate(-48)")
    return element("text", *tip, text(name), x=x, y=head - 7, class_="middle")


def _cell(
    value: float, ends: tuple[float, float], shape: tuple[float, float, float, float], written: str, where: str
) -> Markup:
    x, y, width, height = shape
    tip = element("title", text(where))
    box = {"x": x, "y": y, "width": width, "height": height}
    if not math.isfinite(value):
        return element("rect", tip, **box, class_="cell absent")
    step = step_of(value, *ends)
    drawn = element("rect", tip, **box, class_=f"cell h{step}")
    if not written:
        return drawn
    ink = "high" if step >= _DARK else "low"
    label = element("text", text(written), x=x + width / 2, y=y + height / 2 + 4, class_=f"small middle {ink}")
    return joined(drawn, label)


def step_of(value: float, low: float, high: float) -> int:
    """The step of the colour scale for a value.

    Args:
        value: finite; outside of the ends it gets the colour of the end.
        low: the value of the first colour.
        high: the value of the last one.

    >>> [step_of(value, 0, 1) for value in (0, 0.05, 0.5, 1, 7)]
    [0, 0, 5, 9, 9]
    """
    if high <= low:
        return 0
    return min(STEPS - 1, max(0, math.floor(STEPS * (value - low) / (high - low))))


def _scale(low: float, high: float, what: str) -> tuple[Markup, float]:
    width = 20.0
    parts = [
        element("rect", x=width * step, y=0.0, width=width, height=11.0, class_=f"h{step}") for step in range(STEPS)
    ]
    parts.append(element("rect", x=0.0, y=0.0, width=width * STEPS, height=11.0, class_="absent"))
    for value, x, anchor in ((low, 0.0, None), (high, width * STEPS, "end")):
        style = "faint small" if anchor is None else f"faint small {anchor}"
        parts.append(element("text", text(shown(value)), x=x, y=27.0, class_=style))
    parts.append(element("text", text(what), x=width * STEPS + 12, y=10.0, class_="faint small"))
    return joined(*parts), width * STEPS + 18 + text_room(what, SMALL)


def _brief(value: float, spread: float) -> str:
    """A number for a cell, with as many digits behind the point as the spread of the map asks for."""
    if not math.isfinite(value):
        return ""
    if value == 0 or spread <= 0:
        return shown(value, digits=3)
    return f"{value:,.{min(4, max(0, 2 - math.floor(math.log10(spread))))}f}".replace("-", "−")


def _told(values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], what: str) -> str:
    size = f"Heat map of {what}, {len(rows)} rows by {len(columns)} columns."
    held = [
        (value, f"{row}, {column}")
        for row, line in zip(rows, values, strict=True)
        for column, value in zip(columns, line, strict=True)
        if math.isfinite(value)
    ]
    if not held:
        return f"{size} No values."
    (largest, at_largest), (smallest, at_smallest) = max(held), min(held)
    ends = f"The largest is {shown(largest)} at {at_largest}; the smallest {shown(smallest)} at {at_smallest}."
    return f"{size} {ends}"


def _numbers(
    values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], title: str, row_name: str
) -> DataTable | None:
    if len(rows) * len(columns) > _LISTED:
        return None
    listed = [(name, *map(shown, row)) for name, row in zip(rows, values, strict=True)]
    return DataTable(headings=(row_name, *columns), rows=listed, caption=f"{title}: the numbers")
