"""Where the texts of arrows stand: beside their arrow, off circles, off other texts, off other arrows if possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Complex, Float

from statewise.automata.drawing.geometry import bezier, boxes_overlap

_ALONG = np.array([12, 10, 14, 8, 16, 6, 18, 4, 20])  # of 25 points of a curve, from its middle outwards
_ASIDE = 3.0
_PASSES = 4


def place_labels(
    curves: Complex[np.ndarray, "curves 4"],
    sizes: Float[np.ndarray, "curves 2"],
    *,
    circles: Complex[np.ndarray, " circles"],
    radius: float,
    obstacles: Complex[np.ndarray, "obstacles 4"],
) -> Float[np.ndarray, "curves 4"]:
    """Boxes (left, top, right, bottom) for the texts of curves.

    Args:
        curves: the control points of each.
        sizes: width and height of each text.
        circles: where circles are.
        radius: of the circles.
        obstacles: curves without texts.

    >>> line = np.array([[0j, 30, 60, 90]])
    >>> place_labels(line, np.array([[20.0, 10.0]]), circles=np.array([0j]), radius=5.0, obstacles=line[:0])
    array([[ 35., -13.,  55.,  -3.]])
    """
    if not len(curves):
        return np.zeros((0, 4))
    lines = bezier(curves, 25)
    boxes = _candidates(lines, sizes)
    others = np.concatenate([lines, bezier(obstacles, 25)])
    costs = np.stack([_standing(boxes[i], i, others, circles, radius) for i in range(len(boxes))])
    chosen = costs.argmin(1)
    everyone = np.arange(len(boxes))
    for _ in range(_PASSES):
        before = chosen.copy()
        for number in everyone:
            taken = boxes[everyone, chosen][everyone != number]
            shared = boxes_overlap(boxes[number][:, None], _grown(taken, 1.5)[None])
            chosen[number] = (costs[number] + (4.0 * (shared > 0) + 0.06 * shared).sum(1)).argmin()
        if (before == chosen).all():
            break
    return np.asarray(boxes[everyone, chosen])


def _candidates(
    lines: Complex[np.ndarray, "lines samples"], sizes: Float[np.ndarray, "lines 2"]
) -> Float[np.ndarray, "lines places 4"]:
    """On both sides of points along each line, as near as the box can come without touching the tangent."""
    at = lines[:, _ALONG]
    ahead = lines[:, _ALONG + 1] - lines[:, _ALONG - 1]
    normal = -1j * ahead / np.maximum(np.abs(ahead), 1e-9)  # to the left of the arrow, y down
    half = sizes[:, None] / 2
    reach = np.abs(normal.real) * half[..., 0] + np.abs(normal.imag) * half[..., 1] + _ASIDE
    middles = np.stack([at + reach * normal, at - reach * normal], -1).reshape(len(lines), -1)
    centres = np.stack([middles.real, middles.imag], -1)
    return np.concatenate([centres - half, centres + half], -1)


def _standing(
    boxes: Float[np.ndarray, "places 4"],
    own: int,
    lines: Complex[np.ndarray, "lines samples"],
    circles: Complex[np.ndarray, " circles"],
    radius: float,
) -> Float[np.ndarray, " places"]:
    """What a place costs whatever the other texts do."""
    cost = 0.05 * np.repeat(np.abs(_ALONG - 12), 2).astype(float)
    # Outside a bend, where the arrow's opposite is not; beside a straight line, to its left.
    chord = lines[own, -1] - lines[own, 0]
    outwards = (np.conj(chord) * (lines[own, 12] - (lines[own, 0] + lines[own, -1]) / 2)).imag
    cost += np.tile([0.0, 0.4] if outwards < 1e-6 * abs(chord) else [0.4, 0.0], len(_ALONG))
    x, y = circles.real, circles.imag
    away = np.hypot(
        np.maximum(np.maximum(boxes[:, :1] - x, x - boxes[:, 2:3]), 0),
        np.maximum(np.maximum(boxes[:, 1:2] - y, y - boxes[:, 3:4]), 0),
    )
    cost += (15.0 * (away < radius + 1) + 1.0 * (away < radius + 5)).sum(1)
    hit = _inside(_grown(boxes, 0.5), lines)
    near = _inside(_grown(boxes, 5.0), lines)
    for inside, price in ((hit, 1.8), (near, 0.7)):
        touched = np.asarray(inside.any(-1))
        touched[:, own] &= price > 1  # its own arrow may be near
        cost += price * touched.sum(1)
    return cost


def _inside(boxes: Float[np.ndarray, "places 4"], lines: Complex[np.ndarray, "lines samples"]) -> np.ndarray:
    left, top, right, bottom = boxes.T[:, :, None, None]
    return np.asarray((lines.real > left) & (lines.real < right) & (lines.imag > top) & (lines.imag < bottom))


def _grown(boxes: Float[np.ndarray, "*any 4"], by: float) -> Float[np.ndarray, "*any 4"]:
    return boxes + by * np.array([-1.0, -1.0, 1.0, 1.0])


def bounds(parts: Sequence[Complex[np.ndarray, "..."]]) -> tuple[complex, complex]:
    """The upper left and lower right corner of all points.

    Args:
        parts: arrays of points, not all empty.

    >>> bounds([np.array([1 + 5j]), np.array([3 + 2j])])
    ((1+2j), (3+5j))
    """
    points = np.concatenate([np.ravel(part) for part in parts])
    low, high = complex(points.real.min(), points.imag.min()), complex(points.real.max(), points.imag.max())
    return low, high
