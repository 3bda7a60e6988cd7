"""Recurrences that run together: the layers of a stack as a wavefront, or two directions side by side.

The function that autograd sees is made of tensors alone, forward and back, so that ``torch.func`` can see through it:
under ``vmap`` the replicas become a dimension of the kernels' grid, and all run in one launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from statewise.engine.device.backward import Backward
from statewise.engine.device.form import Form, Machine
from statewise.engine.device.forms import choose_form
from statewise.engine.device.forward import Forward
from statewise.engine.device.walk import ROOMS, Walk, launches
from statewise.engine.operands import WEIGHT, Facts, Operands, facts_of, operands_of
from statewise.engine.recurrence import Recurrence, Unrolled
from statewise.errors import EngineError, SecondDerivativeError
from statewise.transforms import Centroids

Walked = TypeVar("Walked", bound=Walk)
_RESULTS = 5  # states, final state, final memory, memories, probabilities; the gates follow


@dataclass(frozen=True)
class Joint:
    """What autograd need not know: the recurrences, their forms, and whether replicas are the first dimension."""

    facts: tuple[Facts, ...]
    forms: tuple[Form, ...]
    chunk: int
    replicas: int | None = None

    def results(self, place: int) -> int:
        """How many tensors a recurrence gives."""
        facts = self.facts[place]
        return _RESULTS + (len(facts.cell.observed) if facts.record else 0)

    def kept(self, place: int) -> int:
        """How many tensors it leaves for the way back."""
        return 8 + ROOMS * sum(isinstance(transform, Centroids) for transform, _ in self.facts[place].chain)


def unroll_together(calls: list[Recurrence], forms: list[Form], *, chained: bool, chunk: int) -> list[Unrolled]:
    """Unroll recurrences together.

    Args:
        calls: the layers of a stack from the bottom, or the directions of one layer.
        forms: the kernel of each.
        chained: whether each reads the states of the one before.
        chunk: how many steps of a layer are done before the next may begin with them.
    """
    below = [chained and place > 0 for place in range(len(calls))]
    facts = tuple(facts_of(call, chained=upper) for call, upper in zip(calls, below, strict=True))
    plan = Joint(facts, tuple(forms), chunk)
    row = [t for call, upper in zip(calls, below, strict=True) for t in operands_of(call, chained=upper).flat()]
    outputs = _Together.apply(plan, *row)  # type: ignore[no-untyped-call]
    found, place = [], 0
    for index, known in enumerate(plan.facts):
        count = plan.results(index)
        states, final, memory, memories, alpha, *gates = outputs[place : place + count]
        found.append(
            Unrolled(
                states=states,
                final_state=final,
                final_memory=memory if known.cell.has_memory else None,
                memories=memories if known.record and known.cell.has_memory else None,
                gates=tuple(gates),
                probabilities=alpha if alpha.numel() else None,
            )
        )
        place += count
    return found


def _operands(plan: Joint, row: tuple[Tensor | None, ...]) -> list[Operands]:
    """The operands of all recurrences, replicas first."""
    source = iter(row)
    found = [Operands.of(len(facts.chain), source) for facts in plan.facts]
    if plan.replicas is None:
        found = [operands.replicated() for operands in found]
    return [operands.laid_out() for operands in found]


def _forward(plan: Joint, row: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
    given = _operands(plan, row)
    walks: list[Forward] = []
    for facts, operands, form in zip(plan.facts, given, plan.forms, strict=True):
        walks.append(Forward(facts, operands, form, walks[-1] if facts.chained else None))
    pieces = _pieces(plan)

    beside = _Beside(walks[0].device, len(pieces) > 1)

    def advance(walk: Forward, piece: int) -> None:
        first, last = pieces[piece]
        if walk.below is not None or piece == 0:
            walk.project(first, last)
        if walk.below is None and len(pieces) > 1:
            # The first turns need not wait for the input term of all others.
            if piece == 0:
                beside.do(lambda: walk.project(pieces[1][0], walk.turns))
            elif piece == 1:
                beside.join()
        walk.run(first, last, piece)

    _side_by_side(walks, len(pieces), advance, chained=plan.facts[-1].chained)
    shown = [tensor for walk in walks for tensor in walk.results(single=plan.replicas is None)]
    kept = [tensor for walk in walks for tensor in walk.saved()]
    if len(walks) > 1:
        _hold(kept)
    if plan.replicas is None:
        kept = [tensor.squeeze(0) if tensor.ndim > 1 else tensor for tensor in kept]
    return (*shown, *_distinct(kept))


def _distinct(tensors: list[Tensor]) -> list[Tensor]:
    """Each tensor once: a function must not give one tensor at two places."""
    seen: set[int] = set()
    found = []
    for tensor in tensors:
        found.append(tensor.view(tensor.shape) if id(tensor) in seen else tensor)
        seen.add(id(tensor))
    return found


def _ways_back(
    plan: Joint, row: tuple[Tensor | None, ...], kept: tuple[Tensor, ...], grads: tuple[Tensor | None, ...]
) -> list[Backward]:
    """The ways back, the last recurrence first, with what was left on the way forward and the results' gradients."""
    if plan.replicas is None:
        kept = tuple(tensor.unsqueeze(0) if tensor.ndim > 1 else tensor for tensor in kept)
        grads = tuple(None if grad is None else grad.unsqueeze(0) for grad in grads)
    given, chained = _operands(plan, row), plan.facts[-1].chained
    source, place, parts = iter(kept), 0, []
    for index in range(len(plan.facts)):
        saved = [next(source) for _ in range(plan.kept(index))]
        parts.append((saved, (grads[place], grads[place + 1], grads[place + 2])))
        place += plan.results(index)
    walks: list[Backward] = []
    for index in reversed(range(len(plan.facts))):
        above = walks[-1] if chained and walks else None
        walks.append(Backward(plan.facts[index], given[index], plan.forms[index], *parts[index], above))
        if above is not None:
            above.input_values = walks[-1].steps_of(walks[-1].states)
    return walks


