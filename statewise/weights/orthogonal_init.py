"""Orthogonal starting points: a uniformly random orthogonal matrix, and the identity."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ShapeError
from statewise.weights.gates import split_gates


@torch.no_grad()
def haar_orthogonal_(
    weight: Float[Tensor, "stacked columns"], *, gates: int = 1, generator: torch.Generator | None = None
) -> Float[Tensor, "stacked columns"]:
    """Fill a weight with a random orthogonal matrix from the uniform (Haar) distribution, each gate independently.

    ``N = Q R`` for Gaussian N, ``W = Q diag(sign(R_ii))``: without the signs Q would not be uniform (Mezzadri 2007).
    A gate that is not square gets orthonormal columns or rows. Unlike ``torch.nn.init.orthogonal_``, a stacked weight
    is made orthogonal gate by gate. Ziv 2019, section 1.2 (orthogonal initialisation).

    Args:
        weight: changed in place.
        gates: how many matrices the weight stacks.
        generator: source of the Gaussian entries, drawn on its device.

    >>> weight = haar_orthogonal_(torch.empty(8, 4), gates=2, generator=torch.Generator().manual_seed(0))
    >>> torch.allclose(weight[4:] @ weight[4:].T, torch.eye(4), atol=1e-6)
    True
    """
    count, rows, columns = split_gates(weight, gates=gates, where="haar_orthogonal_ weight").shape
    tall = (max(rows, columns), min(rows, columns))
    device = weight.device if generator is None else generator.device
    gaussian = torch.randn(count, *tall, generator=generator, dtype=torch.float64, device=device)
    orthogonal, triangular = torch.linalg.qr(gaussian)
    orthogonal = torch.where(triangular.diagonal(dim1=-2, dim2=-1).unsqueeze(-2) < 0, -orthogonal, orthogonal)
    if rows < columns:
        orthogonal = orthogonal.mT
    return weight.copy_(orthogonal.flatten(0, 1))


@torch.no_grad()
def identity_(weight: Float[Tensor, "stacked columns"], *, gates: int = 1) -> Float[Tensor, "stacked columns"]:
    """Fill a weight with the identity, in every gate: the state is carried on as it is (Le et al. 2015).

    Args:
        weight: changed in place; each gate must be square.
        gates: how many matrices the weight stacks.

    >>> identity_(torch.empty(4, 2), gates=2)
    tensor([[1., 0.],
            [0., 1.],
            [1., 0.],
            [0., 1.]])
    """
    blocks = split_gates(weight, gates=gates, where="identity_ weight")
    if blocks.shape[-2] != blocks.shape[-1]:
        raise ShapeError(
            where="identity_ weight",
            got=f"shape {tuple(weight.shape)} in {gates} gates",
            wanted="square gates",
            remedy="Give the number of gates that this weight stacks.",
        )
    eye = torch.eye(weight.shape[-1], dtype=weight.dtype, device=weight.device)
    return weight.copy_(eye.repeat(gates, 1))
