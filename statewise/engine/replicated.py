"""The compiled form under ``torch.func``: many networks of one shape in one call of the kernel.

The function that autograd sees is made of tensors alone, forward and back, and nothing that forward leaves is used up.
So ``torch.func`` can see through it: under ``vmap`` the replicas become the first dimension of every tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch

from statewise.engine import compiled
from statewise.engine.device.operands import Facts, facts_of, operands_of
from statewise.engine.recurrence import Recurrence, Unrolled
from statewise.engine.replicated_walk import PLACES, Made, lay_out, walk, walk_back
from statewise.errors import EngineError, SecondDerivativeError
from statewise.native import NativeStatus
from statewise.transforms import Centroids

_REMEDY = "Build the layer with engine='reference', which autograd can differentiate in every way."


def why_not(call: Recurrence, status: NativeStatus) -> str | None:
    """The reason why the kernel cannot run a recurrence under the transforms that are active, or None if it can."""
    known, kinds = _functorch.TransformType, [level.key() for level in _functorch.get_interpreter_stack() or ()]
    if any(kind not in (known.Vmap, known.Grad) for kind in kinds):
        lacking: str | None = "of them the kernel knows vmap and the first gradient"
    elif kinds.count(known.Grad) > 1:
        lacking = "the kernel has first derivatives only"
    elif call.mixed is not None:
        lacking = "there the kernel does not mix through time"
    else:
        lacking = compiled.why_not(call) if status.available else status.reason
    return None if lacking is None else f"torch.func transforms need autograd in every step, since {lacking}"


def unroll(call: Recurrence) -> Unrolled:
    """Unroll a recurrence in C++ under ``torch.func``; what is seen along the way carries no gradient."""
    plan, operands, dtype = _Plan(facts_of(call)), operands_of(call, chained=False), call.weight_hh.dtype
    operands.drawn = [None if tensor is None else tensor.to(dtype) for tensor in operands.drawn]
    operands.mask = None if operands.mask is None else operands.mask.to(dtype)
    outputs = _Replicated.apply(plan, *operands.flat())  # type: ignore[no-untyped-call]
    has_memory, gates = call.cell.has_memory, len(call.cell.observed) if call.record else 0
    rest = outputs[plan.shown + gates : plan.shown + plan.seen]
    return Unrolled(
        states=outputs[0],
        final_state=outputs[1],
        final_memory=outputs[2] if has_memory else None,
        memories=rest[0] if call.record and has_memory else None,
        gates=tuple(outputs[plan.shown : plan.shown + gates]),
        probabilities=rest[-1] if call.record and plan.centroids else None,
    )


@dataclass(frozen=True)
class _Plan:
    """What autograd need not know: the recurrence but for its numbers, and how many replicas come first, if they do."""

    facts: Facts
    replicas: int | None = None

    @property
    def shown(self) -> int:
        """How many results carry gradients: states, final state, final memory."""
        return 2 + self.facts.cell.has_memory

    @property
    def seen(self) -> int:
        """How many are only looked at: the gates, the memories, the probabilities."""
        facts = self.facts
        return len(facts.cell.observed) + facts.cell.has_memory + self.centroids if facts.record else 0

    @property
    def centroids(self) -> bool:
        """Whether there are probabilities."""
        return any(isinstance(transform, Centroids) for transform, _ in self.facts.chain)

    def enter(self, tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
        """With the replicas in front, be it one."""
        if self.replicas is not None:
            return list(tensors)
        return [None if tensor is None else tensor.unsqueeze(0) for tensor in tensors]

    def leave(self, tensors: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
        """The counterpart of :meth:`enter`."""
        if self.replicas is not None:
            return tuple(tensors)
        return tuple(None if tensor is None else tensor.squeeze(0) for tensor in tensors)

    def batched(
        self, count: int, dims: Sequence[int | None], tensors: Sequence[Tensor | None]
    ) -> tuple[_Plan, list[Tensor | None]]:
        """The plan for so many times as many replicas, and its tensors; what they share is shared by a view."""
        found: list[Tensor | None] = []
        for tensor, dim in zip(tensors, dims, strict=True):
            if tensor is None:
                found.append(None)
                continue
            wide = tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            found.append(wide if self.replicas is None else wide.flatten(0, 1))
        return replace(self, replicas=count * (self.replicas or 1)), found

    def split(self, count: int, tensors: Sequence[Tensor | None]) -> tuple[Any, Any]:
        """What the plan for more replicas gave, with the new dimension in front, and where that is."""
        if self.replicas is not None:
            tensors = [None if t is None else t.unflatten(0, (count, self.replicas)) for t in tensors]
        return tuple(tensors), tuple(None if tensor is None else 0 for tensor in tensors)


class _Replicated(torch.autograd.Function):
    """A recurrence with its derivative written out, as one function of tensors."""

    @staticmethod
    def forward(plan: _Plan, *row: Tensor | None) -> tuple[Tensor | None, ...]:
        facts = plan.facts
        found = walk(facts, lay_out(plan.enter(row), len(facts.chain)))
        made = found.made
        results = [made.states, found.final_state, found.final_memory][: plan.shown]
        if facts.record:
            # Copies for those who look: what they do to them must not reach the way back.
            gates = made.term.split(facts.hidden, dim=2)[: len(facts.cell.observed)]
            results += [gate.clone() for gate in gates]
            results += [made.memories.clone()] if facts.cell.has_memory else []
            results += [] if found.probabilities is None else [found.probabilities]
        return plan.leave([*results, *made.kept(facts)])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        plan, *row = inputs
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[plan.shown :])
        ctx.save_for_backward(*row, output[0], *output[plan.shown + plan.seen :])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        plan, needed = ctx.plan, tuple(map(bool, ctx.needs_input_grad[1:]))
        drawn = PLACES["learnt"] + len(plan.facts.chain)
        if needed[PLACES["mask"]] or any(needed[drawn:]):
            raise EngineError(
                where="statewise cpu engine",
                got="a request for gradients of what was drawn",
                wanted="gradients of inputs, weights and states",
                remedy=_REMEDY,
            )
        found = _Back.apply(plan, needed, *ctx.saved_tensors, *grads[: plan.shown])  # type: ignore[no-untyped-call]
        return None, *found

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], plan: _Plan, *row: Tensor | None) -> tuple[Any, Any]:
        many, wide = plan.batched(info.batch_size, dims[1:], row)
        return plan.split(info.batch_size, _Replicated.apply(many, *wide))  # type: ignore[no-untyped-call]


class _Back(torch.autograd.Function):
    """The derivative of :class:`_Replicated`, which has none of its own."""

    @staticmethod
    def forward(plan: _Plan, needed: tuple[bool, ...], *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        facts, count = plan.facts, len(needed)
        wide = plan.enter(tensors)
        row, (states, *kept), grads = wide[:count], wide[count : -plan.shown], wide[-plan.shown :]
        made = Made.of(facts, states, kept)  # type: ignore[arg-type]
        with torch.autocast("cpu", enabled=False):
            found = walk_back(facts, lay_out(row, len(facts.chain)), made, grads, needed)
        return plan.leave(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise SecondDerivativeError.asked(
            "statewise cpu engine",
            _REMEDY,
        )

    @staticmethod
    def vmap(
        info: Any, dims: tuple[Any, ...], plan: _Plan, needed: tuple[bool, ...], *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        many, wide = plan.batched(info.batch_size, dims[2:], tensors)
        return plan.split(info.batch_size, _Back.apply(many, needed, *wide))  # type: ignore[no-untyped-call]
