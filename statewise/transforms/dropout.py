"""Dropout of what enters and leaves a layer: fresh at each step, or locked over the sequence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from statewise.transforms.base import Place, SequenceTransform, Sizes, probability
from statewise.transforms.streams import Stream, indicator


def dropout_mask(shape: tuple[int, ...], p: float, stream: Stream, like: Sizes) -> Tensor:
    """Masks with inverted scaling, ``Bernoulli(1 - p) / (1 - p)``, drawn step by step."""
    mask = torch.empty(shape, dtype=like.dtype, device=like.device)
    # Comparing uniform numbers is several times faster than torch's Bernoulli sampler.
    return indicator(stream.uniform(mask), torch.ge, p).div_(1 - p)


@dataclass(frozen=True, repr=False)
class _Dropout(SequenceTransform):
    p: float

    _locked = False
    _before = False

    def __post_init__(self) -> None:
        super().__post_init__()
        probability(f"{type(self).__name__}.p", self.p)

    @property
    def place(self) -> Place:
        return Place.INPUT if self._before else Place.OUTPUT

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        if not training or self.p == 0.0:
            return None
        width = sizes.input if self._before else sizes.hidden
        return (dropout_mask((1 if self._locked else sizes.steps, sizes.batch, width), self.p, stream, sizes),)

    def apply(self, sequence: Tensor, draws: tuple[Tensor, ...]) -> Tensor:
        return sequence * draws[0]


@dataclass(frozen=True, repr=False)
class InputDropout(_Dropout):
    """Dropout on what enters a layer, with fresh masks at every step.

    ``x_t * mask_t``, ``mask ~ Bernoulli(1 - p) / (1 - p)`` (Zaremba et al. 2014). Off in eval mode.

    Args:
        p: probability of dropping a unit.

    >>> InputDropout(0.5, layers=(0,)).acts_on(1, 2)
    False
    """

    _before = True


@dataclass(frozen=True, repr=False)
class OutputDropout(_Dropout):
    """Dropout on what leaves a layer, with fresh masks at every step; it is not fed back.

    ``h_t * mask_t``, ``mask ~ Bernoulli(1 - p) / (1 - p)`` (Zaremba et al. 2014). Off in eval mode.

    Args:
        p: probability of dropping a unit.

    >>> OutputDropout(0.5).p
    0.5
    """


@dataclass(frozen=True, repr=False)
class LockedInputDropout(_Dropout):
    """Variational dropout on what enters a layer: one mask for all steps of a sequence.

    ``x_t * mask`` (Gal & Ghahramani 2016; "locked" in Merity et al. 2018). Off in eval mode.

    Args:
        p: probability of dropping a unit.

    >>> LockedInputDropout(0.4).p
    0.4
    """

    _locked = True
    _before = True


@dataclass(frozen=True, repr=False)
class LockedDropout(_Dropout):
    """Variational dropout on what leaves a layer: one mask for all steps of a sequence; it is not fed back.

    ``h_t * mask`` (Gal & Ghahramani 2016; "locked" in Merity et al. 2018). Off in eval mode.

    Args:
        p: probability of dropping a unit.

    >>> LockedDropout(0.4).p
    0.4
    """

    _locked = True
