"""Points in the plane, and reliability diagrams: how often a model is right against how sure it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from statewise.errors import ArgumentError, LengthError
from statewise.report.html.axes import Axis, covering
from statewise.report.html.frame import NARROW, WIDTH, Frame, room_for_ticks
from statewise.report.html.marks import legend, marker
from statewise.report.html.markup import Markup, element, joined
from statewise.report.html.numbers import shown
from statewise.report.html.pieces import DataTable, Drawing, Figure, Words

_HEIGHT = 300.0
_SQUARE = 280.0


@dataclass(frozen=True, kw_only=True)
class Points:
    """A group of points.

    Args:
        name: in the legend.
        x: a number a point.
        y: a number a point.
        labels: a name a point, which shows when the pointer rests on it; empty for none.

    >>> len(Points(name="runs", x=[1.0], y=[2.0]).x)
    1
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    labels: Sequence[str] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or (self.labels and len(self.labels) != len(self.x)):
            raise LengthError(
                where=f"Points({self.name!r})",
                got=f"{len(self.x)} x, {len(self.y)} y and {len(self.labels)} labels",
                wanted="as many of each (labels may be left out)",
            )


def scatter_chart(
    groups: Sequence[Points],
    *,
    title: str,
    x: str,
    y: str,
    caption: Words = "",
    log_x: bool = False,
    log_y: bool = False,
    diagonal: bool = False,
    alt: str = "",
) -> Figure:
    """Points in the plane, each group with a colour and a mark of its own.

    Args:
        groups: of points.
        title: over the chart.
        x: the name of the axis from left to right.
        y: the name of the upright axis.
        caption: how to read it.
        log_x: equal ratios of x are equally far apart; what is not above 0 is not drawn.
        log_y: the same for y.
        diagonal: draw the line of equal x and y, on axes that are alike.
        alt: a sentence for those who do not see it; else one is made from the numbers.

    >>> scatter_chart([Points(name="runs", x=[1.0], y=[2.0])], title="T", x="size", y="loss").alt
    'Scatter chart of loss against size. runs: 1 point, size from 1 to 1, loss from 2 to 2.'
    """
    if not groups:
        raise ArgumentError(where="scatter_chart.groups", got="none", wanted="one or more")
    wide, narrow = (
        _drawing(groups, width, (x, y), log_x=log_x, log_y=log_y, diagonal=diagonal) for width in (WIDTH, NARROW)
    )
    numbers = _numbers(groups, title, x, y)
    return Figure(svg=wide, narrow=narrow, title=title, alt=alt or _told(groups, x, y), caption=caption, table=numbers)


def _drawing(
    groups: Sequence[Points], width: float, names: tuple[str, str], *, log_x: bool, log_y: bool, diagonal: bool
) -> Drawing:
    found = [group.name for group in groups]
    shown_legend, height = legend(found, width=width, lines=False) if len(found) > 1 else (Markup(""), 0.0)
    top = height + 36
    xs = [value for group in groups for value in group.x]
    ys = [value for group in groups for value in group.y]
    if diagonal:
        xs = ys = [*xs, *ys]
    y_axis = covering(ys, start=top + _HEIGHT, end=top, log=log_y)
    left = room_for_ticks(y_axis)
    right = min(left + _SQUARE + 40, width - 14) if diagonal else width - 14
    x_axis = covering(xs, start=left, end=right, log=log_x)
    frame = Frame(x=x_axis, y=y_axis, x_name=names[0], y_name=names[1])
    dots = [_dot(frame, number, group, index) for number, group in enumerate(groups) for index in range(len(group.x))]
    line = _diagonal(frame) if diagonal else Markup("")
    return Drawing(right + 14, top + _HEIGHT + 50, joined(shown_legend, frame.draw(), line, *dots))


