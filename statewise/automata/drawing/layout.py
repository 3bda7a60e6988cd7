"""Where the states of a machine stand on paper: few crossings, no state under an arrow, reading from left to right.

The states stand on a lattice. Starting from layers (how many symbols a state is away from the start) each state in turn
moves to a place around it, or around its neighbours: first at random, then ever more to where it costs least. The best
of some attempts is kept. The cost is an explicit sum, after Davidson & Harel (1996), "Drawing graphs nicely using
simulated annealing". All draws come from a seed: a machine has one picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float, Int

from statewise.automata.drawing.geometry import crossed, distance_to_segment
from statewise.automata.drawing.graph import Graph

Places = Complex[np.ndarray, " states"]

_STEP = 0.5  # of the lattice, in spacings
_CLEAR = 0.42  # an arrow nearer than this to a state, in spacings, looks as if it touched it
_NARROW = float(np.cos(np.deg2rad(24.0)))  # two arrows of one state at a smaller angle are hard to tell apart
_OFFSETS = np.array([_STEP * complex(x, y) for x in range(-3, 4) for y in range(-3, 4)])
_ANNEALED = 80  # more states than this are only settled: nobody could follow them anyway
_IDLE = 3  # attempts in a row that gain nothing end the search
_EFFORT = 2e7  # tests of an arrow against another or a state, after which no further attempt begins


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each fault of an arrangement costs; a crossing costs 1.

    Args:
        touching: of a state that lies on an arrow.
        crowding: of two states nearer than a spacing.
        narrow: of two arrows of one state with hardly an angle between them.
        length: of an arrow, by the square of its length in spacings.
        backwards: of an arrow of the tree from the start that does not lead to the right, by the spacings that lack.
        before_start: of a state less than a spacing to the right of the start, by the spacings that lack, up to 2.
        gravity: of a state away from the middle line, so that nothing drifts off.
    """

    touching: float = 4.0
    crowding: float = 40.0
    narrow: float = 1.5
    length: float = 0.07
    backwards: float = 0.8
    before_start: float = 1.6
    gravity: float = 0.012


def place_states(
    transitions: Int[np.ndarray, "states symbols"],
    *,
    start: int = 0,
    weights: Weights | None = None,
    seed: int = 0,
) -> Complex[np.ndarray, " states"]:
    """Places ``x + iy`` for the states, in spacings: x to the right, y down; no two are nearer than about one.

    Args:
        transitions: the next state by state and symbol; arrows to be left out may point to their own state.
        start: the first state, at the left.
        weights: what each fault costs.
        seed: of the attempts.

    >>> place_states(np.array([[1], [2], [2]]))
    array([0.+0.j, 1.+0.j, 2.+0.j])
    """
    rng = np.random.default_rng(seed)
    search = _Search(graph=Graph.of(transitions, start), weights=weights or Weights(), rng=rng)
    best = search.settle(_layers(search.graph))
    lowest, idle = search.cost(best), 0
    while idle < _IDLE and search.spent < _EFFORT and 2 < search.graph.states <= _ANNEALED:
        found = search.settle(search.anneal(_layers(search.graph)))
        idle += 1
        for places in (found, search.settle(_closed_up(found))):
            cost = search.cost(places)
            if cost < lowest - 1e-9:
                best, lowest, idle = places, cost, 0
    return np.asarray(best - best[start])


