"""Running any recurrent module over sequences of several lengths, time first."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.layers.packing import Packing, pad


def apply(
    layer: nn.Module,
    inputs: Float[Tensor, "steps batch width"],
    lengths: Int64[Tensor, " batch"],
    hx: Any = None,
    **options: Any,
) -> tuple[Tensor, Any]:
    """The padded output and the final state.

    Args:
        layer: called as ``layer(x)`` or ``layer(x, state)``, gives ``(output, state)``; sequences of several lengths it
            is given as a PackedSequence, as torch.nn's layers are.
        inputs: padded sequences; padding may hold anything.
        lengths: of the sequences.
        hx: the initial state; None leaves it to the layer.
        options: further arguments of the layer.

    >>> output, _ = apply(nn.GRU(2, 3), torch.ones(4, 2, 2), torch.tensor([4, 1]))
    >>> output[1:, 1].abs().max().item()
    0.0
    """
    longest = int(lengths.max())
    ragged = bool((lengths < longest).any())
    given = Packing.of(lengths, device=inputs.device).pack(inputs) if ragged else inputs[:longest]
    result = layer(given, **options) if hx is None else layer(given, hx, **options)
    output, state = _read(layer, result)
    if isinstance(output, PackedSequence):
        return pad(output, steps=inputs.shape[0]), state
    beyond = output.new_zeros(inputs.shape[0] - longest, *output.shape[1:])
    return torch.cat([output, beyond]) if len(beyond) else output, state


def check_call(layer: nn.Module, inputs: Tensor, *, where: str) -> None:
    """Refuse what is no layer, no batch, or not time first.

    >>> check_call(nn.GRU(2, 3), torch.ones(4, 2, 2), where="InputMixup")
    """
    if not isinstance(layer, nn.Module):
        raise DtypeError(where=f"{where} layer", got=type(layer).__name__, wanted="a torch.nn.Module")
    if getattr(layer, "batch_first", False):
        raise ArgumentError(
            where=f"{where} layer",
            got="a layer with batch_first=True",
            wanted="time first: inputs, coefficients and labels are (steps, batch)",
            remedy="Build the layer without batch_first and transpose the batch.",
        )
    if not isinstance(inputs, Tensor) or not inputs.is_floating_point():
        got = str(inputs.dtype) if isinstance(inputs, Tensor) else type(inputs).__name__
        wanted, remedy = "a tensor of real numbers", "Words need an embedding first: vectors are mixed, never indices."
        if isinstance(inputs, PackedSequence):
            wanted, remedy = "(steps, batch, width)", "Give the padded batch and lengths=."
        raise DtypeError(where=f"{where} inputs", got=got, wanted=wanted, remedy=remedy)
    if inputs.ndim != 3 or not inputs.shape[0] or not inputs.shape[1]:
        raise ShapeError(where=f"{where} inputs", got=tuple(inputs.shape), wanted="(steps, batch, width), none empty")


def _read(layer: nn.Module, result: Any) -> tuple[Any, Any]:
    if isinstance(result, tuple) and len(result) >= 2 and isinstance(result[0], Tensor | PackedSequence):
        return result[0], result[1]
    raise DtypeError(
        where=type(layer).__name__,
        got=f"a result of type {type(result).__name__}",
        wanted="a module that gives (output, state), as recurrent layers do",
    )
