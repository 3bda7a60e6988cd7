"""The compiled form for many networks of one shape: from operands to the kernel's arguments, and back to gradients.

Every tensor here has the replicas as its first dimension. What they share has a stride of 0 there, and is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import torch
from torch import Tensor

from statewise.cells import RNNCell
from statewise.engine import compiled
from statewise.engine.device.operands import Facts, Operands
from statewise.transforms import Centroids

# Where the operands that are one tensor each lie in the flat row of them.
PLACES = {entry.name: place for place, entry in enumerate(fields(Operands))}


class Made(NamedTuple):
    """What the kernel needs on the way back, as it has given it; an empty tensor where there is nothing."""

    states: Tensor
    term: Tensor
    memories: Tensor
    cell_memories: Tensor
    apart: Tensor
    gated: Tensor
    rooms: list[Tensor]

    def kept(self, facts: Facts) -> list[Tensor]:
        """All but the states, each once, and only what is there."""
        found = [self.term, self.memories, self.apart, self.gated]
        found = [tensor for tensor in found if tensor.numel()]
        return [*found, *([self.cell_memories] if facts.memory_changes else ()), *self.rooms]

    @classmethod
    def of(cls, facts: Facts, states: Tensor, kept: Sequence[Tensor]) -> Made:
        """The counterpart of :meth:`kept`."""
        source, none = iter(kept), states.new_empty(0)
        term = next(source)
        memories = next(source) if facts.cell.has_memory else none
        apart = none if facts.cell.additive else next(source)
        gated = next(source) if facts.two_products else none
        cell_memories = next(source) if facts.memory_changes else memories
        return cls(states, term, memories, cell_memories, apart, gated, list(source))


class Walked(NamedTuple):
    """The result of a walk forward."""

    final_state: Tensor
    final_memory: Tensor
    probabilities: Tensor | None
    made: Made


@dataclass
class _Encoded:
    """The chain of transforms as the kernel reads it, with room for what it leaves behind."""

    integers: list[int] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    rooms: list[int] = field(default_factory=list)  # where the results of transforms with centroids begin
    alpha: Tensor | None = None


def lay_out(row: Sequence[Tensor | None], transforms: int) -> Operands:
    """The operands, each replica's numbers one after the other, as the kernel reads them."""
    return Operands.of(transforms, iter([None if tensor is None else _laid_out(tensor) for tensor in row]))


def _laid_out(tensor: Tensor) -> Tensor:
    return tensor if tensor[0].is_contiguous() else tensor.contiguous()


def walk(facts: Facts, given: Operands) -> Walked:
    """All replicas from the first step to the last."""
    none, code = given.weight_hh.new_empty(0), _encode(facts, given)
    term, inputs, weight_ih, bias, apart_bias = _input_side(facts, given, none)
    found: list[Tensor] = torch.ops.statewise_native.forward_replicas(
        *_cell_of(facts),
        *(term, inputs, weight_ih, bias, given.weight_hh, apart_bias),
        *(_or(none, tensor) for tensor in (given.extra, given.initial_state, given.initial_memory)),
        *(facts.layout.batch_sizes, facts.reverse, facts.start_at_one),
        *_mask_of(facts, given, none),
        facts.memory_changes,
        *(code.integers, code.numbers, code.tensors),
    )
    rooms = [tensor for room in code.rooms for tensor in code.tensors[room : room + 3]]
    states, final, memory, kept, memories, cell_memories, apart, gated = found
    return Walked(final, memory, code.alpha, Made(states, kept, memories, cell_memories, apart, gated, rooms))


def walk_back(
    facts: Facts, given: Operands, made: Made, grads: Sequence[Tensor | None], needed: Sequence[bool]
) -> list[Tensor | None]:
    """The gradients of the operands, as a flat row of them.

    Args:
        facts: the recurrence but for its numbers.
        given: the operands.
        made: what the walk forward has left.
        grads: of states, final state and, if the cell has one, final memory.
        needed: for each of the row whether its gradient is wanted.
    """
    code, none = _encode(facts, given, made.rooms), made.states.new_empty(0)
    of_states, *of_final = (None if grad is None else _laid_out(grad) for grad in grads)
    zeros = torch.zeros_like(given.initial_state, memory_format=torch.contiguous_format)
    final = [_or(zeros, grad) for grad in of_final]
    wanted = {name: needed[place] for name, place in PLACES.items() if name not in ("learnt", "drawn")}
    found = torch.ops.statewise_native.backward_replicas(
        *_cell_of(facts),
        *(made.term, _or(none, given.inputs), _or(none, given.weight_ih), given.weight_hh),
        *(_or(none, tensor) for tensor in (given.extra, given.initial_state, given.initial_memory)),
        *(facts.layout.batch_sizes, facts.reverse),
        *_mask_of(facts, given, none),
        facts.memory_changes,
        *(code.integers, code.numbers, code.tensors),
        [made.states, made.memories, made.cell_memories, made.apart, made.gated],
        *(_or(none, of_states), final[0], final[1] if facts.cell.has_memory else none),
        *(wanted[name] for name in ("inputs", "input_term", "weight_ih", "weight_hh")),
        wanted["bias_ih"] or wanted["bias_hh"],
    )
    inputs, term, weight_ih, weight_hh, bias, state, memory, extra = found
    hidden, width = facts.hidden, facts.blocks * facts.hidden
    # Where a product is kept apart, its part of the sums takes the last block's place.
    recurrent = bias if facts.cell.additive else torch.cat((bias[:, : width - hidden], bias[:, width:]), dim=1)
    row: list[Tensor | None] = [None] * len(needed)
    own = {"inputs": inputs, "input_term": term, "weight_ih": weight_ih, "weight_hh": weight_hh, "extra": extra}
    own |= {"bias_ih": bias[:, :width], "bias_hh": recurrent, "initial_state": state, "initial_memory": memory}
    for name, grad in own.items():
        row[PLACES[name]] = grad if wanted[name] else None
    for place, room in zip(_centroids(facts), code.rooms, strict=True):
        if needed[PLACES["learnt"] + place]:
            row[PLACES["learnt"] + place] = _learnt(facts, given, place, code.tensors[room : room + 6])
    return row


