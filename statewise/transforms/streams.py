"""Reproducible randomness: every transform of every layer draws from a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from statewise.native import load_native

# The steps of a stream are dealt out to this many generators in turn, so that they can be filled in parallel with
# the same result. It is part of what a seed means: changing it changes every drawn tensor.
LANES = 4
_WORTH_THE_CALL = 2**12  # numbers below which several threads save nothing

Fill = Callable[[Tensor, torch.Generator], object]


class Randomness:
    """The one number that a forward pass takes from a generator, and only if something is drawn.

    >>> root = Randomness(torch.Generator().manual_seed(3))
    >>> root.stream(0, 1).seed(lane=0) == root.stream(0, 1).seed(lane=0) != root.stream(1, 0).seed(lane=0)
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

    >>> gaussian = lambda out, generator: out.normal_(generator=generator)
    >>> stream = Randomness(torch.Generator().manual_seed(3)).stream(0)
    >>> bool((stream.fill(torch.empty(5, 2), gaussian)[:3] == stream.fill(torch.empty(3, 2), gaussian)).all())
    True
    """

    randomness: Randomness
    key: tuple[int, ...]

    def child(self, index: int) -> Stream:
        """An independent stream for another tensor of the same transform."""
        return Stream(self.randomness, (*self.key, index))

    def seed(self, *, lane: int) -> int:
        """The seed of one of the generators: all parts of the key mixed into 63 bits."""
        value = self.randomness.root
        for part in (*self.key, lane):
            value = _splitmix(value ^ (part + 1))
        return value >> 1

    def fill(self, out: Tensor, fill: Fill) -> Tensor:
        """Fill ``out`` (steps, ...) in place, one step after the other, and return it."""
        if out.is_meta:
            return out  # a shape without numbers has nothing to be drawn
        sources = [torch.Generator(out.device).manual_seed(seed) for seed in self._seeds()]
        for step, rows in enumerate(out):
            fill(rows, sources[step % LANES])
        return out

    def normal(self, out: Tensor, *, mean: float, std: float) -> Tensor:
        """Fill ``out`` with normal numbers."""
        if self._fill_side_by_side(out, normal=True, mean=mean, std=std):
            return out
        return self.fill(out, lambda rows, source: rows.normal_(mean, std, generator=source))

    def uniform(self, out: Tensor) -> Tensor:
        """Fill ``out`` with uniform numbers from 0 up to, not including, 1."""
        if self._fill_side_by_side(out, normal=False, mean=0.0, std=1.0):
            return out
        return self.fill(out, lambda rows, source: rows.uniform_(generator=source))

    def _seeds(self) -> list[int]:
        return [self.seed(lane=lane) for lane in range(LANES)]

    def _fill_side_by_side(self, out: Tensor, *, normal: bool, mean: float, std: float) -> bool:
        """Fill on several threads with the same numbers, where there is a kernel that can."""
        if out.device.type != "cpu" or out.numel() < _WORTH_THE_CALL or not load_native().available:
            return False
        torch.ops.statewise_native.fill_lanes(out, self._seeds(), normal, mean, std)
        return True


def _splitmix(value: int) -> int:
    """One round of SplitMix64 (Steele et al. 2014): neighbouring keys give unrelated seeds in all bits."""
    mask = 2**64 - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)
