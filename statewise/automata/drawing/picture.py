"""The drawing of a machine before it is ink: circles, arrows, texts and their places, the same for SVG and PNG."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Complex, Float

FONT = 13.0
LINE = 1.3 * FONT


@dataclass(frozen=True, kw_only=True)
class Circle:
    """A state on paper.

    Args:
        state: its number in the machine.
        at: its middle, ``x + iy``, y down.
        text: its name, shortened.
        title: its name and class in full.
        kind: its class.
    """

    state: int
    at: complex
    text: str
    title: str
    kind: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Arrow:
    """All transitions from one state to another.

    Args:
        source: the state it leaves; -1 for the entry.
        target: the state it leads to.
        curve: the control points of its shaft, a cubic Bézier curve.
        head: the corners of its head, the tip first.
        text: its symbols, shortened.
        title: its symbols in full.
        box: left, top, right, bottom of the text.
    """

    source: int
    target: int
    curve: Complex[np.ndarray, "4"]
    head: Complex[np.ndarray, "3"]
    text: str = ""
    title: str = ""
    box: Float[np.ndarray, "4"] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """Everything to be drawn, with the upper left corner at 0.

    Args:
        circles: the states.
        arrows: the transitions, the entry first.
        radius: of the circles.
        size: width and height, ``w + ih``.
        classes: the names of the classes.
        rings: whether a second ring marks the states of class 1; else colours and a legend tell the classes.
        notes: lines under the picture.
    """

    circles: tuple[Circle, ...]
    arrows: tuple[Arrow, ...]
    radius: float
    size: complex
    classes: tuple[str, ...]
    rings: bool
    notes: tuple[str, ...] = ()

    def shifted(self, by: complex) -> Picture:
        """The same picture elsewhere.

        Args:
            by: ``x + iy``.
        """
        box = np.array([by.real, by.imag] * 2)
        circles = tuple(replace(circle, at=circle.at + by) for circle in self.circles)
        arrows = tuple(
            replace(
                arrow,
                curve=arrow.curve + by,
                head=arrow.head + by,
                box=None if arrow.box is None else arrow.box + box,
            )
            for arrow in self.arrows
        )
        return replace(self, circles=circles, arrows=arrows)
