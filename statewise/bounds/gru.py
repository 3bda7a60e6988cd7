"""Layers of gated recurrent units in torch's form: how far the state moves when their matrices do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from statewise.bounds.gates import GatedClass
from statewise.bounds.grid import SLACK, Ledger
from statewise.bounds.logs import Floats, log_geometric, log_of
from statewise.bounds.matrices import LayerMatrices
from statewise.bounds.walk import ClosedForm, Signal, Walk, accumulated, logs, numbers


@dataclass(frozen=True, kw_only=True)
class GRUClass(GatedClass):
    """Gated recurrent units ``h_s = (1 - z) n + z h``, ``n = tanh(W_n x + r (U_n h))``, h the state of before.

    With ``z <= ẑ``, ``1 - z <= q̂``, ``r <= r̂`` and ``|U_n h| <= M_s = min(μ, B_Un η_{s-1})`` per entry the state is at
    most ``η_s = ẑ η_{s-1} + q̂ min(√hidden, B_Wn ‖x_s‖ + r̂ B_Un η_{s-1})`` long, and √hidden. It moves by at most

    ``u_s = β_s u_{s-1} + (‖x_s‖ ΔW_z + η_{s-1} ΔU_z) / 2 + q̂ (‖x_s‖ ΔW_n + r̂ η_{s-1} ΔU_n)
    + q̂ M_s / 4 (‖x_s‖ ΔW_r + η_{s-1} ΔU_r)``, ``β_s = ẑ + B_Uz / 2 + q̂ (r̂ B_Un + M_s B_Ur / 4)``.

    New, in the manner of Chen, Li & Zhao 2019. A bias inside the reset gate's product is one more column of U_n, which
    reads ``[h; 1]``. The gates are "reset" (r), "update" (z) and "candidate" (n).

    Args:
        state_bias: whether there is that bias.
        row_sum: μ, at least the sum of absolute values of each row of U_n, that bias included.

    >>> norms = {f"{side} {gate}": 0.5 for side in "WU" for gate in ("reset", "update", "candidate")}
    >>> walk = GRUClass(hidden=4, features=2, norms=norms).walk(
    ...     Signal(log_norm=np.zeros(3), log_moves=np.zeros((3, 0)))
    ... )
    >>> np.exp(walk.state.log_norm).round(9).tolist(), round(math.exp(walk.log_growth), 9)
    ([0.5, 1.25, 2.0], 1.828125)
    """

    state_bias: bool = False
    row_sum: float = math.inf

    kind: ClassVar[str] = "gru"
    both_ways: ClassVar[frozenset[str]] = frozenset({"update"})

    def columns(self, side: str, gate: str) -> int:
        return super().columns(side, gate) + (self.state_bias and (side, gate) == ("U", "candidate"))

    def walk(self, inputs: Signal) -> Walk:
        log_x, B, entry = inputs.log_norms(folded=self.bias), self.norms, self.largest_entry
        z, q, r = self._gates(inputs)
        norms = self._lengths(log_x, z, q, r)
        before, read = norms[:-1], self._read(norms[:-1])
        inside = np.minimum(self.row_sum * entry, B["U candidate"] * read)
        reset, update = q * inside / 4, np.full(len(log_x), (1 + entry) / 4)
        growth = z + update * B["U update"] + q * r * B["U candidate"] + reset * B["U reset"]
        passes = update * B["W update"] + q * B["W candidate"] + reset * B["W reset"]
        own = {
            "W update": logs(update) + log_x,
            "U update": logs(update * before),
            "W candidate": logs(q) + log_x,
            "U candidate": logs(q * r * read),
            "W reset": logs(reset) + log_x,
            "U reset": logs(reset * before),
        }
        moves = accumulated(logs(growth), self.log_added(inputs, logs(passes), own), self.log_first(inputs))
        return Walk(
            state=Signal(log_norm=logs(norms[1:]), log_moves=moves),
            log_growth=log_of(float(growth.max())),
            log_decay=log_of(float((z + q * r * B["U candidate"]).max())),
        )

    def _gates(self, inputs: Signal) -> tuple[Floats, Floats, Floats]:
        """``ẑ``, ``q̂`` and ``r̂`` at each step."""
        z, q = self.most_open("update", inputs), self.most_shut("update", inputs)
        return z, q, self.most_open("reset", inputs)

    def _read(self, norms: Floats) -> Floats:
        """The length of what U_n reads: the state, with a 1 below it for a bias."""
        return np.hypot(norms, 1.0) if self.state_bias else norms

    def _lengths(self, log_x: Floats, z: Floats, q: Floats, r: Floats) -> Floats:
        """η before the first step and after each."""
        root, W, U = math.sqrt(self.hidden), self.norms["W candidate"], self.norms["U candidate"]
        found = [self.first_norm]
        for x, keep, take, reset in zip(numbers(log_x), z.tolist(), q.tolist(), r.tolist(), strict=True):
            read = math.hypot(found[-1], 1.0) if self.state_bias else found[-1]
            candidate = min(root, W * x + U * reset * read)
            found.append(min(self.largest_entry * root, keep * found[-1] + take * candidate))
        return np.array(found)

    def closed_form(self, log_input: float, steps: int) -> ClosedForm:
        """As the walk has it, with √hidden for every η and μ for M."""
        same = Signal(log_norm=np.full(steps, log_input), log_moves=np.zeros((steps, 0)))
        walk, log_x = self.walk(same), float(same.log_norms(folded=self.bias)[0])
        z, q, r = (float(gate[0]) for gate in self._gates(same))
        B, root = self.norms, math.sqrt(self.hidden)
        read = float(self._read(np.array([root]))[0])
        inside = min(self.row_sum, B["U candidate"] * read)
        reset = q * inside / 4
        log_growth = log_of(z + B["U update"] / 2 + q * r * B["U candidate"] + reset * B["U reset"])
        log_sum = log_geometric(log_growth, steps)
        log_hidden = float(walk.state.log_norm[-1])
        return ClosedForm(
            log_moves={
                "W update": log_sum + log_of(0.5) + log_x,
                "U update": log_sum + log_of(root / 2),
                "W candidate": log_sum + log_of(q) + log_x,
                "U candidate": log_sum + log_of(q * r * read),
                "W reset": log_sum + log_of(reset) + log_x,
                "U reset": log_sum + log_of(reset * root),
            },
            log_hidden=log_hidden,
            log_read=log_hidden,
            log_growth=log_growth,
            log_decay=walk.log_decay,
        )

    @classmethod
    def _measured(cls, layer: LayerMatrices, *, ledger: Ledger, prefix: str, gates: bool) -> dict[str, Any]:
        found = super()._measured(layer, ledger=ledger, prefix=prefix, gates=gates)
        sums = np.abs(layer.folded_state("candidate")).sum(axis=1)
        row_sum = ledger.up(f"{prefix}row sum of U candidate", float(sums.max()) * SLACK) if gates else math.inf
        return {**found, "row_sum": row_sum, "state_bias": layer.state_bias is not None}
