"""How many dimensions some singular values are worth: three answers, all of the shares of their energy."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from statewise.errors import ArgumentError


def effective_rank(values: Float[np.ndarray, " values"]) -> float:
    """The exponential of the entropy of the energies.

    ``exp(-sum q log q)`` with ``q_i = sigma_i^2 / sum sigma^2``: k if k values are equal and the others 0. States that
    are one point have no dimension at all: 0.

    Args:
        values: singular values, in any order and of any scale.

    >>> round(effective_rank(np.array([3.0, 1.0])), 6)
    1.384145
    """
    shares = _shares(values, "effective_rank")
    held = shares[shares > 0]
    return float(np.exp(-(held * np.log(held)).sum())) if len(held) else 0.0


def participation_ratio(values: Float[np.ndarray, " values"]) -> float:
    """The inverse of the summed squares of the energies, ``1 / sum q^2``; never above the effective rank.

    Args:
        values: singular values, in any order and of any scale.

    >>> round(participation_ratio(np.array([3.0, 1.0])), 6)
    1.219512
    """
    shares = _shares(values, "participation_ratio")
    return float(1 / (shares**2).sum()) if shares.any() else 0.0


def stable_rank(values: Float[np.ndarray, " values"]) -> float:
    """The whole energy over the largest, ``sum sigma^2 / sigma_1^2``; never above the participation ratio.

    Args:
        values: singular values, in any order and of any scale.

    >>> round(stable_rank(np.array([3.0, 1.0])), 6)
    1.111111
    """
    shares = _shares(values, "stable_rank")
    return float(1 / shares.max()) if shares.any() else 0.0


def _shares(values: Float[np.ndarray, " values"], where: str) -> Float[np.ndarray, " values"]:
    """The energies, as shares of their sum."""
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ArgumentError(where=f"{where}.values", got=values.tolist(), wanted="singular values: finite and >= 0")
    largest = values.max(initial=0.0)
    energies = np.square(values / largest) if largest > 0 else np.zeros_like(values)  # tiny values must not underflow
    total = energies.sum()
    return energies / total if total > 0 else energies
