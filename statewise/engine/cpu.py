"""The CPU engine: a recurrence by the C++ kernel, with its derivative, for one network or for many of one shape.

Everything is a function of a program (what is known before it runs) and a flat row of tensors, forward and back, and
nothing that forward leaves is used up. So autograd, ``torch.func`` and ``torch.compile`` see the same two functions:
autograd and ``torch.func`` by :class:`_Recurrence`, ``torch.compile`` and ``torch.export`` by the operators of
``torch.library`` in :mod:`statewise.engine.operators`. Under ``vmap`` the replicas become the first dimension
of every tensor; what they share has a stride of 0 there, and is not copied.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch
from torch.nn import Parameter

from statewise.cells import MGUCell, ResetBeforeGRUCell
from statewise.engine.operands import Operands, operands_of
from statewise.engine.program import CELLS, CENTROIDS, ZONEOUT, Program, program_of
from statewise.engine.recurrence import Recurrence, Unrolled
from statewise.errors import EngineError, SecondDerivativeError
from statewise.kernels import traced, transformed
from statewise.native import NativeStatus, library
from statewise.transforms import Centroids, Noise, Zoneout
from statewise.transforms.centroids import SIMILARITIES, centroids_gradient

_FIELDS = [entry.name for entry in dataclasses.fields(Operands)]
_PLACES = {name: place for place, name in enumerate(_FIELDS)}
REMEDY = "Build the layer with engine='reference', which autograd can differentiate in every way."
_RESULTS = 3  # states, final state, final memory, before what only the way back reads


def why_not(call: Recurrence, status: NativeStatus) -> str | None:
    """The reason why the kernel cannot run a recurrence here, or None if it can."""
    if not status.available:
        return status.reason
    if type(call.cell) not in CELLS:
        return f"it has no code for the cell {call.cell.name}"
    if call.mixed is not None and type(call.cell) in (MGUCell, ResetBeforeGRUCell):
        return f"it does not mix through time in the cell {call.cell.name}, which needs two products"
    if call.mask is not None and (call.mask.on_projection or not call.mask.shared):
        return "of the recurrent dropout masks it knows those on the state that all gates share"
    for step in call.chain:
        if type(step.transform) not in (Noise, Zoneout, Centroids):
            return f"it has no code for {type(step.transform).__name__}"
    return _why_not_transformed() if transformed() else None


def _why_not_transformed() -> str | None:
    if traced():
        return "torch.func's transforms of an operator cannot be recorded"
    known, kinds = _functorch.TransformType, [level.key() for level in _functorch.get_interpreter_stack() or ()]
    if any(kind not in (known.Vmap, known.Grad) for kind in kinds):
        return "of torch.func's transforms it knows vmap and the first gradient"
    return "inside torch.func's gradients it has first derivatives only" if kinds.count(known.Grad) > 1 else None


def unroll(call: Recurrence) -> Unrolled:
    """Unroll a recurrence by the kernel; what is seen along the way carries no gradient."""
    if call.mixed is not None and call.input_term is None:
        call = dataclasses.replace(call, inputs=None, weight_ih=None, bias_ih=None, input_term=call.project())
    operands, dtype = operands_of(call, chained=False), call.weight_hh.dtype
    operands.drawn = [None if tensor is None else tensor.to(dtype) for tensor in operands.drawn]
    operands.mask = None if operands.mask is None else operands.mask.to(dtype)
    operands.coefficients = None if operands.coefficients is None else operands.coefficients.to(dtype)
    row = operands.flat()
    # A transform may hide from here what it differentiates.
    learns = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in row)
    program = program_of(call, keep=learns or call.record or transformed())
    if traced() or not all(map(_has_plain_memory, row)):
        present, there = [tensor is not None for tensor in row], [tensor for tensor in row if tensor is not None]
        *shown, kept = torch.ops.statewise.recurrence(there, present, *program.encoded())
        outputs = (*shown, *kept)
    else:
        function = _Recurrence if transformed() else _Eager
        outputs = function.apply(program, *row)  # type: ignore[no-untyped-call]
    return _unrolled(call, program, operands, outputs)


def _has_plain_memory(tensor: Tensor | None) -> bool:
    """Whether the numbers lie where a tensor points to; for those of others torch finds the way to the operator."""
    if tensor is None:
        return True
    return type(tensor) in (Tensor, Parameter) and not tensor._is_zerotensor() and not tensor.is_neg()


def _unrolled(call: Recurrence, program: Program, operands: Operands, outputs: Sequence[Tensor]) -> Unrolled:
    """The results by name. Those who look get copies: what they do to them must not reach the way back."""
    states, final_state, final_memory = outputs[:_RESULTS]
    final = final_memory if program.has_memory else None
    if not call.record:
        return Unrolled(states, final_state, final, None, (), None)
    kept = Kept.of(program, outputs[_RESULTS:])
    seen = kept.term
    if operands.coefficients is not None and kept.second is not None:
        weight = operands.coefficients
        if program.coefficients_constant:
            weight = torch.cat([weight[:size] for size in call.layout.batch_sizes])
        seen = weight * seen + (1 - weight) * kept.second
    gates = seen.split(call.hidden, dim=-1)[: len(call.cell.observed)]
    return Unrolled(
        states=states,
        final_state=final_state,
        final_memory=final,
        memories=None if kept.memories is None else kept.memories.clone(),
        gates=tuple(gate.clone() for gate in gates),
        probabilities=None if kept.alpha is None else kept.alpha.clone(),
    )


@dataclass
class Kept:
    """What forward leaves for the way back, by name; None where the cell or the chain has no such thing."""

    term: Tensor
    memories: Tensor | None
    cell_memories: Tensor | None
    apart: Tensor | None
    gated: Tensor | None
    second: Tensor | None
    centroids: list[tuple[Tensor, Tensor, Tensor]]  # of each transform the states before, the weights, the softmax
    alpha: Tensor | None  # the probabilities that are seen

    @staticmethod
    def sizes(program: Program, hidden: int, *, mixes: bool) -> dict[str, int]:
        """The widths of all that is kept, in their order."""
        width = program.blocks * hidden
        widths = {"term": width}
        widths |= {"memories": hidden} if program.has_memory else {}
        widths |= {"cell_memories": hidden} if program.memory_changes else {}
        widths |= {"apart": hidden} if program.apart else {}
        widths |= {"gated": hidden} if program.gated else {}
        widths |= {"second": width} if mixes else {}
        counts = [word[3] for word in program.chain if word[0] == CENTROIDS]
        for place, count in enumerate(counts):
            widths |= {f"before{place}": hidden, f"weights{place}": count, f"softmax{place}": count}
        if program.record and counts:
            widths["alpha"] = counts[-1]
        return widths

    @classmethod
    def of(cls, program: Program, tensors: Sequence[Tensor]) -> Kept:
        """From the tensors in the order of :meth:`sizes`."""
        single = 1 + program.has_memory + program.memory_changes + program.apart + program.gated
        count = sum(word[0] == CENTROIDS for word in program.chain)
        mixes = len(tensors) - single - 3 * count - (program.record and count > 0) == 1
        source = iter(tensors)

        def one(there: bool) -> Tensor | None:
            return next(source) if there else None

        term, memories, cell_memories = next(source), one(program.has_memory), one(program.memory_changes)
        apart, gated, second = one(program.apart), one(program.gated), one(mixes)
        centroids = [(next(source), next(source), next(source)) for _ in range(count)]
        alpha = one(program.record and count > 0)
        return cls(term, memories, cell_memories, apart, gated, second, centroids, alpha)


class _Call:
    """The structure that the kernel reads, and the tensors that it points to, which must live as long."""

    def __init__(self, program: Program, given: Operands) -> None:
        self.program = program
        self.given = given = self._laid_out(given)
        self.hidden = given.weight_hh.shape[-1]
        self.batch = given.initial_state.shape[-2]
        source = given.inputs if given.input_term is None else given.input_term
        assert source is not None
        self.rows = source.shape[-2]
        self.lead = (program.replicas,) if program.replicas else ()
        self.held: list[Any] = []
        sizes = (ctypes.c_int64 * len(program.batch_sizes))(*program.batch_sizes) if program.batch_sizes else None
        self.held.append(sizes)
        self.structure: Any = library.Recurrence(
            dtype=library.dtype_code(given.weight_hh.dtype),
            threads=torch.get_num_threads(),
            cell=program.cell,
            activation=program.activation,
            replicas=max(1, program.replicas),
            rows=self.rows,
            batch=self.batch,
            hidden=self.hidden,
            input=0 if given.inputs is None else given.inputs.shape[-1],
            steps=len(program.batch_sizes) or self.rows // max(1, self.batch),
            batch_sizes=ctypes.addressof(sizes) if sizes is not None else None,
            reverse=program.reverse,
            start_at_one=program.start_at_one,
            mask_constant=program.mask_constant,
            coefficients_constant=program.coefficients_constant,
            memory_changes=program.memory_changes,
            keep=program.keep,
        )
        bias, apart_bias = self._biases()
        self.point(
            inputs=given.inputs,
            given=given.input_term,
            weight_ih=given.weight_ih,
            bias=bias,
            weight_hh=given.weight_hh,
            apart_bias=apart_bias,
            extra=given.extra,
            initial_state=given.initial_state,
            initial_memory=given.initial_memory,
            mask=given.mask,
            second_given=given.second_term,
            coefficients=given.coefficients,
        )

    def _laid_out(self, given: Operands) -> Operands:
        """The numbers of each replica one after the other; what all share stays shared."""
        if not self.program.replicas:
            return given.laid_out()
        row = (t if t is None or t[0].is_contiguous() else t.contiguous() for t in given.flat())
        return Operands.of(len(given.learnt), row)

    def _biases(self) -> tuple[Tensor | None, Tensor | None]:
        """What the input term lacks, and the bias of the product kept apart."""
        bias, apart_bias, hidden = self.given.bias_hh, None, self.hidden
        if bias is not None and self.program.apart:
            apart_bias = bias[..., -hidden:].contiguous()
            bias = torch.cat((bias[..., :-hidden], torch.zeros_like(apart_bias)), dim=-1)
        if self.given.bias_ih is not None:
            bias = self.given.bias_ih if bias is None else bias + self.given.bias_ih
        return bias, apart_bias

    def array(self, tensor: Tensor | None) -> Any:
        """Where a tensor's numbers are, for as long as this object lives."""
        address = library.pointer(tensor)
        if tensor is None or address is None:
            return library.Array(None, 0)
        self.held.append(tensor)
        return library.Array(address, tensor.stride(0) if self.program.replicas else 0)

    def point(self, **tensors: Tensor | None) -> None:
        """Let fields of the structure, which begin as null, point to the tensors that there are."""
        for name, tensor in tensors.items():
            if tensor is not None:
                setattr(self.structure, name, self.array(tensor))

    def rows_of(self, width: int) -> Tensor:
        """Memory for rows of all steps that no user sees."""
        return library.unfilled((*self.lead, self.rows, width), self.given.weight_hh)

    def set_chain(self, centroids: Sequence[Sequence[Tensor | None]]) -> None:
        """Describe the transforms; for those with centroids where the kernel leaves and reads what it keeps."""
        arrays: list[Tensor | None] = []
        integers: list[int] = []
        program, source = self.program, iter(centroids)
        for place, (kind, _, constant, *rest) in enumerate(program.chain):
            drawn = [tensor for tensor in self.given.drawn[2 * place : 2 * place + 2] if tensor is not None]
            first, saved = len(arrays), -1
            if kind == CENTROIDS:
                arrays += [self.given.learnt[place], *drawn]
                second, saved = first + 1 if drawn else -1, len(arrays)
                arrays += next(source)
            else:
                arrays += drawn
                second = first + 1 if kind == ZONEOUT else -1
            integers += [kind, first, second, constant, *rest, saved]
        flat = (ctypes.c_int64 * len(integers))(*integers)
        numbers = (ctypes.c_double * len(program.numbers))(*program.numbers)
        pointers = (library.Array * len(arrays))(*map(self.array, arrays))
        self.held += [flat, numbers, pointers]
        structure = self.structure
        structure.transforms, structure.array_count = len(program.chain), len(arrays)
        structure.integers, structure.numbers = ctypes.addressof(flat), ctypes.addressof(numbers)
        structure.arrays = ctypes.addressof(pointers)


