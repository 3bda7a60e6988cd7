"""Line charts: several named series, with a band of uncertainty where there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from statewise.errors import ArgumentError, LengthError
from statewise.report.html.axes import covering
from statewise.report.html.frame import NARROW, WIDTH, Frame, room_for_ticks
from statewise.report.html.marks import COLOURS, dash, legend, marker
from statewise.report.html.markup import Markup, element, joined
from statewise.report.html.numbers import shown
from statewise.report.html.pieces import DataTable, Drawing, Figure, Words

_HEIGHT = 270.0
_MARKED = 26  # with more points, only some get a mark
_ROWS = 300  # of the table; with more, only some are listed


@dataclass(frozen=True, kw_only=True)
class Series:
    """A line of a chart.

    Args:
        name: in the legend.
        x: places from left to right.
        y: a value each; where it is not finite the line is broken.
        low: the lower end of the band, a value each; None for no band.
        high: its upper end.

    >>> Series(name="train", x=[1, 2], y=[0.5, 0.25]).name
    'train'
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("y", "low", "high"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.x):
                raise LengthError(
                    where=f"Series({self.name!r}).{name}",
                    got=f"{len(values)} values",
                    wanted=f"{len(self.x)}, one for each x",
                )
        if (self.low is None) != (self.high is None):
            raise ArgumentError(
                where=f"Series({self.name!r})", got="one end of a band", wanted="low and high, or neither"
            )


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x: str,
    y: str,
    caption: Words = "",
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = False,
    alt: str = "",
) -> Figure:
    """A chart of lines, each with a colour, a dash and a mark of its own.

    Args:
        series: the lines.
        title: over the chart.
        x: the name of the axis from left to right.
        y: the name of the upright axis.
        caption: how to read it.
        log_x: equal ratios of x are equally far apart; what is not above 0 is not drawn.
        log_y: the same for y.
        zero: let the upright axis hold 0.
        alt: a sentence for those who do not see it; else one is made from the numbers.

    >>> figure = line_chart([Series(name="train", x=[1, 2], y=[3.0, 2.5])], title="Loss", x="epoch", y="nats")
    >>> figure.alt
    'Line chart of nats against epoch. train: from 3 at 1 to 2.5 at 2, lowest 2.5, highest 3.'
    """
    if not series:
        raise ArgumentError(where="line_chart.series", got="none", wanted="one line or more")
    drawings = [_drawing(series, width, (x, y), log_x=log_x, log_y=log_y, zero=zero) for width in (WIDTH, NARROW)]
    return Figure(
        svg=drawings[0],
        narrow=drawings[1],
        title=title,
        alt=alt or _told(series, x, y),
        caption=caption,
        table=_numbers(series, title, x),
    )


def _drawing(
    series: Sequence[Series], width: float, names: tuple[str, str], *, log_x: bool, log_y: bool, zero: bool
) -> Drawing:
    found = [one.name for one in series]
    shown_legend, height = legend(found, width=width) if len(found) > 1 else (Markup(""), 0.0)
    top = height + 36
    bottom = top + _HEIGHT
    values = [value for one in series for part in (one.y, one.low or (), one.high or ()) for value in part]
    y_axis = covering(values, start=bottom, end=top, log=log_y, zero=zero)
    left = room_for_ticks(y_axis)
    places = [value for one in series for value in one.x]
    x_axis = covering(places, start=left, end=width - 14, log=log_x, tight=True)
    frame = Frame(x=x_axis, y=y_axis, x_name=names[0], y_name=names[1])
    bands = [_band(one, number, frame) for number, one in enumerate(series) if one.low is not None]
    drawn = [_line(one, number, frame) for number, one in enumerate(series)]
    return Drawing(width, bottom + 50, joined(shown_legend, frame.draw(), *bands, *drawn))


def _visible(frame: Frame, x: float, y: float) -> bool:
    fine = math.isfinite(x) and math.isfinite(y)
    return fine and (x > 0 or not frame.x.log) and (y > 0 or not frame.y.log)


def _line(series: Series, number: int, frame: Frame) -> Markup:
    """The line in pieces between its gaps, then its marks."""
    pieces: list[list[str]] = [[]]
    points = []
    for x, y in zip(series.x, series.y, strict=True):
        if not _visible(frame, x, y):
            pieces.append([])
            continue
        at = frame.x.place(x), frame.y.place(y)
        pieces[-1].append(f"{at[0]:.1f},{at[1]:.1f}")
        points.append((x, y, *at))
    path = "".join("M" + "L".join(piece) for piece in pieces if len(piece) > 1)
    drawn = [element("path", d=path, class_=f"line c{number % COLOURS}", stroke_dasharray=dash(number))] if path else []
    step = max(1, math.ceil(len(points) / _MARKED)) if len(points) <= 2 * _MARKED else math.ceil(len(points) / 8)
    chosen = points[::step]
    if points and points[-1] not in chosen:
        chosen.append(points[-1])
    marks = [
        marker(number, at_x, at_y, title=f"{series.name}: {shown(y)} at {shown(x)}") for x, y, at_x, at_y in chosen
    ]
    return element("g", *drawn, *marks)


def _band(series: Series, number: int, frame: Frame) -> Markup:
    if series.low is None or series.high is None:
        return Markup("")
    held = [
        (frame.x.place(x), frame.y.place(low), frame.y.place(high))
        for x, low, high in zip(series.x, series.low, series.high, strict=True)
        if _visible(frame, x, low) and _visible(frame, x, high)
    ]
    corners = [f"{x:.1f},{high:.1f}" for x, _, high in held] + [f"{x:.1f},{low:.1f}" for x, low, _ in reversed(held)]
    return element("polygon", points=" ".join(corners), class_=f"band f{number % COLOURS}")


def _told(series: Sequence[Series], x: str, y: str) -> str:
    sentences = [f"Line chart of {y} against {x}."]
    for one in series:
        held = [(at, value) for at, value in zip(one.x, one.y, strict=True) if math.isfinite(value)]
        if not held:
            sentences.append(f"{one.name}: no values.")
            continue
        (first, begin), (last, end) = held[0], held[-1]
        values = [value for _, value in held]
        sentences.append(
            f"{one.name}: from {shown(begin)} at {shown(first)} to {shown(end)} at {shown(last)}, "
            f"lowest {shown(min(values))}, highest {shown(max(values))}."
        )
    return " ".join(sentences)


def _numbers(series: Sequence[Series], title: str, x: str) -> DataTable:
    """A row for each place; of very many, only some."""
    by_place: dict[float, dict[int, str]] = {}
    for number, one in enumerate(series):
        for index, (place, value) in enumerate(zip(one.x, one.y, strict=True)):
            written = shown(value)
            if one.low is not None and one.high is not None:
                written = f"{written} ({shown(one.low[index])} to {shown(one.high[index])})"
            by_place.setdefault(place, {})[number] = written
    places = sorted(by_place)
    every = max(1, math.ceil(len(places) / _ROWS))
    caption = f"{title}: the numbers" + (f", every {every}th place" if every > 1 else "")
    rows = [
        (shown(place), *(by_place[place].get(number, "") for number in range(len(series)))) for place in places[::every]
    ]
    return DataTable(headings=(x, *(one.name for one in series)), rows=rows, caption=caption, left=0)
