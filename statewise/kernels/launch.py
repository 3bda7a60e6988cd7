"""Launching a kernel many times without looking at everything each time.

Triton examines all arguments and constants at every launch. What can differ between two launches of one walk is only
where the tensors lie, so only that is looked at here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from statewise.kernels.status import load_triton


class Launcher:
    """A kernel with its constants and options.

    Its whole numbers are those that the kernel does not specialise, and below 2^31.

    Args:
        kernel: a function compiled by Triton.
        constants: the values of its constant parameters, which are its last ones, and the options of the launch.
    """

    def __init__(self, kernel: Any, constants: dict[str, Any]) -> None:
        self._kernel, self._constants = kernel, constants
        self._compiled: dict[tuple[Any, ...], Any] = {}
        self._tail: tuple[Any, ...] | None = None

    def __call__(self, grid: tuple[int, ...], *arguments: Any) -> None:
        """Launch it on the current stream of the current device."""
        if load_triton().interpreted:
            self._kernel[grid](*arguments, **self._constants)
            return
        key = (torch.cuda.current_device(), *_looks(arguments))
        compiled = self._compiled.get(key)
        if compiled is None:
            self._compiled[key] = self._kernel[grid](*arguments, **self._constants)
            return
        if self._tail is None:
            self._tail = tuple(self._constants[name] for name in self._kernel.arg_names[len(arguments) :])
        compiled[(*grid, 1, 1)[:3]](*arguments, *self._tail)


def _looks(arguments: tuple[Any, ...]) -> list[Any]:
    """What Triton compiles differently for: the dtype of a tensor, and whether it begins at a multiple of 16 bytes."""
    found: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            found.append((argument.dtype, argument.data_ptr() % 16 == 0))
        elif isinstance(argument, tuple):
            found += _looks(argument)
    return found