def _backward(walks: list[Backward], pieces: list[tuple[int, int]], *, inputs_wanted: bool) -> list[Tensor | None]:
    beside = _Beside(walks[0].device, len(pieces) > 1)

    def retreat(walk: Backward, piece: int) -> None:
        first, last = pieces[len(pieces) - 1 - piece]
        walk.receive(first, last)
        walk.run(first, last, piece)
        if inputs_wanted and not walk.facts.chained:
            beside.do(lambda: walk.pass_on(first, last))
        if piece == len(pieces) - 1:
            # The products over all steps are done while the layers below are still walking.
            walk.found = walk.gradients().flat()

    _side_by_side(walks, len(pieces), retreat, chained=walks[0].facts.chained)
    beside.join()
    flat = [tensor for walk in reversed(walks) for tensor in walk.found]
    if len(walks) > 1:
        _hold(flat)
    return flat


def _hold(tensors: Sequence[Tensor | None]) -> None:
    """Let memory that was taken in a stream beside be given back only when the current stream is done with it."""
    for tensor in tensors:
        if tensor is not None and tensor.is_cuda:
            tensor.record_stream(torch.cuda.current_stream(tensor.device))


def _pieces(plan: Joint) -> list[tuple[int, int]]:
    turns = plan.facts[0].layout.steps
    return launches(turns, plan.chunk if plan.facts[-1].chained else turns)


def _side_by_side(walks: Sequence[Walked], pieces: int, work: Callable[[Walked, int], None], *, chained: bool) -> None:
    """Do every piece of every walk; on a device each walk has a stream of its own.

    In a chain a walk's piece waits for the same piece of the walk before it.
    """
    device = walks[0].device
    if len(walks) == 1 or device.type != "cuda":
        for walk in walks:
            walk.prepare(pieces)
        for piece in range(pieces):
            for walk in walks:
                work(walk, piece)
        return
    here = torch.cuda.current_stream(device)
    streams = _streams(device, len(walks))
    for walk, stream in zip(walks, streams, strict=True):
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            walk.prepare(pieces)
    for piece in range(pieces):
        done: torch.cuda.Event | None = None
        for walk, stream in zip(walks, streams, strict=True):
            with torch.cuda.stream(stream):
                if chained and done is not None:
                    stream.wait_event(done)
                work(walk, piece)
                done = torch.cuda.Event()
                done.record(stream)
    for stream in streams:
        here.wait_stream(stream)


