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
    """Which sequences of a batch are mixed, how strongly at each step, for how long, and in which layer.

    Pair p is made of the sequences ``first[p]`` and ``partner[p]``. The layers below the mixing one run on each
    sequence of the batch, the mixing one and those above on the pairs: outputs, and states given back, are the pairs'.
    A member that has ended is the zero vector, which goes through the input weights and the cell as any other.

    Indices and lengths are kept on the CPU; where they come from there, nothing waits for a device.

    Args:
        partner: for every pair the index of its second member, shape (pairs,).
        coefficients: the weight of the first member, in [0, 1]; shape (steps, pairs) or (pairs,) for constant ones; on
            the CPU or the input's device. Their values are checked on the CPU only: elsewhere that would be to wait.
        first: the index of the first member; None for the sequence of the pair's own number, as many as the batch has.
        lengths: how many steps each pair has; None for as many as its longer member.
        layer: which layer of the stack mixes; None for the one that its :class:`ThroughTimeMix` names. With a number
            a layer needs no such transform.

    >>> Pairing(torch.tensor([1, 0]), torch.tensor([0.9, 0.5])).coefficients.shape
    torch.Size([1, 2])
    """

    partner: Int[Tensor, " pairs"]
    coefficients: Float[Tensor, "*steps pairs"]
    first: Int[Tensor, " pairs"] | None = None
    lengths: Int[Tensor, " pairs"] | None = None
    layer: int | None = None

    def __post_init__(self) -> None:
        for name in ("partner", "first", "lengths"):
            value = getattr(self, name)
            if value is not None or name == "partner":
                object.__setattr__(self, name, self._read_integers(name, value))
        self._check_coefficients()
        if self.coefficients.ndim == 1:
            object.__setattr__(self, "coefficients", self.coefficients[None])
        if self.layer is not None and (isinstance(self.layer, bool) or not isinstance(self.layer, int)):
            raise DtypeError(where="Pairing.layer", got=type(self.layer).__name__, wanted="an integer or None")
        if self.layer is not None and self.layer < 0:
            raise ArgumentError(where="Pairing.layer", got=self.layer, wanted="a layer, counted from 0")

    def _read_integers(self, name: str, value: Tensor) -> Tensor:
        where = f"Pairing.{name}"
        if not isinstance(value, Tensor):
            raise DtypeError(where=where, got=type(value).__name__, wanted="a tensor")
        if value.ndim != 1 or value.dtype not in (torch.int32, torch.int64):
            raise DtypeError(
                where=where,
                got=f"{value.dtype} of shape {tuple(value.shape)}",
                wanted="an integer vector with one number for each pair",
            )
        if len(value) != len(self.partner):
            raise ShapeError(where=where, got=tuple(value.shape), wanted=f"({len(self.partner)},), as partner has")
        value = value.long() if value.is_meta else value.long().cpu()
        least = 1 if name == "lengths" else 0
        most = len(value) - 1 if name == "partner" and self.first is None else None
        if not value.is_meta and bool(((value < least) | (value > (value if most is None else most))).any()):
            numbers = "lengths" if name == "lengths" else "indices"
            wanted = f"{numbers} from {least}" + ("" if most is None else f" to {most}")
            raise ArgumentError(where=where, got=value.tolist(), wanted=wanted)
        return value

    def _check_coefficients(self) -> None:
        where, coefficients, size = "Pairing.coefficients", self.coefficients, len(self.partner)
        if not isinstance(coefficients, Tensor):
            raise DtypeError(where=where, got=type(coefficients).__name__, wanted="a tensor")
        if not coefficients.is_floating_point():
            raise DtypeError(where=where, got=str(coefficients.dtype), wanted="real numbers")
        if coefficients.ndim not in (1, 2) or coefficients.shape[-1] != size:
            wanted = f"({size},) or (steps, {size}), time first"
            raise ShapeError(where=where, got=tuple(coefficients.shape), wanted=wanted)
        if coefficients.device.type != "cpu":
            return
        inside = (coefficients >= 0) & (coefficients <= 1)
        if not bool(inside.all()):
            outside = coefficients[~inside]
            raise ArgumentError(where=where, got=float(outside[0]), wanted="numbers from 0 to 1")

    def check(self, *, steps: int, batch: int, layers: int, device: torch.device) -> None:
        """Refuse a pairing that does not fit so many sequences, the longest of so many steps, or the stack."""
        if self.first is None and len(self.partner) != batch:
            raise ShapeError(
                where="Pairing.partner",
                got=len(self.partner),
                wanted=f"{batch} rows",
                remedy="Give first= to mix other pairs than each sequence with its partner.",
            )
        if self.partner.is_meta or self.coefficients.device not in (device, torch.device("cpu")):
            raise DeviceError(
                where="Pairing",
                got=f"{self.partner.device} and {self.coefficients.device}",
                wanted=str(device),
                remedy="Move it to the input's device, or to the CPU.",
            )
        for name, members in (("first", self.first), ("partner", self.partner)):
            if members is not None and bool((members >= batch).any()):
                raise ArgumentError(
                    where=f"Pairing.{name}", got=int(members.max()), wanted=f"indices from 0 to {batch - 1}"
                )
        if self.lengths is not None and bool((self.lengths > steps).any()):
            raise LengthError(
                where="Pairing.lengths",
                got=int(self.lengths.max()),
                wanted=f"at most {steps}, as the longest sequence has",
            )
        if self.layer is not None and self.layer >= layers:
            raise ArgumentError(where="Pairing.layer", got=self.layer, wanted=f"one of {layers} layers, from 0")


@dataclass(frozen=True, repr=False)
class ThroughTimeMix(Transform):
    """Mixes the states that two paired sequences reach from one shared state.

    ``s_t = lambda_t f(x_t, s_{t-1}) + (1 - lambda_t) f(x'_t, s_{t-1})`` where ``s`` is ``h``, and ``(h, c)`` for an
    LSTM (Karamzade et al. 2020, through-time mixup). It acts in training mode, on calls that give the layer
    ``pairing=``; row p of the outputs then belongs to pair p of the :class:`Pairing`. The recurrent product is shared
    by the two, so it costs little more than the plain recurrence.

    It replaces the cell application, so it comes before all state transforms. In a stack it belongs to one layer:
    the layers below run on each sequence, those above on the mixed one.

    Args:
        layers: the one layer that mixes, by default the first; a pairing may name another for its call.

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
