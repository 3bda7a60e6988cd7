"""How far a matrix is from orthogonal, and the nearest matrix that is."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError


def orthogonality_error(weight: Float[Tensor, "*gates rows columns"]) -> Float[Tensor, "*gates"]:
    """Distance of the Gram matrix from the identity, one number a matrix, in float64.

    ``||W W^T - I||_F`` (``||W^T W - I||_F`` for a tall matrix; the same number for a square one).
    This is the quantity that Figure 1.2 of Ziv 2019 follows during training.

    >>> orthogonality_error(torch.eye(3)).item()
    0.0
    """
    error: Tensor = torch.linalg.matrix_norm(gram_excess(weight.double()))
    return error


def gram_excess(weight: Float[Tensor, "*gates rows columns"]) -> Float[Tensor, "*gates side side"]:
    """``W W^T - I``, or ``W^T W - I`` where W is tall (then only its columns can be orthonormal)."""
    rows, columns = weight.shape[-2:]
    gram = weight.mT @ weight if rows > columns else weight @ weight.mT
    return gram - torch.eye(min(rows, columns), dtype=weight.dtype, device=weight.device)


def nearest_orthogonal(weight: Float[Tensor, "*gates rows columns"]) -> Float[Tensor, "*gates rows columns"]:
    """The nearest matrix with orthonormal columns (or rows, if wide), in the Frobenius norm: the polar projection.

    ``W = P S Q^T  ->  P Q^T``, computed in float64.

    >>> nearest_orthogonal(torch.diag(torch.tensor([3.0, -0.5])))
    tensor([[ 1.,  0.],
            [ 0., -1.]])
    """
    left, _, right = torch.linalg.svd(weight.double(), full_matrices=False)
    nearest: Tensor = left @ right
    return nearest.to(weight.dtype)


def require_orthogonal(weight: Float[Tensor, "*gates rows columns"], *, where: str) -> None:
    """Raise an ArgumentError unless all entries of the Gram matrix are those of I within ``10 * size * eps``."""
    if weight.is_meta:
        return  # a shape without numbers
    if not weight.isfinite().all():
        raise ArgumentError(where=where, got="NaN or infinity", wanted="a finite matrix")
    size = max(weight.shape[-2:])
    tolerance = 10 * size * torch.finfo(weight.dtype).eps
    error = gram_excess(weight.double()).abs().max().item()
    if error > tolerance:
        raise ArgumentError(
            where=where,
            got=f"a matrix with max|W W^T - I| = {error:.3g}",
            wanted=f"an orthogonal matrix (max|W W^T - I| <= {tolerance:.3g} in {weight.dtype})",
            remedy="Make it so with haar_orthogonal_(weight) or weight.copy_(nearest_orthogonal(weight)).",
        )


def require_square(weight: Tensor, *, size: int, where: str) -> None:
    """Raise a ShapeError unless the last two dimensions are ``(size, size)``."""
    if weight.ndim < 2 or weight.shape[-2:] != (size, size):
        raise ShapeError(
            where=where,
            got=f"shape {tuple(weight.shape)}",
            wanted=f"a square matrix {(size, size)}",
            remedy="For the stacked gates of an LSTM or GRU use gatewise=True.",
        )