def reliability_chart(
    confidence: Sequence[float],
    accuracy: Sequence[float],
    counts: Sequence[int],
    *,
    title: str,
    caption: Words = "",
    alt: str = "",
) -> Figure:
    """How often a model was right, against how sure it was, bin by bin: on the diagonal it says what it knows.

    The area of a mark grows with the number of predictions in its bin.

    Args:
        confidence: the mean probability of the class that was named, for each bin.
        accuracy: the share of these that were right.
        counts: how many predictions the bin has; empty bins are left out.
        title: over the chart.
        caption: how to read it.
        alt: a sentence for those who do not see it; else one is made from the numbers.

    >>> reliability_chart([0.55, 0.95], [0.5, 0.9], [10, 30], title="Calibration").alt
    'Reliability diagram of 40 predictions in 2 bins; the largest gap to the diagonal is 0.05.'
    """
    if not len(confidence) == len(accuracy) == len(counts):
        raise LengthError(
            where="reliability_chart",
            got=f"{len(confidence)} confidences, {len(accuracy)} accuracies and {len(counts)} counts",
            wanted="as many of each",
        )
    bins = [bin_ for bin_ in zip(confidence, accuracy, counts, strict=True) if bin_[2] > 0]
    total, largest = sum(count for *_, count in bins), max((count for *_, count in bins), default=1)
    y = Axis(low=0.0, high=1.0, start=36 + _SQUARE, end=36.0)
    left = room_for_ticks(y)
    x = Axis(low=0.0, high=1.0, start=left, end=NARROW - 16)
    frame = Frame(x=x, y=y, x_name="how sure it was", y_name="how often it was right")
    dots = []
    for sure, right, count in bins:
        size = 4.0 + 7.0 * math.sqrt(count / largest)
        tip = f"sure {shown(sure)}, right {shown(right)}, {count:,} predictions"
        ends = {"x1": x.place(sure), "x2": x.place(sure), "y1": y.place(sure), "y2": y.place(right)}
        dots.append(element("line", **ends, class_="thin c1"))
        dots.append(marker(0, x.place(sure), y.place(right), title=tip, size=size))
    gap = max((abs(sure - right) for sure, right, _ in bins), default=0.0)
    sentence = (
        f"Reliability diagram of {total:,} predictions in {len(bins)} bins; "
        f"the largest gap to the diagonal is {shown(gap, digits=3)}."
    )
    return Figure(
        svg=Drawing(x.end + 16, y.start + 50, joined(frame.draw(), _diagonal(frame), *dots)),
        title=title,
        alt=alt or sentence,
        caption=caption,
        table=DataTable(
            headings=("how sure", "how often right", "predictions"),
            rows=[(shown(sure), shown(right), f"{count:,}") for sure, right, count in bins],
            caption=f"{title}: the numbers",
            left=0,
        ),
    )


def _diagonal(frame: Frame) -> Markup:
    low, high = max(frame.x.low, frame.y.low), min(frame.x.high, frame.y.high)
    x, y = frame.x.place, frame.y.place
    return element("line", x1=x(low), y1=y(low), x2=x(high), y2=y(high), class_="guide")


def _dot(frame: Frame, number: int, group: Points, index: int) -> Markup:
    x, y = group.x[index], group.y[index]
    hidden = not (math.isfinite(x) and math.isfinite(y)) or (frame.x.log and x <= 0) or (frame.y.log and y <= 0)
    if hidden:
        return Markup("")
    name = group.labels[index] if group.labels else group.name
    return marker(number, frame.x.place(x), frame.y.place(y), title=f"{name}: {shown(x)}, {shown(y)}", size=4.4)


def _told(groups: Sequence[Points], x: str, y: str) -> str:
    sentences = [f"Scatter chart of {y} against {x}."]
    for group in groups:
        held = [pair for pair in zip(group.x, group.y, strict=True) if all(map(math.isfinite, pair))]
        count = f"{len(held)} point" if len(held) == 1 else f"{len(held)} points"
        if not held:
            sentences.append(f"{group.name}: no points.")
            continue
        ends = [
            f"{name} from {shown(min(column))} to {shown(max(column))}"
            for name, column in zip((x, y), zip(*held, strict=True), strict=True)
        ]
        sentences.append(f"{group.name}: {count}, {', '.join(ends)}.")
    return " ".join(sentences)


def _numbers(groups: Sequence[Points], title: str, x: str, y: str) -> DataTable:
    rows = [
        (group.labels[index] if group.labels else group.name, shown(group.x[index]), shown(group.y[index]))
        for group in groups
        for index in range(len(group.x))
    ]
    return DataTable(headings=("point", x, y), rows=rows, caption=f"{title}: the numbers")
