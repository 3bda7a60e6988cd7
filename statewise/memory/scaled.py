"""The outputs of a deep arithmetic circuit as mantissa and logarithm, where plain floats overflow or vanish."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

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
        found = self.mantissa * self.log_scale.exp().unsqueeze(-1)
        return torch.where(self.mantissa == 0, 0.0, found)  # and not zero times infinity

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


def can_be_scaled(network: object, readout: object) -> TypeGuard[RAC]:
    """Whether :func:`scaled_scorer` takes a network: a plain circuit, read out without a bias.

    Args:
        network: any.
        readout: of its last state.

    >>> can_be_scaled(RAC(2, 3), None), can_be_scaled(RAC(2, 3), nn.Linear(3, 1)), can_be_scaled(nn.LSTM(2, 3), None)
    (True, False, False)
    """
    if not isinstance(network, RAC) or network.bias or network.bidirectional or len(network.transforms):
        return False
    plain = isinstance(readout, nn.Linear) and (readout.bias is None or not bool((readout.bias != 0).any()))
    return plain or readout is None or isinstance(readout, Tensor)


def scaled_scorer(layer: RAC, *, readout: Any = None, output: int = 0) -> Callable[[Tensor], Tensor]:
    """As :func:`statewise.memory.grid_tensor.scorer`, but (batch, 2): a mantissa and a log scale for each sequence.

    Args:
        layer: that :func:`can_be_scaled`.
        readout: of its last state: a vector, a matrix, a linear layer without bias, or None.
        output: which of several scores.

    >>> scaled_scorer(RAC(2, 3))(torch.ones(400, 5, 2)).shape
    torch.Size([5, 2])
    """
    weight = readout.unsqueeze(0) if isinstance(readout, Tensor) and readout.dim() == 1 else readout

    def score(x: Tensor) -> Tensor:
        found = scaled_scores(layer, x.transpose(0, 1) if layer.batch_first else x, weight)
        last = (slice(None), -1) if layer.batch_first else (-1, slice(None))
        scores = found.mantissa[last]
        if not 0 <= output < scores.shape[1]:
            wanted = f"({x.shape[1]}, more than {output}): a score for each sequence"
            raise ShapeError(where="the network's scores", got=tuple(scores.shape), wanted=wanted)
        return torch.stack((scores[:, output], found.log_scale[last]), 1)

    return score


def unscaled(told: Float[Tensor, "sequences 2"]) -> tuple[Float[Tensor, " sequences"], float]:
    """Scores divided by the largest scale among them, and the logarithm of that; 0 where all are zero.

    Args:
        told: of :func:`scaled_scorer`.

    >>> unscaled(torch.tensor([[1.0, 800.0], [0.5, 800.0]]))
    (tensor([1.0000, 0.5000]), 800.0)
    """
    mantissa, scale = told.unbind(1)
    largest = float(scale.max())
    if largest == -math.inf:
        return mantissa, 0.0
    return mantissa * (scale - largest).exp(), largest


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
