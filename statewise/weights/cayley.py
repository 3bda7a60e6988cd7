"""Recurrent weights that stay orthogonal because they are a function of free parameters: the scaled Cayley map."""

from __future__ import annotations

from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError
from statewise.weights.gates import count_gates, split_gates
from statewise.weights.orthogonality import require_square
from statewise.weights.signs import signs_of_rho, well_conditioned_signs
from statewise.weights.skew import cayley_orthogonal, initial_skew, inverse_cayley_orthogonal

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class ScaledCayley(nn.Module):
    """An orthogonal matrix, as a parametrization of ``size (size - 1) / 2`` free numbers.

    ``W = (I + A)^-1 (I - A) D``, ``A = U - U^T`` with U the strictly upper entries theta, ``D = diag(+-1)`` fixed.

    scoRNN: Helfrich et al. 2018; Ziv 2019 (whose text gives D entries in {0, 1}; they must be +-1). ``I + A`` is always
    invertible, and ``det W = (-1)^rho`` for ever, so rho decides between rotations and reflections. ``max|theta|``
    grows without bound as an eigenvalue of ``W D`` nears -1; then start afresh from W with other signs:
    ``parametrize.remove_parametrizations(module, name)`` and ``scaled_cayley(module, name, keep=True)``.

    The map is solved in float64 and costs ``O(size^3)``. It runs at every access of the weight: a layer reads it once a
    call; wrap code that reads it more often (a cell in a loop) in ``torch.nn.utils.parametrize.cached()``.

    Shapes: ``theta (size (size - 1) / 2,)``, ``signs (size,)``, ``W (size, size)``.

    Args:
        size: rows and columns of W.
        rho: number of -1 entries in D, which come last; default ``size - size // 2``.
        signs: the diagonal of D itself, instead of rho.

    >>> layer = scaled_cayley(nn.RNNCell(3, 8), "weight_hh", generator=torch.Generator().manual_seed(0))
    >>> torch.allclose(layer.weight_hh @ layer.weight_hh.T, torch.eye(8), atol=1e-6)
    True
    >>> layer.parametrizations.weight_hh.original.shape  # 8 * 7 / 2 free numbers
    torch.Size([28])
    """

    signs: Tensor

    def __init__(self, size: int, *, rho: int | None = None, signs: Tensor | None = None) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("signs", _diagonal((size,), rho=rho, signs=signs))

    @property
    def rho(self) -> int:
        """Number of -1 entries of D."""
        return int((self.signs < 0).sum())

    def forward(self, theta: Float[Tensor, " entries"]) -> Float[Tensor, "size size"]:
        """W from the strictly upper entries of A."""
        return cayley_orthogonal(theta, self.signs)

    def right_inverse(self, weight: Float[Tensor, "rows columns"]) -> Float[Tensor, " entries"]:
        """The theta of an orthogonal W; an ArgumentError where there is none for this D."""
        require_square(weight, size=self.size, where="ScaledCayley weight")
        return inverse_cayley_orthogonal(weight, self.signs, where="ScaledCayley weight")

    def initial(self, *, generator: torch.Generator | None = None) -> Float[Tensor, " entries"]:
        """Initial theta of scoRNN: rotations of planes by angles in U[0, pi/2], in float64."""
        return initial_skew(self.size, generator=generator)

    @staticmethod
    def signs_for(weight: Float[Tensor, "rows columns"]) -> Float[Tensor, " rows"]:
        """Signs under which this orthogonal W has a theta, and one with every ``|theta| <= 1``."""
        return well_conditioned_signs(weight)

    def extra_repr(self) -> str:
        return f"size={self.size}, rho={self.rho}"


class GatewiseOrthogonal(nn.Module):
    """A stack of orthogonal matrices, each gate of an LSTM or GRU with a scaled Cayley map of its own.

    ``W = [W_1; ...; W_gates]``, ``W_g = (I + A_g)^-1 (I - A_g) D_g``.

    The map is that of Helfrich et al. 2018. ``torch.nn.utils.parametrizations.orthogonal`` acts on the stacked matrix
    instead: there ``W^T W = I`` holds for the sum over gates, and no single gate is orthogonal.

    Shapes: ``theta (gates, size (size - 1) / 2)``, ``signs (gates, size)``, ``W (gates * size, size)``.

    Args:
        size: columns of W, the hidden size.
        gates: how many matrices are stacked.
        rho: number of -1 entries of every D_g; default ``size - size // 2``.
        signs: the diagonals themselves, instead of rho.

    >>> lstm = scaled_cayley(nn.LSTM(3, 5), "weight_hh_l0", gatewise=True)
    >>> forget = lstm.weight_hh_l0[5:10]
    >>> torch.allclose(forget @ forget.T, torch.eye(5), atol=1e-6)
    True
    """

    signs: Tensor

    def __init__(self, size: int, *, gates: int, rho: int | None = None, signs: Tensor | None = None) -> None:
        super().__init__()
        if gates < 1:
            raise ArgumentError(where="GatewiseOrthogonal.gates", got=gates, wanted="an integer >= 1")
        self.size, self.gates = size, gates
        self.register_buffer("signs", _diagonal((gates, size), rho=rho, signs=signs))

    @property
    def rho(self) -> tuple[int, ...]:
        """Number of -1 entries of each gate's D."""
        return tuple(int(count) for count in (self.signs < 0).sum(-1))

    def forward(self, theta: Float[Tensor, "gates entries"]) -> Float[Tensor, "stacked size"]:
        """The stacked W from the strictly upper entries of every A_g."""
        return cayley_orthogonal(theta, self.signs).flatten(0, 1)

    def right_inverse(self, weight: Float[Tensor, "rows columns"]) -> Float[Tensor, "gates entries"]:
        """The theta of a stack of orthogonal matrices; an ArgumentError where there is none for these D."""
        blocks = split_gates(weight, gates=self.gates, where="GatewiseOrthogonal weight")
        require_square(blocks, size=self.size, where="GatewiseOrthogonal weight, each gate")
        return inverse_cayley_orthogonal(blocks, self.signs, where="GatewiseOrthogonal weight")

    def initial(self, *, generator: torch.Generator | None = None) -> Float[Tensor, "gates entries"]:
        """Independent initial entries for each gate, in float64."""
        return torch.stack([initial_skew(self.size, generator=generator) for _ in range(self.gates)])

    @staticmethod
    def signs_for(weight: Float[Tensor, "stacked size"]) -> Float[Tensor, "gates size"]:
        """Signs under which every gate of this stack of orthogonal matrices has a theta."""
        gates = count_gates(weight, gatewise=True, where="signs_for weight")
        return torch.stack([well_conditioned_signs(gate) for gate in split_gates(weight, gates=gates)])

    def extra_repr(self) -> str:
        return f"size={self.size}, gates={self.gates}, rho={self.rho}"


