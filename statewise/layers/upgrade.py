"""Exchanging the recurrent layers of a model for statewise's."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError, DtypeError, StatewiseError
from statewise.layers.base import RecurrentLayer
from statewise.layers.recurrent import GRU, LSTM, RNN
from statewise.transforms import Transform

_TORCHS = nn.RNN | nn.GRU | nn.LSTM


def upgrade(
    model: nn.Module,
    *,
    transforms: Transform | Iterable[Transform] = (),
    engine: str = "auto",
    generator: torch.Generator | None = None,
) -> nn.Module:
    """A copy of a torch model with its recurrent layers exchanged for statewise's, weights kept.

    Every ``torch.nn.RNN``, ``GRU`` and ``LSTM`` becomes ours with the same parameters and hooks, so without transforms
    the copy computes the same; the model itself is not touched. Layers and parameters that were shared stay shared.

    Args:
        model: any module; it may be a recurrent layer itself.
        transforms: what the exchanged layers get.
        engine: as for every layer here.
        generator: source of what the transforms learn, such as centroids; None means torch's global one.

    >>> from statewise.transforms import Noise
    >>> tagger = nn.ModuleDict({"rnn": nn.LSTM(4, 8), "head": nn.Linear(8, 3)})
    >>> upgrade(tagger, transforms=Noise("gaussian", 0.5))["rnn"]
    LSTM(4, 8, transforms=[Noise('gaussian', 0.5, placement='recurrent')])
    """
    if not isinstance(model, nn.Module):
        raise DtypeError(where="upgrade.model", got=type(model).__name__, wanted="a torch.nn.Module")
    if isinstance(transforms, Iterable):
        transforms = tuple(transforms)  # an iterator would be empty at the second layer
    for path, module in model.named_modules():
        if isinstance(module, _TORCHS):
            _refuse(module, _where(path))
    model = copy.deepcopy(model)
    exchanged: dict[int, nn.Module] = {}
    for path, module in list(model.named_modules(remove_duplicate=False)):
        if isinstance(module, _TORCHS):
            if id(module) not in exchanged:
                exchanged[id(module)] = _exchange(module, _where(path), transforms, engine, generator)
            if not path:
                return exchanged[id(module)]
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, exchanged[id(module)])
    if not exchanged:
        raise ArgumentError(
            where="upgrade",
            got=f"{type(model).__name__} without a recurrent layer",
            wanted="a model with a torch.nn.RNN, GRU or LSTM in it",
        )
    return model


def _where(path: str) -> str:
    return f"upgrade: {path or 'the model itself'}"


def _refuse(old: _TORCHS, where: str) -> None:
    """Refuse a layer that is more than torch.nn's own: what was added to it would be lost."""
    if parametrize.is_parametrized(old):
        raise ArgumentError(
            where=where,
            got="a parametrized layer",
            wanted="plain weights",
            remedy="Upgrade first and register the parametrization on the new layer, which has the same weight names.",
        )
    if type(old) not in (nn.RNN, nn.GRU, nn.LSTM):
        raise ArgumentError(
            where=where,
            got=f"{type(old).__name__}, a subclass of torch.nn's layer",
            wanted="the layer itself",
            remedy="Exchange it by hand: what the subclass adds would be lost.",
        )
    if isinstance(old, nn.LSTM) and old.proj_size:
        raise ArgumentError(
            where=where,
            got=f"proj_size={old.proj_size}",
            wanted="proj_size=0",
            remedy="Put a torch.nn.Linear after the layer, or leave this layer out of what is upgraded.",
        )
    if changed := old.state_dict().keys() ^ _weights(old):
        raise ArgumentError(
            where=where,
            got=f"a layer with {sorted(changed)} added or missing",
            wanted="the weights of torch.nn's layer and nothing else",
            remedy="Remove weight_norm, pruning and the like first, then put them on the new layer.",
        )


def _weights(old: _TORCHS) -> set[str]:
    kinds = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if old.bias else ()))
    ends = ("", "_reverse") if old.bidirectional else ("",)
    return {f"{kind}_l{layer}{end}" for kind in kinds for layer in range(old.num_layers) for end in ends}


def _exchange(
    old: _TORCHS,
    where: str,
    transforms: Transform | Iterable[Transform],
    engine: str,
    generator: torch.Generator | None,
) -> RecurrentLayer:
    options: dict[str, Any] = {
        "input_size": old.input_size,
        "hidden_size": old.hidden_size,
        "num_layers": old.num_layers,
        "bias": old.bias,
        "batch_first": old.batch_first,
        "dropout": old.dropout,
        "bidirectional": old.bidirectional,
        "device": "meta",  # nothing is drawn for weights that are replaced at once
        "dtype": next(old.parameters()).dtype,
        "transforms": transforms,
        "engine": engine,
    }
    new: RecurrentLayer
    try:
        if isinstance(old, nn.LSTM):
            new = LSTM(**options)
        elif isinstance(old, nn.GRU):
            new = GRU(**options)
        else:
            new = RNN(nonlinearity=old.nonlinearity, **options)
    except StatewiseError as error:
        error.add_note(where)
        raise
    _hand_over(old, new)
    new.reset_transforms(generator)
    return new.train(old.training)


def _hand_over(old: _TORCHS, new: RecurrentLayer) -> None:
    """Give the new layer the very parameters of the old one, so that tied weights stay tied, and its hooks."""
    kept, device = dict(old.named_parameters()), next(old.parameters()).device
    for name, parameter in list(new.named_parameters()):
        setattr(new, name, kept.get(name, nn.Parameter(torch.empty_like(parameter, device=device))))
    for name, value in vars(old).items():
        if "_hook" in name:
            setattr(new, name, value)
