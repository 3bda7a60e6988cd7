"""The CPU engine's recurrence as operators of ``torch.library``, which ``torch.compile`` and ``torch.export`` see.

A saved program may call them with anything, so here all that the kernel trusts is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from statewise.engine.cpu import REMEDY, Kept, refuse_drawn, run_backward, run_forward
from statewise.engine.operands import Operands
from statewise.engine.program import CENTROIDS, ZONEOUT, Program
from statewise.errors import DtypeError, LengthError, SecondDerivativeError, ShapeError

_NAME = "statewise::recurrence"
_Entry = tuple[str, Tensor | None, tuple[int, ...] | None]  # a tensor's name, itself, and the shape that it must have


def _shapes(program: Program, given: Operands) -> Iterator[tuple[int, ...]]:
    """The shapes of what forward gives: states, final state, final memory, and what it keeps."""
    lead, hidden, rows = given.weight_hh.shape[:-2], given.weight_hh.shape[-1], _rows(given)
    yield (*lead, rows, hidden)
    yield tuple(given.initial_state.shape)
    yield (0,) if given.initial_memory is None else tuple(given.initial_memory.shape)
    if program.keep:
        for width in Kept.sizes(program, hidden, mixes=given.second_term is not None).values():
            yield (*lead, rows, width)


def _rows(given: Operands) -> int:
    source = given.inputs if given.input_term is None else given.input_term
    if source is None:
        raise ShapeError(where=_NAME, got="neither inputs nor an input term", wanted="one of them")
    return source.shape[-2]


def _check(program: Program, given: Operands) -> None:
    """Refuse tensors that do not fit each other, or the program."""
    hidden, batch, rows = given.weight_hh.shape[-1], given.initial_state.shape[-2], _rows(given)
    width, sizes = program.blocks * hidden, program.batch_sizes
    fits = sum(sizes) == rows and list(sizes) == sorted(sizes, reverse=True) and 0 < sizes[-1] and sizes[0] <= batch
    if not (fits if sizes else rows % max(1, batch) == 0):
        wanted = f"steps that have {rows} rows together, the longest first, of at most {batch} sequences"
        raise LengthError(where=f"{_NAME} batch_sizes", got=list(sizes), wanted=wanted)
    entering, extra = 0 if given.inputs is None else given.inputs.shape[-1], program.extra_rows

    def drawn(constant: bool, columns: int) -> tuple[int, int]:
        return (batch if constant else rows, columns)

    def if_given(tensor: Tensor | None, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        return None if tensor is None else shape

    entries: list[_Entry] = [
        ("inputs", given.inputs, None if given.input_term is not None else (rows, entering)),
        ("input_term", given.input_term, if_given(given.input_term, (rows, width))),
        ("weight_ih", given.weight_ih, if_given(given.inputs, (width, entering))),
        ("bias_ih", given.bias_ih, if_given(given.bias_ih, (width,))),
        ("weight_hh", given.weight_hh, (width, hidden)),
        ("bias_hh", given.bias_hh, if_given(given.bias_hh, (width,))),
        ("initial_state", given.initial_state, (batch, hidden)),
        ("initial_memory", given.initial_memory, (batch, hidden) if program.has_memory else None),
        ("extra", given.extra, None if extra is None else (extra, hidden) if extra else (hidden,)),
        ("mask", given.mask, if_given(given.mask, drawn(program.mask_constant, hidden))),
        ("second_term", given.second_term, if_given(given.second_term, (rows, width))),
        ("coefficients", given.coefficients, if_given(given.second_term, drawn(program.coefficients_constant, 1))),
    ]
    for place, (kind, _, constant, count, *_) in enumerate(program.chain):
        one, other = given.drawn[2 * place : 2 * place + 2]
        shape = drawn(bool(constant), count if kind == CENTROIDS else hidden)
        entries += [
            (f"centroids {place}", given.learnt[place], (count, hidden) if kind == CENTROIDS else None),
            (f"draw {place}", one, if_given(one, shape) if kind == CENTROIDS else shape),
            (f"second draw {place}", other, shape if kind == ZONEOUT else None),
        ]
    lead = (program.replicas,) if program.replicas else ()
    _compare([(name, tensor, None if shape is None else (*lead, *shape)) for name, tensor, shape in entries], given)


def _compare(entries: Sequence[_Entry], given: Operands) -> None:
    """Refuse tensors of other shapes than they must have, or of another dtype than the recurrent weights."""
    for name, tensor, shape in entries:
        got = None if tensor is None else tuple(tensor.shape)
        if got != shape:
            raise ShapeError(where=f"{_NAME} {name}", got=f"{got}", wanted=f"{shape}")
        if tensor is not None and tensor.dtype != given.weight_hh.dtype:
            wanted = f"{given.weight_hh.dtype}, as weight_hh has"
            raise DtypeError(where=f"{_NAME} {name}", got=str(tensor.dtype), wanted=wanted)


# Autograd looks for tensors in lists that have nothing else, so operators get those that are there, and which they are.
_NUMBERS = "bool[] present, int[] integers, float[] numbers, int[] batch_sizes"


def _called(tensors: Sequence[Tensor], present: Sequence[bool], *numbers: Any) -> tuple[Program, list[Tensor | None]]:
    """The program and the row of tensors of a call."""
    source = iter(tensors)
    return Program.of(*numbers), [next(source) if there else None for there in present]


def _operate(tensors: Sequence[Tensor], *numbers: Any) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    program, row = _called(tensors, *numbers)
    _check(program, Operands.of(len(program.chain), iter(row)))
    states, state, memory, *kept = run_forward(program, row)
    return states, state, memory, kept


def _operate_in_sizes(tensors: Sequence[Tensor], *numbers: Any) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    program, row = _called(tensors, *numbers)
    given = Operands.of(len(program.chain), iter(row))
    states, state, memory, *kept = map(given.weight_hh.new_empty, _shapes(program, given))
    return states, state, memory, kept


def _operate_back(
    tensors: Sequence[Tensor],
    states: Tensor,
    kept: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
    *numbers: Any,
) -> list[Tensor]:
    """The gradients of the tensors; an operator gives tensors only, so those that nobody wants are empty."""
    present: Sequence[bool] = numbers[0]
    program, row = _called(tensors, *numbers)
    given = Operands.of(len(program.chain), iter(row))
    _check(program, given)
    of_states, of_final, of_memory, *of_kept = _shapes(program, given)
    if len(of_kept) != len(kept):
        raise ShapeError(where=_NAME, got=f"{len(kept)} tensors that were kept", wanted=f"{len(of_kept)}")
    entries: list[_Entry] = [("states", states, of_states)]
    entries += [(f"kept {place}", *pair) for place, pair in enumerate(zip(kept, of_kept, strict=True))]
    for grad, shape in zip(grads, (of_states, of_final, of_memory), strict=True):
        entries.append(("gradient", grad, None if grad is None else shape))
    _compare(entries, given)
    wanted = iter(needed)
    all_needed = [there and next(wanted) for there in present]
    with torch.autocast("cpu", enabled=False):
        results = run_backward(program, row, states, kept, grads, all_needed)
    own = [grad for grad, there in zip(results, present, strict=True) if there]
    return [states.new_empty(0) if grad is None else grad for grad in own]


def _operate_back_in_sizes(
    tensors: Sequence[Tensor], states: Tensor, kept: Any, grads: Any, needed: Sequence[bool], *numbers: Any
) -> list[Tensor]:
    return [states.new_empty(tensor.shape if wanted else 0) for tensor, wanted in zip(tensors, needed, strict=True)]


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    tensors, *ctx.numbers = inputs
    ctx.set_materialize_grads(False)
    ctx.count = len(tensors)
    ctx.save_for_backward(*tensors, output[0], *output[3])


def _differentiate(ctx: Any, states: Tensor | None, final: Tensor | None, memory: Tensor | None, kept: Any) -> Any:
    saved, needed = ctx.saved_tensors, list(map(bool, ctx.needs_input_grad[0]))
    present, *rest = ctx.numbers
    wanted = iter(needed)
    refuse_drawn(Program.of(*rest), [there and next(wanted) for there in present])
    own, (given, *left) = saved[: ctx.count], saved[ctx.count :]
    grads = [states, final, memory]
    gradients = torch.ops.statewise.recurrence_backward(own, given, left, grads, needed, *ctx.numbers)
    return [grad if there else None for grad, there in zip(gradients, needed, strict=True)], None, None, None, None


def _refuse(ctx: Any, *grads: Any) -> Any:
    raise SecondDerivativeError.asked("statewise cpu engine", REMEDY)


def _register() -> None:
    schema = f"(Tensor[] tensors, {_NUMBERS}) -> (Tensor, Tensor, Tensor, Tensor[])"
    options: dict[str, Any] = {"mutates_args": (), "device_types": "cpu"}
    operator = torch.library.custom_op("statewise::recurrence", _operate, schema=schema, **options)
    operator.register_fake(_operate_in_sizes)
    operator.register_autograd(_differentiate, setup_context=_save)
    schema = f"(Tensor[] tensors, Tensor states, Tensor[] kept, Tensor?[] grads, bool[] needed, {_NUMBERS}) -> Tensor[]"
    operator = torch.library.custom_op("statewise::recurrence_backward", _operate_back, schema=schema, **options)
    operator.register_fake(_operate_back_in_sizes)
    operator.register_autograd(_refuse)


_register()
