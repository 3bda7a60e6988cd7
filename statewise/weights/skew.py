"""Skew-symmetric matrices from their strictly upper entries, and the scaled Cayley map to orthogonal matrices."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.weights.orthogonality import nearest_orthogonal, require_orthogonal

_LEAF = 64  # up to here the triangular solver of CUDA devices is fast


def skew_matrix(theta: Float[Tensor, "*gates entries"], *, size: int) -> Float[Tensor, "*gates size size"]:
    """The skew-symmetric matrix with the given strictly upper entries, row by row.

    ``A = U - U^T``, ``U[i, j] = theta_ij`` for ``i < j``.

    >>> skew_matrix(torch.tensor([1.0, 2.0, 3.0]), size=3)
    tensor([[ 0.,  1.,  2.],
            [-1.,  0.,  3.],
            [-2., -3.,  0.]])
    """
    entries = size * (size - 1) // 2
    if theta.shape[-1] != entries:
        raise ShapeError(
            where="theta",
            got=f"{theta.shape[-1]} entries",
            wanted=f"{size} * {size - 1} / 2 = {entries} strictly upper entries of a {size} x {size} matrix",
        )
    row, column = torch.triu_indices(size, size, offset=1, device=theta.device)
    # Out of place, so that the map works under torch.func.vmap over theta.
    flat = theta.new_zeros(*theta.shape[:-1], size * size).index_copy(-1, row * size + column, theta)
    upper: Tensor = flat.unflatten(-1, (size, size))
    return upper - upper.mT


def skew_entries(skew: Float[Tensor, "*gates size size"]) -> Float[Tensor, "*gates entries"]:
    """The strictly upper entries of a skew-symmetric matrix: the inverse of :func:`skew_matrix`."""
    size = skew.shape[-1]
    row, column = torch.triu_indices(size, size, offset=1, device=skew.device)
    return skew[..., row, column]


def cayley_orthogonal(
    theta: Float[Tensor, "*gates entries"], signs: Float[Tensor, "*gates size"]
) -> Float[Tensor, "*gates size size"]:
    """Scaled Cayley map ``W = (I + A)^-1 (I - A) D``, ``D = diag(signs)``.

    Solved in float64 and rounded once to the dtype of theta: a float32 solve would leave
    ``||W W^T - I||_F`` = 4e-4 at size 600 and condition number 48.

    >>> cayley_orthogonal(torch.tensor([-1.0]), torch.ones(2))  # a quarter turn
    tensor([[ 0.,  1.],
            [-1.,  0.]])
    """
    skew = skew_matrix(theta.double(), size=signs.shape[-1])
    eye = torch.eye(signs.shape[-1], dtype=skew.dtype, device=skew.device)
    rotation: Tensor = (
        2 * identity_plus_inverse(skew) - eye if skew.is_cuda else torch.linalg.solve(eye + skew, eye - skew)
    )
    return (rotation * signs.unsqueeze(-2)).to(theta.dtype)


def identity_plus_inverse(skew: Float[Tensor, "*gates size size"]) -> Float[Tensor, "*gates size size"]:
    """``(I + A)^-1`` of a skew-symmetric A, which always exists; ``2 (I + A)^-1 - I`` is A's Cayley map.

    On a CUDA device it is made without pivots, see :func:`inverse_without_pivots`, and made exact by a step of Newton's
    method, ``X <- X (2 I - N X)``: unlike torch's it can then be captured in a CUDA graph.

    Args:
        skew: in double precision.

    >>> identity_plus_inverse(torch.tensor([[0.0, -1.0], [1.0, 0.0]]).double())
    tensor([[ 0.5000,  0.5000],
            [-0.5000,  0.5000]], dtype=torch.float64)
    """
    eye = torch.eye(skew.shape[-1], dtype=skew.dtype, device=skew.device)
    if not skew.is_cuda:
        inverse: Tensor = torch.linalg.inv_ex(eye + skew)[0]
        return inverse
    guess = inverse_without_pivots(eye + skew)
    return guess @ (2 * eye - (eye + skew) @ guess)


def inverse_without_pivots(matrix: Float[Tensor, "*gates size size"]) -> Float[Tensor, "*gates size size"]:
    """The inverse of a matrix N with ``x^T N x >= |x|^2`` for all x, such as ``I + A`` of a skew-symmetric A.

    By blocks, with the Schur complement, which is such a matrix again; small ones as ``(N^T N)^-1 N^T`` by Cholesky's
    decomposition. No entry needs to be looked for, so nothing waits for the device. Its error grows with the square of
    the condition number of N.

    >>> matrix = torch.eye(150).double() + torch.triu(torch.ones(150, 150), 1) - torch.tril(torch.ones(150, 150), -1)
    >>> bool((inverse_without_pivots(matrix) @ matrix - torch.eye(150)).abs().max() < 1e-10)
    True
    """
    size = matrix.shape[-1]
    if size <= _LEAF:
        factor = torch.linalg.cholesky_ex(matrix.mT @ matrix)[0]
        half = torch.linalg.solve_triangular(factor, matrix.mT, upper=False)
        small: Tensor = torch.linalg.solve_triangular(factor.mT, half, upper=True)
        return small
    cut = size // 2
    p, q, s, t = matrix[..., :cut, :cut], matrix[..., :cut, cut:], matrix[..., cut:, :cut], matrix[..., cut:, cut:]
    first = inverse_without_pivots(p)
    across, down = first @ q, s @ first
    last = inverse_without_pivots(t - s @ across)
    upper = -across @ last
    rows = (
        torch.cat((first - upper @ down, upper), dim=-1),
        torch.cat((-last @ down, last), dim=-1),
    )
    return torch.cat(rows, dim=-2)


def inverse_cayley_orthogonal(
    weight: Float[Tensor, "*gates size size"], signs: Float[Tensor, "*gates size"], *, where: str = "weight"
) -> Float[Tensor, "*gates entries"]:
    """The theta that :func:`cayley_orthogonal` maps to ``weight``: ``A = (I - W D)(I + W D)^-1``.

    Raises an ArgumentError where W is not orthogonal, or where W D has an eigenvalue at or near -1.
    """
    require_orthogonal(weight, where=where)
    # The projection takes out the rounding of W, so that A is skew and the eigenvalue test means what it says.
    rotation = nearest_orthogonal(weight.double()) * signs.unsqueeze(-2)
    eye = torch.eye(rotation.shape[-1], dtype=rotation.dtype, device=rotation.device)
    # W D is normal, so these singular values are the distances |lambda + 1| of its eigenvalues from -1.
    gap = math.inf if weight.is_meta else torch.linalg.svdvals(eye + rotation).min().item()
    if gap < math.sqrt(torch.finfo(weight.dtype).eps):
        raise ArgumentError(
            where=where,
            got=f"W D with an eigenvalue at distance {gap:.1e} from -1",
            wanted="an orthogonal W for which W D has no eigenvalue near -1 (so det W = (-1)^rho)",
            remedy="Choose another rho, or signs=ScaledCayley.signs_for(W), which exist for every orthogonal W.",
        )
    return skew_entries(torch.linalg.solve(eye + rotation, eye - rotation)).to(weight.dtype)


def rotation_entries(angles: Float[Tensor, " pairs"], *, size: int) -> Float[Tensor, " entries"]:
    """Strictly upper entries of the A whose Cayley transform turns the plane (2j, 2j+1) by ``angles[j]``.

    Blocks ``[[0, s], [-s, 0]]``, ``s_j = -tan(t_j / 2)``; an odd size leaves a last zero row
    (Helfrich et al. 2018; Ziv 2019). The block of W is ``[[cos t, sin t], [-sin t, cos t]]``.

    >>> rotation_entries(torch.tensor([0.7], dtype=torch.float64), size=2)
    tensor([-0.3650], dtype=torch.float64)
    """
    if angles.shape[0] != size // 2:
        raise ShapeError(
            where="angles", got=f"{angles.shape[0]} angles", wanted=f"size // 2 = {size // 2}, one for each plane"
        )
    skew = angles.new_zeros(size, size)
    first = torch.arange(0, size - 1, 2, device=angles.device)
    skew[first, first + 1] = -(angles / 2).tan()
    return skew_entries(skew)


def initial_skew(size: int, *, generator: torch.Generator | None = None) -> Float[Tensor, " entries"]:
    """Initial theta of scoRNN: plane rotations by ``t_j ~ U[0, pi/2]``, in float64 (Helfrich et al. 2018).

    Args:
        size: rows of the orthogonal matrix.
        generator: source of the angles, drawn on its device.

    >>> initial_skew(5, generator=torch.Generator().manual_seed(0)).count_nonzero().item()
    2
    """
    device = "cpu" if generator is None else generator.device
    angles = torch.rand(size // 2, generator=generator, dtype=torch.float64, device=device) * (math.pi / 2)
    return rotation_entries(angles, size=size)
