"""The frame of a chart: grid, ticks and the names of its axes."""

from __future__ import annotations

from dataclasses import dataclass

from statewise.report.html.axes import Axis, tick_texts
from statewise.report.html.marks import text_room
from statewise.report.html.markup import Markup, element, joined, text

#: How wide a chart is where its content does not ask for another width.
WIDTH = 700.0
#: How wide it is on a phone, where the same texts have half the room.
NARROW = 328.0


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Two axes, and where their lines are.

    Args:
        x: from left to right.
        y: from the bottom up.
        x_name: under the ticks.
        y_name: over the axis, where it can be read without turning one's head.
    """

    x: Axis
    y: Axis
    x_name: str
    y_name: str

    def draw(self) -> Markup:
        """Grid, ticks and names."""
        left, right = self.x.start, self.x.end
        bottom, top = self.y.start, self.y.end
        parts = [element("text", text(self.y_name), x=0.0, y=top - 17, class_="faint")]
        ticks = self.y.ticks()
        for tick, name in zip(ticks, tick_texts(ticks), strict=True):
            at = self.y.place(tick)
            parts.append(element("line", x1=left, y1=at, x2=right, y2=at, class_="grid"))
            parts.append(element("text", text(name), x=left - 8, y=at + 4, class_="faint end"))
        parts.append(element("line", x1=left, y1=bottom, x2=right, y2=bottom, class_="axis"))
        parts += self._x_ticks(bottom)
        parts.append(element("text", text(self.x_name), x=(left + right) / 2, y=bottom + 40, class_="faint middle"))
        return joined(*parts)

    def _x_ticks(self, bottom: float) -> list[Markup]:
        ticks = self.x.ticks(8 if self.x.end - self.x.start > NARROW else 5)
        names = tick_texts(ticks)
        widest = max((text_room(name) for name in names), default=0.0) + 10
        room = abs(self.x.end - self.x.start) / max(1, len(ticks) - 1)
        every = max(1, int(-(-widest // room)))  # rounded up
        parts = []
        for tick, name in list(zip(ticks, names, strict=True))[::every]:
            at = self.x.place(tick)
            parts.append(element("line", x1=at, y1=bottom, x2=at, y2=bottom + 5, class_="axis"))
            parts.append(element("text", text(name), x=at, y=bottom + 20, class_="faint middle"))
        return parts


def room_for_ticks(axis: Axis) -> float:
    """How much place the names of an axis at the left need.

    Args:
        axis: the upright one.

    >>> room_for_ticks(Axis(low=0, high=1, start=10, end=0)) > 10
    True
    """
    return max(text_room(name) for name in tick_texts(axis.ticks()) or [""]) + 14
