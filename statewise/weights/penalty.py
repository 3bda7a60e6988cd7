"""The soft way to orthogonal weights: a term in the loss."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.weights.gates import split_gates
from statewise.weights.orthogonality import gram_excess


def orthogonality_penalty(
    weight: Float[Tensor, "stacked columns"],
    *,
    strength: float = 1.0,
    norm: str = "fro2",
    gates: int = 1,
) -> Float[Tensor, ""]:
    """Penalty on the distance of a weight from the orthogonal matrices, summed over gates.

    ``strength * ||W W^T - I||``, with the squared Frobenius norm, the sum of absolute entries, or the spectral norm;
    of ``W^T W`` where a gate is tall. Ziv 2019, section 1.2 ("soft" orthogonality; strengths of 1e-4 to 1e-2 are
    common). It pulls towards orthogonality and promises nothing.

    Args:
        weight: the matrix, or ``gates`` matrices on top of each other.
        strength: factor in front.
        norm: ``"fro2"``, ``"l1"`` or ``"spectral"``.
        gates: how many matrices the weight stacks, each to be orthogonal for itself.

    >>> orthogonality_penalty(2 * torch.eye(3), strength=0.1)
    tensor(2.7000)
    """
    if not strength >= 0:
        raise ArgumentError(where="orthogonality_penalty.strength", got=strength, wanted="a number >= 0")
    excess = gram_excess(split_gates(weight, gates=gates, where="orthogonality_penalty weight"))
    if norm == "fro2":
        return strength * excess.square().sum()
    if norm == "l1":
        return strength * excess.abs().sum()
    if norm == "spectral":
        largest: Tensor = torch.linalg.matrix_norm(excess, ord=2)
        return strength * largest.sum()
    raise ArgumentError(where="orthogonality_penalty.norm", got=norm, wanted="'fro2', 'l1' or 'spectral'")
