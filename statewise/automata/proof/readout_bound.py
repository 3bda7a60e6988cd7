"""How far a state may be from its centroid before the read-out could change its class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from statewise.automata.frozen import FrozenNetwork
from statewise.automata.proof.steps_bound import WIDEN, Movement, movement, rounding_of


@dataclass(frozen=True, eq=False)
class ReadoutBound:
    """The margins of the classes at the reachable centroids, and how they move.

    Args:
        states: (states,), numbers of centroids.
        margins: (states, classes), how far each class is below the best, less what rounding may have added; infinite
            for the best itself.
        rise: (states, classes, k), how a class gains when a state that the head reads leans to each centroid.
        moves: through the cell at END; None where the head reads the state.
    """

    states: Tensor
    margins: Tensor
    rise: Tensor
    moves: Movement | None

    def first_failure(self, leaning: Tensor, radii: Tensor) -> int | None:
        """The first centroid whose class is not certain where states lean that much; None if all are.

        Args:
            leaning: (k, k), from each centroid to each other.
            radii: (k,), how far from the centroid that can be.
        """
        own, radius = leaning[self.states], radii[self.states]
        if self.moves is None:
            moved = torch.einsum("rck,rk->rc", self.rise, own)
        else:
            moved = self.moves.bound(own, radius)
        unsure = (~(self.margins > moved * WIDEN)).any(1)
        return int(self.states[unsure][0]) if bool(unsure.any()) else None


def readout_bound(network: FrozenNetwork, reachable: np.ndarray) -> ReadoutBound:
    """The bound for the reachable centroids of a network of one layer.

    Args:
        network: in float64.
        reachable: the numbers of the centroids.
    """
    (layer,) = network.layers
    states = torch.from_numpy(reachable)
    centers = layer.centroids[states]
    logits = network.read_out([centers])
    best = logits.argmax(1, keepdim=True)
    origins = network.head_weight[best[:, 0]]
    margins = (logits.gather(1, best) - logits - _noise(network, centers)[:, None]).scatter(1, best, torch.inf)
    moves = None
    if network.end is not None:
        moves = movement(layer, network.end.expand(len(states), -1), centers, network.head_weight, origins)
    gains = network.head_weight - origins[:, None]
    rise = torch.einsum("rch,rkh->rck", gains, layer.centroids - centers[:, None]).clamp(min=0)
    return ReadoutBound(states, margins, rise, moves)


def _noise(network: FrozenNetwork, centers: Tensor) -> Tensor:
    """(states,): far more than the rounding of a logit, which is a part of ``|u| |w| + |b|``, and of u's own."""
    (layer,) = network.layers
    read, rounding = centers, centers.new_zeros(len(centers))
    if network.end is not None:
        end = network.end.expand(len(centers), -1)
        read, rounding = layer.cell_step(end, centers), rounding_of(layer, end, centers)
    largest = torch.linalg.vector_norm(network.head_weight, dim=1).amax()
    size = torch.linalg.vector_norm(read, dim=1) * largest
    if network.head_bias is not None:
        size = size + network.head_bias.abs().amax()
    noise: Tensor = (WIDEN - 1) * size + 2 * largest * rounding
    return noise
