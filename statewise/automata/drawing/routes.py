"""How arrows run between circles: straight where they can, bent around other circles and away from their opposites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Complex, Float

from statewise.automata.drawing.geometry import bezier, crossed, distance_to_segment

Points = Complex[np.ndarray, " points"]
Curve = Complex[np.ndarray, "4"]

SAMPLES = 10
HEAD = 9.0  # length of an arrow's head
_BENDS = np.array([0, 9, -9, 16, -16, 26, -26, 40, -40, 60, -60, 90, -90, 130, -130], dtype=float)
_MILD = 7  # so many of them are tried first
_GAP = 11.0  # an arrow nearer than this to a circle seems to touch it
_PASSES = 4
_MANY = 150  # more arrows than this are bent once, and not around each other
_LOOP_HALF = 0.42  # half the angle between the two ends of a loop
_LOOP_REACH = 40.0


@dataclass(kw_only=True)
class Routes:
    """Chooses the course of each arrow in turn, given those of all others, until none changes.

    Args:
        places: the middle of each circle.
        radius: of the circles.
        arrows: source and target of each; no loops.
    """

    places: Points
    radius: float
    arrows: Sequence[tuple[int, int]]
    curves: Complex[np.ndarray, "arrows 4"] = field(init=False)
    leaving: list[tuple[int, complex]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        numbers = {arrow: number for number, arrow in enumerate(self.arrows)}
        self._opposite = [numbers.get((target, source), -1) for source, target in self.arrows]
        table = np.array(self.arrows, dtype=np.int64).reshape(-1, 2)
        # For each circle the arrows that touch it, and which of their control points does: the first or the last.
        self._ends = [(found[0], 3 * found[1]) for found in (np.nonzero(table == i) for i in range(len(self.places)))]
        self._bends = np.array([_BENDS[1] if other >= 0 else 0.0 for other in self._opposite])
        self.curves = np.zeros((len(self.arrows), 4), dtype=complex)
        for number in range(len(self.arrows)):
            self.curves[number] = self._candidates(number, self._bends[number, None])[0]
        self._lines = bezier(self.curves, SAMPLES)
        for _ in range(_PASSES if len(self.arrows) <= _MANY else 1):
            changed = [self._improve(number) for number in range(len(self.arrows))]
            if not any(changed):
                break

    def entry(self, state: int) -> Curve:
        """The arrow from nowhere into a state, from the left if there is room.

        Args:
            state: the start.
        """
        angles = np.pi * np.array([1, 5 / 6, 7 / 6, 2 / 3, 4 / 3, 1 / 2, 3 / 2, 0])
        rays = np.exp(1j * angles)
        outer = self.places[state] + (self.radius + HEAD + 26) * rays
        inner = self.places[state] + (self.radius + HEAD) * rays
        curves = outer[:, None] + (inner - outer)[:, None] * np.linspace(0, 1, 4)
        costs = self._spoke_costs(state, curves, rays) + 0.4 * np.arange(len(rays))
        return self._taken(state, curves, rays, costs)

    def loop(self, state: int) -> Curve:
        """The arrow from a state to itself, on the side that is most free; above it if all are.

        Args:
            state: whose.
        """
        angles = -np.pi / 2 + np.pi / 8 * np.arange(16)
        rays = np.exp(1j * angles)
        turns = np.exp(1j * _LOOP_HALF * np.array([-1.0, -1.3, 1.3, 1.0]))
        reach = self.radius + np.array([0.0, _LOOP_REACH, _LOOP_REACH, HEAD * 0.8])
        curves = self.places[state] + rays[:, None] * turns * reach
        # Up is where one looks first, then down; a slanting loop is a little less tidy.
        taste = np.array([0, 6, 3, 6, 3, 6, 3, 5, 1, 5, 3, 6, 3, 6, 3, 6])
        costs = self._spoke_costs(state, curves, rays) + 0.1 * taste
        return self._taken(state, curves, rays, costs)

    def _candidates(self, number: int, bends: Float[np.ndarray, " bends"]) -> Complex[np.ndarray, "bends 4"]:
        source, target = self.places[list(self.arrows[number])]
        along = target - source
        # A quadratic curve through the point that is so far beside the middle of the line, as a cubic one.
        control = (source + target) / 2 + 2 * bends * 1j * along / abs(along)
        begin = source + self.radius * _unit(control - source)
        end = target + (self.radius + HEAD) * _unit(control - target)
        return np.stack([begin, begin + 2 / 3 * (control - begin), end + 2 / 3 * (control - end), end], -1)

    def _improve(self, number: int) -> bool:
        source, target = self.arrows[number]
        fitting = _BENDS[np.abs(_BENDS) <= max(0.55 * abs(self.places[target] - self.places[source]), 20)]
        bend, cost = self._best(number, fitting[:_MILD])
        if cost > 2.5:  # something is in the way
            wide, wide_cost = self._best(number, fitting[_MILD:])
            bend = wide if wide_cost < cost else bend
        changed = bool(bend != self._bends[number])
        self._bends[number], self.curves[number] = bend, self._candidates(number, np.array([bend]))[0]
        self._lines[number] = bezier(self.curves[number], SAMPLES)
        return changed

    def _best(self, number: int, bends: Float[np.ndarray, " bends"]) -> tuple[float, float]:
        """The cheapest of these bends, and what it costs."""
        if not len(bends):
            return 0.0, np.inf
        curves = self._candidates(number, bends)
        lines = bezier(curves, SAMPLES)
        cost = self._near_circles(lines, self.arrows[number])
        if len(self.arrows) <= _MANY:
            cost += _crossings(lines, np.delete(self._lines, number, 0))
        cost += 0.012 * np.abs(bends) + 0.00012 * bends**2 * (np.abs(bends) > 40)
        cost += self._merging(number, curves)
        if self._opposite[number] >= 0:
            cost += 6.0 * (np.abs(bends + self._bends[self._opposite[number]]) < 17)
        cost -= 1e-6 * (bends == self._bends[number])
        chosen = int(cost.argmin())
        return float(bends[chosen]), float(cost[chosen])

    def _near_circles(
        self, lines: Complex[np.ndarray, "lines samples"], but: Sequence[int]
    ) -> Float[np.ndarray, " lines"]:
        others = np.delete(self.places, list(but))[:, None]
        gaps = distance_to_segment(others, lines[:, None, :-1], lines[:, None, 1:]).min(-1) - self.radius
        return np.asarray((7.0 * np.clip(1 - gaps / _GAP, 0, 1) + 12.0 * (gaps < 2)).sum(-1))

    def _merging(self, number: int, curves: Complex[np.ndarray, "curves 4"]) -> Float[np.ndarray, " curves"]:
        """How much a curve runs along with others at the two circles it joins; its opposite is kept away otherwise."""
        cost = np.zeros(len(curves))
        for state, mine in zip(self.arrows[number], (curves[:, 0], curves[:, 3]), strict=True):
            others, ends = self._ends[state]
            kept = (others != number) & (others != self._opposite[number])
            theirs = self.curves[others[kept], ends[kept]] - self.places[state]
            gaps = np.abs(np.angle((mine - self.places[state])[:, None] / theirs))
            cost += 1.2 * np.maximum(1 - gaps / 0.36, 0).sum(1)
        return cost

    def _spoke_costs(
        self, state: int, curves: Complex[np.ndarray, "curves 4"], rays: Complex[np.ndarray, " curves"]
    ) -> Float[np.ndarray, " curves"]:
        lines = bezier(curves, SAMPLES)
        cost = self._near_circles(lines, [state]) + 1.5 * _crossings(lines, self._lines)
        others, ends = self._ends[state]
        taken = [*self.curves[others, ends], *(touch for there, touch in self.leaving if there == state)]
        for touch in taken:
            gap = np.abs(np.angle((touch - self.places[state]) / rays))
            cost += 2.5 * np.maximum(1 - gap / 0.9, 0)
        return cost

    def _taken(
        self,
        state: int,
        curves: Complex[np.ndarray, "curves 4"],
        rays: Complex[np.ndarray, " curves"],
        costs: Float[np.ndarray, " curves"],
    ) -> Curve:
        chosen = int(costs.argmin())
        self.leaving.append((state, complex(self.places[state] + self.radius * rays[chosen])))
        self._lines = np.concatenate([self._lines, bezier(curves[chosen, None], SAMPLES)])
        return np.asarray(curves[chosen])


def head(curve: Curve) -> Complex[np.ndarray, "3"]:
    """The three corners of the head that a curve ends in; its tip touches the circle.

    Args:
        curve: its control points; the last is where the head begins.

    >>> head(np.array([0j, 10, 20, 30]))
    array([39.+0.j, 30.+4.j, 30.-4.j])
    """
    ahead = _unit(curve[3:] - curve[2:3])[0]
    return np.asarray(curve[3] + ahead * np.array([HEAD, 4j, -4j]))


def _unit(vector: Points) -> Points:
    return np.asarray(vector / np.maximum(np.abs(vector), 1e-9))


def _crossings(
    lines: Complex[np.ndarray, "lines samples"], rest: Complex[np.ndarray, "rest samples"]
) -> Float[np.ndarray, " lines"]:
    """How often each line crosses the rest."""
    # Only what comes near is looked at closely.
    beside = (rest.real.max(1) < lines.real.min()) | (rest.real.min(1) > lines.real.max())
    apart = (rest.imag.max(1) < lines.imag.min()) | (rest.imag.min(1) > lines.imag.max())
    rest = rest[~(beside | apart)]
    a, b = lines[:, :-1, None], lines[:, 1:, None]
    c, d = rest[:, :-1].reshape(-1), rest[:, 1:].reshape(-1)
    return np.asarray(crossed(a, b, c, d).sum((1, 2)).astype(float))