@dataclass(kw_only=True)
class _Search:
    """Descent on the cost of an arrangement, one state at a time."""

    graph: Graph
    weights: Weights
    rng: np.random.Generator
    spent: float = 0.0

    def settle(self, places: Places) -> Places:
        """Move each state to its best place until none moves any more."""
        places = places.copy()
        quiet = 0
        for _ in range(12):
            moved = 0
            for state in range(self.graph.states):
                spots = self._spots(state, places)
                costs = self.costs_of(state, spots, places)
                chosen = int(costs.argmin())
                if costs[chosen] < costs[0] - 1e-9:  # the first spot is where the state is
                    places[state] = spots[chosen]
                    moved += 1
            quiet = 0 if moved else quiet + 1
            if quiet == 2 or self.spent > 2 * _EFFORT:
                break
        return places

    def anneal(self, places: Places) -> Places:
        """Let each state take a place at random, cheap ones the more likely the colder it gets (Gibbs sampling)."""
        places = places.copy()
        for heat in np.geomspace(3.0, 0.05, 40):
            for state in self.rng.permutation(self.graph.states).tolist():
                spots = self._spots(state, places)
                costs = self.costs_of(state, spots, places) - heat * self.rng.gumbel(size=len(spots))
                places[state] = spots[costs.argmin()]
        return places

    def _spots(self, state: int, places: Places) -> Complex[np.ndarray, " spots"]:
        """Where the state is, and some places around it and around the middle of its neighbours."""
        mates = self.graph.neighbours[state]
        middle = places[mates].mean() if len(mates) else places[state]
        around = _OFFSETS[self.rng.permutation(len(_OFFSETS))[:20]] + places[state]
        near = _OFFSETS[self.rng.permutation(len(_OFFSETS))[:10]] + _snapped(middle)
        return np.concatenate([places[state, None], around, near])

    def cost(self, places: Places) -> float:
        """Of the whole arrangement; faults between two states are counted at both."""
        return float(sum(self.costs_of(s, places[s, None], places)[0] for s in range(self.graph.states)))

    def costs_of(self, state: int, spots: Complex[np.ndarray, " spots"], places: Places) -> Float[np.ndarray, " spots"]:
        """All that depends on where one state is, for each spot where it could be."""
        graph, weights = self.graph, self.weights
        others = np.delete(places, state)
        cost = weights.crowding * np.maximum(0.98 - np.abs(spots[:, None] - others), 0.0).sum(1)
        cost += weights.gravity * spots.imag**2 + self._direction(state, spots, places)
        rest = graph.elsewhere[state]
        c, d = places[rest[:, 0]], places[rest[:, 1]]
        cost += weights.touching * _closeness(distance_to_segment(spots[:, None], c, d)).sum(1)
        mates = graph.neighbours[state]
        if not len(mates):
            return np.asarray(cost)
        a, b = spots[:, None], places[mates]
        cost += weights.length * ((b - a).real ** 2 + (b - a).imag ** 2).sum(1)
        cost += crossed(a[..., None], b[:, None], c, d).sum((1, 2))
        gaps = distance_to_segment(others, a[..., None], b[:, None])
        # Each arrow has one of the others, its far end, on it: that is no fault.
        cost += weights.touching * (_closeness(gaps).sum((1, 2)) - len(mates))
        cost += weights.narrow * self._narrowness(state, b - a, places)
        self.spent += len(spots) * len(mates) * (len(rest) + len(others))
        return np.asarray(cost)

    def _direction(
        self, state: int, spots: Complex[np.ndarray, " spots"], places: Places
    ) -> Float[np.ndarray, " spots"]:
        graph, x = self.graph, spots.real
        lacking = np.zeros(len(spots))
        if graph.parents[state] >= 0:
            lacking += np.maximum(1.0 - (x - places[graph.parents[state]].real), 0.0)
        children = places[graph.parents == state].real
        lacking += np.maximum(1.0 - (children - x[:, None]), 0.0).sum(1)
        if state == graph.start:
            left = np.clip(x[:, None] + 1.0 - np.delete(places.real, state), 0.0, 2.0).sum(1)
        else:
            left = np.clip(places[graph.start].real + 1.0 - x, 0.0, 2.0)
        return np.asarray(self.weights.backwards * lacking + self.weights.before_start * left)

    def _narrowness(
        self, state: int, out: Complex[np.ndarray, "spots mates"], places: Places
    ) -> Float[np.ndarray, " spots"]:
        """Small angles at the state itself, and at the far ends of its arrows."""
        graph = self.graph
        mates, fellows = graph.neighbours[state], graph.fellows[state]
        out = out / np.maximum(np.abs(out), 1e-9)
        there = np.where(fellows >= 0, places[fellows] - places[mates, None], 0.0)
        there = there / np.maximum(np.abs(there), 1e-9)
        at_state = _sharpness(out[:, :, None], out[:, None])
        return np.asarray((at_state.sum((1, 2)) - len(mates)) / 2 + _sharpness(-out[..., None], there).sum((1, 2)))


def _layers(graph: Graph) -> Places:
    """A column for each number of symbols from the start; inside it by the mean height of the neighbours."""
    places = graph.depths.astype(complex)
    for sweep in range(6):
        for depth in range(graph.depths.max() + 1):
            column = np.flatnonzero(graph.depths == depth)
            if sweep:
                means = [
                    places[graph.neighbours[state]].imag.mean() for state in column if len(graph.neighbours[state])
                ]
                column = column[np.argsort(means, kind="stable")] if len(means) == len(column) else column
            places[column] = depth + 1j * (np.arange(len(column)) - (len(column) - 1) / 2)
    return places


def _closed_up(places: Places) -> Places:
    """The same order without wide empty stripes, which a move of one state at a time cannot close."""
    x, y = (_stripes_closed(part) for part in (places.real, places.imag))
    return x + 1j * y


def _stripes_closed(values: Float[np.ndarray, " states"]) -> Float[np.ndarray, " states"]:
    levels, position = np.unique(values, return_inverse=True)
    steps = np.minimum(np.diff(levels, prepend=levels[:1]), 1.0)
    closed: Float[np.ndarray, " states"] = (levels[0] + np.cumsum(steps))[position]
    return closed


def _snapped(places: Complex[np.ndarray, "..."] | np.complex128) -> Complex[np.ndarray, "..."]:
    return np.asarray(np.round(places / _STEP) * _STEP)


def _closeness(distance: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return np.maximum(1.0 - distance / _CLEAR, 0.0)


def _sharpness(u: Complex[np.ndarray, "..."], v: Complex[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """1 for two directions that coincide, 0 from the narrow angle on."""
    cosine = u.real * v.real + u.imag * v.imag
    sharp: Float[np.ndarray, "..."] = np.maximum((cosine - _NARROW) / (1.0 - _NARROW), 0.0)
    return sharp
