"""Mixing a text that is read in segments, as truncated backpropagation does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.mixup.pairs import Pairs
from statewise.mixup.sites import Mixup
from statewise.mixup.states import detached


@dataclass(frozen=True, eq=False)
class Carried:
    """What one segment hands to the next.

    Attributes:
        state: of the pairs, before the output of the sequences; without gradient.
        pairs: of the segment; the next one keeps them, since a mixed state has one partner.
    """

    state: Any
    pairs: Pairs


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
    its partners are drawn anew. In eval mode every text is alone.

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
    state, pairs = (None, None) if carried is None else (carried.state, carried.pairs)
    goes_on = layer.training and pairs is not None and pairs.process is not None and mix.site != "pre_output"
    following = pairs.next(len(inputs), generator=generator) if goes_on and pairs is not None else None
    mixed = mix.run(layer, inputs, state, generator=generator, pairs=following)
    return mixed.output, Carried(detached(mixed.state), mixed.pairs)
