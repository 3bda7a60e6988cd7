"""Plane geometry on arrays: which lines cross, how far a point is from a line, points of a curve.

A point is a complex number ``x + iy``, y down: differences, lengths and turns are then one operation each.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Complex, Float

Points = Complex[np.ndarray, "..."]


def crossed(a: Points, b: Points, c: Points, d: Points) -> Bool[np.ndarray, "..."]:
    """Whether the segments ab and cd cross inside both; ends that touch do not count.

    Args:
        a: where the first begins, ``x + iy``.
        b: where it ends.
        c: where the second begins; all four broadcast.
        d: where it ends.

    >>> corners = np.array([0, 2 + 2j, 2j, 2])
    >>> crossed(*corners[:, None]), crossed(*corners[[0, 2, 1, 3], None])
    (array([ True]), array([False]))
    """
    ab, cd, ac = b - a, d - c, c - a
    sides = _cross(ab, ac) * _cross(ab, d - a), _cross(cd, ac) * _cross(cd, b - c)
    # Clearly on different sides: three points nearly on a line are no crossing. The second product has its sign turned.
    crossing: Bool[np.ndarray, "..."] = (sides[0] < -1e-9) & (sides[1] > 1e-9)
    return crossing


def distance_to_segment(point: Points, a: Points, b: Points) -> Float[np.ndarray, "..."]:
    """How far a point is from the segment ab.

    Args:
        point: the point, ``x + iy``.
        a: where the segment begins.
        b: where it ends; all three broadcast.

    >>> distance_to_segment(np.array([1 + 3j]), np.array([0j]), np.array([2 + 0j]))
    array([3.])
    """
    along, to = b - a, point - a
    squared = np.maximum(along.real**2 + along.imag**2, 1e-12)
    share = (to.real * along.real + to.imag * along.imag) / squared
    distance: Float[np.ndarray, "..."] = np.abs(to - np.clip(share, 0.0, 1.0) * along)
    return distance


def bezier(controls: Complex[np.ndarray, "*shape 4"], samples: int) -> Complex[np.ndarray, "*shape {samples}"]:
    """Points along cubic curves, both ends among them.

    Args:
        controls: the four control points of each curve.
        samples: how many points.

    >>> bezier(np.array([0j, 1j, 2j, 3j]), 3)
    array([0.+0.j , 0.+1.5j, 0.+3.j ])
    """
    t = np.linspace(0.0, 1.0, samples)
    weights = np.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3])
    points: Complex[np.ndarray, "..."] = controls @ weights
    return points


def boxes_overlap(
    first: Float[np.ndarray, "*shape 4"], second: Float[np.ndarray, "*other 4"]
) -> Float[np.ndarray, "..."]:
    """The area that boxes share.

    Args:
        first: left, top, right, bottom.
        second: likewise; both broadcast.

    >>> boxes_overlap(np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([1.0, 1.0, 5.0, 5.0]))
    array([1.])
    """
    low = np.maximum(first[..., :2], second[..., :2])
    high = np.minimum(first[..., 2:], second[..., 2:])
    return np.asarray(np.maximum(high - low, 0.0).prod(-1))


def _cross(u: Points, v: Points) -> Float[np.ndarray, "..."]:
    area: Float[np.ndarray, "..."] = u.real * v.imag - u.imag * v.real
    return area
