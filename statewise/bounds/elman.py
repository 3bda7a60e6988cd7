"""Elman layers: how far the state moves when their matrices do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from statewise.bounds.grid import Ledger
from statewise.bounds.layer_class import LayerClass
from statewise.bounds.logs import log_geometric, log_of
from statewise.bounds.matrices import LayerMatrices
from statewise.bounds.walk import ClosedForm, Signal, Walk, accumulated
from statewise.errors import AssumptionError

#: Activations that are 1-Lipschitz and 0 at 0, and the largest value that each can take.
LARGEST = {"tanh": 1.0, "relu": math.inf, "identity": math.inf}


@dataclass(frozen=True, kw_only=True)
class ElmanClass(LayerClass):
    """Elman layers ``h_s = σ(U h_{s-1} + W x_s)`` with bounded matrices.

    With ``β = ρ B_U`` and ``η_s = min(b √hidden, ρ B_W ‖x_s‖ + β η_{s-1})`` the state moves by at most ``u_s``,

    ``u_s = β u_{s-1} + ρ (B_W ‖x_s - x'_s‖ + η_{s-1} ‖U - U'‖ + ‖x_s‖ ‖W - W'‖)``.

    Tighter than Chen, Li & Zhao 2019, Lemmas 2 and 7, which :meth:`closed_form` gives (new: η_{s-1} for U).

    Args:
        lipschitz: ρ of the activation, which is 0 at 0.
        largest: b, the largest value of the activation; infinite for ReLU and the identity.

    >>> layer = ElmanClass(hidden=4, features=2, norms={"U": 0.5, "W": 3.0})
    >>> walk = layer.walk(Signal(log_norm=np.zeros(3), log_moves=np.zeros((3, 0))))
    >>> np.exp(walk.state.log_norm).round(9).tolist(), np.exp(walk.state.log_moves[-1]).round(9).tolist()
    ([2.0, 2.0, 2.0], [1.75, 3.0])
    """

    lipschitz: float = 1.0
    largest: float = 1.0

    kind: ClassVar[str] = "rnn"

    def walk(self, inputs: Signal) -> Walk:
        log_x = inputs.log_norms(folded=self.bias)
        log_growth, log_gain = (log_of(self.lipschitz) + log_of(self.norms[name]) for name in "UW")
        most = log_of(self.largest) + math.log(self.hidden) / 2
        before = [log_of(self.first_norm)]
        for arriving in (log_x + log_gain).tolist():
            before.append(min(most, float(np.logaddexp(arriving, log_growth + before[-1]))))
        norms, rho = np.array(before), log_of(self.lipschitz)
        steps = np.zeros(len(log_x))
        added = self.log_added(inputs, steps + log_gain, {"U": rho + norms[:-1], "W": rho + log_x})
        moves = accumulated(steps + log_growth, added, self.log_first(inputs))
        return Walk(state=Signal(log_norm=norms[1:], log_moves=moves), log_growth=log_growth)

    def closed_form(self, log_input: float, steps: int) -> ClosedForm:
        log_x = log_input if not self.bias else float(np.logaddexp(0, 2 * log_input)) / 2
        rho, log_gain = log_of(self.lipschitz), log_of(self.norms["W"])
        log_growth = rho + log_of(self.norms["U"])
        moved = rho + log_x + log_geometric(log_growth, steps)
        return ClosedForm(
            log_moves={"U": rho + log_gain + math.log(steps) + moved, "W": moved},
            log_hidden=min(log_of(self.largest) + math.log(self.hidden) / 2, log_gain + moved),
            log_read=log_gain + moved,
            log_growth=log_growth,
        )

    @classmethod
    def _measured(cls, layer: LayerMatrices, *, ledger: Ledger, prefix: str, gates: bool) -> dict[str, Any]:
        if layer.activation not in LARGEST:
            raise AssumptionError(
                where=f"{prefix}activation",
                got=layer.activation,
                wanted=f"one that is 0 at 0 and 1-Lipschitz: {', '.join(LARGEST)}",
            )
        return {"largest": LARGEST[layer.activation]}
