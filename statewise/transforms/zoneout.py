"""Zoneout: units that keep their old value for a step."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from statewise.transforms.base import Sizes, StateChange, StateTransform, probability
from statewise.transforms.streams import Stream, indicator


@dataclass(frozen=True, repr=False)
class Zoneout(StateTransform):
    """Each unit keeps its previous value with a given probability.

    ``h_t = m h_{t-1} + (1 - m) u_t``, ``m ~ Bernoulli(p)``; in eval mode ``m`` is its mean ``p``
    (Krueger et al. 2017, eqs. 4-5). The memory of an LSTM has a probability of its own.

    Args:
        p: probability that a unit of the state keeps its value.
        memory: the same for the memory ``c``; only the LSTM family has one.

    >>> Zoneout(0.1, memory=0.5).p
    0.1
    """

    p: float
    memory: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        probability("Zoneout.p", self.p)
        probability("Zoneout.memory", self.memory)

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        """The masks of the state and of the memory; in eval mode their means, constant in time."""
        if self.p == 0.0 and self.memory == 0.0:
            return None
        shape = (sizes.steps if training else 1, sizes.batch, sizes.hidden)
        masks = []
        for part, p in enumerate((self.p, self.memory)):
            keep = torch.full(shape, p, dtype=sizes.dtype, device=sizes.device)
            masks.append(indicator(stream.child(part).uniform(keep), torch.lt, p) if training else keep)
        return tuple(masks)

    def forward(
        self,
        state: Tensor,
        memory: Tensor | None,
        previous: tuple[Tensor, Tensor | None],
        draws: tuple[Tensor, ...],
        parameters: tuple[Tensor, ...],
    ) -> StateChange:
        # Masks that were drawn before autocast are wider than the state.
        keep_state, keep_memory = (mask.to(state.dtype) for mask in draws)
        old_state, old_memory = previous
        state = keep_state * old_state + (1 - keep_state) * state
        if memory is not None and old_memory is not None:
            memory = keep_memory * old_memory + (1 - keep_memory) * memory
        return StateChange(state, memory)
