"""Reproducible randomness: every transform of every layer draws from a stream of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from statewise.kernels import load_triton, traced, transformed
from statewise.native import load_native, operators
from statewise.transforms.counter import mixed, mixed_seed, seed_of
from statewise.transforms.recipes import Kind, Recipe, numbers

_CPU = torch.device("cpu")


class Randomness:
    """The one number that a forward pass takes from a generator, and only if something is drawn.

    >>> root = Randomness(torch.Generator().manual_seed(3))
    >>> one, same, other = (root.stream(*key).uniform(torch.empty(1, 5)) for key in ((0, 1), (0, 1), (1, 0)))
    >>> torch.equal(one, same), torch.equal(one, other)
    (True, False)
    """

    def __init__(self, generator: torch.Generator | None = None, *, device: torch.device = _CPU) -> None:
        """Take the number later, from a generator or from the global one of a device.

        Args:
            generator: where the number comes from; None means torch's global generator.
            device: where the numbers are drawn; a CUDA device keeps the root, and nothing waits for it.
        """
        self._generator = generator
        self._device = device
        self._root: int | Tensor | None = None

    @property
    def root(self) -> int | Tensor:
        """The number itself: a tensor on a CUDA device and under torch.func's transforms, else an int."""
        if self._root is None:
            self._root = self._take()
        return self._root

    def _take(self) -> int | Tensor:
        source = self._device if self._generator is None else self._generator.device
        stays = source.type == "cuda"
        if self._generator is None and not stays:
            source = _CPU
        if traced() and not transformed() and self._generator is None and source.type == "cpu":
            # A compiler would draw other numbers, or these twice; see the operator for what it takes.
            drawn: Tensor = torch.ops.statewise.draw_root(torch.empty(()))
            return drawn
        root = torch.randint(2**62, (), generator=self._generator, device=source)
        return root if stays or transformed() else int(root)

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

    def normal(self, out: Tensor, *, mean: float, std: float) -> Tensor:
        """Fill ``out`` (steps, ...) with normal numbers and return it; under torch.func's transforms, a new tensor."""
        return self.draw(out, Recipe.of(Kind.NORMAL, scale=std, shift=mean))

    def uniform(self, out: Tensor) -> Tensor:
        """The same with uniform numbers from 0 up to, not including, 1."""
        return self.draw(out, Recipe.of(Kind.UNIFORM))

    def draw(self, out: Tensor, recipe: Recipe) -> Tensor:
        """The same with numbers of any law, made in float32 for every dtype.

        >>> stream = Randomness(torch.Generator().manual_seed(3)).stream(0)
        >>> stream.draw(torch.empty(2, 300), Recipe.gamma(0.5)).shape
        torch.Size([2, 300])
        """
        if out.is_meta or out.numel() == 0:
            return out
        root = self.randomness.root
        if traced() and isinstance(root, Tensor) and root.device.type == "cpu":
            single: Tensor = torch.ops.statewise.draw(root, self.key, out.shape, *recipe)
            return single.to(out.dtype)
        if not transformed():
            return _filled(out, root, self.key, recipe)
        like = (tuple(out.shape), out.dtype, out.device)  # `out` itself cannot hold replicas
        if isinstance(root, int):
            return _filled(_empty(*like), root, self.key, recipe)
        drawn: Tensor = _Replicated.apply(root, self.key, *like, recipe)  # type: ignore[no-untyped-call]
        return drawn


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=device)


def _filled(out: Tensor, root: int | Tensor, key: tuple[int, ...], recipe: Recipe) -> Tensor:
    """A tensor filled with the numbers of a recipe, by whatever is there to make them: they have the same bits."""
    if not out.is_contiguous():
        return out.copy_(_filled(torch.empty_like(out, memory_format=torch.contiguous_format), root, key, recipe))
    if isinstance(root, Tensor) and load_triton().available and load_triton().device == out.device.type:
        return _fill_by_kernel(out, root.to(out.device), key, recipe)
    if out.device.type == "cpu" and load_native().available:
        # In float32 first: then the numbers are the same for every dtype of the network.
        narrow = out if out.dtype == torch.float32 else torch.empty_like(out, dtype=torch.float32)
        operators.fill_counted(narrow, mixed_seed(int(root), key), *recipe)
        return out if narrow is out else out.copy_(narrow)
    seed = seed_of(root.to(out.device), key) if isinstance(root, Tensor) else mixed_seed(root, key)
    return out.copy_(numbers(recipe, seed, out.shape[0], out.shape[1:].numel(), out.device).view(out.shape))


def _fill_by_kernel(out: Tensor, root: Tensor, key: tuple[int, ...], recipe: Recipe) -> Tensor:
    from statewise.kernels.fill import MOST_PARTS, fill_counted

    early = max(0, len(key) - MOST_PARTS)
    return fill_counted(out, mixed(root, key[:early]), key[early:], **recipe._asdict())


def _draw(root: Tensor, key: Sequence[int], shape: Sequence[int], *recipe: Any) -> Tensor:
    return _filled(_empty(tuple(shape), torch.float32, root.device), int(root), tuple(key), Recipe(*recipe))


def _register() -> None:
    """Let torch's compiler and exporter see draws on a CPU as operators of ``torch.library``."""
    options: dict[str, Any] = {"mutates_args": (), "device_types": "cpu"}
    recipe = "int kind, float scale, float shift, int bound, float[] shapes"
    schema = f"(Tensor root, int[] key, SymInt[] shape, {recipe}) -> Tensor"
    draw = torch.library.custom_op("statewise::draw", _draw, schema=schema, **options)
    draw.register_fake(lambda root, key, shape, *recipe: torch.empty(*shape, device=root.device))
    draw.register_vmap(lambda info, dims, *given: _for_each_root(draw, dims[0], *given))
    # The compiler takes calls with equal arguments for one, so each gets a blank of its own, which it tells apart; from
    # its device a checkpoint knows which generator to set back.
    operator = torch.library.custom_op(
        "statewise::draw_root",
        lambda blank: torch.randint(2**62, (), device=blank.device),
        schema="(Tensor blank) -> Tensor",
        tags=(torch.Tag.nondeterministic_seeded,),
        **options,
    )
    operator.register_fake(lambda blank: torch.empty((), dtype=torch.int64, device=blank.device))


_register()


def _for_each_root(draw: Callable[..., Tensor], dim: int, root: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """The draws of all replicas, and the dimension that they have there."""
    return torch.stack([draw(one, *rest) for one in root.movedim(dim, 0).unbind()]), 0


class _Replicated(torch.autograd.Function):
    """A drawn tensor that ``vmap`` can see through: each replica has a root of its own."""

    @staticmethod
    def forward(
        root: Tensor,
        key: tuple[int, ...],
        shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
        recipe: Recipe,
    ) -> Tensor:
        return _filled(_empty(shape, dtype, device), root if root.is_cuda else int(root), key, recipe)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], root: Tensor, *rest: Any) -> tuple[Tensor, int]:
        # Through `apply` again, since a root may hold the replicas of an outer vmap too.
        return _for_each_root(_Replicated.apply, dims[0], root, *rest)


def indicator(numbers: Tensor, holds: Callable[..., Tensor], bound: float) -> Tensor:
    """1 where a comparison with a bound holds and 0 elsewhere, in place of the numbers where that is possible.

    >>> indicator(torch.tensor([0.2, 0.7]), torch.ge, 0.5)
    tensor([0., 1.])
    """
    if transformed() or traced():
        return holds(numbers, bound).to(numbers.dtype)  # vmap compares in place one replica after the other
    return holds(numbers, bound, out=numbers)
