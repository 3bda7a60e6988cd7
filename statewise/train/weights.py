"""Weights of a model by name: kept, put into it, and lent to it for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def keep_weights(model: nn.Module, kept: dict[str, Tensor]) -> None:
    """Copy a model's parameters into tensors that are kept, which are made where there are none.

    Args:
        model: whose parameters.
        kept: by name; changed in place.

    >>> kept: dict[str, Tensor] = {}
    >>> keep_weights(nn.Linear(1, 1, bias=False), kept)
    >>> list(kept)
    ['weight']
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in kept:
                kept[name].copy_(parameter)
            else:
                kept[name] = parameter.detach().clone()


def put_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a model's parameters; one without a weight stays as it is.

    Args:
        model: whose parameters.
        weights: by name, on any device.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in weights:
                parameter.copy_(weights[name])


@contextmanager
def lent_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """A region in which a model has other weights; afterwards those of now.

    Args:
        model: whose parameters.
        weights: by name; a parameter without one keeps its own.
    """
    own: dict[str, Tensor] = {}
    keep_weights(model, own)
    put_weights(model, weights)
    try:
        yield
    finally:
        put_weights(model, own)
