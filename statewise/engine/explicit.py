"""The cpu engine in Python: backpropagation through time written out, for every cell and every transform."""

from __future__ import annotations

import torch
from torch import Tensor

from statewise.cells import Transition, TransitionGrads
from statewise.engine.backward import Gradients, Run, unroll_with
from statewise.engine.product import RecurrentProduct
from statewise.engine.recurrence import Recurrence, Unrolled
from statewise.engine.reference import transition
from statewise.transforms import StateChange


def unroll(call: Recurrence) -> Unrolled:
    """Unroll a recurrence with its derivative written out; what is seen along the way carries no gradient."""
    return unroll_with(_Run, call)


class _Run(Run):
    """One forward pass, with what its backward pass needs."""

    def __init__(self, call: Recurrence) -> None:
        self.turns = call.layout.turns(reverse=call.reverse)
        self.product = RecurrentProduct(call, recording=True)
        self.members: list[tuple[Transition, ...]] = []
        self.changes: list[list[StateChange]] = []
        self.old: list[tuple[Tensor, Tensor | None]] = []

    def forward(self, call: Recurrence) -> tuple[Tensor | None, ...]:
        terms = call.project()
        state, memory = call.initial_state, call.initial_memory
        rows, has_memory = call.layout.rows, memory is not None
        states = terms.new_empty(rows, call.hidden)
        memories = terms.new_empty(rows, call.hidden) if has_memory else None
        final_state = call.initial_state.clone()
        final_memory = None if call.initial_memory is None else call.initial_memory.clone()
        probabilities: dict[int, Tensor] = {}
        for turn in self.turns:
            here = slice(turn.start, turn.start + turn.rows)
            old = (
                final_state[: turn.rows].clone(),
                None if final_memory is None else final_memory[: turn.rows].clone(),
            )
            self.product.begin(turn)
            members = transition(call, self.product, terms, old, turn)
            state, memory, changes = members[0].state, members[0].memory, []
            for step in call.chain:
                draws = tuple(drawn.at(turn) for drawn in step.draws)
                changes.append(step.transform.forward(state, memory, old, draws, step.parameters))
                state, memory = changes[-1].state, changes[-1].memory
                if changes[-1].probabilities is not None:
                    probabilities[turn.start] = changes[-1].probabilities
            states[here] = final_state[: turn.rows] = state
            if memories is not None and final_memory is not None and memory is not None:
                memories[here] = final_memory[: turn.rows] = memory
            self.old.append(old)
            self.members.append(members)
            self.changes.append(changes)
        return (states, final_state, final_memory, memories, *self._seen(call, probabilities))

    def _seen(self, call: Recurrence, probabilities: dict[int, Tensor]) -> tuple[Tensor | None, ...]:
        if not call.record:
            return (None,)
        order = sorted(range(len(self.turns)), key=lambda index: self.turns[index].start)
        alpha = torch.cat([probabilities[start] for start in sorted(probabilities)]) if probabilities else None
        gates = (
            torch.cat([self.members[index][0].saved[gate] for index in order])
            for gate in range(len(call.cell.observed))
        )
        return (alpha, *gates)

    @staticmethod
    def turned(grad: Tensor, values: Tensor) -> Tensor:
        return grad.T @ values

    def backward(
        self,
        call: Recurrence,
        states: Tensor,
        grad_states: Tensor | None,
        grad_final: Tensor | None,
        grad_final_memory: Tensor | None,
        *,
        inputs_wanted: bool,
    ) -> Gradients:
        grad = torch.zeros_like(call.initial_state) if grad_final is None else grad_final.clone()
        grad_memory = None
        if call.initial_memory is not None:
            grad_memory = torch.zeros_like(call.initial_memory)
            if grad_final_memory is not None:
                grad_memory.copy_(grad_final_memory)
        terms = [
            call.initial_state.new_empty(call.layout.rows, call.weight_hh.shape[0])
            for _ in range(1 if call.mixed is None else 2)
        ]
        extra = [torch.zeros_like(tensor) for tensor in call.extra]
        parameters = [[torch.zeros_like(tensor) for tensor in step.parameters] for step in call.chain]
        for index in reversed(range(len(self.turns))):
            turn = self.turns[index]
            here = slice(turn.start, turn.start + turn.rows)
            dh, dc = grad[: turn.rows], None if grad_memory is None else grad_memory[: turn.rows]
            if grad_states is not None:
                dh = dh + grad_states[here]
            dh, dc, old_state, old_memory = self._undo_chain(call, index, dh, dc, parameters)
            results = self._undo_transition(call, index, dh, dc)
            for term, result in zip(terms, results, strict=True):
                term[here] = result.input_term
                old_state = result.state if old_state is None else old_state + result.state
                if result.memory is not None:
                    old_memory = result.memory if old_memory is None else old_memory + result.memory
                for total, piece in zip(extra, result.extra, strict=True):
                    total += piece
            assert old_state is not None
            # Rows that began here end their journey in the gradient of the initial state.
            grad[: turn.rows] = old_state
            if grad_memory is not None and old_memory is not None:
                grad_memory[: turn.rows] = old_memory
        weight, bias = self.product.gradients()
        learnt = [tensor for step in parameters for tensor in step]
        return Gradients(
            inputs=terms[0] @ call.weight_ih if inputs_wanted and call.weight_ih is not None else None,
            input_term=terms[0],
            second_term=None if call.mixed is None else terms[1],
            bias_ih=None if call.bias_ih is None else terms[0].sum(0),
            weight_hh=weight,
            bias_hh=bias,
            initial_state=grad,
            initial_memory=grad_memory,
            extra=extra,
            parameters=learnt,
        )

    def _undo_chain(
        self, call: Recurrence, index: int, dh: Tensor, dc: Tensor | None, parameters: list[list[Tensor]]
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        old_state: Tensor | None = None
        old_memory: Tensor | None = None
        for place in reversed(range(len(call.chain))):
            step, change = call.chain[place], self.changes[index][place]
            draws = tuple(drawn.at(self.turns[index]) for drawn in step.draws)
            undone = step.transform.backward(dh, dc, change.saved, draws, step.parameters)
            dh, dc = undone.state, undone.memory
            if undone.previous_state is not None:
                old_state = undone.previous_state if old_state is None else old_state + undone.previous_state
            if undone.previous_memory is not None:
                old_memory = undone.previous_memory if old_memory is None else old_memory + undone.previous_memory
            for total, piece in zip(parameters[place], undone.parameters, strict=True):
                total += piece
        return dh, dc, old_state, old_memory

    def _undo_transition(self, call: Recurrence, index: int, dh: Tensor, dc: Tensor | None) -> list[TransitionGrads]:
        """The gradients of the cell application; with mixing those of both members."""
        turn, members, (state, memory) = self.turns[index], self.members[index], self.old[index]
        shares: list[tuple[Transition, Tensor]] = [(members[0], dh.new_ones(()))]
        if call.mixed is not None:
            weight = call.mixed.coefficients.at(turn).to(dh.dtype)
            shares = [(members[1], weight), (members[2], 1 - weight)]
        results = []
        for which, (moved, weight) in enumerate(shares):
            self.product.begin(turn, member=which)
            grad_memory = None if dc is None else dc * weight
            result = call.cell.backward(
                dh * weight, grad_memory, moved.saved, state, memory, moved.memory, self.product, call.extra
            )
            results.append(result)
        return results
