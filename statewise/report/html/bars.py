"""Horizontal bars with intervals; or points with intervals, where the distance from zero says nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from statewise.errors import ArgumentError
from statewise.report.html.axes import Axis, covering, tick_texts
from statewise.report.html.frame import NARROW, WIDTH
from statewise.report.html.marks import COLOURS, marker, text_room
from statewise.report.html.markup import Markup, element, joined, text
from statewise.report.html.numbers import shown
from statewise.report.html.pieces import DataTable, Drawing, Figure, Words

_ROW = 30.0
_TALL_ROW = 46.0  # with the name over the bar
_LABEL = 250.0  # the widest place for names
_TOP = 8.0


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A named value.

    Args:
        label: its name.
        value: how long the bar is.
        low: the lower end of an interval around it; None for none.
        high: the upper end.
        group: the number of its colour and mark.
        written: what stands at its end; else its value.

    >>> Bar(label="LSTM", value=0.9, low=0.85, high=0.94).group
    0
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    group: int = 0
    written: str = ""

    @property
    def text(self) -> str:
        """What stands at its end."""
        return self.written or shown(self.value)


def bar_chart(
    bars: Sequence[Bar],
    *,
    title: str,
    value: str,
    caption: Words = "",
    zero: bool = True,
    alt: str = "",
    heading: str = "name",
    interval: str = "interval",
) -> Figure:
    """Values one under the other, with their names at the left and their numbers at the right.

    Args:
        bars: from the top down.
        title: over the chart.
        value: what the values are.
        caption: how to read it.
        zero: bars from zero; else points on an axis that begins near the smallest, which show small differences.
        alt: a sentence for those who do not see it; else one is made from the numbers.
        heading: what the names are, for the table.
        interval: what the intervals are, for the table.

    >>> figure = bar_chart([Bar(label="plain", value=2.0), Bar(label="noise", value=1.5)], title="Loss", value="nats")
    >>> figure.alt
    'Bar chart of nats. plain: 2; noise: 1.5.'
    """
    if not bars:
        raise ArgumentError(where="bar_chart.bars", got="none", wanted="one or more")
    return Figure(
        svg=_beside(bars, value, zero),
        narrow=_above(bars, value, zero),
        title=title,
        alt=alt or f"Bar chart of {value}. {'; '.join(f'{bar.label}: {bar.text}' for bar in bars)}.",
        caption=caption,
        table=_numbers(bars, title, heading, value, interval),
    )


def _beside(bars: Sequence[Bar], value: str, zero: bool) -> Drawing:
    """With the names at the left of the bars."""
    names = [_cut(bar.label, _LABEL) for bar in bars]
    left = max(text_room(name) for name in names) + 12
    axis = _axis(bars, left, WIDTH, zero)
    bottom = _TOP + _ROW * len(bars)
    parts = [_scale(axis, bottom, value)]
    for place, (bar, name) in enumerate(zip(bars, names, strict=True)):
        y = _TOP + _ROW * (place + 0.5)
        parts += [_name(bar, name, left - 10, y + 4.4, "end"), _row(bar, y, axis, zero)]
    return Drawing(WIDTH, bottom + 50, joined(*parts))


def _above(bars: Sequence[Bar], value: str, zero: bool) -> Drawing:
    """With each name over its bar, for a phone."""
    first = tick_texts(_axis(bars, 0.0, NARROW, zero).ticks())[0]
    axis = _axis(bars, text_room(first) / 2, NARROW, zero)  # the name of the first tick is centred under it
    bottom = _TOP + _TALL_ROW * len(bars)
    parts = [_scale(axis, bottom, value)]
    for place, bar in enumerate(bars):
        y = _TOP + _TALL_ROW * place
        parts.append(_name(bar, _cut(bar.label, NARROW - 10), 0.0, y + 14, "halo"))
        parts.append(_row(bar, y + 32, axis, zero))
    return Drawing(NARROW, bottom + 50, joined(*parts))


def _axis(bars: Sequence[Bar], left: float, width: float, zero: bool) -> Axis:
    values = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    room = max(text_room(bar.text) for bar in bars) + 14
    return covering(values, start=left, end=width - room, zero=zero)


def _name(bar: Bar, name: str, x: float, y: float, style: str) -> Markup:
    return element("text", element("title", text(bar.label)), text(name), x=x, y=y, class_=style)


def _row(bar: Bar, y: float, axis: Axis, zero: bool) -> Markup:
    tip = (element("title", text(f"{bar.label}: {bar.text}")),)
    parts: list[Markup] = []
    reach = axis.start
    if math.isfinite(bar.value):
        at, origin = axis.place(bar.value), axis.place(0.0) if zero else axis.start
        reach = max(at, origin)
        if zero:
            size = {"x": min(at, origin), "y": y - 8.5, "width": max(abs(at - origin), 0.8), "height": 17.0, "rx": 2.0}
            parts.append(element("rect", *tip, **size, class_=f"bar f{bar.group % COLOURS}"))
        parts += _whisker(bar, y, axis)
        if not zero:
            parts.append(marker(bar.group, at, y, title=f"{bar.label}: {bar.text}", size=4.6))
    if bar.high is not None and math.isfinite(bar.high):
        reach = max(reach, axis.place(bar.high))
    parts.append(element("text", text(bar.text), x=reach + 8, y=y + 4.4, class_="halo"))
    return element("g", *parts)


def _whisker(bar: Bar, y: float, axis: Axis) -> list[Markup]:
    if bar.low is None or bar.high is None or not (math.isfinite(bar.low) and math.isfinite(bar.high)):
        return []
    low, high = axis.place(bar.low), axis.place(bar.high)
    path = f"M{low:.1f},{y - 5:.1f}v10M{low:.1f},{y:.1f}H{high:.1f}M{high:.1f},{y - 5:.1f}v10"
    # A pale line under the dark one: it is seen inside the bar and outside of it.
    return [element("path", d=path, class_="whisker under"), element("path", d=path, class_="whisker")]


def _scale(axis: Axis, bottom: float, value: str) -> Markup:
    ticks = axis.ticks()
    parts = []
    for tick, name in zip(ticks, tick_texts(ticks), strict=True):
        at = axis.place(tick)
        parts.append(element("line", x1=at, y1=_TOP, x2=at, y2=bottom, class_="grid"))
        parts.append(element("text", text(name), x=at, y=bottom + 17, class_="faint middle"))
    parts.append(element("line", x1=axis.start, y1=bottom, x2=axis.end, y2=bottom, class_="axis"))
    middle = (axis.start + axis.end) / 2
    parts.append(element("text", text(value), x=middle, y=bottom + 38, class_="faint middle"))
    return joined(*parts)


def _cut(label: str, width: float) -> str:
    """A name that fits; the whole of it shows when the pointer rests on it, and in the table."""
    if text_room(label) <= width:
        return label
    while label and text_room(f"{label}…") > width:
        label = label[:-1]
    return f"{label.rstrip()}…"


def _numbers(bars: Sequence[Bar], title: str, heading: str, value: str, interval: str) -> DataTable:
    with_intervals = any(bar.low is not None for bar in bars)
    rows = []
    for bar in bars:
        around = "" if bar.low is None or bar.high is None else f"{shown(bar.low)} to {shown(bar.high)}"
        rows.append((bar.label, shown(bar.value), *([around] if with_intervals else [])))
    headings = (heading, value, *([interval] if with_intervals else []))
    return DataTable(headings=headings, rows=rows, caption=f"{title}: the numbers")
