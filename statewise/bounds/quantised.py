"""Networks whose weights lie on a few levels: rounding to them, training with them, and the certificate that follows.

With probability at least ``1 - delta`` over m independent sequences, for all networks at once,
``P(error) <= kl_inverse(training error, (nats + ln(1 / delta)) / m)``, where ``nats`` is the length of the network's
:func:`~statewise.bounds.description.describe`: no margin and no norm enters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from statewise.bounds.description import Description, TensorDescription, describe, integer_nats
from statewise.bounds.grid import NORMS
from statewise.bounds.kl import kl_inverse
from statewise.bounds.levels import Quantised, round_to_levels
from statewise.errors import ArgumentError

__all__ = [
    "Description",
    "Quantised",
    "TensorDescription",
    "describe",
    "integer_nats",
    "occam_certificate",
    "quantise",
    "quantise_",
    "rounded",
]


def quantise(tensor: Tensor, *, levels: int = 3, bits: float | None = None, scale: float | None = None) -> Quantised:
    """The nearest tensor of L equally spaced levels around zero.

    ``n = clamp(round(w / s), -K, K)`` for ``L = 2K + 1`` levels, ``s`` on the grid ``2^(j/8)``.

    Args:
        tensor: any floating tensor.
        levels: L >= 2; 3 is ternary.
        bits: the same as ``2^bits`` levels, which must be a whole number; it takes the place of ``levels``.
        scale: s, rounded to the grid; None tries all that may be of use and takes the one of least square error.

    >>> quantise(torch.tensor([0.9, -0.1, -1.2]), levels=3, scale=1.0).integers
    tensor([ 1,  0, -1])
    """
    count = _level_count(levels, bits)
    if not tensor.is_floating_point() or not bool(torch.isfinite(tensor).all()):
        raise ArgumentError(where="quantise", got=tensor.dtype, wanted="a floating tensor of finite numbers")
    largest = float(tensor.detach().abs().max()) if tensor.numel() else 0.0
    if scale is None and largest == 0:
        scale = 1.0
    if scale is not None:
        if not 0 < scale < math.inf:
            raise ArgumentError(where="quantise.scale", got=scale, wanted="a finite number > 0")
        return round_to_levels(tensor, levels=count, index=round(NORMS * math.log2(scale)))
    top = math.ceil(NORMS * math.log2(largest))
    bottom = math.floor(NORMS * math.log2(largest / count)) - NORMS
    tries = (round_to_levels(tensor, levels=count, index=index) for index in range(bottom, top + 1))
    return min(tries, key=lambda found: float((found.dequantise(tensor.dtype) - tensor.detach()).square().sum()))


@torch.no_grad()
def quantise_(
    module: nn.Module, *, levels: int = 3, bits: float | None = None, levels_of: Mapping[str, int] | None = None
) -> nn.Module:
    """Round all floating parameters of a module in place, each tensor with its own scale; returns the module.

    Args:
        module: whatever it is.
        levels: L, for each parameter.
        bits: the same as ``2^bits`` levels.
        levels_of: other numbers of levels, by the parameter's name.

    >>> len(quantise_(nn.Linear(8, 4), levels=3).weight.unique()) <= 3
    True
    """
    chosen = dict(levels_of or {})
    parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.is_floating_point()}
    if set(chosen) - set(parameters):
        raise ArgumentError(where="quantise_.levels_of", got=sorted(chosen), wanted=f"names among {sorted(parameters)}")
    for name, parameter in parameters.items():
        count = chosen.get(name) or _level_count(levels, bits)
        parameter.copy_(quantise(parameter, levels=count).dequantise(parameter.dtype))
    return module


def rounded(tensor: Tensor, *, levels: int = 3, scale: Tensor | float) -> Tensor:
    """The rounded tensor, with gradients as if the rounding were not there: for training with rounded weights.

    ``s clamp(round(w / s), -K, K)``, where ``round`` counts as the identity in the backward pass (Bengio, Leonard &
    Courville 2013) and s is rounded to the grid in the same way, so that it can be learned (Esser et al. 2020). In
    float32 the result is bit by bit what :func:`quantise` gives for the same scale.

    Args:
        tensor: w, the free weights.
        levels: L.
        scale: s > 0, one for the tensor.

    >>> free = torch.tensor([0.3, 0.8, -3.0], requires_grad=True)
    >>> rounded(free, levels=3, scale=1.0).sum().backward()
    >>> free.grad
    tensor([1., 1., 0.])
    """
    count = _level_count(levels, None)
    s = torch.as_tensor(scale, dtype=torch.float64, device=tensor.device)
    octaves = NORMS * torch.log2(s)
    # Grid points are computed in float64 and rounded once, as everywhere else.
    step = torch.exp2((octaves + (octaves.round() - octaves).detach()) / NORMS).to(tensor.dtype)
    lowest = -(count // 2)
    inside = (tensor / step).clamp(lowest, lowest + count - 1)
    return (inside + (inside.round() - inside).detach()) * step


def occam_certificate(*, errors: int, m: int, nats: float, delta: float) -> float:
    """A bound on the error probability of a network that was described in so many nats.

    ``kl_inverse(errors / m, (nats + ln(1 / delta)) / m)``, with probability ``1 - delta``, for all networks at once.

    Args:
        errors: wrong answers on the m sequences, ties counted as wrong.
        m: how many independent sequences there are.
        nats: of the network and of all choices that were made by looking at the data.
        delta: the probability that the statement fails.

    >>> round(occam_certificate(errors=1200, m=60_000, nats=1500.0, delta=0.05), 4)
    0.0684
    """
    if not 0 <= errors <= m or m < 1:
        raise ArgumentError(where="occam_certificate", got=(errors, m), wanted="0 <= errors <= m, m >= 1")
    if not 0 < delta < 1:
        raise ArgumentError(where="occam_certificate.delta", got=delta, wanted="a number between 0 and 1")
    if not nats >= 0:
        raise ArgumentError(where="occam_certificate.nats", got=nats, wanted="a number >= 0")
    return kl_inverse(errors / m, (nats - math.log(delta)) / m)


def _level_count(levels: int, bits: float | None) -> int:
    count = levels if bits is None else round(2**bits)
    if bits is not None and abs(2**bits - count) > 1e-9 * count:
        raise ArgumentError(where="bits", got=bits, wanted="a number with 2^bits whole, as log2(3)")
    if count < 2:
        raise ArgumentError(where="levels", got=count, wanted="a whole number of at least 2")
    return count
