"""The diagonal of +1 and -1 in the scaled Cayley map: its layout, and the best one for a given matrix."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.weights.orthogonality import require_orthogonal, require_square


def signs_of_rho(size: int, rho: int | None = None) -> Float[Tensor, " size"]:
    """``size - rho`` entries +1, then ``rho`` entries -1; by default ``size // 2`` entries +1.

    ``det W = det D = (-1)^rho``, so rho fixes the connected component of the orthogonal group.

    >>> signs_of_rho(3)
    tensor([ 1., -1., -1.])
    """
    if size < 1:
        raise ArgumentError(where="ScaledCayley.size", got=size, wanted="an integer >= 1")
    rho = size - size // 2 if rho is None else rho
    if isinstance(rho, bool) or not isinstance(rho, int) or not 0 <= rho <= size:
        raise ArgumentError(
            where="ScaledCayley.rho",
            got=rho,
            wanted=f"an integer in 0..{size}",
            remedy="rho is the number of -1 entries of D.",
        )
    signs = torch.ones(size)
    signs[size - rho :] = -1
    return signs


def well_conditioned_signs(weight: Float[Tensor, "rows columns"]) -> Float[Tensor, " rows"]:
    """Signs D for which ``W = (I + A)^-1 (I - A) D`` with every ``|A_ij| <= 1``, for any orthogonal W.

    1. Eliminate ``W + D`` without exchanges, choosing each ``d_i`` as the sign of the pivot it is added to; no pivot
       is below 1 in size, so ``I + W D`` is invertible (Ballard et al. 2015).
    2. While some ``|A_ij| > 1``, flip ``d_i`` and ``d_j``: that multiplies ``det(I + W D)`` by ``A_ij^2``, so it ends
       (Kahan 2006; O'Dorney 2014).

    Args:
        weight: an orthogonal matrix.

    >>> well_conditioned_signs(-torch.eye(3))
    tensor([-1., -1., -1.])
    """
    require_square(weight, size=weight.shape[-1], where="signs_for weight")
    require_orthogonal(weight, where="signs_for weight")
    # The loops are sequential over small slices, which the CPU does best.
    matrix = weight.detach().double().cpu()
    signs = _eliminate(matrix)
    eye = torch.eye(len(signs), dtype=torch.float64)
    while True:
        rotation = matrix * signs
        skew = torch.linalg.solve(eye + rotation, eye - rotation)
        largest = int(skew.abs().argmax())
        row, column = divmod(largest, len(signs))
        # The slack keeps an entry of exactly 1 from being flipped back and forth by rounding.
        if skew[row, column].abs() <= 1 + 1e-6 or row == column:
            return signs.to(device=weight.device, dtype=weight.dtype)
        signs[[row, column]] *= -1


def _eliminate(matrix: Tensor) -> Tensor:
    rest = matrix.clone()
    signs = torch.ones(len(rest), dtype=rest.dtype)
    for i in range(len(rest)):
        if rest[i, i] < 0:
            signs[i] = -1
        pivot = rest[i, i] + signs[i]
        rest[i + 1 :, i + 1 :] -= torch.outer(rest[i + 1 :, i] / pivot, rest[i, i + 1 :])
    return signs
