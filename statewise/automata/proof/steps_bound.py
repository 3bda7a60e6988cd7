"""How far every reachable step of a soft network can end from its centroid, given how far it began from one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from statewise.automata.frozen import FrozenLayer, FrozenNetwork
from statewise.automata.proof.derivatives import Ball, Matrix, at_center_on, deviation, summands

# Every bound is computed in float64 and then widened, far beyond what its rounding can be.
WIDEN = 1 + 1e-9
FINE = 1e-12  # of what a sum is made of: rounding is 1e-16 of it
NUMBERS_AT_ONCE = 2**23


@dataclass(frozen=True, eq=False)
class Movement:
    """How much readings ``v . u`` of one cell application can rise while the state leans from its centroid to others.

    A state of the mixture is ``s_i + sum_j a_j (s_j - s_i)`` with small ``a_j >= 0``. To first order a reading moves by
    ``sum_j a_j v^T J (s_j - s_i)``, and beyond that by the change of the derivative J within the radius.

    Args:
        layer: the cell and its weights.
        matrices: its recurrent weights.
        input_term: (rows, blocks * hidden).
        centers: (rows, hidden).
        rise: (rows, directions, k), the positive part of ``v^T J (s_j - s_i)``.
        lengths: (rows, directions), ``||v||``.
        stretch: (rows, k), ``||J (s_j - s_i)||``.
    """

    layer: FrozenLayer
    matrices: tuple[Matrix, ...]
    input_term: Tensor
    centers: Tensor
    rise: Tensor
    lengths: Tensor
    stretch: Tensor

    def bound(self, leaning: Tensor, radius: Tensor) -> Tensor:
        """(rows, directions): the most that each reading can rise.

        Args:
            leaning: (rows, k), the largest ``a_j``.
            radius: (rows,), how far the state can then be from its centroid.
        """
        straight = torch.einsum("rvk,rk->rv", self.rise, leaning)
        return (straight + (self.curvature(radius) * radius)[:, None] * self.lengths) * WIDEN

    def length(self, leaning: Tensor, radius: Tensor) -> Tensor:
        """(rows,): how far ``u`` itself can move; arguments as for :meth:`bound`."""
        return ((self.stretch * leaning).sum(1) + self.curvature(radius) * radius) * WIDEN

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
            transposed = at_center_on(summands(ball), unit.expand(len(radius), -1, -1))
            found.append(torch.linalg.matrix_norm(transposed, 2))
        return torch.cat(found)

    def lipschitz(self, radius: Tensor) -> Tensor:
        """(rows,): a proven Lipschitz constant of the cell in its state, on each ball."""
        return (self.slope + self.curvature(radius)) * WIDEN


def movement(layer: FrozenLayer, inputs: Tensor, centers: Tensor, ends: Tensor, origins: Tensor) -> Movement:
    """The movement of ``(e_j - o) . u`` for all ends e_j and the one origin o of each row.

    Args:
        layer: whose cell is applied.
        inputs: (rows, width).
        centers: (rows, hidden), of which each is a centroid.
        ends: (directions, hidden).
        origins: (rows, hidden).
    """
    matrices = tuple(Matrix.of(block) for block in layer.weight_hh.chunk(len(layer.cell.blocks)))
    input_term = layer.input_term(inputs)
    rise, lengths, stretch = [], [], []
    for part in _parts(len(inputs), ends.numel() + layer.centroids.numel()):
        directions, leans = ends - origins[part][:, None], layer.centroids - centers[part][:, None]
        exactly = torch.zeros(len(directions), dtype=ends.dtype)
        parts = summands(Ball(layer, matrices, input_term[part], centers[part], exactly))
        moved = at_center_on(parts, leans)
        rise.append(torch.einsum("rvd,rkd->rvk", directions, moved).clamp(min=0))
        lengths.append(torch.linalg.vector_norm(directions, dim=2))
        stretch.append(torch.linalg.vector_norm(moved, dim=2))
    measured = (torch.cat(found) for found in (rise, lengths, stretch))
    return Movement(layer, matrices, input_term, centers, *measured)


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
        gaps: (steps, k), how far each rival's similarity is below the target's, less what rounding may have added.
        apart: (k, k), the distances of the centroids.
        moves: how the similarities move with the state.
        start_targets, start_gaps: the same of the first steps, which leave from one known state.
    """

    layer: FrozenLayer
    sources: Tensor
    symbols: Tensor
    targets: Tensor
    gaps: Tensor
    apart: Tensor
    moves: Movement
    start_targets: Tensor
    start_gaps: Tensor

    def radii(self, leaning: Tensor) -> Tensor:
        """(k,): how far from each centroid a state can be that leans from it by no more than that.

        Args:
            leaning: (k, k), from each centroid to each other.
        """
        # Not below what float64 itself may be off by.
        floor = 1e-12 * float(torch.linalg.vector_norm(self.layer.centroids, dim=1).amax())
        return torch.minimum((leaning * self.apart).sum(1), self.apart.amax(1)).clamp(min=floor) * WIDEN

    def margins(self, leaning: Tensor) -> Tensor:
        """(steps, k): what is left of each gap when states lean from their centroids by no more than that."""
        own, radius = leaning[self.sources], self.radii(leaning)[self.sources]
        if self.layer.rule.similarity == "euclidean":
            # Each distance moves by at most ||u - u_0||, hence a difference by twice that.
            return self.gaps - 2 * self.moves.length(own, radius)[:, None]
        moved = self.moves.bound(own, radius)
        if self.layer.rule.similarity == "sqeuclidean":
            moved = 2 * moved  # -||u - s_i||^2 + ||u - s_j||^2 is linear in u, of slope 2 (s_i - s_j)
        return self.gaps - moved

    @property
    def starts_surely(self) -> bool:
        """Whether the first steps have one best centroid each."""
        return bool((self.start_gaps.scatter(1, self.start_targets[:, None], torch.inf) > 0).all())

    def next_leaning(self, margins: Tensor, temperature: float) -> Tensor:
        """(k, k): ``alpha_j <= exp(-margin_j / tau)`` for all steps into each centroid, of :meth:`margins`."""
        found = margins.new_zeros(self.apart.shape)
        for targets, left in ((self.targets, margins), (self.start_targets, self.start_gaps)):
            weights = (torch.exp(-left / temperature) * WIDEN).scatter(1, targets[:, None], 0.0)
            found = found.scatter_reduce(0, targets[:, None].expand_as(weights), weights, "amax")
        return found


