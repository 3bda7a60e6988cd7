"""Weight drop: DropConnect on the recurrent matrices, one mask for the whole sequence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError, ShapeError

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class WeightDrop(nn.Module):
    """Drops entries of a weight while training; the raw matrix is the parameter.

    ``W = V * M``, ``M_ij ~ Bernoulli(1 - p) / (1 - p)``; ``W = V`` in eval mode.

    Wan et al. 2013 (DropConnect); Merity et al. 2018 (on hidden-to-hidden weights, one mask a mini-batch, shared over
    time); used by Dieng et al. 2018, Table 5.

    A parametrization runs whenever its weight is read, perhaps several times a call, so it must not draw. The mask is
    drawn by :meth:`redraw` and then holds until the next one; before the first, the weight is not dropped. statewise's
    layers redraw at the start of each training call; for other modules :func:`weight_drop` adds a hook that does.
    Inside ``parametrize.cached()`` redraw before the weight is first read.

    Shapes: V, M and W are the weight's own.

    Args:
        p: probability that an entry is dropped, in [0, 1).

    >>> drop = WeightDrop(p=0.5)
    >>> drop.redraw((2, 3), generator=torch.Generator().manual_seed(0))
    >>> sorted(set(drop(torch.ones(2, 3)).flatten().tolist()))
    [0.0, 2.0]
    >>> drop.eval()(torch.ones(2, 3)).unique().item()
    1.0
    """

    mask: Tensor | None

    def __init__(self, *, p: float) -> None:
        super().__init__()
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p < 1:
            raise ArgumentError(
                where="WeightDrop.p", got=p, wanted="a probability in [0, 1)", remedy="Use 0 to drop nothing."
            )
        self.p = p
        self.weight_shape: torch.Size | None = None
        self.register_buffer("mask", None, persistent=False)

    def redraw(
        self,
        shape: tuple[int, ...],
        *,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Draw the mask that holds from now on.

        Args:
            shape: of the weight.
            generator: source of the mask; it is drawn on the generator's device and moved.
            device: of the weight.
            dtype: of the weight.
        """
        keep = 1 - self.p
        source = device if generator is None else generator.device
        # Always drawn in float32, so that one seed drops the same entries in every dtype.
        # Comparing uniform numbers is several times faster than torch's Bernoulli sampler.
        mask = torch.empty(shape, device=source, dtype=torch.float32).uniform_(generator=generator).lt_(keep)
        # Scaled after the cast: 1 / keep rounded to float32 would bias a float64 weight.
        self.mask = mask.to(device=device, dtype=dtype or torch.get_default_dtype()).div_(keep)

    def forward(self, raw: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The weight with the present mask, in training mode; else the raw weight."""
        if not self.training or self.mask is None:
            return raw
        if self.mask.shape != raw.shape:
            raise ShapeError(
                where="WeightDrop mask",
                got=f"shape {tuple(self.mask.shape)}",
                wanted=f"the weight's {tuple(raw.shape)}",
                remedy="Redraw with the weight's shape.",
            )
        return raw * self.mask

    def right_inverse(self, weight: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The weight itself becomes the raw matrix."""
        # Registration passes here: the one time that a parametrization sees its weight without computing it.
        self.weight_shape = weight.shape
        # A copy, since torch's parametrize makes the parameter share the memory of what it gets here.
        return weight.clone()

    def extra_repr(self) -> str:
        return f"p={self.p}"


def weight_drop(
    module: ModuleT,
    names: str | Iterable[str],
    *,
    p: float = 0.5,
    every_forward: bool | None = None,
    generator: torch.Generator | None = None,
) -> ModuleT:
    """Put :class:`WeightDrop` on weights of a module; returns the module.

    ``W = V * M``, ``M_ij ~ Bernoulli(1 - p) / (1 - p)`` (Merity et al. 2018).

    Args:
        module: the module that owns the weights.
        names: one weight or several, e.g. ``"weight_hh_l0"``.
        p: probability that an entry is dropped, in [0, 1).
        every_forward: redraw the masks before each call of the module in training mode, by a forward hook. By default
            for all modules but statewise's layers, which redraw by themselves.
        generator: source of the masks with ``every_forward``.

    >>> lstm = weight_drop(nn.LSTM(3, 4), "weight_hh_l0", p=0.5)
    >>> _ = lstm(torch.zeros(2, 1, 3))
    >>> bool((lstm.weight_hh_l0 == 0).any())
    True
    """
    if every_forward is None:
        every_forward = not getattr(module, "redraws_weight_drop", False)
    if generator is not None and not every_forward:
        raise ArgumentError(
            where="weight_drop.generator",
            got="a generator",
            wanted="every_forward=True with it",
            remedy="Without the hook, give the generator to redraw_weight_drop.",
        )
    for name in [names] if isinstance(names, str) else list(names):
        if not isinstance(getattr(module, name, None), Tensor):
            known = [found for found, _ in module.named_parameters(recurse=False)]
            raise ArgumentError(where=f"{type(module).__name__}.{name}", got="no such weight", wanted=f"one of {known}")
        parametrize.register_parametrization(module, name, WeightDrop(p=p))
    if every_forward:
        module.register_forward_pre_hook(_RedrawBeforeForward(generator))
    return module


def weight_drop_masks(module: nn.Module) -> dict[str, Tensor]:
    """The present masks of every weight drop in a module and its children, by the path of the parametrization.

    >>> cell = weight_drop(nn.RNNCell(3, 4), "weight_hh", p=0.5)
    >>> redraw_weight_drop(cell)
    >>> list(weight_drop_masks(cell))
    ['parametrizations.weight_hh.0']
    """
    drops = ((path, part) for path, part in module.named_modules() if isinstance(part, WeightDrop))
    return {path: drop.mask for path, drop in drops if drop.mask is not None}


def restore_weight_drop(module: nn.Module, masks: dict[str, Tensor]) -> None:
    """Put masks back that :func:`weight_drop_masks` gave, to repeat a pass.

    >>> cell = weight_drop(nn.RNNCell(3, 4), "weight_hh", p=0.5)
    >>> redraw_weight_drop(cell)
    >>> masks, weight = weight_drop_masks(cell), cell.weight_hh
    >>> redraw_weight_drop(cell)
    >>> restore_weight_drop(cell, masks)
    >>> bool((cell.weight_hh == weight).all())
    True
    """
    for path, mask in masks.items():
        drop = module.get_submodule(path)
        if isinstance(drop, WeightDrop):
            drop.mask = mask


def redraw_weight_drop(module: nn.Module, generator: torch.Generator | None = None) -> None:
    """Draw new masks for every weight drop in a module and its children, in order; none in eval mode.

    Args:
        module: a layer or a whole model.
        generator: source of the masks.

    >>> cell = weight_drop(nn.RNNCell(3, 4), "weight_hh", p=0.5)
    >>> redraw_weight_drop(cell, torch.Generator().manual_seed(0))
    >>> bool((cell.weight_hh == 0).any())
    True
    """
    for parametrizations in module.modules():
        if not isinstance(parametrizations, parametrize.ParametrizationList):
            continue
        for drop in parametrizations:
            if isinstance(drop, WeightDrop) and drop.training and drop.weight_shape is not None:
                raw = next(parametrizations.parameters(recurse=False), None)
                like = raw if raw is not None else next(parametrizations.buffers(recurse=False))
                drop.redraw(drop.weight_shape, generator=generator, device=like.device, dtype=like.dtype)


class _RedrawBeforeForward:
    """A forward hook as a class, so that a module which carries it can be pickled and copied."""

    def __init__(self, generator: torch.Generator | None) -> None:
        self.generator = generator

    def __call__(self, module: nn.Module, arguments: Any) -> None:
        redraw_weight_drop(module, self.generator)
