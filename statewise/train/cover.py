"""The size of the class around a network as a callback: what a certificate will cost is a term of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from statewise.bounds.penalty import refuse_uncovered, smallest_class, smooth_cover_nats
from statewise.train.callbacks import Callback
from statewise.train.settings import check_number


@dataclass(frozen=True, kw_only=True)
class CoverPenalty(Callback):
    """Adds to the loss what the class around the network costs a certificate, for each sequence.

    ``strength · Σ_k P_k softplus(ln 2B_k + ln L_k - ln(π_k γ / 2√2)) / m``, with the norms B_k and the Lipschitz
    constants L_k of the network of now; see :func:`~statewise.bounds.penalty.smooth_cover_nats`. With strength 1 a nat
    of the class weighs as much as a nat of the loss of one sequence.

    Args:
        strength: the factor in front.
        sequences: m, how many the certificate will be about: those that are trained on.
        steps: of the longest of them, start and end tokens not counted.
        gamma: the margin that the network is meant to keep.
        input_bound: the greatest length of an input; None where inputs are tokens.

    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(cell="rnn", hidden=4, readout="h").build(features=3, classes=2)
    >>> penalty = CoverPenalty(strength=0.1, sequences=1000, steps=20, input_bound=1.0).penalty(model)
    >>> 0.0 < penalty.item() < 0.1
    True
    """

    kind: ClassVar[str] = "cover penalty"
    strength: float
    sequences: int
    steps: int
    gamma: float = 1.0
    input_bound: float | None = None

    def __post_init__(self) -> None:
        check_number("CoverPenalty.strength", self.strength, zero=True)
        for name in ("sequences", "steps"):
            check_number(f"CoverPenalty.{name}", getattr(self, name), whole=True)
        check_number("CoverPenalty.gamma", self.gamma)
        if self.input_bound is not None:
            check_number("CoverPenalty.input_bound", self.input_bound)

    def check(self, model: nn.Module) -> None:
        refuse_uncovered(model, where="CoverPenalty")
        smallest_class(model, steps=self.steps, input_bound=self.input_bound)

    def penalty(self, model: nn.Module) -> Tensor:
        nats = smooth_cover_nats(model, steps=self.steps, gamma=self.gamma, input_bound=self.input_bound)
        return self.strength / self.sequences * nats
