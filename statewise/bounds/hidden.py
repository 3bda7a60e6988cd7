"""Whether a module is all that its parameters and buffers say: what else it computes with cannot be described."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: What torch itself keeps in a module besides parameters, buffers and modules.
_TORCHS = ("_parameters", "_buffers", "_modules", "_flat_weights", "_flat_weight_refs")
_MOST = 1000  # entries of a list or a mapping that are looked at
#: Hooks that make a weight from parameters before each call: what they make is described by these.
_KNOWN_HOOKS = ("WeightNorm", "SpectralNorm", "BasePruningMethod", "_RedrawBeforeForward")


def named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """All parameters and buffers of a model, also those that no file of it would hold; each once.

    Args:
        model: any module.

    >>> [name for name, _ in named_tensors(nn.BatchNorm1d(2, affine=False))]
    ['running_mean', 'running_var', 'num_batches_tracked']
    """
    yield from model.named_parameters()
    yield from model.named_buffers()


def why_hidden(model: nn.Module) -> str:
    """What a model computes with besides its parameters and buffers, in words; empty if nothing was found.

    Args:
        model: any module.

    >>> class Table(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.keys = torch.zeros(3)
    >>> why_hidden(Table())
    'Table.keys holds a tensor that is neither parameter nor buffer'
    >>> why_hidden(nn.LSTM(2, 3))
    ''
    """
    for name, module in model.named_modules():
        called = name or type(model).__name__
        kind = type(module)
        if isinstance(module, torch.jit.ScriptModule) or kind.__module__.startswith("torch.ao"):
            return f"{called} keeps weights where they cannot be read"
        if kind.get_extra_state is not nn.Module.get_extra_state:
            return f"{called} has an extra state"
        if hook := _strange_hook(module):
            return f"{called} has a hook, {hook}"
        registered = {id(tensor) for tensor in (*module._parameters.values(), *module._buffers.values())}
        for key, value in vars(module).items():
            if key not in _TORCHS and (held := _held(value, registered, 0)):
                return f"{called}.{key} holds {held} that is neither parameter nor buffer"
    return ""


def _strange_hook(module: nn.Module) -> str:
    hooks: list[Any] = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    for hook in hooks:
        kinds = {kind.__name__ for kind in type(hook).__mro__}
        if not kinds & set(_KNOWN_HOOKS):
            return getattr(hook, "__name__", type(hook).__name__)
    return ""


def _held(value: Any, registered: set[int], depth: int) -> str:
    """What a value holds that a network could compute with; empty if nothing."""
    if isinstance(value, Tensor):
        # One that is registered too, or that was computed from others, such as by a known hook, is described by those.
        return "" if id(value) in registered or value.grad_fn is not None else "a tensor"
    if isinstance(value, np.ndarray):
        return "an array"
    if isinstance(value, nn.Module):
        return "a module"
    if depth < 3 and isinstance(value, list | tuple | set | frozenset):
        return next((held for each in list(value)[:_MOST] if (held := _held(each, registered, depth + 1))), "")
    if depth < 3 and isinstance(value, Mapping):
        return next((held for each in list(value.values())[:_MOST] if (held := _held(each, registered, depth + 1))), "")
    return ""
