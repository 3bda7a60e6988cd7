"""Tensors whose numbers are whole multiples of one step: rounding to them, and finding out whether one is such."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from statewise.bounds.grid import NORMS

#: The most levels that are looked for: a number of 16 bits. A tensor that needs more is dear as raw bits, too.
MOST = 2**16
#: How many steps the smallest number of a tensor may lie from zero, when the step is not known.
_SMALLEST = 256
#: Of how many numbers a large tensor is tried first. A step that is found for none of them is looked for no further,
#: which may at worst leave a tensor described by more nats than it needs.
_SAMPLE = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantised:
    """A tensor of whole multiples of a step.

    Args:
        integers: int64, in the tensor's shape, from ``-(L // 2)`` to ``-(L // 2) + L - 1``.
        levels: L.
        scale: the step, a number of the tensor's own dtype.
        index: j where the step is ``2^(j/8)`` in that dtype; None where it is any number.
    """

    integers: Tensor
    levels: int
    scale: float
    index: int | None

    def dequantise(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The tensor itself: one multiplication in its dtype for each number.

        >>> round_to_levels(torch.tensor([0.4, -2.0]), levels=3, index=-8).dequantise()
        tensor([ 0.5000, -0.5000])
        """
        return self.integers.to(dtype) * torch.tensor(self.scale, dtype=dtype, device=self.integers.device)


def round_to_levels(tensor: Tensor, *, levels: int, index: int) -> Quantised:
    """The nearest levels of a tensor for a given step ``2^(index/8)``.

    Args:
        tensor: floating.
        levels: L.
        index: j.

    >>> round_to_levels(torch.tensor([0.6, -0.9, 9.0]), levels=4, index=0).integers
    tensor([ 1, -1,  1])
    """
    step = _grid_point(index, tensor.dtype)
    lowest = -(levels // 2)
    # The division is done in the tensor's dtype: training with rounded weights must come to the same integers.
    ratio = tensor.detach() / torch.tensor(step, dtype=tensor.dtype, device=tensor.device)
    integers = ratio.clamp(lowest, lowest + levels - 1).round().to(torch.int64)
    return Quantised(integers=integers, levels=levels, scale=step, index=index)


def find_levels(tensor: Tensor) -> Quantised | None:
    """The coarsest step of which all numbers of a tensor are multiples, exactly; None where there is none.

    A step is right when ``integer * step``, computed in the tensor's dtype, equals the tensor everywhere (a negative
    zero counts as zero, which changes no network's answer). Steps on the grid ``2^(j/8)`` are preferred.

    Args:
        tensor: of any dtype; only floating ones are looked at.

    >>> found = find_levels(2**0.125 * torch.tensor([0.0, 1.0, -2.0]))
    >>> found.integers.tolist(), found.levels, found.index
    ([0, 1, -2], 4, 1)
    """
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return None
    # What some of its numbers do not lie on, all do not: of a large tensor a look at a few is most often enough.
    if tensor.numel() > 2 * _SAMPLE and find_levels(tensor.detach().flatten()[:: tensor.numel() // _SAMPLE]) is None:
        return None
    values = tensor.detach().double().unique()
    if not bool(torch.isfinite(values).all()):
        return None
    sizes = values.abs().unique()
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return Quantised(
            integers=torch.zeros(tensor.shape, dtype=torch.int64, device=tensor.device), levels=2, scale=1.0, index=0
        )
    # The gaps are multiples of the step as well, and the smallest one is most often the step itself; rounding spoils
    # them by some units in the last place of the largest number, which is all right for a guess.
    smallest, largest = float(sizes[0]), float(sizes[-1])
    for multiple in range(1, _SMALLEST + 1):
        guess = smallest / multiple
        if largest / guess > MOST / 2 + 1:
            return None
        ratio = sizes / guess
        slack = 8 * torch.finfo(tensor.dtype).eps * ratio
        if bool(((ratio - ratio.round()).abs() > slack).any()):
            continue
        found = _settle(tensor, guess, sizes, ratio.round())
        if found is not None:
            return found
    return None


def _settle(tensor: Tensor, guess: float, sizes: Tensor, integers: Tensor) -> Quantised | None:
    """The exact step near a guess, on the grid if possible."""
    near = round(NORMS * math.log2(guess))
    if -NORMS * 1000 < near < NORMS * 1000:
        found = _exactly(tensor, _grid_point(near, tensor.dtype), near)
        if found is not None:
            return found
    # integer * step rounds to the number: that leaves an interval of steps for each, and they have to meet.
    reach = torch.finfo(tensor.dtype).eps * sizes
    low, high = ((sizes - reach) / integers).max(), ((sizes + reach) / integers).min()
    step = torch.tensor(0.5 * float(low + high), dtype=tensor.dtype)
    for candidate in (step, torch.nextafter(step, step * 2), torch.nextafter(step, step * 0)):
        found = _exactly(tensor, float(candidate), None)
        if found is not None:
            return found
    return None


def _exactly(tensor: Tensor, step: float, index: int | None) -> Quantised | None:
    if not 0 < step < math.inf:
        return None
    integers = (tensor.detach().double() / step).round().to(torch.int64)
    lowest, highest = int(integers.min()), int(integers.max())
    levels = 2 * max(-lowest, highest) + (1 if -lowest <= highest else 0)
    found = Quantised(integers=integers, levels=max(2, levels), scale=step, index=index)
    return found if bool((found.dequantise(tensor.dtype) == tensor.detach()).all()) else None


def _grid_point(index: int, dtype: torch.dtype) -> float:
    """``2^(j/8)`` in float64, rounded once to the dtype."""
    return float(torch.tensor(2.0 ** (index / NORMS), dtype=torch.float64).to(dtype))
