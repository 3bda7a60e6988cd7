"""Weights of a model by name: kept, put into it, and lent to it for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from statewise.errors import RunFolderError


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


def restore_weights(model: nn.Module, weights: Mapping[str, Tensor], *, where: str = "resume") -> None:
    """Copy weights that were written by a run into a model; they must be all of its parameters, and no others.

    Args:
        model: whose parameters.
        weights: by name, on any device.
        where: what they are of, for the error.

    >>> restore_weights(nn.Linear(1, 1), {"weight": torch.ones(1, 1)})
    Traceback (most recent call last):
        ...
    statewise.errors.RunFolderError: resume: got no bias, wanted every parameter of the model, in its shape. ...
    """
    check_weights(model, weights, where=where)
    put_weights(model, weights)


def check_weights(model: nn.Module, weights: Mapping[str, Tensor], *, where: str = "resume") -> None:
    """Refuse weights that are not those of a model: some missing, some too many, or of another shape.

    Args:
        model: whose parameters.
        weights: by name.
        where: what they are of, for the error.
    """
    wanted = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    wrong = [f"no {name}" for name in wanted if name not in given]
    wrong += [f"{name}, which it has not" for name in given if name not in wanted]
    wrong += [f"{name} of {given[name]}" for name in given if name in wanted and given[name] != wanted[name]]
    if wrong:
        raise RunFolderError(
            where=where,
            got=", ".join(wrong[:5]),
            wanted="every parameter of the model, in its shape",
            remedy="The resume point is damaged or of another version: begin a new run in another folder.",
        )


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
