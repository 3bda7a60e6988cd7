"""Several processes that train one model, each on its share of the columns."""

from __future__ import annotations

import inspect
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from statewise.errors import ArgumentError

_CPU = torch.device("cpu")

# torch 2.13 has another name for the choice, and warns of the old one.
_RENAMED = "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters
_OWN_BUFFERS: dict[str, Any] = {"forward_sync_buffers" if _RENAMED else "broadcast_buffers": False}


def _default_group() -> None:
    """The group that torch takes for None."""


@dataclass(frozen=True)
class World:
    """Which process this is, of how many, and where its group takes tensors.

    >>> World().first
    True
    """

    rank: int = 0
    size: int = 1
    device: torch.device = _CPU
    # A weak reference: with the last strong one the group's threads end.
    group: Callable[[], dist.ProcessGroup | None] = field(default=_default_group, repr=False)

    @property
    def first(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def wrapped(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model such that all processes see the mean of their gradients."""
        if self.size == 1:
            return model
        ids = [device.index or 0] if device.type == "cuda" else None
        # Masks of weight drop are buffers, and each process has its own, drawn anew in every training step.
        return DistributedDataParallel(model, device_ids=ids, **_OWN_BUFFERS)

    def agreed(self, value: float) -> float:
        """The first process's value, in all processes."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.broadcast(shared, src=0, group=self.group())
        return float(shared)

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.size > 1:
            dist.all_reduce(values, group=self.group())
        return values

    def gathered(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, in the order of their ranks; their shapes must agree."""
        if self.size == 1:
            return [tensor]
        moved = tensor.to(self.device).contiguous()
        parts = [torch.empty_like(moved) for _ in range(self.size)]
        dist.all_gather(parts, moved, group=self.group())
        return [part.to(tensor.device) for part in parts]

    def wait(self) -> None:
        """Go on when all processes have come here."""
        if self.size > 1:
            dist.barrier(group=self.group())


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """The processes that torchrun has started, joined for a while; alone, where it has not.

    A process group that exists already is used and left as it is.

    Args:
        device: where this process computes; NCCL joins CUDA devices, gloo CPUs.

    >>> with joined(torch.device("cpu")) as world:
    ...     world
    World(rank=0, size=1, device=device(type='cpu'))
    """
    if not dist.is_available() or ("RANK" not in os.environ and not dist.is_initialized()):
        yield World()
        return
    ours = not dist.is_initialized()
    group = None
    if ours and device.type == "cuda":
        torch.cuda.set_device(device)  # what the group does without a tensor, it does there
        dist.init_process_group("nccl", device_id=device)
    elif ours:
        dist.init_process_group("gloo")
        # A thread of gloo that still holds a tensor of Python's when the interpreter ends aborts the process. What a
        # DistributedDataParallel has used is never freed; the threads of a group of our own are joined at its end.
        group = dist.new_group()
    try:
        takes = device if dist.get_backend() == "nccl" else _CPU
        yield World(
            dist.get_rank(), dist.get_world_size(), takes, _default_group if group is None else weakref.ref(group)
        )
    finally:
        if ours:
            dist.destroy_process_group()
        group = None


def own_device(device: torch.device) -> torch.device:
    """The device of this process among those that torchrun has started on a machine.

    >>> own_device(torch.device("cpu"))
    device(type='cpu')
    """
    if device.type != "cuda":
        return device
    together = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if device.index is not None and together > 1:
        raise ArgumentError(
            where="device",
            got=f"{device} for {together} processes",
            wanted='"cuda", of which each process takes one',
        )
    if device.index is not None:
        return device
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", torch.cuda.current_device())))