def run_forward(program: Program, row: Sequence[Tensor | None]) -> list[Tensor]:
    """States, final state, final memory (empty without one), then what is kept, from the operands in their order."""
    call = _Call(program, Operands.of(len(program.chain), iter(row)))
    given = call.given
    sizes = Kept.sizes(program, call.hidden, mixes=given.second_term is not None) if program.keep else {}
    tensors = {name: call.rows_of(width) for name, width in sizes.items()}
    count = sum(word[0] == CENTROIDS for word in program.chain)
    parts = [[tensors.get(f"{part}{place}") for part in ("before", "weights", "softmax")] for place in range(count)]
    call.set_chain([[*part, tensors.get("alpha") if place == count - 1 else None] for place, part in enumerate(parts)])
    states = library.roomy((*call.lead, call.rows, call.hidden), given.weight_hh)
    state = given.initial_state.clone(memory_format=torch.contiguous_format)
    memory = state.new_empty(0) if given.initial_memory is None else _copy(given.initial_memory)
    named = {name: tensors.get(name) for name in ("term", "memories", "cell_memories", "apart", "gated", "second")}
    call.point(states=states, state=state, memory=memory, **named)
    if call.rows:
        library.run("sw_recurrence_forward", call.structure)
    return [states, state, memory, *tensors.values()]