class _Beside:
    """Work that the walks need not wait for: on a device in a stream of its own, elsewhere at once."""

    def __init__(self, device: torch.device, several: bool) -> None:
        self._stream = _streams(device, 1)[0] if several and device.type == "cuda" else None

    def do(self, job: Callable[[], None]) -> None:
        """Begin when all is done that the current stream has before it."""
        if self._stream is None:
            job()
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            job()

    def join(self) -> None:
        """Let the current stream wait."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)


@cache
def _streams(device: torch.device, count: int) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(count)]


def _guard(device: torch.device) -> AbstractContextManager[object]:
    """Kernels are launched on the current device, which need not be the tensors'."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _batched(info: Any, dims: tuple[int | None, ...], row: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    """All tensors with the replicas in front; what they share is shared by a view."""
    found: list[Tensor | None] = []
    for tensor, dim in zip(row, dims, strict=True):
        if tensor is None:
            found.append(None)
        elif dim is None:
            found.append(tensor.unsqueeze(0).expand(info.batch_size, *tensor.shape))
        else:
            found.append(tensor.movedim(dim, 0))
    return found


def _for_replicas(plan: Joint, replicas: int, row: tuple[Tensor | None, ...]) -> Joint:
    """The plan for many networks at once, which need more room than one."""
    weight = row[WEIGHT]
    assert weight is not None
    machine, layers = Machine.of(weight.device), len(plan.facts)
    found = tuple(
        choose_form(facts, dtype=weight.dtype, replicas=replicas, machine=machine, layers=layers)
        for facts in plan.facts
    )
    return Joint(plan.facts, found, plan.chunk, replicas)


def _refuse_nesting(plan: Joint) -> None:
    if plan.replicas is not None:
        raise EngineError(
            where="statewise triton engine",
            got="vmap inside vmap",
            wanted="one dimension of replicas",
            remedy="Flatten the two into one, or build the layer with engine='reference'.",
        )


class _Together(torch.autograd.Function):
    """Recurrences with their derivative written out, as one function of tensors."""

    @staticmethod
    def forward(plan: Joint, *row: Tensor | None) -> tuple[Tensor, ...]:
        detached = tuple(None if tensor is None else tensor.detach() for tensor in row)
        device = next(tensor.device for tensor in row if tensor is not None)
        with _guard(device):
            return _forward(plan, detached)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        plan, *row = inputs
        shown = sum(plan.results(place) for place in range(len(plan.facts)))
        ctx.plan, ctx.shown = plan, shown
        ctx.set_materialize_grads(False)
        place, fixed = 0, list(output[shown:])
        for index in range(len(plan.facts)):
            fixed += output[place + 3 : place + plan.results(index)]
            place += plan.results(index)
        ctx.mark_non_differentiable(*fixed)
        ctx.save_for_backward(*row, *output[shown:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        count = len(ctx.needs_input_grad) - 1
        wanted = bool(ctx.needs_input_grad[1])
        arguments = (ctx.plan, wanted, count, *saved, *grads[: ctx.shown])
        found = _TogetherBack.apply(*arguments)  # type: ignore[no-untyped-call]
        return None, *(grad if need else None for grad, need in zip(found, ctx.needs_input_grad[1:], strict=True))

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], plan: Joint, *row: Tensor | None) -> tuple[Any, Any]:
        _refuse_nesting(plan)
        many = _for_replicas(plan, info.batch_size, row)
        outputs = _Together.apply(many, *_batched(info, dims[1:], row))  # type: ignore[no-untyped-call]
        # An empty tensor stands for nothing and has no replicas.
        return outputs, tuple(0 if output.ndim > 1 else None for output in outputs)


class _TogetherBack(torch.autograd.Function):
    """The derivative of :class:`_Together`, which has none of its own."""

    @staticmethod
    def forward(plan: Joint, wanted: bool, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        kept = sum(plan.kept(place) for place in range(len(plan.facts)))
        row, saved, grads = tensors[:count], tensors[count : count + kept], tensors[count + kept :]
        device = next(tensor.device for tensor in row if tensor is not None)
        with _guard(device), torch.autocast(device.type, enabled=False):
            walks = _ways_back(plan, row, saved, grads)  # type: ignore[arg-type]
            found = _backward(walks, _pieces(plan), inputs_wanted=wanted)
        if plan.replicas is not None:
            return tuple(found)
        return tuple(None if grad is None else grad.squeeze(0) for grad in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise SecondDerivativeError.asked(
            "statewise triton engine",
            "Build the layer with engine='reference', which autograd can differentiate any number of times.",
        )

    @staticmethod
    def vmap(
        info: Any, dims: tuple[Any, ...], plan: Joint, wanted: bool, count: int, *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        _refuse_nesting(plan)
        many = _for_replicas(plan, info.batch_size, tensors)
        arguments = (many, wanted, count, *_batched(info, dims[3:], tensors))
        found = _TogetherBack.apply(*arguments)  # type: ignore[no-untyped-call]
        return found, tuple(None if grad is None else 0 for grad in found)
