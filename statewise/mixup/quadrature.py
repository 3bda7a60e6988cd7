"""Means over symmetric Beta variables without sampling."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor


def symmetric_nodes(alpha: float, nodes: int) -> tuple[Float64[Tensor, " nodes"], Float64[Tensor, " nodes"]]:
    """Points and weights with ``E[f(lambda)] = sum w f(lambda)`` for ``lambda ~ Beta(alpha, alpha)``.

    Gauss-Jacobi quadrature: the eigenvalues of the Jacobi matrix (Golub & Welsch 1969), whose squared off-diagonal is
    ``n (n + 2a) / ((2n + 2a + 1) (2n + 2a - 1))`` on [-1, 1], ``a = alpha - 1``. Exact for polynomials of degree
    ``2 nodes - 1``.

    Args:
        alpha: the shape; 0 has the two points 0 and 1, infinity the point 1/2.
        nodes: how many points.

    >>> lam, weight = symmetric_nodes(1.0, 8)
    >>> round(float((weight * lam**2).sum()), 12)
    0.333333333333
    """
    if alpha == 0:
        return torch.tensor([0.0, 1.0], dtype=torch.float64), torch.full((2,), 0.5, dtype=torch.float64)
    if math.isinf(alpha):
        return torch.full((1,), 0.5, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    n, a = np.arange(2, nodes, dtype=np.float64), alpha - 1
    squares = n * (n + 2 * a) / ((2 * n + 2 * a + 1) * (2 * n + 2 * a - 1))
    # The first one is 0 / 0 at alpha = 1/2; it is four times the variance.
    side = np.sqrt(np.concatenate(([1 / (2 * alpha + 1)], squares)))
    points, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    return torch.from_numpy((1 + points) / 2), torch.from_numpy(vectors[0] ** 2)
