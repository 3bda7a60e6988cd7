"""The reference engine: the plain loop under autograd. It is the truth, and runs every combination."""

from __future__ import annotations

import torch
from torch import Tensor

from statewise.cells import Transition
from statewise.engine.layout import Turn
from statewise.engine.product import RecurrentProduct
from statewise.engine.recurrence import Mixed, Recurrence, Unrolled


def unroll(call: Recurrence) -> Unrolled:
    """Unroll a recurrence step by step in plain torch operations; everything it returns carries gradients."""
    terms, product = call.project(), RecurrentProduct(call, recording=False)
    turns = call.layout.turns(reverse=call.reverse)
    state, memory = call.initial_state[:0], None if call.initial_memory is None else call.initial_memory[:0]
    seen: dict[int, tuple[Tensor, Tensor | None, Transition, Tensor | None]] = {}
    ended: dict[int, tuple[Tensor, Tensor | None]] = {}
    for turn, following in zip(turns, (*turns[1:], Turn(0, 0, 0)), strict=True):
        state = torch.cat((state[: turn.kept], call.initial_state[turn.kept : turn.rows]))
        if memory is not None and call.initial_memory is not None:
            memory = torch.cat((memory[: turn.kept], call.initial_memory[turn.kept : turn.rows]))
        product.begin(turn)
        old = (state, memory)
        moved = transition(call, product, terms, old, turn)[0]
        state, memory, probabilities = moved.state, moved.memory, None
        for step in call.chain:
            draws = tuple(drawn.at(turn) for drawn in step.draws)
            change = step.transform.forward(state, memory, old, draws, step.parameters)
            state, memory = change.state, change.memory
            probabilities = probabilities if change.probabilities is None else change.probabilities
        seen[turn.start] = (state, memory, moved, probabilities)
        if following.kept < turn.rows:
            ended[following.kept] = (state[following.kept :], None if memory is None else memory[following.kept :])
    return _gather([seen[start] for start in sorted(seen)], [ended[row] for row in sorted(ended)], call)


def transition(
    call: Recurrence, product: RecurrentProduct, terms: Tensor, old: tuple[Tensor, Tensor | None], turn: Turn
) -> tuple[Transition, ...]:
    """The cell application: one, or for through-time mixing the mixed result followed by the two members'."""
    here = slice(turn.start, turn.start + turn.rows)
    first = call.cell.forward(terms[here], *old, product, call.extra)
    if call.mixed is None:
        return (first,)
    product.begin(turn, member=1)
    second = call.cell.forward(call.mixed.second_term[here], *old, product, call.extra)
    return mix(first, second, call.mixed, turn), first, second


def mix(first: Transition, second: Transition, mixed: Mixed, turn: Turn) -> Transition:
    """``lambda a + (1 - lambda) a'`` of state, memory and, for those who look, gates."""
    weight = mixed.coefficients.at(turn).to(first.state.dtype)

    def blend(one: Tensor, other: Tensor) -> Tensor:
        return weight * one + (1 - weight) * other

    memory = None
    if first.memory is not None and second.memory is not None:
        memory = blend(first.memory, second.memory)
    return Transition(blend(first.state, second.state), memory, tuple(map(blend, first.saved, second.saved)))


def _gather(
    seen: list[tuple[Tensor, Tensor | None, Transition, Tensor | None]],
    ended: list[tuple[Tensor, Tensor | None]],
    call: Recurrence,
) -> Unrolled:
    states, memories, moved, probabilities = zip(*seen, strict=True)
    observed = zip(*(m.saved[: len(call.cell.observed)] for m in moved), strict=True)
    return Unrolled(
        states=torch.cat(states),
        final_state=torch.cat([state for state, _ in ended]),
        final_memory=torch.cat([m for _, m in ended if m is not None]) if call.cell.has_memory else None,
        memories=torch.cat(memories) if call.cell.has_memory else None,
        gates=tuple(torch.cat(gate) for gate in observed),
        probabilities=None if probabilities[0] is None else torch.cat(probabilities),
    )
