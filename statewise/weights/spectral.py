"""Recurrent weights whose largest singular value stays below a bound."""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError
from statewise.weights.gates import count_gates, split_gates

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class SpectralCap(nn.Module):
    """Scales a matrix down to a spectral norm of at most ``bound``, and leaves a smaller one as it is.

    ``W = V min(1, bound / ||V||_2)``, V the free parameter.

    The norm is the exact largest singular value, in float64, not a power iteration: that one approaches the norm from
    below, so a certificate (a Lipschitz constant, a generalization bound) could not be built on it. A matrix that had
    to be scaled ends a few roundings below the bound, so that the rounded W itself obeys it. Gradients flow through
    the norm. Compare the Lipschitz constraint of Miyato et al. 2018, which scales small matrices up as well.

    Shapes: V and W ``(gates * rows, columns)``.

    Args:
        bound: largest spectral norm allowed.
        gates: 1 caps the whole matrix; more cap each of that many stacked matrices for itself.

    >>> SpectralCap(bound=0.5)(torch.diag(torch.tensor([2.0, 1.0]))).round(decimals=5)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """

    def __init__(self, *, bound: float = 1.0, gates: int = 1) -> None:
        super().__init__()
        _require_bound(bound, where="SpectralCap.bound")
        if gates < 1:
            raise ArgumentError(where="SpectralCap.gates", got=gates, wanted="an integer >= 1")
        self.bound, self.gates = bound, gates

    def forward(self, raw: Float[Tensor, "stacked columns"]) -> Float[Tensor, "stacked columns"]:
        """The capped weight."""
        blocks = split_gates(raw, gates=self.gates, where="SpectralCap weight").double()
        norm = torch.linalg.matrix_norm(blocks, ord=2, keepdim=True)
        limit = torch.where(norm > self.bound, norm * (1 + _rounding(blocks, raw.dtype)), self.bound)
        return (blocks * (self.bound / limit)).flatten(0, 1).to(raw.dtype)

    def right_inverse(self, weight: Float[Tensor, "stacked columns"]) -> Float[Tensor, "stacked columns"]:
        """The weight itself, which is exact below the bound; above it the cap applies."""
        # A copy, since torch's parametrize makes the parameter share the memory of what it gets here.
        return weight.clone()

    def extra_repr(self) -> str:
        return f"bound={self.bound}, gates={self.gates}"


def spectral_cap(module: ModuleT, name: str, *, bound: float = 1.0, gatewise: bool = False) -> ModuleT:
    """Keep the spectral norm of a module's weight at or below a bound; returns the module.

    ``W = V min(1, bound / ||V||_2)``; see :class:`SpectralCap`. An Elman network with a 1-Lipschitz activation and
    ``bound < 1`` is a contraction of its state.

    Args:
        module: the module that owns the weight.
        name: the weight, e.g. ``"weight_hh_l0"``.
        bound: largest spectral norm allowed.
        gatewise: cap each gate of a ``(gates * hidden, hidden)`` weight for itself, rather than the stack.

    >>> cell = spectral_cap(nn.RNNCell(3, 4), "weight_hh", bound=0.5)
    >>> bool(torch.linalg.matrix_norm(cell.weight_hh, ord=2) <= 0.5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise ArgumentError(
            where=f"{type(module).__name__}.{name}", got=type(weight).__name__, wanted="a weight matrix"
        )
    gates = count_gates(weight, gatewise=gatewise, where=name)
    parametrize.register_parametrization(module, name, SpectralCap(bound=bound, gates=gates).train(module.training))
    return module


@torch.no_grad()
def project_spectral_(
    weight: Float[Tensor, "stacked columns"], *, bound: float = 1.0, gates: int = 1
) -> Float[Tensor, "stacked columns"]:
    """Clip the singular values of a weight in place: the nearest matrix with spectral norm at most ``bound``.

    ``W = P S Q^T  ->  P min(S, bound) Q^T``. For use after an optimiser step, where a parametrization is not wanted.

    Args:
        weight: changed in place.
        bound: largest singular value allowed.
        gates: how many matrices the weight stacks, each clipped for itself.

    >>> project_spectral_(torch.diag(torch.tensor([2.0, 0.25]))).round(decimals=5)
    tensor([[1.0000, 0.0000],
            [0.0000, 0.2500]])
    """
    _require_bound(bound, where="project_spectral_.bound")
    blocks = split_gates(weight, gates=gates, where="project_spectral_ weight").double()
    left, values, right = torch.linalg.svd(blocks, full_matrices=False)
    ceiling = bound / (1 + _rounding(blocks, weight.dtype))
    clipped = (left * values.clamp(max=ceiling).unsqueeze(-2)) @ right
    # A gate that obeys already keeps its bits.
    obeys = (values[..., 0] <= bound)[:, None, None]
    return weight.copy_(torch.where(obeys, blocks, clipped).flatten(0, 1))


def _rounding(blocks: Tensor, dtype: torch.dtype) -> float:
    """Relative change of the spectral norm that rounding every entry to ``dtype`` can cause, generously."""
    rank = min(blocks.shape[-2:])
    # ||E||_2 <= ||E||_F <= eps/2 ||W||_F <= eps/2 sqrt(rank) ||W||_2; the rest is for the float64 arithmetic.
    return math.sqrt(rank) * torch.finfo(dtype).eps + 10 * rank * torch.finfo(torch.float64).eps


def _require_bound(bound: float, *, where: str) -> None:
    if not (bound > 0 and math.isfinite(bound)):
        raise ArgumentError(where=where, got=bound, wanted="a finite number > 0")
