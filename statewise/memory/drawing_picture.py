"""The drawing of a tensor network before it is ink: boxes, triangles, wires and texts with their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from statewise.automata.captions import text_width

FONT = 13.0
SMALL = 11.0
LINE = 1.4 * FONT
Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A node on paper.

    Args:
        at: its middle, ``x + iy``, y down.
        shape: "box", "triangle" or "circle".
        text: inside.
        title: in full.
        colour: its number among the colours; None for paper.
        half: half its width and height, ``w + ih``.
    """

    at: complex
    shape: str
    text: str
    title: str
    colour: int | None
    half: complex

    @property
    def box(self) -> Box:
        """Left, top, right, bottom."""
        low, high = self.at - self.half, self.at + self.half
        return low.real, low.imag, high.real, high.imag


@dataclass(frozen=True, kw_only=True)
class Wire:
    """An edge on paper.

    Args:
        points: the corners of the line.
        between: the numbers of the marks where it begins and ends; -1 for an open end.
        text: the dimension.
        at: the middle of the text.
        title: in full.
    """

    points: tuple[complex, ...]
    between: tuple[int, int]
    text: str
    at: complex
    title: str

    @property
    def box(self) -> Box:
        """Left, top, right, bottom of the text."""
        return text_box(self.text, self.at, SMALL)


@dataclass(frozen=True, kw_only=True)
class Caption:
    """A text of its own.

    Args:
        text: what it says.
        at: its middle.
        size: of the letters.
    """

    text: str
    at: complex
    size: float = FONT

    @property
    def box(self) -> Box:
        """Left, top, right, bottom."""
        return text_box(self.text, self.at, self.size)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Everything to be drawn.

    Args:
        marks: the nodes.
        wires: the edges.
        captions: other texts.
    """

    marks: tuple[Mark, ...]
    wires: tuple[Wire, ...]
    captions: tuple[Caption, ...] = ()

    @property
    def box(self) -> Box:
        """Left, top, right, bottom of all of it."""
        boxes = list(self._boxes())
        return (
            min(box[0] for box in boxes),
            min(box[1] for box in boxes),
            max(box[2] for box in boxes),
            max(box[3] for box in boxes),
        )

    def shifted(self, by: complex) -> Picture:
        """The same picture elsewhere.

        Args:
            by: ``x + iy``.
        """
        return Picture(
            marks=tuple(replace(mark, at=mark.at + by) for mark in self.marks),
            wires=tuple(
                replace(wire, points=tuple(point + by for point in wire.points), at=wire.at + by) for wire in self.wires
            ),
            captions=tuple(replace(caption, at=caption.at + by) for caption in self.captions),
        )

    def told(self, *captions: Caption) -> Picture:
        """The same picture with more texts.

        Args:
            captions: to be added.
        """
        return replace(self, captions=(*self.captions, *captions))

    def _boxes(self) -> Iterator[Box]:
        yield from (mark.box for mark in self.marks)
        for wire in self.wires:
            yield from ((point.real, point.imag, point.real, point.imag) for point in wire.points)
            if wire.text:
                yield wire.box
        yield from (caption.box for caption in self.captions)


def beside(pictures: Sequence[Picture], *, gap: float = 46.0) -> Picture:
    """Pictures in a row, their lower edges on one line.

    Args:
        pictures: from left to right.
        gap: between two.
    """
    return _joined(pictures, gap, down=False)


def below(pictures: Sequence[Picture], *, gap: float = 30.0) -> Picture:
    """Pictures in a column, their left edges on one line.

    Args:
        pictures: from the top down.
        gap: between two.
    """
    return _joined(pictures, gap, down=True)


def text_box(text: str, at: complex, size: float) -> Box:
    """Left, top, right, bottom of a text, roughly.

    Args:
        text: on one line.
        at: its middle.
        size: of the letters.
    """
    half = complex(text_width(text, size) / 2 + 1, 0.6 * size)
    return (at - half).real, (at - half).imag, (at + half).real, (at + half).imag


def _joined(pictures: Sequence[Picture], gap: float, *, down: bool) -> Picture:
    marks, wires, captions, along = list[Mark](), list[Wire](), list[Caption](), 0.0
    for picture in pictures:
        left, top, right, bottom = picture.box
        moved = picture.shifted(complex(-left, along - top) if down else complex(along - left, -bottom))
        first = len(marks)
        marks += moved.marks
        wires += [
            replace(wire, between=(_moved(wire.between[0], first), _moved(wire.between[1], first)))
            for wire in moved.wires
        ]
        captions += moved.captions
        along += gap + (bottom - top if down else right - left)
    return Picture(marks=tuple(marks), wires=tuple(wires), captions=tuple(captions))


def _moved(mark: int, by: int) -> int:
    return mark if mark < 0 else mark + by
