"""Transforms of outputs on a sequence that no layer owns."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.transforms import Place, Randomness, SequenceTransform, Sizes


def apply_outside(
    transforms: Sequence[SequenceTransform],
    sequence: Float[Tensor, "steps batch width"],
    *,
    training: bool,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "steps batch width"]:
    """Apply transforms of outputs to a sequence.

    Args:
        transforms: such as ``Noise(..., placement="last")`` and ``LockedDropout``, in their order.
        sequence: what they change.
        training: whether they act at all.
        generator: source of what they draw; None means torch's global one.

    >>> from statewise.transforms import LockedDropout
    >>> same = apply_outside([LockedDropout(0.5)], torch.ones(2, 1, 3), training=False)
    >>> bool((same == 1).all())
    True
    """
    steps, batch, width = sequence.shape
    sizes = Sizes(steps, batch, width, width, 1, sequence.dtype, sequence.device)
    randomness = Randomness(generator, device=sequence.device)
    for index, transform in enumerate(check_outside(transforms)):
        drawn = transform.draw(sizes, randomness.stream(index), training=training)
        if drawn is not None:
            sequence = transform.apply(sequence, drawn)
    return sequence


def check_outside(
    transforms: Sequence[SequenceTransform], *, where: str = "apply_outside"
) -> tuple[SequenceTransform, ...]:
    """Refuse what does not act on outputs.

    >>> from statewise.transforms import InputDropout
    >>> check_outside([InputDropout(0.5)])
    Traceback (most recent call last):
    statewise.errors.ArgumentError: apply_outside: got InputDropout(0.5), wanted a transform of outputs. ...
    """
    for transform in transforms:
        if not isinstance(transform, SequenceTransform) or transform.place is not Place.OUTPUT:
            raise ArgumentError(
                where=where,
                got=repr(transform),
                wanted="a transform of outputs",
                remedy='Such are LockedDropout, OutputDropout and Noise(..., placement="last").',
            )
    return tuple(transforms)
