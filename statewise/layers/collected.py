"""What a layer shows of its inside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from statewise.errors import ArgumentError

KINDS = ("states", "cells", "gates", "probabilities")


@dataclass(frozen=True, repr=False)
class Collected:
    """Everything at every step of every layer; what was not asked for is empty.

    Each entry is a tuple over the layers. A tensor has the shape of the layer's padded output, with the directions
    side by side in its last dimension; steps beyond a sequence's end are zero.

    Attributes:
        states: the states that are fed back, after all state transforms.
        cells: the memories ``c``; empty for cells that have none.
        gates: for each layer a dictionary from the gate's name to its activations.
        probabilities: the transition probabilities over the centroids, or None for a layer without centroids.
    """

    states: tuple[Tensor, ...] = ()
    cells: tuple[Tensor, ...] = ()
    gates: tuple[dict[str, Tensor], ...] = ()
    probabilities: tuple[Tensor | None, ...] = ()

    def __repr__(self) -> str:
        shapes = {kind: [_shape(entry) for entry in getattr(self, kind)] for kind in KINDS if getattr(self, kind)}
        return f"Collected({shapes})"


def _shape(entry: Tensor | dict[str, Tensor] | None) -> object:
    if isinstance(entry, dict):
        return {name: tuple(tensor.shape) for name, tensor in entry.items()}
    return None if entry is None else tuple(entry.shape)


def check_kinds(kinds: Iterable[str], *, where: str) -> frozenset[str]:
    """The set of what to collect, refusing unknown words.

    >>> sorted(check_kinds(("states", "gates"), where="LSTM"))
    ['gates', 'states']
    """
    chosen = frozenset((kinds,) if isinstance(kinds, str) or not isinstance(kinds, Iterable) else kinds)
    if unknown := sorted(map(str, chosen - set(KINDS))):
        raise ArgumentError(where=f"{where} collect", got=unknown, wanted=f"some of {', '.join(KINDS)}")
    return chosen
