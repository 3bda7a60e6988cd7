"""How far a sigmoid gate can open or shut, whatever the input is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from statewise.bounds.grid import SLACK, Ledger
from statewise.bounds.layer_class import LayerClass
from statewise.bounds.logs import Floats
from statewise.bounds.matrices import GATES, SIGMOID, LayerMatrices
from statewise.bounds.walk import Signal, numbers
from statewise.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class GateRows:
    """Bounds on the rows of one gate ``sigmoid(W x + U h + bias)``; what they say holds for every input.

    No entry of ``W x + U h`` leaves ``±(a ‖x‖ + μ H)``, H the largest entry of h, hence
    ``gate <= sigmoid(max bias + a ‖x‖ + μ H)`` and ``1 - gate <= sigmoid(max -bias + a ‖x‖ + μ H)``
    (Chen, Li & Zhao 2019, section 4, have the spectral norm of W for a, and no bias).

    Args:
        row_norm: a, at least the length of each row of W; infinite where nothing is known.
        row_sum: μ, at least the sum of absolute values of each row of U.
        bias: at least each bias.
        negated_bias: at least the negative of each bias.

    >>> rows = GateRows(row_norm=0.1, row_sum=0.2)
    >>> rows.most_open(np.array([0.0]), 1.0).round(9).tolist(), GateRows().most_shut(np.array([0.0]), 1.0).tolist()
    ([0.574442517], [1.0])
    """

    row_norm: float = math.inf
    row_sum: float = math.inf
    bias: float = 0.0
    negated_bias: float = 0.0

    def __post_init__(self) -> None:
        if not (self.row_norm >= 0 and self.row_sum >= 0):
            got = f"{self.row_norm} and {self.row_sum}"
            raise ArgumentError(where="GateRows", got=got, wanted="two numbers >= 0")
        if not self.bias + self.negated_bias >= 0:
            raise ArgumentError(
                where="GateRows.bias", got=f"{self.bias} and {self.negated_bias}", wanted="a sum >= 0: max b + max -b"
            )

    def most_open(self, log_norm: Floats, largest: float) -> Floats:
        """The largest value of the gate at each step.

        Args:
            log_norm: the logarithm of the bound on the input's length at each step, without the 1 of a bias.
            largest: H.
        """
        return self._sigmoid(self.bias, log_norm, largest)

    def most_shut(self, log_norm: Floats, largest: float) -> Floats:
        """The largest value of 1 - gate at each step.

        Args:
            log_norm: as for :meth:`most_open`.
            largest: H.
        """
        return self._sigmoid(self.negated_bias, log_norm, largest)

    def _sigmoid(self, bias: float, log_norm: Floats, largest: float) -> Floats:
        if math.isinf(self.row_norm) or math.isinf(self.row_sum):
            return np.ones(len(log_norm))
        reach = self.row_norm * np.array(numbers(log_norm)) + self.row_sum * largest
        return np.exp(-np.logaddexp(0.0, -(bias + reach)))


@dataclass(frozen=True, kw_only=True)
class GatedClass(LayerClass):
    """Layers with sigmoid gates.

    Args:
        gates: bounds on the rows of each; one that is left out may be anything from 0 to 1.
    """

    gates: Mapping[str, GateRows] = field(default_factory=dict)

    #: The gates whose 1 - gate matters as well.
    both_ways: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        if unknown := sorted(set(self.gates) - self.sigmoids()):
            wanted = f"some of {', '.join(sorted(self.sigmoids()))}"
            raise ArgumentError(where=f"{type(self).__name__}.gates", got=unknown, wanted=wanted)

    @classmethod
    def sigmoids(cls) -> frozenset[str]:
        """The names of the gates."""
        return SIGMOID & set(GATES[cls.kind])

    def rows(self, gate: str) -> GateRows:
        """What is known of a gate.

        Args:
            gate: its name.
        """
        return self.gates.get(gate, GateRows())

    def largest_state(self, inputs: Signal) -> float:
        """H, the bound on the entries of all states, the one before the first step among them.

        Args:
            inputs: what the layer reads.
        """
        return self.largest_entry

    def most_open(self, gate: str, inputs: Signal) -> Floats:
        """The largest value of a gate at each step.

        Args:
            gate: its name.
            inputs: what the layer reads.
        """
        return self.rows(gate).most_open(inputs.log_norm, self.largest_state(inputs))

    def most_shut(self, gate: str, inputs: Signal) -> Floats:
        """The largest value of 1 - gate at each step.

        Args:
            gate: its name.
            inputs: what the layer reads.
        """
        return self.rows(gate).most_shut(inputs.log_norm, self.largest_state(inputs))

    def off_centre(self, name: str) -> bool:
        side, _, gate = name.partition(" ")
        rows = self.rows(gate)
        return side == "W" and (rows.bias < 0 or rows.negated_bias < 0)

    @classmethod
    def _measured(cls, layer: LayerMatrices, *, ledger: Ledger, prefix: str, gates: bool) -> dict[str, Any]:
        if not gates:
            return {}
        named = [gate for gate in GATES[cls.kind] if gate in SIGMOID]
        both = cls.both_ways
        return {"gates": {gate: measured_rows(layer, gate, ledger, prefix, both=gate in both) for gate in named}}


def measured_rows(layer: LayerMatrices, gate: str, ledger: Ledger, prefix: str = "", *, both: bool) -> GateRows:
    """The bounds around the rows of one gate.

    Args:
        layer: its matrices.
        gate: its name.
        ledger: where constants are rounded up and paid for.
        prefix: before each name there.
        both: whether 1 - gate matters; else nothing is paid for it, and nothing known.

    >>> weights = {"forget": np.array([[3.0, 4.0]]) / 8, "candidate": np.ones((1, 2))}
    >>> states = {"forget": np.array([[-0.25]]), "candidate": np.ones((1, 1))}
    >>> measured_rows(LayerMatrices(kind="mgu", inputs=weights, states=states), "forget", Ledger(), both=True)
    GateRows(row_norm=0.6484197773255048, row_sum=0.2726269331663144, bias=0.0, negated_bias=0.0)
    """
    W, U = layer.inputs[gate], layer.states[gate]
    row_norm = ledger.up(f"{prefix}row norm of W {gate}", float(np.linalg.norm(W, axis=1).max()) * SLACK)
    row_sum = ledger.up(f"{prefix}row sum of U {gate}", float(np.abs(U).sum(axis=1).max()) * SLACK)
    if layer.bias is None:
        return GateRows(row_norm=row_norm, row_sum=row_sum)
    bias, negated = layer.bias[gate], math.inf
    most = ledger.signed(f"{prefix}bias of {gate}", float(bias.max()))
    if both:
        negated = ledger.signed(f"{prefix}-bias of {gate}", float((-bias).max()))
    return GateRows(row_norm=row_norm, row_sum=row_sum, bias=most, negated_bias=negated)
