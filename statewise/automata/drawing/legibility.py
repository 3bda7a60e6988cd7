"""Whether a person can follow a picture: circles apart, no arrow through a circle, no text on another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float

from statewise.automata.drawing.geometry import bezier, boxes_overlap, crossed, distance_to_segment
from statewise.automata.drawing.picture import Picture

_SAMPLES = 33


@dataclass(frozen=True, kw_only=True)
class Legibility:
    """What is wrong with a picture; zeros are best.

    Args:
        closest: the distance of the two nearest circles' middles, in diameters; above 1 none touch.
        struck: pairs of an arrow and a circle that it runs through without beginning or ending there.
        crossings: of arrows with arrows.
        hidden: texts that lie on a circle.
        mixed: pairs of texts that overlap.
        astray: states that are drawn to the left of the start.
    """

    closest: float
    struck: int
    crossings: int
    hidden: int
    mixed: int
    astray: int


def legibility(drawn: Picture) -> Legibility:
    """Count the faults of a picture.

    Args:
        drawn: any picture.

    >>> from statewise.automata import from_regex
    >>> from statewise.automata.drawing.compose import compose
    >>> legibility(compose(from_regex("a*b")))
    Legibility(closest=2.68..., struck=0, crossings=0, hidden=0, mixed=0, astray=0)
    """
    places = np.array([circle.at for circle in drawn.circles])
    states = np.array([circle.state for circle in drawn.circles])
    lines = bezier(np.stack([arrow.curve for arrow in drawn.arrows]), _SAMPLES)
    ends = np.array([(arrow.source, arrow.target) for arrow in drawn.arrows])
    boxes = np.array([arrow.box for arrow in drawn.arrows if arrow.box is not None]).reshape(-1, 4)
    gaps = distance_to_segment(places[:, None, None], lines[:, :-1], lines[:, 1:]).min(-1)
    foreign = (states[:, None, None] != ends).all(-1)
    start = places[states == ends[0, 1]].real
    return Legibility(
        closest=_closest(places) / (2 * drawn.radius),
        struck=int(((gaps < drawn.radius) & foreign).sum()),
        crossings=_crossings(lines),
        hidden=int((_box_gaps(boxes, places) < drawn.radius).sum()),
        mixed=int((np.triu(boxes_overlap(boxes[:, None], boxes[None]), 1) > 1.0).sum()),
        astray=int((places.real < start - 1e-6).sum()),
    )


def _closest(places: Complex[np.ndarray, " circles"]) -> float:
    distances = np.abs(places[:, None] - places) + np.where(np.eye(len(places)), np.inf, 0)
    return float(distances.min())


def _crossings(lines: Complex[np.ndarray, "lines samples"]) -> int:
    count = 0
    for number, line in enumerate(lines[:-1]):
        rest = lines[number + 1 :]
        meets = crossed(line[:-1, None], line[1:, None], rest[:, None, :-1], rest[:, None, 1:])
        count += int(meets.sum())
    return count


def _box_gaps(
    boxes: Float[np.ndarray, "boxes 4"], places: Complex[np.ndarray, " circles"]
) -> Float[np.ndarray, "boxes circles"]:
    x, y = places.real, places.imag
    aside = np.maximum(np.maximum(boxes[:, :1] - x, x - boxes[:, 2:3]), 0)
    above = np.maximum(np.maximum(boxes[:, 1:2] - y, y - boxes[:, 3:]), 0)
    return np.asarray(np.hypot(aside, above))
