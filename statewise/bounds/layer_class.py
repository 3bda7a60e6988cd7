"""A class of recurrent layers: bounds on the matrices of one cell, and what every cell says about them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from statewise.bounds.grid import SLACK, Ledger
from statewise.bounds.logs import Floats
from statewise.bounds.matrices import GATES, LayerMatrices
from statewise.bounds.norms import spectral_norm
from statewise.bounds.profile import Block
from statewise.bounds.walk import ClosedForm, Signal, Walk, label
from statewise.errors import ArgumentError

LayerT = TypeVar("LayerT", bound="LayerClass")


@dataclass(frozen=True, kw_only=True)
class Start:
    """The state before the first step, where it is not zero.

    Args:
        norm: a bound on its length.
        largest: a bound on its entries; None for the same.
        learned: whether it belongs to what is learned, so that a cover has to cover it.
    """

    norm: float
    largest: float | None = None
    learned: bool = False

    @property
    def entry(self) -> float:
        """A bound on its entries."""
        return self.norm if self.largest is None else min(self.norm, self.largest)


@dataclass(frozen=True, kw_only=True)
class OffCentreBlock(Block):
    """A matrix whose class may not hold the middle of its ball, because a reference or a bias is there.

    Then the middle is no member that could stand for all: one member does only from twice the radius on.

    >>> block = OffCentreBlock(name="W", rows=1, columns=1, bound=1.0, log_lipschitz=0.0)
    >>> [round(block.cover_nats(math.log(distance)), 6) for distance in (0.5, 1.0, 2.0)]
    [1.609438, 1.098612, 0.0]
    """

    @property
    def reach(self) -> float:
        """Two: the middle may be missing."""
        return 2.0


@dataclass(frozen=True, kw_only=True)
class LayerClass(ABC):
    """All layers of one cell whose matrices have norms within bounds.

    Args:
        hidden: units.
        features: of an input.
        norms: bounds on the spectral norm of each matrix by its name: "W" and "U" of an Elman layer; "W forget" and so
            on of a gated one. Those of W include the bias as one more column.
        bias: whether there is one.
        start: the state before the first step, if it is not zero.
    """

    hidden: int
    features: int
    norms: Mapping[str, float]
    bias: bool = False
    start: Start | None = None

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.features < 1:
            got = f"{self.hidden} units and {self.features} features"
            raise ArgumentError(where=type(self).__name__, got=got, wanted="at least 1 of each")
        wanted = [f"{side}{label(self.kind, gate)}" for gate in GATES[self.kind] for side in "WU"]
        if sorted(self.norms) != sorted(wanted):
            raise ArgumentError(where=f"{type(self).__name__}.norms", got=sorted(self.norms), wanted=", ".join(wanted))
        for name, norm in self.norms.items():
            if not 0 <= norm < math.inf:
                raise ArgumentError(where=f"the norm of {name}", got=norm, wanted="a finite number >= 0")

    @abstractmethod
    def walk(self, inputs: Signal) -> Walk:
        """The layer over time.

        Args:
            inputs: what it reads at each step.
        """

    @abstractmethod
    def closed_form(self, log_input: float, steps: int) -> ClosedForm:
        """The constants after the last step by formulas, for inputs that are the same for both networks.

        Args:
            log_input: the logarithm of the bound on an input's length, without the 1 of a bias.
            steps: how many.
        """

    @classmethod
    def measured(cls: type[LayerT], layer: LayerMatrices, *, ledger: Ledger, prefix: str = "", gates: bool) -> LayerT:
        """The class around one layer.

        Args:
            layer: its matrices.
            ledger: where constants are rounded up and paid for.
            prefix: before each name there.
            gates: whether to look up how far gates can open; else nothing is known of them, and nothing paid.
        """
        norms = {
            name: ledger.up(prefix + name, spectral_norm(matrix)) for name, matrix in named_matrices(layer).items()
        }
        return cls(
            hidden=layer.hidden,
            features=layer.features,
            norms=norms,
            bias=layer.bias is not None,
            start=None if layer.start is None else measured_start(layer.start, ledger, prefix),
            **cls._measured(layer, ledger=ledger, prefix=prefix, gates=gates),
        )

    @classmethod
    def _measured(cls, layer: LayerMatrices, *, ledger: Ledger, prefix: str, gates: bool) -> dict[str, Any]:
        """What a cell has beyond its norms."""
        return {}

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The matrices in the order in which a walk has them, their Lipschitz constants still unknown."""
        found = [
            self._block(f"{side}{label(self.kind, gate)}", self.columns(side, gate))
            for gate in GATES[self.kind]
            for side in "WU"
        ]
        return (*found, *self._starts)

    @property
    def _starts(self) -> tuple[Block, ...]:
        if self.start is None or not self.start.learned:
            return ()
        return (Block(name="start", rows=self.hidden, columns=1, bound=self.start.norm, log_lipschitz=-math.inf),)

    def columns(self, side: str, gate: str) -> int:
        """Of a matrix, with one for a bias.

        Args:
            side: "W" or "U".
            gate: its name.
        """
        return self.features + self.bias if side == "W" else self.hidden

    def off_centre(self, name: str) -> bool:
        """Whether the class may lack the matrix 0.

        Args:
            name: of the matrix.
        """
        return False

    def _block(self, name: str, columns: int) -> Block:
        kind = OffCentreBlock if self.off_centre(name) else Block
        return kind(name=name, rows=self.hidden, columns=columns, bound=self.norms[name], log_lipschitz=-math.inf)

    @property
    def first_norm(self) -> float:
        """The bound on the length of the state before the first step."""
        return 0.0 if self.start is None else self.start.norm

    @property
    def largest_entry(self) -> float:
        """The bound on the state's entries of a cell whose steps keep them within [-1, 1]."""
        return 1.0 if self.start is None else max(1.0, self.start.entry)

    def log_first(self, inputs: Signal, name: str = "start") -> Floats:
        """The logarithm of how far each matrix moves the state before the first step: a learned start does.

        Args:
            inputs: what the layer reads.
            name: of the start.
        """
        own = [0.0 if block.name == name else -math.inf for block in self.blocks]
        return np.array([*[-math.inf] * inputs.log_moves.shape[1], *own])

    def log_added(self, inputs: Signal, log_passes: Floats, own: Mapping[str, Floats]) -> Floats:
        """The logarithm of what a step adds to how far each matrix moves the state, (steps, matrices).

        Args:
            inputs: what the layer reads.
            log_passes: how a difference of inputs passes on, (steps,).
            own: what the layer's own matrices add, (steps,) each.
        """
        nothing = np.full(len(log_passes), -math.inf)
        own_columns = [own.get(block.name, nothing) for block in self.blocks]
        return np.column_stack([log_passes[:, None] + inputs.log_moves, *own_columns])


def named_matrices(layer: LayerMatrices) -> dict[str, Floats]:
    """The matrices of a layer by name, biases as columns.

    Args:
        layer: its weights.
    """
    gates = [(label(layer.kind, gate), gate) for gate in GATES[layer.kind]]
    pairs = [((f"W{name}", layer.folded(gate)), (f"U{name}", layer.folded_state(gate))) for name, gate in gates]
    return dict(entry for pair in pairs for entry in pair)


def measured_start(values: Floats, ledger: Ledger, prefix: str = "") -> Start:
    """The class around a state before the first step; it counts as learned, which is right also if it is not.

    Args:
        values: the state.
        ledger: where its two constants are rounded up and paid for.
        prefix: before each name there.
    """
    norm = ledger.up(f"{prefix}start", float(np.linalg.norm(values)) * SLACK)
    largest = ledger.up(f"{prefix}largest entry of start", float(np.abs(values).max()))
    return Start(norm=norm, largest=largest, learned=True)
