"""Whether a person can follow the drawing of a tensor network: nothing lies on anything else."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Complex, Float

from statewise.automata.drawing.geometry import boxes_overlap, crossed
from statewise.memory.drawing_picture import Picture


@dataclass(frozen=True, kw_only=True)
class Legibility:
    """What is wrong with a picture; zeros are best.

    Args:
        touching: pairs of nodes that overlap.
        struck: pairs of a line and a node that it runs through without beginning or ending there.
        crossings: of lines with lines.
        hidden: texts that lie on a node.
        mixed: pairs of texts that overlap.
        crossed_out: texts that a line runs through.
    """

    touching: int
    struck: int
    crossings: int
    hidden: int
    mixed: int
    crossed_out: int


def legibility(picture: Picture) -> Legibility:
    """Count the faults of a picture.

    Args:
        picture: any.

    >>> from statewise.memory.drawing_figures import figure_picture
    >>> legibility(figure_picture("A.3a"))
    Legibility(touching=0, struck=0, crossings=0, hidden=0, mixed=0, crossed_out=0)
    """
    marks = np.array([mark.box for mark in picture.marks]).reshape(-1, 4)
    boxes = [wire.box for wire in picture.wires if wire.text] + [caption.box for caption in picture.captions]
    texts = np.array(boxes).reshape(-1, 4)
    pieces = [(*piece, wire.between) for wire in picture.wires for piece in pairwise(wire.points)]
    begin, end = (np.array([piece[side] for piece in pieces], dtype=complex) for side in (0, 1))
    ends = np.array([piece[2] for piece in pieces]).reshape(-1, 2)
    own = (np.arange(len(marks))[:, None, None] == ends[None]).any(-1)
    meets = crossed(begin[:, None], end[:, None], begin[None], end[None])
    return Legibility(
        touching=_pairs(marks),
        struck=int((_through(marks, begin, end) & ~own).sum()),
        crossings=int(np.triu(meets, 1).sum()),
        hidden=int((boxes_overlap(texts[:, None], marks[None]) > 1.0).any(1).sum()),
        mixed=_pairs(texts),
        crossed_out=int(_through(texts, begin, end).any(1).sum()),
    )


def _pairs(boxes: Float[np.ndarray, "boxes 4"]) -> int:
    return int((np.triu(boxes_overlap(boxes[:, None], boxes[None]), 1) > 1.0).sum())


def _through(
    boxes: Float[np.ndarray, "boxes 4"], begin: Complex[np.ndarray, " lines"], end: Complex[np.ndarray, " lines"]
) -> Bool[np.ndarray, "boxes lines"]:
    """Whether each line has a point inside each box, less its rim; lines are looked at in many points."""
    share = np.linspace(0.0, 1.0, 65)
    points = begin[:, None] + (end - begin)[:, None] * share
    left, top, right, bottom = (boxes[:, side, None, None] for side in range(4))
    inside = (points.real > left + 1) & (points.real < right - 1) & (points.imag > top + 1) & (points.imag < bottom - 1)
    found: Bool[np.ndarray, "boxes lines"] = inside.any(-1)
    return found
