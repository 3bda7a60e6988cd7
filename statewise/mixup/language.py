"""Mixing a text that is read in segments, as truncated backpropagation does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ArgumentError
from statewise.mixup.pairs import Pairs
from statewise.mixup.sites import Mixup
from statewise.mixup.states import detached


@dataclass(frozen=True, eq=False)
class Carried:
    """What one segment hands to the next.

    Attributes:
        state: without gradient.
        pairs: of the segment; the next one keeps them where the state is mixed, since such a state has one partner.
        mixed: whether the state is that of the pairs; before the output and in eval mode it is that of the texts.
    """

    state: Any
    pairs: Pairs
    mixed: bool


def run_segment(
    mix: Mixup,
    layer: nn.Module,
    inputs: Float[Tensor, "steps batch width"],
    carried: Carried | None = None,
    *,
    generator: torch.Generator | None = None,
) -> tuple[Float[Tensor, "steps pairs hidden"], Carried]:
    """Run a layer over one segment of parallel texts and mix.

    Mixed inputs and mixing through time carry a mixed state: partners persist, and the chain of coefficients goes on
    from the last one, until a segment is given nothing. Mixing before the output carries the state of every text, so
    its partners are drawn anew. In eval mode every text is alone; a segment in training that follows begins with new
    pairs. A mixed state cannot go on in eval mode, nor before the output: it belongs to no text.

    Args:
        mix: where to mix.
        layer: a recurrent layer, time first.
        inputs: the embedded words of the segment; all texts have all steps.
        carried: what the segment before gave; None at the start of the texts.
        generator: a generator of the CPU; None means torch's global one.

    Returns:
        The output of every pair, and what to give to the next segment: ``carried.pairs.language(logits, targets)`` is
        the loss.

    >>> from statewise.mixup import InputMixup
    >>> layer, carried = nn.GRU(3, 5), None
    >>> for segment in torch.randn(3, 7, 4, 3):
    ...     output, carried = run_segment(InputMixup(rho=0.1), layer, segment, carried)
    >>> carried.pairs
    Pairs('input', pairs=4, steps=7, sequences=4)
    """
    mixes = layer.training and mix.site != "pre_output"
    following = None
    if carried is not None and carried.mixed:
        if not mixes:
            raise ArgumentError(
                where="run_segment.carried",
                got="the state of mixed pairs " + ("before the output" if layer.training else "in eval mode"),
                wanted="the state of every text",
                remedy="Begin with carried=None, and keep what training carries apart from what evaluation does.",
            )
        following = carried.pairs.next(len(inputs), generator=generator)
    state = None if carried is None else carried.state
    found = mix.run(layer, inputs, state, generator=generator, pairs=following)
    return found.output, Carried(detached(found.state), found.pairs, mixes)
