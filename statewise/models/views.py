"""Views of a model: the same tensors, but modes and settings of their own."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def view_of(module: Module) -> Module:
    """A module of the same class that shares all parameters and buffers, but has its own mode and attributes.

    What is changed in place (an optimiser's step, loading weights) is seen by both. Switching the view to eval mode, or
    giving it another transform, leaves the original alone, so other threads may go on with it.

    >>> original = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    >>> view = view_of(original).eval()
    >>> original[1].training, view[1].training, view[0].weight is original[0].weight
    (True, False, True)
    """
    # copy.copy would share the dictionaries, and torch refuses it for parametrized modules.
    view = object.__new__(type(module))
    view.__dict__.update(module.__dict__)
    for name in ("_parameters", "_buffers"):
        view.__dict__[name] = dict(module.__dict__[name])
    view.__dict__["_modules"] = {
        name: None if child is None else view_of(child) for name, child in module.__dict__["_modules"].items()
    }
    return view


def resting_view(module: Module) -> Module:
    """A view in eval mode; the module's own mode stays as it is, also for other threads.

    >>> layer = nn.Dropout()
    >>> resting_view(layer).training, layer.training
    (False, True)
    """
    return view_of(module).eval()