def rounding_of(layer: FrozenLayer, inputs: Tensor, states: Tensor) -> Tensor:
    """(rows,): far more than what rounding can change in the cell's ``u``: a part of all that it is summed from.

    Args:
        layer: whose cell is applied.
        inputs: (rows, width).
        states: (rows, hidden).
    """
    summed = _sizes(layer.weight_ih, layer.bias_ih, inputs) + _sizes(layer.weight_hh, layer.bias_hh, states)
    return FINE * (summed + summed**2)  # gates are multiplied by what they let through


def _sizes(weight: Tensor, bias: Tensor | None, values: Tensor) -> Tensor:
    summed = values.abs() @ weight.abs().T
    return (summed if bias is None else summed + bias.abs()).amax(1)


def sure_gaps(layer: FrozenLayer, u: Tensor, rounding: Tensor, targets: Tensor) -> Tensor:
    """(rows, k): how far each similarity is below the target's, less what rounding may have added.

    Rounding is a part of ``|u| |s|``, however near to each other the similarities are.

    Args:
        layer: with the centroids.
        u: (rows, hidden), what the cell gives.
        rounding: (rows,), that of u.
        targets: (rows,), the centroid of each.
    """
    similar = torch.cat([layer.similarities(u[part]) for part in _parts(len(u), layer.centroids.numel())])
    largest = torch.linalg.vector_norm(layer.centroids, dim=1).amax()
    size = torch.linalg.vector_norm(u, dim=1) + largest
    if layer.rule.similarity == "euclidean":
        noise = (WIDEN - 1) * size + 2 * rounding
    else:
        noise = (WIDEN - 1) * size**2 + 4 * largest * rounding
    gaps: Tensor = similar.gather(1, targets[:, None]) - similar - noise[:, None]
    return gaps


def numbers_needed(network: FrozenNetwork, reachable: int) -> int:
    """How many numbers the bound of all steps holds.

    Args:
        network: of one layer.
        reachable: from how many centroids words step.
    """
    rows, k = reachable * len(network.symbols), network.sizes[0]
    return rows * k if network.layers[0].rule.similarity == "euclidean" else rows * k * k


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
    first = network.embedding if network.start is None else network.start[None]
    initial = layer.initial.expand(len(first), -1)
    begun = layer.cell_step(first, initial, fresh=True)
    start_targets = layer.similarities(begun).argmax(1)
    # Distances move with the length of u alone: no reading is needed.
    readings = layer.centroids[:0] if layer.rule.similarity == "euclidean" else layer.centroids
    apart = torch.cdist(layer.centroids, layer.centroids, compute_mode="donot_use_mm_for_euclid_dist")
    return StepsBound(
        layer=layer,
        sources=sources,
        symbols=read,
        targets=targets,
        gaps=sure_gaps(layer, layer.cell_step(inputs, centers), rounding_of(layer, inputs, centers), targets),
        apart=apart,
        moves=movement(layer, inputs, centers, readings, layer.centroids[targets]),
        start_targets=start_targets,
        start_gaps=sure_gaps(layer, begun, rounding_of(layer, first, initial), start_targets),
    )
