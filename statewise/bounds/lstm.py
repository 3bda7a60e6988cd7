"""LSTM layers: how far the state and the memory move when their matrices do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from statewise.bounds.gates import GatedClass
from statewise.bounds.layer_class import Start
from statewise.bounds.logs import Floats, log_geometric, log_of
from statewise.bounds.profile import Block
from statewise.bounds.walk import ClosedForm, Signal, Walk, logs, numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lengths:
    """Bounds on h and c over time: ``entry`` and ``length`` of c, and ``norm`` of h, each with the start in front."""

    entry: Floats
    length: Floats
    norm: Floats


@dataclass(frozen=True, kw_only=True)
class LSTMClass(GatedClass):
    """LSTM layers ``c_s = g c + r tanh(W_c x + U_c h)``, ``h_s = o tanh(c_s)``, c and h of before.

    With gates within ĝ (forget), r̂ (input) and ô (output) the memory's entries are at most ``C_s = ĝ C_{s-1} + r̂``, its
    length ``E_s = ĝ E_{s-1} + r̂ min(√hidden, B_Wc ‖x_s‖ + B_Uc η_{s-1})``, and the state's
    ``η_s = ô min(√hidden tanh(C_s), E_s)``. The memory moves by v_s and the state by u_s, at most

    ``v_s = ĝ v_{s-1} + C_{s-1} Δg + Δr + r̂ Δc``, ``u_s = ô v_s + tanh(C_s) Δo``,

    where ``Δg = (B_Ug u_{s-1} + B_Wg ‖x_s - x'_s‖ + ‖x_s‖ ΔW_g + η_{s-1} ΔU_g) / 4``, Δr and Δo likewise, and Δc too,
    without the 4. Repaired: Chen, Li & Zhao 2019, Theorem 5, leave out Δo and take C to be 1, which is false for some.

    Args:
        start_memory: c before the first step, if it is not zero.
        refined: whether, once C and ô are known, ``ô tanh(C)`` takes the place of 1 as the largest entry of a state.

    >>> norms = {f"{side} {gate}": 0.5 for side in "WU" for gate in ("input", "forget", "candidate", "output")}
    >>> walk = LSTMClass(hidden=4, features=2, norms=norms).walk(
    ...     Signal(log_norm=np.zeros(2), log_moves=np.zeros((2, 0)))
    ... )
    >>> np.exp(walk.state.log_norm).round(9).tolist(), np.exp(walk.memory.log_norm).round(9).tolist()
    ([0.5, 1.25], [0.5, 1.25])
    """

    start_memory: Start | None = None
    refined: bool = True

    kind: ClassVar[str] = "lstm"

    @property
    def _starts(self) -> tuple[Block, ...]:
        found = super()._starts
        if self.start_memory is None or not self.start_memory.learned:
            return found
        norm = self.start_memory.norm
        return (*found, Block(name="start memory", rows=self.hidden, columns=1, bound=norm, log_lipschitz=-math.inf))

    def walk(self, inputs: Signal) -> Walk:
        log_x, B = inputs.log_norms(folded=self.bias), self.norms
        g, r, o = gates = self._gates(inputs)
        sizes = self._lengths(log_x, *gates)
        old, tau, before = sizes.entry[:-1] / 4, np.tanh(sizes.entry[1:]) / 4, logs(sizes.norm[:-1])
        # How differences of inputs and of states, and then the matrices themselves, enter c and h.
        to_c = {side: old * B[f"{side} forget"] + B[f"{side} input"] / 4 + r * B[f"{side} candidate"] for side in "WU"}
        to_h = {side: tau * B[f"{side} output"] for side in "WU"}
        into_c = {"forget": logs(old), "input": logs(np.full(len(r), 0.25)), "candidate": logs(r)}
        reads = {"W": log_x, "U": before}
        own_c = {f"{side} {gate}": size + reads[side] for gate, size in into_c.items() for side in "WU"}
        own_h = {f"{side} output": logs(tau) + reads[side] for side in "WU"}
        state, memory = self._moves(
            inputs,
            logs(np.stack([g, to_c["U"], o, to_h["U"]])),
            self.log_added(inputs, logs(to_c["W"]), own_c),
            self.log_added(inputs, logs(to_h["W"]), own_h),
        )
        root = math.sqrt(self.hidden)
        growth = g + r * B["U candidate"] + (sizes.entry[1:] * B["U forget"] + B["U input"] + B["U output"]) / 4
        return Walk(
            state=Signal(log_norm=logs(sizes.norm[1:]), log_moves=state),
            memory=Signal(log_norm=logs(np.minimum(sizes.length, root * sizes.entry)[1:]), log_moves=memory),
            log_growth=log_of(float(growth.max())),
            log_decay=log_of(float((g + r * o * B["U candidate"]).max())),
        )

    def _moves(self, inputs: Signal, log_factors: Floats, into_c: Floats, into_h: Floats) -> tuple[Floats, Floats]:
        """How far state and memory move, as logarithms, after each step."""
        u, v = self.log_first(inputs), self.log_first(inputs, "start memory")
        state, memory = np.empty_like(into_h), np.empty_like(into_c)
        for step, (keep, cross, out, back) in enumerate(log_factors.T.tolist()):
            v = np.logaddexp(np.logaddexp(v + keep, u + cross), into_c[step])
            u = np.logaddexp(np.logaddexp(v + out, u + back), into_h[step])
            state[step], memory[step] = u, v
        return state, memory

    def largest_state(self, inputs: Signal) -> float:
        first = 0.0 if self.start is None else self.start.entry
        if not self.refined:
            return max(1.0, first)
        coarse = replace(self, refined=False)
        g, r, o = coarse._gates(inputs)
        entry = self._lengths(inputs.log_norms(folded=self.bias), g, r, o).entry[1:]
        return max(first, float((o * np.tanh(entry)).max()))

    def _gates(self, inputs: Signal) -> tuple[Floats, Floats, Floats]:
        """``ĝ``, ``r̂`` and ``ô`` at each step."""
        largest = self.largest_state(inputs)
        g, r, o = (self.rows(gate).most_open(inputs.log_norm, largest) for gate in ("forget", "input", "output"))
        return g, r, o

    def _lengths(self, log_x: Floats, g: Floats, r: Floats, o: Floats) -> _Lengths:
        root, W, U = math.sqrt(self.hidden), self.norms["W candidate"], self.norms["U candidate"]
        first = self.start_memory or Start(norm=0.0)
        entry, length, norm = [first.entry], [first.norm], [self.first_norm]
        for x, keep, take, out in zip(numbers(log_x), g.tolist(), r.tolist(), o.tolist(), strict=True):
            entry.append(keep * entry[-1] + take)
            length.append(keep * length[-1] + take * min(root, W * x + U * norm[-1]))
            norm.append(out * min(root * math.tanh(entry[-1]), length[-1]))
        return _Lengths(entry=np.array(entry), length=np.array(length), norm=np.array(norm))

    def closed_form(self, log_input: float, steps: int) -> ClosedForm:
        """``β = ĝ + r̂ B_Uc + (C B_Ug + B_Ur + B_Uo) / 4``, ``C = r̂ S_t(ĝ)``, and √hidden for every η (repaired)."""
        same = Signal(log_norm=np.full(steps, log_input), log_moves=np.zeros((steps, 0)))
        walk, log_x = self.walk(same), float(same.log_norms(folded=self.bias)[0])
        g, r, _ = (float(gate[0]) for gate in self._gates(same))
        log_entry = log_of(r) + log_geometric(log_of(g), steps)
        log_sum = log_geometric(walk.log_growth, steps)
        sizes = {"W": log_x, "U": math.log(self.hidden) / 2}
        quarter = math.log(0.25)
        gates = {"forget": log_entry + quarter, "input": quarter, "output": quarter, "candidate": log_of(r)}
        log_hidden = float(walk.state.log_norm[-1])
        return ClosedForm(
            log_moves={
                f"{side} {gate}": log_sum + factor + size
                for gate, factor in gates.items()
                for side, size in sizes.items()
            },
            log_hidden=log_hidden,
            log_read=log_hidden,
            log_growth=walk.log_growth,
            log_decay=walk.log_decay,
        )
