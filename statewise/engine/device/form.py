"""What a kernel is launched with, and what a device has for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

_SHARED_MEMORY = 232_448  # bytes that a program may have on compute capability 9.0
_PROCESSORS = 132


@dataclass(frozen=True)
class Form:
    """A kernel with its tiles.

    Args:
        name: "solo" (a program has all units of its sequences, all steps in one launch), "team" (programs share the
            units, and meet at every step) or "step" (a product of the matrix library and a fused kernel a step).
        units: units of a program.
        sequences: sequences of a program.
        warps: warps of a program.
        reason: why this one.
    """

    name: str
    units: int
    sequences: int
    warps: int
    reason: str

    def __str__(self) -> str:
        return f"{self.name}, {self.units} units x {self.sequences} sequences: {self.reason}"


@dataclass(frozen=True)
class Machine:
    """What a device has of what the kernels need."""

    processors: int
    shared_memory: int

    @classmethod
    def of(cls, device: torch.device) -> Machine:
        """A device's own; a CPU, where kernels are interpreted, is taken for an H100."""
        if device.type != "cuda":
            return cls(_PROCESSORS, _SHARED_MEMORY)
        return _machine(torch.cuda.current_device() if device.index is None else device.index)


@cache
def _machine(index: int) -> Machine:
    found = torch.cuda.get_device_properties(index)
    shared: int = getattr(found, "shared_memory_per_block_optin", _SHARED_MEMORY)
    return Machine(found.multi_processor_count, shared)


def padded(tensor: Tensor, *sizes: int) -> Tensor:
    """The tensor with zeros behind its last dimensions, up to these sizes; itself if it has them already."""
    last = tensor.shape[-len(sizes) :]
    if tuple(last) == sizes:
        return tensor
    wide = tensor.new_zeros(*tensor.shape[: -len(sizes)], *sizes)
    inside: tuple[Any, ...] = (..., *(slice(0, size) for size in last))
    wide[inside] = tensor
    return wide


def rounded(size: int, multiple: int) -> int:
    """The next multiple.

    >>> rounded(650, 16)
    656
    """
    return -(-size // multiple) * multiple


def power_of_two(size: int) -> int:
    """The next one.

    >>> power_of_two(650)
    1024
    """
    return 1 << (size - 1).bit_length()
