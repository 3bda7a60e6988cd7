"""Reproducible randomness: every transform of every layer draws from a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from statewise.errors import EngineError
from statewise.kernels import load_triton
from statewise.native import load_native
from statewise.transforms.counter import mixed, normals, seed_of, uniforms

Fill = Callable[[Tensor, torch.Generator], object]
_CPU = torch.device("cpu")


class _Counted(NamedTuple):
    """Which of the two counted laws, and its moments if normal."""

    normal: bool
    mean: float = 0.0
    std: float = 1.0


class Randomness:
    """The one number that a forward pass takes from a generator, and only if something is drawn.

    >>> root = Randomness(torch.Generator().manual_seed(3))
    >>> root.stream(0, 1).seed == root.stream(0, 1).seed != root.stream(1, 0).seed
    True
    """

    def __init__(self, generator: torch.Generator | None = None, *, device: torch.device = _CPU) -> None:
        """Take the number later, from a generator or from the global one of a device.

        Args:
            generator: where the number comes from; None means torch's global generator.
            device: where the numbers are drawn; a CUDA device keeps the root, and nothing waits for it.
        """
        self._generator = generator
        self._device = device

    @cached_property
    def root(self) -> int | Tensor:
        """The number itself: a tensor on a CUDA device and under torch.func's transforms, else an int."""
        source = self._device if self._generator is None else self._generator.device
        stays = source.type == "cuda"
        if self._generator is None and not stays:
            source = _CPU
        root = torch.randint(2**62, (), generator=self._generator, device=source)
        return root if stays or _transformed() else int(root)

    @cached_property
    def number(self) -> int:
        """The root on the host, which waits for an accelerator."""
        root = self.root
        if isinstance(root, Tensor) and root.is_cuda and torch.cuda.is_current_stream_capturing():
            raise _refusal("a CUDA graph under capture", "a law whose numbers the device makes by itself")
        try:
            return int(root)
        except RuntimeError as error:
            if not _transformed():
                raise
            raise _refusal("vmap with randomness='different'", "a law whose replicas can differ") from error

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
        value = self.randomness.number
        for part in self.key:
            value = _splitmix(value ^ (part + 1))
        return value >> 1

    def normal(self, out: Tensor, *, mean: float, std: float) -> Tensor:
        """Fill ``out`` (steps, ...) with normal numbers and return it; under torch.func's transforms, a new tensor."""
        return self._fill_counted(out, _Counted(True, mean, std))

    def uniform(self, out: Tensor) -> Tensor:
        """The same with uniform numbers from 0 up to, not including, 1."""
        return self._fill_counted(out, _Counted(False))

    def fill(self, out: Tensor, fill: Fill) -> Tensor:
        """Fill ``out`` (steps, ...) by a sampler of torch's, one step after the other, and return it."""
        if out.is_meta:
            return out  # a shape without numbers has nothing to be drawn
        seed = self.seed  # first, since what refuses it says what to do instead
        source = torch.Generator(out.device).manual_seed(seed)
        for rows in out:
            fill(rows, source)
        return out

    def _fill_counted(self, out: Tensor, law: _Counted) -> Tensor:
        if out.is_meta or out.numel() == 0:
            return out
        root = self.randomness.root
        kernel = isinstance(root, Tensor) and load_triton().available and load_triton().device == out.device.type
        if _transformed():  # `out` cannot hold replicas
            if kernel and out.device.type == "cuda":
                drawn: Tensor = _Replicated.apply(root, self.key, tuple(out.shape), out.dtype, law)  # type: ignore[no-untyped-call]
                return drawn
            return self._counted(out, law).to(out.dtype)
        if not out.is_contiguous():
            return out.copy_(self._fill_counted(torch.empty_like(out, memory_format=torch.contiguous_format), law))
        if kernel and isinstance(root, Tensor):
            return _fill_by_kernel(out, root.to(out.device), self.key, law)
        if out.device.type == "cpu" and out.dtype == torch.float32 and load_native().available:
            torch.ops.statewise_native.fill_counted(out, self.seed, *law)
            return out
        # In float32 first: then the numbers are the same for every dtype of the network.
        return out.copy_(self._counted(out, law))

    def _counted(self, out: Tensor, law: _Counted) -> Tensor:
        """The numbers that belong into a tensor, in float32, made by torch's operations."""
        root = self.randomness.root
        seed = seed_of(root.to(out.device), self.key) if isinstance(root, Tensor) else self.seed
        drawn = normals if law.normal else uniforms
        numbers = drawn(seed, out.shape[0], out.shape[1:].numel(), out.device)
        return (numbers.mul_(law.std).add_(law.mean) if law.normal else numbers).view(out.shape)


def _fill_by_kernel(out: Tensor, root: Tensor, key: tuple[int, ...], law: _Counted) -> Tensor:
    from statewise.kernels.fill import MOST_PARTS, fill_counted

    early = max(0, len(key) - MOST_PARTS)
    return fill_counted(out, mixed(root, key[:early]), key[early:], **law._asdict())


class _Replicated(torch.autograd.Function):
    """A drawn tensor that ``vmap`` can see through: each replica has a root of its own."""

    @staticmethod
    def forward(
        root: Tensor, key: tuple[int, ...], shape: tuple[int, ...], dtype: torch.dtype, law: _Counted
    ) -> Tensor:
        return _fill_by_kernel(torch.empty(shape, dtype=dtype, device=root.device), root, key, law)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], root: Tensor, *rest: Any) -> tuple[Tensor, int]:
        roots = root.movedim(dims[0], 0).contiguous()
        return torch.stack([_Replicated.forward(one, *rest) for one in roots.unbind()]), 0


def indicator(numbers: Tensor, holds: Callable[..., Tensor], bound: float) -> Tensor:
    """1 where a comparison with a bound holds and 0 elsewhere, in place of the numbers where that is possible.

    >>> indicator(torch.tensor([0.2, 0.7]), torch.ge, 0.5)
    tensor([0., 1.])
    """
    if _transformed():
        return holds(numbers, bound).to(numbers.dtype)  # vmap compares in place one replica after the other
    return holds(numbers, bound, out=numbers)


def _transformed() -> bool:
    """Whether this runs inside a transform of torch.func."""
    return bool(torch._C._are_functorch_transforms_active())


def _refusal(got: str, wanted: str) -> EngineError:
    return EngineError(
        where="Stream.fill",
        got=f"a draw by a sampler of torch's in {got}",
        wanted=wanted,
        remedy="Gaussian noise, dropout and zoneout can be drawn there; others before it, with layer.draw(input).",
    )


def _splitmix(value: int) -> int:
    """One round of SplitMix64 (Steele et al. 2014): neighbouring keys give unrelated seeds in all bits."""
    mask = 2**64 - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)