def scaled_cayley(
    module: ModuleT,
    name: str,
    *,
    rho: int | None = None,
    gatewise: bool = False,
    keep: bool = False,
    generator: torch.Generator | None = None,
) -> ModuleT:
    """Keep a recurrent weight of a module orthogonal by the scaled Cayley map; returns the module.

    ``W = (I + A)^-1 (I - A) D`` (Helfrich et al. 2018), initialised as scoRNN is. The parameter becomes
    ``module.parametrizations.<name>.original``, the strictly upper entries of A; it wants a learning rate about ten
    times smaller than the other weights (Ziv 2019: 1e-4 against 1e-3).

    Args:
        module: any module with that weight: a torch.nn or statewise layer, a cell, a Linear.
        name: a square weight, or a stack of square gates, e.g. ``"weight_hh_l0"``.
        rho: number of -1 entries in D; default ``size - size // 2``.
        gatewise: treat ``(gates * hidden, hidden)`` as one orthogonal matrix a gate.
        keep: start from the module's present weight, which must be orthogonal, with the signs that suit it best.
        generator: source of the initial angles.

    >>> rnn = scaled_cayley(nn.RNN(4, 6), "weight_hh_l0", rho=2, generator=torch.Generator().manual_seed(0))
    >>> round(torch.linalg.det(rnn.weight_hh_l0).item(), 5)
    1.0
    """
    if name.startswith("weight_ih"):
        raise ArgumentError(
            where=f"scaled_cayley {name}",
            got="the weight of the inputs",
            wanted="a recurrent weight, such as weight_hh_l0",
            remedy="An input weight is not square: nothing is fed back through it.",
        )
    weight = _plain_weight(module, name)
    gates = count_gates(weight, gatewise=gatewise, where=name)
    if not gatewise:
        require_square(weight, size=weight.shape[-1], where=name)
    if keep and rho is not None:
        raise ArgumentError(where="scaled_cayley.rho", got=rho, wanted="None with keep=True, which chooses the signs")
    kind = GatewiseOrthogonal if gatewise else ScaledCayley
    signs = kind.signs_for(weight.detach()) if keep else None
    constraint: GatewiseOrthogonal | ScaledCayley
    if gatewise:
        constraint = GatewiseOrthogonal(weight.shape[-1], gates=gates, rho=rho, signs=signs)
    else:
        constraint = ScaledCayley(weight.shape[-1], rho=rho, signs=signs)
    constraint.to(weight.device)
    if keep:
        parametrize.register_parametrization(module, name, constraint)
        return module
    with torch.no_grad():
        theta = constraint.initial(generator=generator).to(weight)
        weight.copy_(constraint(theta))
        parametrize.register_parametrization(module, name, constraint)
        # Registering went through the inverse map; this puts back the exact angles. The parameter is the same object
        # as before, so an optimiser that knew the weight now knows theta.
        weight.copy_(theta)
    return module


def _diagonal(shape: tuple[int, ...], *, rho: int | None, signs: Tensor | None) -> Tensor:
    if signs is None:
        return signs_of_rho(shape[-1], rho).expand(shape).clone()
    if rho is not None:
        raise ArgumentError(where="ScaledCayley.rho", got=rho, wanted="rho or signs, not both")
    if signs.shape != shape or not bool((signs.abs() == 1).all()):
        raise ArgumentError(
            where="ScaledCayley.signs",
            got=f"{signs.tolist()} of shape {tuple(signs.shape)}",
            wanted=f"+1 and -1 in shape {shape}",
        )
    return signs.detach().clone().to(torch.get_default_dtype())


def _plain_weight(module: nn.Module, name: str) -> nn.Parameter:
    if parametrize.is_parametrized(module, name):
        raise ArgumentError(
            where=name,
            got="a weight that is parametrized already",
            wanted="a plain parameter, since the Cayley map must come first",
            remedy="Call scaled_cayley before weight_drop and the like, or remove_parametrizations first.",
        )
    weight = getattr(module, name, None)
    if not isinstance(weight, nn.Parameter) or weight.ndim != 2:
        known = [found for found, parameter in module.named_parameters(recurse=False) if parameter.ndim == 2]
        raise ArgumentError(
            where=f"{type(module).__name__}.{name}", got=type(weight).__name__, wanted=f"one of {known}"
        )
    return weight