def _copy(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def run_backward(
    program: Program,
    row: Sequence[Tensor | None],
    states: Tensor,
    kept_row: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients of the row; None where one is not needed.

    Args:
        program: the recurrence but for its numbers.
        row: the operands.
        states: what forward gave.
        kept_row: what forward has left.
        grads: of states, final state and, if the cell has one, final memory.
        needed: for each of the row whether its gradient is wanted.
    """
    call = _Call(program, Operands.of(len(program.chain), iter(row)))
    kept, given, hidden = Kept.of(program, kept_row), call.given, call.hidden
    wanted = {name: needed[place] for name, place in _PLACES.items() if name not in ("learnt", "drawn")}
    like, width = given.weight_hh, program.blocks * hidden
    parts = [(*part, None, call.rows_of(hidden), call.rows_of(part[1].shape[-1])) for part in kept.centroids]
    call.set_chain(parts)
    of_states, of_final, of_memory = (None if grad is None else grad.resolve_neg().contiguous() for grad in grads)
    state = torch.zeros_like(given.initial_state, memory_format=torch.contiguous_format)
    memory = None
    if program.has_memory:
        memory = torch.zeros_like(state) if of_memory is None else of_memory.clone()
    state = state if of_final is None else of_final.clone()

    def zeros(there: bool, *shape: int) -> Tensor | None:
        return like.new_zeros(*call.lead, *shape) if there else None

    mixes = given.second_term is not None
    own: dict[str, Tensor | None] = {
        "inputs": library.roomy((*call.lead, call.rows, call.structure.input), like) if wanted["inputs"] else None,
        "input_term": library.roomy((*call.lead, call.rows, width), like) if wanted["input_term"] or mixes else None,
        "second_term": library.roomy((*call.lead, call.rows, width), like) if mixes else None,
        "weight_ih": zeros(wanted["weight_ih"], width, call.structure.input),
        "weight_hh": zeros(wanted["weight_hh"], width, hidden),
        "extra": None if given.extra is None else torch.zeros_like(given.extra, memory_format=torch.contiguous_format),
        "initial_state": state,
        "initial_memory": memory,
    }
    bias = zeros(wanted["bias_ih"] or wanted["bias_hh"], width + program.apart * hidden)
    call.point(
        states=states,
        **{name: getattr(kept, name) for name in ("term", "memories", "cell_memories", "apart", "gated", "second")},
        grad_states=of_states,
        grad_state=state,
        grad_memory=memory,
        grad_inputs=own["inputs"],
        grad_given=own["input_term"],
        grad_second=own["second_term"],
        grad_weight_ih=own["weight_ih"],
        grad_weight_hh=own["weight_hh"],
        grad_bias=bias,
        grad_extra=own["extra"],
    )
    if call.rows:
        library.run("sw_recurrence_backward", call.structure)
    if bias is not None:
        # Where a product is kept apart, its part of the sums takes the last block's place.
        own["bias_ih"] = bias[..., :width].contiguous()
        own["bias_hh"] = torch.cat((bias[..., : width - hidden], bias[..., -hidden:]), dim=-1)
    gradients: list[Tensor | None] = [None] * len(needed)
    for name, grad in own.items():
        gradients[_PLACES[name]] = grad if wanted[name] else None
    _add_learnt(program, given, parts, gradients, needed)
    return gradients


def _add_learnt(
    program: Program,
    given: Operands,
    parts: Sequence[tuple[Tensor | None, ...]],
    gradients: list[Tensor | None],
    needed: Sequence[bool],
) -> None:
    """Put the gradients of the centroids into the row."""
    places = [place for place, word in enumerate(program.chain) if word[0] == CENTROIDS]
    for place, (before, weights, _, _, after, slope) in zip(places, parts, strict=True):
        at, centroids = _PLACES["learnt"] + place, given.learnt[place]
        if not needed[at]:
            continue
        assert centroids is not None and before is not None and weights is not None
        assert after is not None and slope is not None
        *_, similarity, _, soft = program.chain[place]
        tensors = (centroids, before, weights, after, slope)
        if not program.replicas:
            gradients[at] = centroids_gradient(*tensors, soft=bool(soft), similarity=SIMILARITIES[similarity])
            continue
        # One replica after the other: products of many small matrices are slow.
        gradients[at] = torch.stack(
            [
                centroids_gradient(*one, soft=bool(soft), similarity=SIMILARITIES[similarity])
                for one in zip(*tensors, strict=True)
            ]
        )


class _Recurrence(torch.autograd.Function):
    """A recurrence with its derivative written out, as one function of tensors."""

    @staticmethod
    def forward(program: Program, *row: Tensor | None) -> tuple[Tensor, ...]:
        return tuple(run_forward(program, row))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.program, *row = inputs
        ctx.set_materialize_grads(False)
        shown = _RESULTS if ctx.program.has_memory else _RESULTS - 1
        ctx.mark_non_differentiable(*output[shown:])
        # Everything through save_for_backward: torch then notices what was changed in place, frees all after the way
        # back, and lets checkpoints keep nothing. What was drawn is among the row.
        ctx.save_for_backward(*row, output[0], *output[_RESULTS:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        needed, program = tuple(map(bool, ctx.needs_input_grad[1:])), ctx.program
        refuse_drawn(program, needed)
        if any(grad is not None and _functorch.is_legacy_batchedtensor(grad) for grad in grads):
            raise EngineError(
                where="statewise cpu engine",
                got="several gradients at once, as by is_grads_batched=True or vectorize=True",
                wanted="one, or torch.func.vmap over torch.func.vjp",
                remedy=REMEDY,
            )
        saved, count = ctx.saved_tensors, len(needed)
        given = (*saved, *grads[:_RESULTS])
        if torch.is_grad_enabled() or transformed():
            return None, *_Back.apply(program, needed, *given)  # type: ignore[no-untyped-call]
        with torch.autocast("cpu", enabled=False):
            return None, *run_backward(
                program, saved[:count], saved[count], saved[count + 1 :], grads[:_RESULTS], needed
            )

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], program: Program, *row: Tensor | None) -> tuple[Any, Any]:
        many, wide = _batched(program, info.batch_size, dims[1:], row)
        return _split(program, info.batch_size, _Recurrence.apply(many, *wide))  # type: ignore[no-untyped-call]


class _Eager(torch.autograd.Function):
    """:class:`_Recurrence` outside of ``torch.func``: in each call of that one torch works out a signature."""

    @staticmethod
    def forward(ctx: Any, program: Program, *row: Tensor | None) -> tuple[Tensor, ...]:
        output = tuple(run_forward(program, row))
        _Recurrence.setup_context(ctx, (program, *row), output)
        return output

    backward = _Recurrence.backward


class _Back(torch.autograd.Function):
    """The derivative of :class:`_Recurrence`, which has none of its own."""

    @staticmethod
    def forward(program: Program, needed: tuple[bool, ...], *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        count = len(needed)
        row, (states, *kept), grads = tensors[:count], tensors[count:-_RESULTS], tensors[-_RESULTS:]
        assert states is not None
        with torch.autocast("cpu", enabled=False):
            return tuple(run_backward(program, row, states, kept, grads, needed))  # type: ignore[arg-type]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise SecondDerivativeError.asked("statewise cpu engine", REMEDY)

    @staticmethod
    def vmap(
        info: Any, dims: tuple[Any, ...], program: Program, needed: tuple[bool, ...], *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        many, wide = _batched(program, info.batch_size, dims[2:], tensors)
        return _split(program, info.batch_size, _Back.apply(many, needed, *wide))  # type: ignore[no-untyped-call]


def refuse_drawn(program: Program, needed: Sequence[bool]) -> None:
    """Raise an error where the gradient of a mask, a coefficient or another draw is wanted."""
    drawn = _PLACES["learnt"] + len(program.chain)
    if needed[_PLACES["mask"]] or needed[_PLACES["coefficients"]] or any(needed[drawn:]):
        raise EngineError(
            where="statewise cpu engine",
            got="a request for gradients of what was drawn",
            wanted="gradients of inputs, weights and states",
            remedy=REMEDY,
        )


def _batched(
    program: Program, count: int, dims: Sequence[int | None], tensors: Sequence[Tensor | None]
) -> tuple[Program, list[Tensor | None]]:
    """The program for so many times as many replicas, and its tensors; what they share is shared by a view."""
    wide_tensors: list[Tensor | None] = []
    for tensor, dim in zip(tensors, dims, strict=True):
        if tensor is None:
            wide_tensors.append(None)
            continue
        wide = tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        wide_tensors.append(wide.flatten(0, 1) if program.replicas else wide)
    return dataclasses.replace(program, replicas=count * (program.replicas or 1)), wide_tensors


def _split(program: Program, count: int, tensors: Sequence[Tensor | None]) -> tuple[Any, Any]:
    """What the program for more replicas gave, with the new dimension in front, and where that is."""
    if program.replicas:
        tensors = [
            None if t is None else t.unflatten(0, (count, program.replicas)) if t.numel() else t for t in tensors
        ]
    return tuple(tensors), tuple(None if tensor is None or not tensor.numel() else 0 for tensor in tensors)
