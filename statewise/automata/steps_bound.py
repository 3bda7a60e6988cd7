"""How far every reachable step of a soft network can end from its centroid, given how far it began from one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from statewise.automata.derivatives import Ball, Matrix, at_center, deviation, summands
from statewise.automata.frozen import FrozenLayer, FrozenNetwork

# Every bound is computed in float64 and then widened, far beyond what its rounding can be.
WIDEN = 1 + 1e-9
NUMBERS_AT_ONCE = 2**23


@dataclass(frozen=True, eq=False)
class Movement:
    """How much directional readings ``v . u`` of one cell application can move while the state stays in a ball.

    Args:
        layer: the cell and its weights.
        matrices: its recurrent weights.
        input_term: (rows, blocks * hidden).
        centers: (rows, hidden).
        along: (rows, directions), ``||J(centre)^T v||``.
        lengths: (rows, directions), ``||v||``.
    """

    layer: FrozenLayer
    matrices: tuple[Matrix, ...]
    input_term: Tensor
    centers: Tensor
    along: Tensor
    lengths: Tensor

    def bound(self, radius: Tensor) -> Tensor:
        """(rows, directions): the most that each reading can move within the radius of each row."""
        curved = self.curvature(radius)
        return (self.along + curved[:, None] * self.lengths) * radius[:, None] * WIDEN

    def curvature(self, radius: Tensor) -> Tensor:
        """(rows,): a bound on how much the derivative changes within the radius."""
        ball = Ball(self.layer, self.matrices, self.input_term, self.centers, radius)
        return deviation(summands(ball)).expand(len(radius))

    @cached_property
    def slope(self) -> Tensor:
        """(rows,): the largest singular value of the derivative at the centres."""
        rows, hidden = self.centers.shape
        unit = torch.eye(hidden, dtype=self.centers.dtype)
        found = []
        for part in _parts(rows, hidden * hidden):
            radius = torch.zeros(len(self.centers[part]), dtype=self.centers.dtype)
            ball = Ball(self.layer, self.matrices, self.input_term[part], self.centers[part], radius)
            whole = at_center(summands(ball), unit.expand(len(radius), -1, -1))
            found.append(torch.linalg.matrix_norm(whole, 2))
        return torch.cat(found)

    def lipschitz(self, radius: Tensor) -> Tensor:
        """(rows,): a proven Lipschitz constant of the cell in its state, on each ball."""
        return (self.slope + self.curvature(radius)) * WIDEN


def movement(layer: FrozenLayer, inputs: Tensor, centers: Tensor, ends: Tensor, origins: Tensor) -> Movement:
    """The movement of ``(e_j - o) . u`` for all ends e_j and the one origin o of each row.

    Args:
        layer: whose cell is applied.
        inputs: (rows, width).
        centers: (rows, hidden).
        ends: (directions, hidden).
        origins: (rows, hidden).
    """
    blocks = len(layer.cell.blocks)
    matrices = tuple(Matrix.of(block) for block in layer.weight_hh.chunk(blocks))
    input_term = layer.input_term(inputs)
    along, lengths = [], []
    for part in _parts(len(inputs), max(1, ends.numel())):
        directions = ends - origins[part][:, None]
        ball = Ball(layer, matrices, input_term[part], centers[part], torch.zeros(len(directions), dtype=ends.dtype))
        along.append(torch.linalg.vector_norm(at_center(summands(ball), directions), dim=2))
        lengths.append(torch.linalg.vector_norm(directions, dim=2))
    return Movement(layer, matrices, input_term, centers, torch.cat(along), torch.cat(lengths))


def _parts(rows: int, numbers: int) -> list[slice]:
    size = max(1, NUMBERS_AT_ONCE // numbers)
    return [slice(begin, begin + size) for begin in range(0, rows, size)]


@dataclass(frozen=True, eq=False)
class StepsBound:
    """All steps that words make the network take, as inequalities between distances from centroids.

    Args:
        layer: the network's one layer.
        sources: (steps,), the centroid from which each step leaves.
        symbols: (steps,), by which symbol.
        targets: (steps,), the centroid at which it arrives at argmax.
        gaps: (steps, k), how far each rival's similarity is below the target's.
        distances: (steps, k), of each rival from the target.
        moves: how the similarities move with the state.
        start_targets, start_gaps, start_distances: the same of the first steps, which leave from one known state.
    """

    layer: FrozenLayer
    sources: Tensor
    symbols: Tensor
    targets: Tensor
    gaps: Tensor
    distances: Tensor
    moves: Movement
    start_targets: Tensor
    start_gaps: Tensor
    start_distances: Tensor

    def margins(self, radii: Tensor) -> Tensor:
        """(steps, k): what is left of each gap when the state is anywhere within its radius."""
        radius = radii[self.sources]
        if self.layer.rule.similarity == "euclidean":
            # Each distance moves by at most ||u - u_0||, hence a difference by twice that.
            moved = (2 * self.moves.lipschitz(radius) * radius)[:, None]
        else:
            moved = self.moves.bound(radius)
            if self.layer.rule.similarity == "sqeuclidean":
                moved = 2 * moved  # -||u - s_i||^2 + ||u - s_j||^2 is linear in u, of slope 2 (s_i - s_j)
        return _lowered(self.gaps) - moved

    @property
    def starts_surely(self) -> bool:
        """Whether the first steps have one best centroid each."""
        rivals = self.start_gaps.scatter(1, self.start_targets[:, None], torch.inf)
        return bool((_lowered(rivals.clamp(max=self.start_gaps.max())) > 0).all()) or rivals.shape[1] == 1

    def next_radii(self, margins: Tensor, temperature: float) -> Tensor:
        """(k,) how far from each centroid the next states can be, where the margins are those of :meth:`margins`."""
        reached = _softly(margins, self.distances, self.targets, temperature)
        begun = _softly(_lowered(self.start_gaps), self.start_distances, self.start_targets, temperature)
        found = margins.new_zeros(len(self.layer.centroids))
        found = found.scatter_reduce(0, self.targets, reached, "amax")
        return found.scatter_reduce(0, self.start_targets, begun, "amax")


def _lowered(gaps: Tensor) -> Tensor:
    return gaps - (WIDEN - 1) * gaps.abs().amax()


def _softly(margins: Tensor, distances: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """``||h - s_q|| <= sum_j alpha_j ||s_j - s_q||``, ``alpha_j <= exp(-margin_j / tau)``, and a mean of distances."""
    rivals = torch.exp(-margins / temperature).scatter(1, targets[:, None], 0.0)
    farthest = distances.amax(1)
    return torch.minimum((rivals * distances).sum(1) * WIDEN, farthest)


def steps_bound(network: FrozenNetwork, table: np.ndarray, reachable: np.ndarray) -> StepsBound:
    """The inequalities of a network of one layer.

    Args:
        network: in float64.
        table: (k, symbols), the target of each step.
        reachable: the centroids from which words step.
    """
    (layer,) = network.layers
    symbols = len(network.symbols)
    sources = torch.from_numpy(reachable).repeat_interleave(symbols)
    read = torch.arange(symbols).repeat(len(reachable))
    targets = torch.from_numpy(table)[sources, read]
    inputs, centers = network.embedding[read], layer.centroids[sources]
    similar = layer.similarities(layer.cell_step(inputs, centers))
    first = network.embedding if network.start is None else network.start[None]
    begun = layer.similarities(layer.cell_step(first, layer.initial.expand(len(first), -1), fresh=True))
    start_targets = begun.argmax(1)
    apart = torch.cdist(layer.centroids, layer.centroids, compute_mode="donot_use_mm_for_euclid_dist")
    return StepsBound(
        layer=layer,
        sources=sources,
        symbols=read,
        targets=targets,
        gaps=similar.gather(1, targets[:, None]) - similar,
        distances=apart[targets],
        moves=movement(layer, inputs, centers, layer.centroids, layer.centroids[targets]),
        start_targets=start_targets,
        start_gaps=begun.amax(1, keepdim=True) - begun,
        start_distances=apart[start_targets],
    )
