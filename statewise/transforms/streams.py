"""Reproducible randomness: every transform of every layer draws from a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from statewise.native import load_native
from statewise.transforms.counter import normals, uniforms

Fill = Callable[[Tensor, torch.Generator], object]


class Randomness:
    """The one number that a forward pass takes from a generator, and only if something is drawn.

    >>> root = Randomness(torch.Generator().manual_seed(3))
    >>> root.stream(0, 1).seed == root.stream(0, 1).seed != root.stream(1, 0).seed
    True
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        self._generator = generator

    @cached_property
    def root(self) -> int:
        """The number itself, from the generator or from torch's global one."""
        device = torch.device("cpu") if self._generator is None else self._generator.device
        return int(torch.randint(2**62, (), generator=self._generator, device=device))

    def stream(self, *key: int) -> Stream:
        """The stream that belongs to a key, such as (transform, layer, direction)."""
        return Stream(self, key)


@dataclass(frozen=True)
class Stream:
    """The randomness of one transform in one layer and direction.

    What step t draws depends on the generator, on t and on the shape of a step only: not on the number of steps, on
    padding, or on what else the network draws.

    >>> stream = Randomness(torch.Generator().manual_seed(3)).stream(0)
    >>> bool((stream.uniform(torch.empty(5, 2))[:3] == stream.uniform(torch.empty(3, 2))).all())
    True
    """

    randomness: Randomness
    key: tuple[int, ...]

    def child(self, index: int) -> Stream:
        """An independent stream for another tensor of the same transform."""
        return Stream(self.randomness, (*self.key, index))

    @property
    def seed(self) -> int:
        """All parts of the key mixed into 63 bits."""
        value = self.randomness.root
        for part in self.key:
            value = _splitmix(value ^ (part + 1))
        return value >> 1

    def normal(self, out: Tensor, *, mean: float, std: float) -> Tensor:
        """Fill ``out`` (steps, ...) with normal numbers and return it."""
        return self._fill_counted(out, normal=True, mean=mean, std=std)

    def uniform(self, out: Tensor) -> Tensor:
        """Fill ``out`` (steps, ...) with uniform numbers from 0 up to, not including, 1, and return it."""
        return self._fill_counted(out, normal=False, mean=0.0, std=1.0)

    def fill(self, out: Tensor, fill: Fill) -> Tensor:
        """Fill ``out`` (steps, ...) by a sampler of torch's, one step after the other, and return it."""
        if out.is_meta:
            return out  # a shape without numbers has nothing to be drawn
        source = torch.Generator(out.device).manual_seed(self.seed)
        for rows in out:
            fill(rows, source)
        return out

    def _fill_counted(self, out: Tensor, *, normal: bool, mean: float, std: float) -> Tensor:
        if out.is_meta or out.numel() == 0:
            return out
        steps, size = out.shape[0], out[0].numel()
        if out.device.type == "cpu" and out.dtype == torch.float32 and out.is_contiguous() and load_native().available:
            torch.ops.statewise_native.fill_counted(out, self.seed, normal, mean, std)
            return out
        drawn = normals if normal else uniforms
        numbers = drawn(self.seed, steps, size, out.device)
        # In float32 first: then the numbers are the same for every dtype of the network.
        return out.copy_((numbers.mul_(std).add_(mean) if normal else numbers).view_as(out))


def _splitmix(value: int) -> int:
    """One round of SplitMix64 (Steele et al. 2014): neighbouring keys give unrelated seeds in all bits."""
    mask = 2**64 - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)
