"""Exchanging the recurrent layers of a model for statewise's."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError
from statewise.layers.base import RecurrentLayer
from statewise.layers.recurrent import GRU, LSTM, RNN
from statewise.transforms import Transform


def upgrade(model: nn.Module, *, transforms: Transform | Iterable[Transform] = (), engine: str = "auto") -> nn.Module:
    """A copy of a torch model with its recurrent layers exchanged for statewise's, weights kept.

    Every ``torch.nn.RNN``, ``GRU`` and ``LSTM`` becomes ours with the same parameters, so without transforms the copy
    computes the same; the model itself is not touched. Layers and parameters that were shared stay shared.

    Args:
        model: any module; it may be a recurrent layer itself.
        transforms: what the exchanged layers get.
        engine: as for every layer here.

    >>> import torch
    >>> from statewise.transforms import Noise
    >>> tagger = nn.ModuleDict({"rnn": nn.LSTM(4, 8), "head": nn.Linear(8, 3)})
    >>> upgrade(tagger, transforms=Noise("gaussian", 0.5))["rnn"]
    LSTM(4, 8, transforms=[Noise(layers=None, law='gaussian', gamma=0.5, alpha=2.0, mode='multiplicative', \
placement='recurrent')])
    """
    transforms = (transforms,) if isinstance(transforms, Transform) else tuple(transforms)
    model = copy.deepcopy(model)
    exchanged: dict[int, nn.Module] = {}
    for path, module in list(model.named_modules(remove_duplicate=False)):
        if isinstance(module, nn.RNN | nn.GRU | nn.LSTM):
            if id(module) not in exchanged:
                exchanged[id(module)] = _exchange(module, path or "the model itself", transforms, engine)
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


def _exchange(
    old: nn.RNN | nn.GRU | nn.LSTM, path: str, transforms: tuple[Transform, ...], engine: str
) -> RecurrentLayer:
    if parametrize.is_parametrized(old):
        raise ArgumentError(
            where=f"upgrade: {path}",
            got="a parametrized layer",
            wanted="plain weights",
            remedy="Upgrade first and register the parametrization on the new layer, which has the same weight names.",
        )
    options: dict[str, Any] = {
        "input_size": old.input_size,
        "hidden_size": old.hidden_size,
        "num_layers": old.num_layers,
        "bias": old.bias,
        "batch_first": old.batch_first,
        "dropout": old.dropout,
        "bidirectional": old.bidirectional,
        "device": old.weight_ih_l0.device,
        "dtype": old.weight_ih_l0.dtype,
        "transforms": transforms,
        "engine": engine,
    }
    new: RecurrentLayer
    if isinstance(old, nn.LSTM):
        new = LSTM(proj_size=old.proj_size, **options)
    elif isinstance(old, nn.GRU):
        new = GRU(**options)
    else:
        new = RNN(nonlinearity=old.nonlinearity, **options)
    for name, parameter in old.named_parameters():
        setattr(new, name, parameter)  # the very parameter, so that tied weights stay tied
    return new.train(old.training)
