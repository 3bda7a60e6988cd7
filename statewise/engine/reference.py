"""The reference engine: the plain loop under autograd. It is the truth, and runs whatever no faster engine does."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from statewise.cells import Transition
from statewise.engine.fitting import check_draws, check_weights
from statewise.engine.layout import Turn
from statewise.engine.product import RecurrentProduct
from statewise.engine.recurrence import Mixed, Recurrence, Unrolled


class _Seen(NamedTuple):
    """What can be looked at in one step besides its states."""

    memory: Tensor | None
    gates: tuple[Tensor, ...]
    probabilities: Tensor | None


def unroll(call: Recurrence) -> Unrolled:
    """Unroll a recurrence step by step in plain torch operations; everything it returns carries gradients."""
    check_weights(call)
    check_draws(call)
    product = RecurrentProduct(call)
    # Cut into steps at once: the derivative of a cut for one step would be as large as all of them.
    terms = (call.project(),) if call.mixed is None else (call.project(), call.mixed.second_term)
    pieces = zip(*(term.split(call.layout.batch_sizes) for term in terms), strict=True)
    steps = dict(zip(call.layout.offsets[:-1], pieces, strict=True))
    turns = call.layout.turns(reverse=call.reverse)
    state, memory = call.initial_state[:0], None if call.initial_memory is None else call.initial_memory[:0]
    states: dict[int, Tensor] = {}
    seen: dict[int, _Seen] = {}
    ended: dict[int, tuple[Tensor, Tensor | None]] = {}
    for turn, following in zip(turns, (*turns[1:], Turn(0, 0, 0)), strict=True):
        state = _entering(state, call.initial_state, turn)
        if memory is not None and call.initial_memory is not None:
            memory = _entering(memory, call.initial_memory, turn)
        product.begin(turn)
        old = (state, memory)
        moved = _transition(call, product, steps[turn.start], old, turn)
        state, memory, probabilities = moved.state, moved.memory, None
        for step in call.chain:
            draws = tuple(drawn.at(turn) for drawn in step.draws)
            change = step.transform.forward(state, memory, old, draws, step.parameters)
            state, memory = change.state, change.memory
            probabilities = probabilities if change.probabilities is None else change.probabilities
        states[turn.start] = state
        if call.record:  # else what a step made is freed with it, where autograd does not need it
            seen[turn.start] = _Seen(memory, moved.gates, probabilities)
        if following.kept < turn.rows:
            ended[following.kept] = (state[following.kept :], None if memory is None else memory[following.kept :])
    ends = [ended[row] for row in sorted(ended)] or [(state, memory)]  # of an empty batch none ends
    return _gather([states[start] for start in sorted(states)], [seen[start] for start in sorted(seen)], ends)


def _entering(running: Tensor, initial: Tensor, turn: Turn) -> Tensor:
    """The rows with which a step begins: those that run on, then those that start."""
    if turn.kept == turn.rows:
        return running[: turn.rows]
    return torch.cat((running[: turn.kept], initial[turn.kept : turn.rows]))


def _transition(
    call: Recurrence,
    product: RecurrentProduct,
    terms: tuple[Tensor, ...],
    old: tuple[Tensor, Tensor | None],
    turn: Turn,
) -> Transition:
    """The cell application; for through-time mixing that of both members, mixed."""
    members = [call.cell.forward(term, *old, product, call.extra) for term in terms]
    return members[0] if call.mixed is None else _mix(members[0], members[1], call.mixed, turn)


def _mix(first: Transition, second: Transition, mixed: Mixed, turn: Turn) -> Transition:
    """``lambda a + (1 - lambda) a'`` of state, memory and, for those who look, gates."""
    weight = mixed.coefficients.at(turn).to(first.state.dtype)

    def blend(one: Tensor, other: Tensor) -> Tensor:
        return weight * one + (1 - weight) * other

    memory = None
    if first.memory is not None and second.memory is not None:
        memory = blend(first.memory, second.memory)
    return Transition(blend(first.state, second.state), memory, tuple(map(blend, first.gates, second.gates)))


def _gather(states: list[Tensor], seen: list[_Seen], ended: list[tuple[Tensor, Tensor | None]]) -> Unrolled:
    return Unrolled(
        states=torch.cat(states),
        final_state=torch.cat([state for state, _ in ended]),
        final_memory=_joined([memory for _, memory in ended]),
        memories=_joined([step.memory for step in seen]),
        gates=tuple(torch.cat(gate) for gate in zip(*(step.gates for step in seen), strict=True)),
        probabilities=_joined([step.probabilities for step in seen]),
    )


def _joined(parts: list[Tensor | None]) -> Tensor | None:
    """The parts as one, if there are any: all steps have them, or none."""
    there = [part for part in parts if part is not None]
    return torch.cat(there) if there else None
