"""What a classifier shows of its inside while it reads."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.layers import Collected


@dataclass(frozen=True, repr=False)
class Trace:
    """Everything at every step of every sequence, detached; what was not asked for is empty.

    Each entry is a tuple over the layers, of tensors (batch, steps, width); steps beyond a sequence's end are zero.

    Attributes:
        lengths: how many steps each sequence has, a start token included.
        has_start: whether step 0 is a start token.
        states: the states that are fed back, after the centroids.
        cells: the memories ``c``; empty for cells that have none.
        gates: for each layer a dictionary from the gate's name to its activations.
        probabilities: the transition probabilities over the centroids; None for a layer without.
    """

    lengths: Int[Tensor, " batch"]
    has_start: bool
    states: tuple[Tensor, ...] = ()
    cells: tuple[Tensor, ...] = ()
    gates: tuple[dict[str, Tensor], ...] = ()
    probabilities: tuple[Tensor | None, ...] = ()

    @classmethod
    def of(cls, seen: Collected, *, lengths: Tensor, has_start: bool) -> Trace:
        """A trace from what a layer collected with steps first."""

        def turned(entry: Tensor) -> Tensor:
            return entry.transpose(0, 1)

        return cls(
            lengths=lengths,
            has_start=has_start,
            states=tuple(map(turned, seen.states)),
            cells=tuple(map(turned, seen.cells)),
            gates=tuple({name: turned(gate) for name, gate in layer.items()} for layer in seen.gates),
            probabilities=tuple(None if entry is None else turned(entry) for entry in seen.probabilities),
        )

    def __repr__(self) -> str:
        return f"Trace({len(self.lengths)} sequences, up to {self.steps} steps)"

    @property
    def steps(self) -> int:
        """How many steps the longest sequence has."""
        return int(self.lengths.max()) if len(self.lengths) else 0

    @property
    def mask(self) -> Bool[Tensor, "batch steps"]:
        """Which steps belong to their sequence."""
        return torch.arange(self.steps, device=self.lengths.device) < self.lengths.unsqueeze(1)

    def path(self, layer: int = -1) -> Int[Tensor, "batch steps"]:
        """The likeliest centroid at every step of a layer; -1 beyond a sequence's end.

        Args:
            layer: from the bottom; -1 for the top.
        """
        if not self.probabilities:
            raise ArgumentError(
                where="Trace.path", got="a trace without probabilities", wanted='collect=("probabilities",)'
            )
        probabilities = self.probabilities[layer]
        if probabilities is None:
            raise ArgumentError(where="Trace.path", got=f"layer {layer}", wanted="a layer with centroids")
        return torch.where(self.mask, probabilities.argmax(2), -1)
