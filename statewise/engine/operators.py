"""The CPU engine's recurrence as operators of ``torch.library``, which ``torch.compile`` and ``torch.export`` see.

A saved program may call them with anything, so here all that the kernel trusts is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from statewise.engine.cpu import REMEDY, Kept, refuse_drawn, run_backward, run_forward
from statewise.engine.operands import Operands
from statewise.engine.program import CENTROIDS, ZONEOUT, Program
from statewise.errors import DtypeError, LengthError, SecondDerivativeError, ShapeError

_NAME = "statewise::recurrence"


def _shapes(program: Program, given: Operands) -> Iterator[tuple[int, ...]]:
    """The shapes of what forward gives: states, final state, final memory, and what it keeps."""
    lead, hidden, rows = given.weight_hh.shape[:-2], given.weight_hh.shape[-1], _rows(given)
    yield (*lead, rows, hidden)
    yield given.initial_state.shape
    yield (0,) if given.initial_memory is None else given.initial_memory.shape
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
    entering = 0 if given.inputs is None else given.inputs.shape[-1]
    extra = (3, hidden) if program.peephole else (hidden,) if program.modrelu else None
    memory = (batch, hidden) if program.has_memory else None
    mixes = given.second_term is not None

    def drawn(constant: bool, columns: int) -> tuple[int, int]:
        return (batch if constant else rows, columns)

    wanted_shapes: dict[str, tuple[int, ...] | None] = {
        "inputs": (rows, entering) if given.input_term is None else None,
        "weight_ih": (width, entering) if given.inputs is not None else None,
        "weight_hh": (width, hidden),
        "initial_state": (batch, hidden),
        "initial_memory": memory,
        "extra": extra,
        "second_term": (rows, width) if mixes else None,
        "coefficients": drawn(program.coefficients_constant, 1) if mixes else None,
    }
    optional = {
        "input_term": (rows, width),
        "bias_ih": (width,),
        "bias_hh": (width,),
        "mask": drawn(program.mask_constant, hidden),
    }
    for name, shape in optional.items():
        wanted_shapes[name] = None if getattr(given, name) is None else shape
    tensors: dict[str, Tensor | None] = {name: getattr(given, name) for name in wanted_shapes}
    for place, (kind, _, constant, count, *_) in enumerate(program.chain):
        centroids, one, other = given.learnt[place], *given.drawn[2 * place : 2 * place + 2]
        tensors |= {f"centroids {place}": centroids, f"draw {place}": one, f"second draw {place}": other}
        chosen = kind == CENTROIDS
        wanted_shapes[f"centroids {place}"] = (count, hidden) if chosen else None
        has_draw = one is not None or not chosen
        wanted_shapes[f"draw {place}"] = drawn(bool(constant), count if chosen else hidden) if has_draw else None
        wanted_shapes[f"second draw {place}"] = drawn(bool(constant), hidden) if kind == ZONEOUT else None
    _compare(tensors, wanted_shapes, given.weight_hh, program.replicas)


def _compare(
    tensors: Mapping[str, Tensor | None],
    shapes: Mapping[str, tuple[int, ...] | None],
    like: Tensor,
    replicas: int,
) -> None:
    """Refuse tensors of other shapes, or of another dtype than one that is like them; None: there is none."""
    lead = (replicas,) if replicas else ()
    for name, tensor in tensors.items():
        shape = shapes[name]
        got, wanted = None if tensor is None else tuple(tensor.shape), None if shape is None else (*lead, *shape)
        if got != wanted:
            raise ShapeError(where=f"{_NAME} {name}", got=f"{got}", wanted=f"{wanted}")
        if tensor is not None and tensor.dtype != like.dtype:
            raise DtypeError(where=f"{_NAME} {name}", got=str(tensor.dtype), wanted=f"{like.dtype}, as weight_hh has")


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
    made = {"states": states, **{f"kept {place}": one for place, one in enumerate(kept)}}
    made_shapes: dict[str, tuple[int, ...] | None] = {
        "states": of_states,
        **{f"kept {place}": shape for place, shape in enumerate(of_kept)},
    }
    incoming = dict(
        zip(("gradient of states", "gradient of final state", "gradient of final memory"), grads, strict=True)
    )
    for name, shape in zip(incoming, (of_states, of_final, of_memory), strict=True):
        made_shapes[name] = None if incoming[name] is None else shape
    if len(of_kept) != len(kept):
        raise ShapeError(where=_NAME, got=f"{len(kept)} tensors that were kept", wanted=f"{len(of_kept)}")
    _compare(made | incoming, made_shapes, given.weight_hh, replicas=0)
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