def _or(otherwise: Tensor, tensor: Tensor | None) -> Tensor:
    return otherwise if tensor is None else tensor


def _cell_of(facts: Facts) -> tuple[int, int]:
    """The numbers by which the kernel knows cell and activation."""
    cell = facts.cell
    activation = compiled.ACTIVATIONS.index(cell.nonlinearity) if isinstance(cell, RNNCell) else 0
    return compiled.CELLS[type(cell)], activation


def _mask_of(facts: Facts, given: Operands, none: Tensor) -> tuple[Tensor, bool]:
    """The mask of the state, and whether it is constant in time."""
    return _or(none, given.mask), facts.mask is not None and facts.mask[2]


def _input_side(facts: Facts, given: Operands, none: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The input term if it is given, else inputs, weight and bias; and the bias of the product kept apart.

    The bias of a product that is merely added belongs to the input term.
    """
    bias, apart_bias = given.bias_hh, none
    if bias is not None and not facts.cell.additive:
        apart_bias = bias[:, -facts.hidden :].contiguous()
        bias = torch.cat((bias[:, : -facts.hidden], torch.zeros_like(apart_bias)), dim=1)
    if given.input_term is not None:
        term = given.input_term if bias is None else given.input_term + bias.unsqueeze(1)
        return term.clone(memory_format=torch.contiguous_format), none, none, none, apart_bias
    assert given.inputs is not None and given.weight_ih is not None
    if given.bias_ih is not None:
        bias = given.bias_ih if bias is None else bias + given.bias_ih
    return none, given.inputs, given.weight_ih, _or(none, bias), apart_bias


def _centroids(facts: Facts) -> list[int]:
    """The places in the chain of the transforms with centroids."""
    return [place for place, (transform, _) in enumerate(facts.chain) if isinstance(transform, Centroids)]


def _encode(facts: Facts, given: Operands, kept: Sequence[Tensor] = ()) -> _Encoded:
    """The chain on the way forward or, with what forward has kept, on the way back."""
    code, like, source = _Encoded(), given.weight_hh, iter(kept)
    replicas, rows = like.shape[0], facts.layout.rows
    for place, (transform, constant) in enumerate(facts.chain):
        drawn = [tensor for tensor in given.drawn[2 * place : 2 * place + 2] if tensor is not None]
        first, room, learnt = len(code.tensors), None, given.learnt[place]
        code.tensors += drawn if learnt is None else [learnt, *drawn]
        if isinstance(transform, Centroids):
            room, spaces = len(code.tensors), (facts.hidden, transform.k, transform.k)
            code.rooms.append(room)
            if kept:
                code.tensors += [next(source) for _ in spaces]
                code.tensors.append(like.new_empty(0))
                # Then the gradient behind the transform, and the slope.
                code.tensors += [like.new_empty(replicas, rows, width) for width in spaces[:2]]
            else:
                code.alpha = like.new_empty(replicas, rows if facts.record else 0, transform.k)
                code.tensors += [*(like.new_empty(replicas, rows, width) for width in spaces), code.alpha]
        integers, numbers = compiled.word_of(transform, first, bool(drawn), constant, room)
        code.integers += integers
        code.numbers += numbers
    return code


def _learnt(facts: Facts, given: Operands, place: int, left: list[Tensor]) -> Tensor:
    """The gradient of a transform's centroids, one replica after the other."""
    transform, centroids = facts.chain[place][0], given.learnt[place]
    assert isinstance(transform, Centroids) and centroids is not None
    before, weights, _, _, after, slope = left
    parts = (centroids, before, weights, after, slope)
    return torch.stack([transform.learnt_gradient(*one) for one in zip(*parts, strict=True)])
