"""The cpu engine's compiled form: the walk through time in C++, the big products around it here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from statewise.cells import (
    Cell,
    GRUCell,
    LSTMCell,
    MGUCell,
    PeepholeLSTMCell,
    RACCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from statewise.engine.backward import Gradients, Run, unroll_with
from statewise.engine.fitting import alike, check_weights, fit
from statewise.engine.recurrence import Drawn, Recurrence, Unrolled
from statewise.transforms import Centroids, Noise, StateTransform, Zoneout
from statewise.transforms.centroids import SIMILARITIES

# The numbers by which kernel.cpp knows cells, activations and transforms.
CELLS: dict[type[Cell], int] = {
    RNNCell: 0,
    LSTMCell: 1,
    PeepholeLSTMCell: 2,
    GRUCell: 3,
    ResetBeforeGRUCell: 4,
    MGUCell: 5,
    RACCell: 6,
}
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity", "modrelu")
_MULTIPLY, _ADD, _ZONEOUT, _CENTROIDS = range(4)


def why_not(call: Recurrence) -> str | None:
    """The reason why the kernel cannot run a recurrence, or None if it can."""
    if type(call.cell) not in CELLS:
        return f"it has no code for the cell {call.cell.name}"
    if call.mixed is not None and type(call.cell) in (MGUCell, ResetBeforeGRUCell):
        return f"it does not mix through time in the cell {call.cell.name}, which needs two products"
    if call.mask is not None and (call.mask.on_projection or not call.mask.shared):
        return "of the recurrent dropout masks it knows those on the state that all gates share"
    for step in call.chain:
        if type(step.transform) not in (Noise, Zoneout, Centroids):
            return f"it has no code for {type(step.transform).__name__}"
    return None


def unroll(call: Recurrence) -> Unrolled:
    """Unroll a recurrence in C++; what is seen along the way carries no gradient."""
    return unroll_with(_Run, call)


def _turned(grad: Tensor, values: list[Tensor], firsts: list[int]) -> Tensor:
    product: Tensor = _ops().weight_gradient(grad, values, firsts)
    return product


def _ops() -> Any:
    return torch.ops.statewise_native


@dataclass
class _Encoded:
    """The chain of transforms as the kernel reads it, with room for what it leaves behind."""

    integers: list[int] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    rooms: list[int | None] = field(default_factory=list)  # where a transform's results begin among the tensors


def _encode(call: Recurrence) -> _Encoded:
    code, rows, like = _Encoded(), call.layout.rows, call.weight_hh
    for step in call.chain:
        transform, draws = step.transform, alike(step, call)
        first, room = len(code.tensors), None
        if isinstance(transform, Centroids):
            code.tensors += [step.parameters[0].contiguous(), *(_read(drawn, call, transform.k) for drawn in draws)]
            room = len(code.tensors)
            widths = (like.shape[1], transform.k, transform.k)
            code.tensors += [like.new_empty(rows, width) for width in widths]
            code.tensors.append(like.new_empty(rows if call.record else 0, transform.k))
        else:
            code.tensors += [_read(drawn, call, call.hidden) for drawn in draws]
        integers, numbers = word_of(transform, first, bool(draws), bool(draws) and draws[0].constant, room)
        code.integers += integers
        code.numbers += numbers
        code.rooms.append(room)
    return code


def word_of(
    transform: StateTransform, first: int, drawn: bool, constant: bool, room: int | None
) -> tuple[list[int], tuple[float, float]]:
    """A transform as the kernel reads it: whole numbers, then others.

    Args:
        transform: one that the kernel knows.
        first: the place of its first tensor: centroids, or what was drawn.
        drawn: whether it draws.
        constant: whether what it drew is constant in time.
        room: the first place of what the kernel leaves behind, if it does.

    >>> word_of(Noise("gaussian", 0.1), 4, True, False, None)
    ([0, 4, -1, 0, 0, 0, 0, 0, -1], (0.0, 0.0))
    """
    if isinstance(transform, Centroids):
        assert room is not None
        word = [_CENTROIDS, first, first + 1 if drawn else -1, 0, transform.k, SIMILARITIES.index(transform.similarity)]
        word += [transform.hard, transform.soft_gradient, room]
        return list(map(int, word)), (1 / transform.temperature, transform.sharpness)
    kind = _ZONEOUT
    if isinstance(transform, Noise):
        kind = _MULTIPLY if transform.mode == "multiplicative" else _ADD
    return [kind, first, first + 1 if kind == _ZONEOUT else -1, int(constant), 0, 0, 0, 0, -1], (0.0, 0.0)


def _read(drawn: Drawn, call: Recurrence, width: int) -> Tensor:
    return fit(drawn, call, width).to(call.weight_hh.dtype).contiguous()


class _Run(Run):
    """One forward pass of the kernel, with what its backward pass needs."""

    def __init__(self, call: Recurrence) -> None:
        cell = call.cell
        check_weights(call)
        self.cell = CELLS[type(cell)]
        self.activation = ACTIVATIONS.index(cell.nonlinearity) if isinstance(cell, RNNCell) else 0
        self.code = _encode(call)
        none = call.weight_hh.new_empty(0)
        self.mask = none if call.mask is None else _read(call.mask.mask, call, call.hidden)
        self.mask_constant = call.mask is not None and call.mask.mask.constant
        self.memory_changes = cell.has_memory and any(isinstance(step.transform, Zoneout) for step in call.chain)
        self.coefficients, self.coefficients_constant = none, False
        if call.mixed is not None:
            self.coefficients = _read(call.mixed.coefficients, call, 1)
            self.coefficients_constant = call.mixed.coefficients.constant
        self.made: list[Tensor] = []
        self.none = none

    def forward(self, call: Recurrence) -> tuple[Tensor | None, ...]:
        given, inputs, weight_ih, bias, apart_bias = self._input_side(call)
        extra = call.extra[0].contiguous() if call.extra else self.none
        made = _ops().forward(
            self.cell,
            self.activation,
            given,
            inputs,
            weight_ih,
            bias,
            call.weight_hh.contiguous(),
            apart_bias,
            extra,
            call.initial_state.contiguous(),
            self.none if call.initial_memory is None else call.initial_memory.contiguous(),
            call.layout.batch_sizes,
            call.reverse,
            call.start_at_one,
            self.mask,
            self.mask_constant,
            self.none if call.mixed is None else call.mixed.second_term.contiguous(),
            self.coefficients,
            self.coefficients_constant,
            self.memory_changes,
            self.code.integers,
            self.code.numbers,
            self.code.tensors,
        )
        self.term, states, final_state, final_memory, *self.made = made
        # A copy for those who look: what they do to it must not reach the backward pass.
        memories = self.made[0].clone() if call.record and call.cell.has_memory else None
        final = final_memory if call.cell.has_memory else None
        return (states, final_state, final, memories, *self._seen(call))

    def _input_side(self, call: Recurrence) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The input term if it is given, else inputs, weight and bias; and the bias of the product kept apart.

        The bias of a product that is merely added belongs to the input term.
        """
        hidden, bias, none = call.hidden, call.bias_hh, self.none
        apart_bias = none
        if bias is not None and not call.cell.additive:
            apart_bias, bias = bias[-hidden:].contiguous(), torch.cat((bias[:-hidden], bias.new_zeros(hidden)))
        if call.mixed is not None:
            return call.project().contiguous(), none, none, none if bias is None else bias.contiguous(), apart_bias
        if call.input_term is not None:
            term = call.input_term.clone() if bias is None else call.input_term + bias
            return term, none, none, none, apart_bias
        assert call.inputs is not None and call.weight_ih is not None
        if call.bias_ih is not None:
            bias = call.bias_ih if bias is None else bias + call.bias_ih
        start = none if bias is None else bias.contiguous()
        return none, call.inputs.contiguous(), call.weight_ih.contiguous(), start, apart_bias

    def _seen(self, call: Recurrence) -> tuple[Tensor | None, ...]:
        if not call.record:
            return (None,)
        alpha = None
        for room in self.code.rooms:
            alpha = alpha if room is None else self.code.tensors[room + 3]
        seen = self.term
        if call.mixed is not None:
            weight = _over_time(self.coefficients, call) if self.coefficients_constant else self.coefficients
            seen = weight * self.term + (1 - weight) * self.made[4]
        gates = seen.split(call.hidden, dim=1)[: len(call.cell.observed)]
        return (alpha, *(gate.clone() for gate in gates))

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
        code, rows = self.code, call.layout.rows
        tensors = list(code.tensors)
        integers = list(code.integers)
        for place, room in enumerate(code.rooms):
            if room is not None:
                # Forward's four results, then backward's two, must lie side by side.
                integers[9 * place + 8] = len(tensors)
                width = tensors[room + 1].shape[1]
                grown = [call.weight_hh.new_empty(rows, call.hidden), call.weight_hh.new_empty(rows, width)]
                tensors += [*code.tensors[room : room + 4], *grown]
        zeros = torch.zeros_like(call.initial_state)
        memory = call.initial_memory
        wanted = call.weight_ih if inputs_wanted else None
        grad_inputs, grad, grad_memory, grad_extra, grad_bias, grad_product = _ops().backward(
            self.cell,
            self.activation,
            self.term,
            self.none if wanted is None else wanted.contiguous(),
            call.weight_hh.contiguous(),
            call.extra[0].contiguous() if call.extra else self.none,
            call.initial_state.contiguous(),
            self.none if memory is None else memory.contiguous(),
            call.layout.batch_sizes,
            call.reverse,
            self.mask,
            self.mask_constant,
            self.coefficients,
            self.coefficients_constant,
            self.memory_changes,
            integers,
            code.numbers,
            tensors,
            [states, zeros, zeros, *self.made],
            self.none if grad_states is None else grad_states.contiguous(),
            zeros if grad_final is None else grad_final.contiguous(),
            self.none if memory is None else zeros if grad_final_memory is None else grad_final_memory.contiguous(),
        )
        # The kernel has turned the gates into their gradients, in place.
        grad_term, grad_apart = self.term, self.made[2]
        grad_second, added = None, grad_term
        if call.mixed is not None:
            grad_second, added = self.made[4], grad_product
        learnt = []
        for place, (step, room) in enumerate(zip(call.chain, code.rooms, strict=True)):
            if room is not None:
                at = integers[9 * place + 8]
                before, weights, _, _, after, slope = tensors[at : at + 6]
                assert isinstance(step.transform, Centroids)
                learnt.append(step.transform.learnt_gradient(step.parameters[0], before, weights, after, slope))
        return Gradients(
            inputs=None if wanted is None else grad_inputs,
            input_term=grad_term,
            second_term=grad_second,
            weight_hh=self._weight_gradient(call, states, added, grad_apart),
            bias_ih=self._input_bias_gradient(call, grad_bias),
            bias_hh=self._bias_gradient(call, grad_bias),
            initial_state=grad,
            initial_memory=None if memory is None else grad_memory,
            extra=[grad_extra] if call.extra else [],
            parameters=learnt,
        )

    @staticmethod
    def turned(grad: Tensor, values: Tensor) -> Tensor:
        return _turned(grad, [values.contiguous()], [0])

    def _input_bias_gradient(self, call: Recurrence, grad: Tensor) -> Tensor | None:
        """Of the input bias: the kernel's sums, but for pairs, whose second term has a bias of its own."""
        if call.bias_ih is None:
            return None
        return grad[: self.term.shape[1]] if call.mixed is None else self.term.sum(0)

    @staticmethod
    def _bias_gradient(call: Recurrence, grad: Tensor) -> Tensor | None:
        """Of the recurrent bias: where a product is kept apart, its part of the sums takes the last block's place."""
        if call.bias_hh is None:
            return None
        return grad.clone() if call.cell.additive else torch.cat((grad[: -2 * call.hidden], grad[-call.hidden :]))

    def _weight_gradient(self, call: Recurrence, states: Tensor, grad_added: Tensor, grad_apart: Tensor) -> Tensor:
        """One big product for each kind of value that the recurrent weights were multiplied with.

        The products that are added have the gradient of the input term; only that of pairs comes without a last block
        that is kept apart.
        """
        hidden, gated = call.hidden, self.made[3]
        old = self._old_states(call, states)
        if call.cell.additive and not gated.numel():
            return _turned(grad_added, *old)
        special = grad_added[:, -hidden:] if call.cell.additive else grad_apart
        cut = call.weight_hh.shape[0] - hidden
        parts = [_turned(grad_added[:, :cut], *old)] if cut else []
        parts.append(_turned(special, [self._masked(call, gated)], [0]) if gated.numel() else _turned(special, *old))
        return torch.cat(parts)

    def _old_states(self, call: Recurrence, states: Tensor) -> tuple[list[Tensor], list[int]]:
        """The states that met U, each piece with its first row in the gradient; no copy where they lie evenly."""
        layout, batch, rows = call.layout, call.layout.batch, call.layout.rows
        if layout.dense and call.mask is None:
            pieces = [states[batch:] if call.reverse else states[:-batch]]
            firsts = [0 if call.reverse else batch]
            if layout.steps == 1 or bool(call.initial_state.any()):
                pieces.append(call.initial_state.contiguous())
                firsts.append(rows - batch if call.reverse else 0)
            return pieces, firsts
        old, before = torch.empty_like(states), 0
        for turn in layout.turns(reverse=call.reverse):
            old[turn.start : turn.start + turn.kept] = states[before : before + turn.kept]
            old[turn.start + turn.kept : turn.start + turn.rows] = call.initial_state[turn.kept : turn.rows]
            before = turn.start
        return [self._masked(call, old)], [0]

    def _masked(self, call: Recurrence, values: Tensor) -> Tensor:
        if call.mask is None:
            return values
        return values * (_over_time(self.mask, call) if self.mask_constant else self.mask)


def _over_time(rows: Tensor, call: Recurrence) -> Tensor:
    """One row for each sequence as a row for each step and sequence."""
    return torch.cat([rows[:size] for size in call.layout.batch_sizes])
