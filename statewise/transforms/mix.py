"""Through-time mixup: two sequences share one state."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, DeviceError, DtypeError, LengthError, ShapeError
from statewise.transforms.base import Place, Sizes, Transform
from statewise.transforms.streams import Stream


@dataclass(frozen=True)
class Pairing:
    """Which rows of a batch are mixed, and how strongly at each step.

    Args:
        partner: for every row of the batch the index of its partner, shape (batch,).
        coefficients: the weight of the row itself, in [0, 1]; shape (steps, batch) or (batch,) for constant ones.

    >>> Pairing(torch.tensor([1, 0]), torch.tensor([0.9, 0.5])).coefficients.shape
    torch.Size([1, 2])
    """

    partner: Int[Tensor, " batch"]
    coefficients: Float[Tensor, "*steps batch"]

    def __post_init__(self) -> None:
        partner, coefficients = self.partner, self.coefficients
        for name, value in (("partner", partner), ("coefficients", coefficients)):
            if not isinstance(value, Tensor):
                raise DtypeError(where=f"Pairing.{name}", got=type(value).__name__, wanted="a tensor")
        if not coefficients.is_floating_point():
            raise DtypeError(where="Pairing.coefficients", got=str(coefficients.dtype), wanted="real numbers")
        if partner.ndim != 1 or partner.dtype not in (torch.int32, torch.int64):
            raise DtypeError(
                where="Pairing.partner",
                got=f"{partner.dtype} of shape {tuple(partner.shape)}",
                wanted="an integer vector with one index for each row",
            )
        size = len(partner)
        if coefficients.ndim not in (1, 2) or coefficients.shape[-1] != size:
            raise ShapeError(
                where="Pairing.coefficients",
                got=tuple(coefficients.shape),
                wanted=f"({size},) or (steps, {size}), time first",
            )
        if not (partner.is_meta or coefficients.is_meta):
            self._check_values(partner, coefficients)
        if coefficients.ndim == 1:
            object.__setattr__(self, "coefficients", coefficients[None])

    @staticmethod
    def _check_values(partner: Tensor, coefficients: Tensor) -> None:
        if bool(((partner < 0) | (partner >= len(partner))).any()):
            wanted = f"indices from 0 to {len(partner) - 1}"
            raise ArgumentError(where="Pairing.partner", got=partner.tolist(), wanted=wanted)
        outside = coefficients[~((coefficients >= 0) & (coefficients <= 1))]
        if len(outside):
            raise ArgumentError(where="Pairing.coefficients", got=float(outside[0]), wanted="numbers from 0 to 1")

    def check(self, *, steps: int, lengths: list[int], device: torch.device) -> None:
        """Refuse a pairing that does not fit the batch, above all pairs of unequal length."""
        if len(self.partner) != len(lengths):
            raise ShapeError(where="Pairing.partner", got=len(self.partner), wanted=f"{len(lengths)} rows")
        if self.coefficients.shape[0] not in (1, steps):
            raise ShapeError(
                where="Pairing.coefficients", got=tuple(self.coefficients.shape), wanted=f"1 or {steps} steps"
            )
        if self.partner.device != device or self.coefficients.device != device:
            raise DeviceError(
                where="Pairing",
                got=f"{self.partner.device} and {self.coefficients.device}",
                wanted=str(device),
                remedy="Move it to the input's device.",
            )
        for row, other in enumerate(self.partner.tolist()):
            if lengths[row] != lengths[other]:
                raise LengthError(
                    where="Pairing",
                    got=f"row {row} of length {lengths[row]} with row {other} of length {lengths[other]}",
                    wanted="partners of equal length",
                    remedy="Pad the shorter one with zeros, or pair within lengths.",
                )


@dataclass(frozen=True, repr=False)
class ThroughTimeMix(Transform):
    """Mixes the states that two paired sequences reach from one shared state.

    ``s_t = lambda_t f(x_t, s_{t-1}) + (1 - lambda_t) f(x'_t, s_{t-1})`` where ``s`` is ``h``, and ``(h, c)`` for an
    LSTM (Karamzade et al. 2020, through-time mixup). It acts in training mode, on calls that give the layer
    ``pairing=``; row b of the outputs then belongs to row b mixed with its partner. The recurrent product is shared
    by the two, so it costs little more than the plain recurrence.

    It replaces the cell application, so it comes before all state transforms. In a stack it belongs to one layer:
    the layers below run on each sequence, those above on the mixed one.

    Args:
        layers: the one layer that mixes, by default the first.

    >>> ThroughTimeMix().layers
    (0,)
    """

    layers: tuple[int, ...] | None = (0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers is None or len(self.layers) != 1:
            raise ArgumentError(
                where="ThroughTimeMix.layers",
                got=self.layers,
                wanted="one layer, such as (0,)",
                remedy="Above the mixing layer both members have the same input, so mixing again does nothing.",
            )

    @property
    def place(self) -> Place:
        return Place.TRANSITION

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        """Nothing is drawn here: partners and coefficients are needed by the loss, so the caller gives them."""
        return None
