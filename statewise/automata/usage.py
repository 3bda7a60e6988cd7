"""How a network uses its centroids, and whether its states drift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from statewise.automata.seen import Labelled, Network, number_of_centroids, watch
from statewise.errors import ArgumentError, LengthError


@dataclass(frozen=True, kw_only=True, eq=False)
class Usage:
    """How often each centroid is used, over all steps of all sequences, start tokens left out.

    Args:
        steps: how many there were.
        shares: of the steps at which each centroid is the likeliest; they sum to 1.
        means: the mean probability of each; they sum to 1.
        ranked: the mean of the largest probability of a step, of the second largest, and so on.
    """

    steps: int
    shares: Float[np.ndarray, " k"]
    means: Float[np.ndarray, " k"]
    ranked: Float[np.ndarray, " k"]

    @property
    def dead(self) -> tuple[int, ...]:
        """The centroids that are never the likeliest."""
        return tuple(int(centroid) for centroid in np.flatnonzero(self.shares == 0))

    @property
    def effective(self) -> float:
        """How many centroids are in use: ``exp(H)`` of the entropy of the mean probabilities; k if all are alike."""
        held = self.means[self.means > 0]
        return float(np.exp(-(held * np.log(held)).sum()))

    def carrying(self, share: float = 0.05) -> tuple[int, ...]:
        """The centroids that are the likeliest at no less than this share of the steps.

        Args:
            share: from 0 to 1.
        """
        if not 0 <= share <= 1:
            raise ArgumentError(where="Usage.carrying.share", got=share, wanted="a number from 0 to 1")
        return tuple(int(centroid) for centroid in np.flatnonzero(self.shares >= share))


@dataclass(frozen=True, kw_only=True, eq=False)
class Drift:
    """How large the states are after t symbols; a flat line means no drift.

    Args:
        counts: sequences that have a step t.
        largest: the largest ``|h_t|`` of any unit in any of them.
        means: the mean over them of the largest unit's ``|h_t|``.
        slope: of the means by step, fitted by least squares with the counts as weights.
    """

    counts: Int[np.ndarray, " steps"]
    largest: Float[np.ndarray, " steps"]
    means: Float[np.ndarray, " steps"]
    slope: float


def usage(model: Network, sequences: Labelled, *, layer: int = 0, batch: int = 256) -> Usage:
    """Measure how a network uses its centroids; the ranked means are those of the paper's figure 13.

    Args:
        model: with centroids.
        sequences: that it reads.
        layer: whose centroids.
        batch: sequences at once.
    """
    k = number_of_centroids(model, layer)
    shares, means, ranked = torch.zeros(3, k, dtype=torch.float64)
    steps = 0
    for seen in watch(model, sequences, collect=("probabilities",), layer=layer, batch=batch):
        assert seen.probabilities is not None
        rows = seen.probabilities[seen.inside].double().cpu()
        shares += torch.bincount(rows.argmax(1), minlength=k)
        means += rows.sum(0)
        ranked += rows.sort(1, descending=True).values.sum(0)
        steps += len(rows)
    if steps == 0:
        raise LengthError(where="usage.sequences", got="no symbols at all", wanted="at least one")
    shares, means, ranked = shares / steps, means / steps, ranked / steps
    return Usage(steps=steps, shares=shares.numpy(), means=means.numpy(), ranked=ranked.numpy())


def drift(model: Network, sequences: Labelled, *, layer: int = 0, what: str = "states", batch: int = 256) -> Drift:
    """Measure whether states grow with the length of the input (Wang & Niepert 2019, section 3: "drifting").

    Args:
        model: with or without centroids.
        sequences: that it reads.
        layer: which.
        what: "states" or "cells".
        batch: sequences at once.
    """
    if what not in ("states", "cells"):
        raise ArgumentError(where="drift.what", got=what, wanted="'states' or 'cells'")
    longest = np.zeros(0)
    sums, counts = np.zeros(0), np.zeros(0, dtype=np.int64)
    for seen in watch(model, sequences, collect=(what,), layer=layer, batch=batch):
        values = seen.states if what == "states" else seen.cells
        if values is None:
            raise ArgumentError(where="drift.what", got=what, wanted="'states': the model's cell has no memory")
        sizes = torch.where(seen.inside, values.abs().amax(2).double(), 0.0).cpu().numpy()
        here = seen.inside.cpu().numpy()
        # Batches come in the order of their lengths, so a later one is never shorter.
        longest = np.maximum(_padded(longest, sizes.shape[1]), sizes.max(0, initial=0.0))
        sums = _padded(sums, sizes.shape[1]) + sizes.sum(0)
        counts = _padded(counts, sizes.shape[1]) + here.sum(0)
    if not len(counts):
        raise LengthError(where="drift.sequences", got="no symbols at all", wanted="at least one")
    means = sums / counts
    return Drift(counts=counts, largest=longest, means=means, slope=_slope(means, counts))


def _padded(values: np.ndarray, steps: int) -> np.ndarray:
    return np.pad(values, (0, steps - len(values)))


def _slope(values: Float[np.ndarray, " steps"], weights: Int[np.ndarray, " steps"]) -> float:
    steps = np.arange(len(values))
    aside = steps - np.average(steps, weights=weights)
    spread = (weights * aside**2).sum()
    return float((weights * aside * values).sum() / spread) if spread > 0 else 0.0
