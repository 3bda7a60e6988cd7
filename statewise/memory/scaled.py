"""The outputs of a deep arithmetic circuit as mantissa and logarithm, where plain floats overflow or vanish."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.layers.recurrent import RAC
from statewise.memory.other_networks import check_layer


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaled:
    """Numbers ``mantissa * exp(log_scale)``; a log scale of minus infinity stands for zero.

    Args:
        mantissa: of moderate size, (..., outputs).
        log_scale: one for all outputs of a step, (...).
    """

    mantissa: Float[Tensor, "*batch outputs"]
    log_scale: Float[Tensor, "*batch"]

    def plain(self) -> Float[Tensor, "*batch outputs"]:
        """The numbers themselves: infinite or zero where their dtype ends."""
        return self.mantissa * self.log_scale.exp().unsqueeze(-1)

    def log_abs(self) -> Float[Tensor, "*batch outputs"]:
        """``ln |y|``."""
        return self.mantissa.abs().log() + self.log_scale.unsqueeze(-1)


def scaled_scores(
    layer: RAC,
    x: Float[Tensor, "steps batch features"],
    readout: Float[Tensor, "outputs channels"] | nn.Linear | None = None,
) -> Scaled:
    """The outputs at every step of a deep circuit whose numbers may have thousands of digits.

    Each state is kept as ``h = e^q u`` with ``max |u| = 1``: ``u' = (WH u) * (WI u_below)``,
    ``q' = q + q_below + ln max |u'|``. Degrees grow like ``T^(L-1)``, so that plain floats of two layers are soon zero
    or infinite. Gradients of ``log_abs`` are those of the logarithm of the output.

    Args:
        layer: without bias, in one direction, without transforms.
        x: the inputs, (batch, steps, features) if the layer has ``batch_first``.
        readout: a matrix (outputs, channels), or a linear layer without bias; None gives the states of the last layer.

    >>> layer = RAC(2, 2, num_layers=3)
    >>> found = scaled_scores(layer, torch.randn(200, 1, 2))
    >>> bool(found.log_scale.isfinite().all()), layer(torch.randn(200, 1, 2))[0][-1].tolist()
    (True, [[0.0, 0.0]])
    """
    check_layer(layer, where="scaled_scores")
    if layer.bias or layer.bidirectional or len(layer.transforms):
        raise ArgumentError(where="scaled_scores.layer", got=repr(layer), wanted="a plain circuit in one direction")
    weight = _matrix(readout)
    rows = x.transpose(0, 1) if layer.batch_first else x
    if not len(rows):
        raise LengthError(where="scaled_scores.x", got="an empty sequence", wanted="at least one step")
    if rows.shape[-1] != layer.input_size:
        wanted = f"(steps, batch, {layer.input_size} features)"
        raise ShapeError(where="scaled_scores.x", got=tuple(rows.shape), wanted=wanted)
    products = _first_products(layer, rows)
    below = [_normal(inputs, inputs.new_zeros(inputs.shape[0])) for inputs in rows]
    for level, first in enumerate(products):
        below = _one_layer(getattr(layer, f"weight_ih_l{level}"), getattr(layer, f"weight_hh_l{level}"), below, first)
    mantissa, scale = (torch.stack(parts) for parts in zip(*below, strict=True))
    if layer.batch_first:
        mantissa, scale = mantissa.transpose(0, 1), scale.transpose(0, 1)
    return Scaled(mantissa=mantissa if weight is None else mantissa @ weight.mT, log_scale=scale)


Pair = tuple[Tensor, Tensor]


def _one_layer(entering: Tensor, recurrent: Tensor, below: list[Pair], first: Tensor) -> list[Pair]:
    """The states of a layer at every step, from those below it and its first product."""
    product, scale = _normal(first.expand(below[0][0].shape[0], -1), first.new_zeros(below[0][0].shape[0]))
    states = []
    for inputs, log_scale in below:
        state, scale = _normal(product * (inputs @ entering.mT), scale + log_scale)
        states.append((state, scale))
        product = state @ recurrent.mT
    return states


def _normal(value: Tensor, scale: Tensor) -> Pair:
    """The same number with ``max |value| = 1``; the divisor is a constant to gradients, as its logarithm is."""
    largest = value.detach().abs().amax(-1)
    zero = largest == 0
    kept = torch.where(zero, 1.0, largest)
    return value / kept.unsqueeze(-1), torch.where(zero, -math.inf, scale + kept.log())


def _first_products(layer: RAC, rows: Tensor) -> list[Tensor]:
    """``WH h_0`` of every layer, (1, channels)."""
    levels = range(layer.num_layers)
    if layer.initial_state == "ones":
        return [rows.new_ones(1, layer.hidden_size) for _ in levels]
    recurrent = [getattr(layer, f"weight_hh_l{level}") for level in levels]
    if layer.initial_state == "learned":
        return [layer.state_0[level] @ recurrent[level].mT for level in levels]
    ones = rows.new_ones(layer.hidden_size)
    return [(weight @ (torch.linalg.pinv(weight) @ ones)).unsqueeze(0) for weight in recurrent]


def _matrix(readout: Tensor | nn.Linear | None) -> Tensor | None:
    if not isinstance(readout, nn.Linear):
        return readout
    if readout.bias is not None and bool((readout.bias != 0).any()):
        raise ArgumentError(where="scaled_scores.readout", got="a bias", wanted="none, as of every arithmetic circuit")
    return readout.weight
