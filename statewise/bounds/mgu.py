"""Layers of minimal gated units: how far the state moves when their matrices do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from statewise.bounds.gates import GatedClass
from statewise.bounds.logs import Floats, log_add, log_geometric, log_of
from statewise.bounds.walk import ClosedForm, Signal, Walk, accumulated, logs, numbers


@dataclass(frozen=True, kw_only=True)
class MGUClass(GatedClass):
    """Minimal gated units ``r = sigmoid(W_r x + U_r h)``, ``h_s = (1 - r) h + r tanh(W_h x + U_h (r h))``, h of before.

    With ``r <= r̂``, ``1 - r <= q̂`` and ``θ = q̂ + r̂² B_Uh`` the state is at most
    ``η_s = q̂ η_{s-1} + r̂ min(√hidden, B_Wh ‖x_s‖ + r̂ B_Uh η_{s-1})`` long, and √hidden. It moves by at
    most, with ``a = (2 + r̂ B_Uh) / 4``,

    ``u_s = (θ + a B_Ur) u_{s-1} + a (‖x_s‖ ΔW_r + η_{s-1} ΔU_r) + r̂ (‖x_s‖ ΔW_h + η_{s-1} ΔU_h)``

    and ``(a B_Wr + r̂ B_Wh) ‖x_s - x'_s‖``. New: a sigmoid is 1/4-Lipschitz, which Chen, Li & Zhao 2019, Theorem 4,
    whose constants are in :meth:`closed_form`, do not use. The gates are "forget" (r) and "candidate".

    >>> norms = {"W forget": 0.1, "U forget": 0.1, "W candidate": 1.0, "U candidate": 1.0}
    >>> walk = MGUClass(hidden=4, features=2, norms=norms).walk(
    ...     Signal(log_norm=np.zeros(3), log_moves=np.zeros((3, 0)))
    ... )
    >>> np.exp(walk.state.log_norm).round(9).tolist(), round(math.exp(walk.log_growth), 9)
    ([1.0, 2.0, 2.0], 2.075)
    """

    kind: ClassVar[str] = "mgu"
    both_ways: ClassVar[frozenset[str]] = frozenset({"forget"})

    def walk(self, inputs: Signal) -> Walk:
        log_x = inputs.log_norms(folded=self.bias)
        entry = self.largest_entry
        is_open, is_shut = self.most_open("forget", inputs), self.most_shut("forget", inputs)
        norms = self._lengths(log_x, is_open, is_shut)
        a = (1 + entry + entry * is_open * self.norms["U candidate"]) / 4
        decay = is_shut + is_open**2 * self.norms["U candidate"]
        growth = decay + a * self.norms["U forget"]
        passes = a * self.norms["W forget"] + is_open * self.norms["W candidate"]
        before, log_a, log_open = logs(norms[:-1]), logs(a), logs(is_open)
        own = {
            "W forget": log_a + log_x,
            "U forget": log_a + before,
            "W candidate": log_open + log_x,
            "U candidate": log_open + before,
        }
        moves = accumulated(logs(growth), self.log_added(inputs, logs(passes), own), self.log_first(inputs))
        return Walk(
            state=Signal(log_norm=logs(norms[1:]), log_moves=moves),
            log_growth=log_of(float(growth.max())),
            log_decay=log_of(float(decay.max())),
        )

    def _lengths(self, log_x: Floats, is_open: Floats, is_shut: Floats) -> Floats:
        """η before the first step and after each."""
        root, W, U = math.sqrt(self.hidden), self.norms["W candidate"], self.norms["U candidate"]
        found = [self.first_norm]
        for x, r, q in zip(numbers(log_x), is_open.tolist(), is_shut.tolist(), strict=True):
            candidate = min(root, W * x + U * r * found[-1])
            found.append(min(self.largest_entry * root, q * found[-1] + r * candidate))
        return np.array(found)

    def closed_form(self, log_input: float, steps: int) -> ClosedForm:
        one = Signal(log_norm=np.array([log_input]), log_moves=np.zeros((1, 0)))
        log_x = float(one.log_norms(folded=self.bias)[0])
        log_decay = self.walk(one).log_decay
        assert log_decay is not None
        B, log_root = self.norms, math.log(self.hidden) / 2
        log_growth = log_add(log_decay, log_of((2 + B["U candidate"]) * B["U forget"]))
        log_sum, log_a = log_geometric(log_growth, steps), math.log(2 + B["U candidate"])
        return ClosedForm(
            log_moves={
                "W forget": log_sum + log_a + log_x,
                "U forget": log_sum + log_a + log_root,
                "W candidate": log_sum + log_x,
                "U candidate": log_sum + log_root,
            },
            log_hidden=min(log_root, log_of(B["W candidate"]) + log_x + log_geometric(log_decay, steps)),
            log_read=log_root,
            log_growth=log_growth,
            log_decay=log_decay,
        )
