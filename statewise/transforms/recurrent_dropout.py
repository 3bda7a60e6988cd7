"""Dropout inside the gates: on the input term and on the recurrent term, gate by gate."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from statewise.transforms.base import Place, Sizes, Transform, choice, probability
from statewise.transforms.dropout import dropout_mask
from statewise.transforms.streams import Stream


@dataclass(frozen=True, repr=False)
class RecurrentDropout(Transform):
    """Dropout of the recurrent term of every gate, and of the input term if asked, in the general form.

    ``a_g = W_g (x_t * e^{xg}) + U_g (h_{t-1} * e^{hg}) + b_g`` with ``mask_on="input"``, or
    ``a_g = (W_g x_t) * e^{xg} + (U_g h_{t-1}) * e^{hg} + b_g`` with ``mask_on="projection"``; the masks are
    ``Bernoulli(1 - p) / (1 - p)`` (Dieng et al. 2018, section 5). Semeniuta-style and Zaremba-style dropout are
    special cases; ``locked=True`` is Gal & Ghahramani 2016. Off in eval mode.

    Args:
        p: probability of dropping a unit of the recurrent term.
        input_p: the same for the input term.
        mask_on: "input" masks the vectors, "projection" their products with the weights.
        share_gates: one mask for all gates, or one for each.
        locked: one mask for the whole sequence instead of one for each step.

    >>> RecurrentDropout(0.4, share_gates=False).mask_on
    'input'
    """

    p: float
    input_p: float = field(default=0.0, kw_only=True)
    mask_on: str = field(default="input", kw_only=True)
    share_gates: bool = field(default=True, kw_only=True)
    locked: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        probability("RecurrentDropout.p", self.p)
        probability("RecurrentDropout.input_p", self.input_p)
        choice("RecurrentDropout.mask_on", self.mask_on, ("input", "projection"))

    @property
    def place(self) -> Place:
        return Place.PRODUCT

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        """The masks of the input term and of the recurrent term; an empty last dimension means no mask."""
        if not training or (self.p == 0.0 and self.input_p == 0.0):
            return None
        steps = 1 if self.locked else sizes.steps
        gates = 1 if self.share_gates else sizes.blocks
        input_width = sizes.input if self.mask_on == "input" else sizes.hidden
        # Two streams, so that the mask of one term does not move when the other is switched on.
        for_input, for_state = stream.child(0), stream.child(1)
        return (
            dropout_mask(
                (steps, sizes.batch, gates * input_width * (self.input_p > 0)), self.input_p, for_input, sizes
            ),
            dropout_mask((steps, sizes.batch, gates * sizes.hidden * (self.p > 0)), self.p, for_state, sizes),
        )
