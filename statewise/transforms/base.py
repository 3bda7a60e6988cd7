"""What every transform is: a small immutable description of something done to a recurrent layer at one place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError
from statewise.transforms.streams import Stream

Rows = Float[Tensor, "rows hidden"]


class Place(Enum):
    """Where a transform acts on a layer; the order of the members is the order in time within one step."""

    INPUT = "input"  # what enters the layer
    PRODUCT = "product"  # the input and recurrent terms, gate by gate
    TRANSITION = "transition"  # the cell application itself
    STATE = "state"  # the new state, fed back
    OUTPUT = "output"  # what leaves the layer, not fed back


class Sizes(NamedTuple):
    """The sizes for which a transform draws: of the padded batch, whatever the true lengths are."""

    steps: int
    batch: int
    input: int
    hidden: int
    blocks: int
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, repr=False)
class Transform(ABC):
    """Something that happens to the state, or to the inputs or outputs, of a recurrent layer.

    A transform is an immutable value. Its random tensors for the whole sequence are drawn before the loop
    (:meth:`draw`), its learnable tensors belong to the layer (:meth:`parameter_shapes`); so an engine is a
    deterministic function of tensors, and every engine can be compared with the reference on the same draw.

    Args:
        layers: indices of the layers it acts on; None means all.
    """

    layers: tuple[int, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.layers is not None and not (
            isinstance(self.layers, tuple) and all(type(layer) is int and layer >= 0 for layer in self.layers)
        ):
            raise ArgumentError(
                where=f"{type(self).__name__}.layers",
                got=self.layers,
                wanted="a tuple of layer indices, counted from 0 at the bottom, such as (0, 1), or None for all",
            )

    def __repr__(self) -> str:
        """The call that makes it: what must be given, then what differs from its default."""
        parts = []
        for entry in sorted(fields(self), key=lambda entry: bool(entry.kw_only)):
            value = getattr(self, entry.name)
            if entry.default is MISSING:
                parts.append(repr(value))
            elif value != entry.default:
                parts.append(f"{entry.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    @abstractmethod
    def place(self) -> Place:
        """Where it acts."""

    def acts_on(self, layer: int, num_layers: int) -> bool:
        """Whether it acts on this layer of a stack."""
        return self.layers is None or layer in self.layers

    def parameter_shapes(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the learnable tensors, one set for each layer and direction."""
        return {}

    def initialise(self, name: str, parameter: Tensor, generator: torch.Generator | None) -> None:
        """Fill a freshly made learnable tensor in place."""

    @abstractmethod
    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        """All random tensors of one layer and direction, or None where the transform does nothing.

        Each has the shape (steps, batch, width), or (1, batch, width) where it is constant in time.
        """


class StateChange(NamedTuple):
    """What a state transform gives: the state, the memory, and the transition probabilities if any."""

    state: Tensor
    memory: Tensor | None
    probabilities: Tensor | None = None


class StateTransform(Transform):
    """A transform of the new state before it is fed back: ``h_t = transform(u_t)``."""

    @property
    def place(self) -> Place:
        return Place.STATE

    @abstractmethod
    def forward(
        self,
        state: Rows,
        memory: Rows | None,
        previous: tuple[Rows, Rows | None],
        draws: tuple[Tensor, ...],
        parameters: tuple[Tensor, ...],
    ) -> StateChange:
        """Apply it at one step to the rows that are still running, in plain torch operations."""


class SequenceTransform(Transform):
    """A transform of a whole sequence at once: what enters or leaves a layer, outside the recurrence."""

    @abstractmethod
    def apply(self, sequence: Float[Tensor, "*rows width"], draws: tuple[Tensor, ...]) -> Float[Tensor, "*rows width"]:
        """The changed sequence; draws are laid out like the sequence, or broadcast over it."""


def probability(where: str, value: float, *, one_allowed: bool = False) -> float:
    """Check a probability in [0, 1), or in [0, 1].

    >>> probability("Dropout.p", 0.5)
    0.5
    """
    number = finite(where, value)
    if not (0.0 <= number < 1.0 or (one_allowed and number == 1.0)):
        wanted = "a probability from 0 to 1" if one_allowed else "a probability from 0 up to, not including, 1"
        raise ArgumentError(where=where, got=value, wanted=wanted)
    return number


def finite(where: str, value: float) -> float:
    """Check that a value is a finite real number.

    >>> finite("Noise.gamma", 1)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DtypeError(where=where, got=type(value).__name__, wanted="a real number")
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ArgumentError(where=where, got=value, wanted="a finite number")
    return number


def choice(where: str, value: str, options: tuple[str, ...]) -> str:
    """Check that a word is one of the options.

    >>> choice("Noise.mode", "additive", ("multiplicative", "additive"))
    'additive'
    """
    if value not in options:
        raise ArgumentError(where=where, got=value, wanted=f"one of {', '.join(options)}")
    return value
