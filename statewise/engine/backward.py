"""What the explicit engines share: how a recurrence becomes the arguments of an autograd function, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from statewise.engine.recurrence import Recurrence, Step, Unrolled
from statewise.errors import SecondDerivativeError

_FIELDS = (
    "inputs",
    "input_term",
    "weight_ih",
    "bias_ih",
    "weight_hh",
    "bias_hh",
    "initial_state",
    "initial_memory",
)


@dataclass(frozen=True)
class Gradients:
    """The gradients of a recurrence, those of the input term not yet passed on to the input weights."""

    inputs: Tensor | None
    input_term: Tensor
    second_term: Tensor | None
    bias_ih: Tensor | None
    weight_hh: Tensor
    bias_hh: Tensor | None
    initial_state: Tensor
    initial_memory: Tensor | None
    extra: list[Tensor]
    parameters: list[Tensor]


class Run(ABC):
    """One forward pass of an explicit engine, with what its backward pass needs."""

    @abstractmethod
    def __init__(self, call: Recurrence) -> None:
        """Prepare to run a recurrence."""

    @abstractmethod
    def forward(self, call: Recurrence) -> tuple[Tensor | None, ...]:
        """States, final state, final memory; then, without gradients, memories, probabilities and gates."""

    @abstractmethod
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
        """The gradients, from those of the first three results; it may use up what forward left."""

    @staticmethod
    @abstractmethod
    def turned(grad: Tensor, values: Tensor) -> Tensor:
        """``grad.T @ values``, a weight's gradient."""


def unroll_with(run: type[Run], call: Recurrence) -> Unrolled:
    """Unroll a recurrence on an explicit engine; what is seen along the way carries no gradient."""
    arguments = FunctionArguments(call)
    outputs = _Written.apply(run, arguments, *arguments.tensors)  # type: ignore[no-untyped-call]
    return arguments.unrolled(outputs)


class _Written(torch.autograd.Function):
    """A recurrence whose derivative is written out."""

    @staticmethod
    def forward(
        ctx: Any, kind: type[Run], arguments: FunctionArguments, *tensors: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        run = kind(arguments.detached)
        outputs = run.forward(arguments.detached)
        ctx.kind, ctx.arguments, ctx.run = kind, arguments, run
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(tensor for tensor in outputs[3:] if tensor is not None))
        # The states are an output: only saving them this way avoids a cycle that would keep them alive. What was drawn
        # is saved so that torch notices if it is changed before the backward pass.
        ctx.save_for_backward(*tensors, outputs[0], *(drawn.rows for drawn in arguments.detached.drawn()))
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        # Through saved_tensors torch notices what was changed in place since, or freed.
        saved = ctx.saved_tensors
        count = len(ctx.needs_input_grad) - 2
        tensors, states = saved[:count], saved[count]
        with torch.no_grad(), torch.autocast(states.device.type, enabled=False):
            call, needed = ctx.arguments.bind(tensors), ctx.needs_input_grad[2:]
            run, ctx.run = ctx.run, None
            if run is None:
                # The first walk back used up what forward had left, and freed it. Going back again is rare
                # (retain_graph), so it pays with a second walk forward.
                run = ctx.kind(call)
                run.forward(call)
            found = run.backward(call, states, *grads[:3], inputs_wanted=needed[0])
            gradients = ctx.arguments.spread(call, found, needed, turned=run.turned)
        return None, None, *refuse_second_derivative(gradients, (*grads, *tensors))


class FunctionArguments:
    """A recurrence as a flat row of tensors, since autograd looks at nothing else."""

    def __init__(self, call: Recurrence) -> None:
        learnt = [parameter for step in call.chain for parameter in step.parameters]
        second = None if call.mixed is None else call.mixed.second_term
        self.tensors: list[Tensor | None] = [*(getattr(call, name) for name in _FIELDS), second, *call.extra, *learnt]
        # Detached, so that the function's context never holds on to the graph it is part of.
        self.detached = self._rebuild(call, [None if t is None else t.detach() for t in self.tensors])

    def bind(self, tensors: tuple[Tensor | None, ...]) -> Recurrence:
        """The recurrence with these tensors in place of its own."""
        return self._rebuild(self.detached, [None if t is None else t.detach() for t in tensors])

    @staticmethod
    def _rebuild(call: Recurrence, tensors: list[Tensor | None]) -> Recurrence:
        row = iter(tensors)
        fields: dict[str, Any] = {name: next(row) for name in _FIELDS}
        second = next(row)
        if call.mixed is not None and second is not None:
            fields["mixed"] = call.mixed._replace(second_term=second)
        fields["extra"] = tuple(next(row) for _ in call.extra)
        fields["chain"] = tuple(
            Step(step.transform, step.draws, tuple(next(row) for _ in step.parameters))  # type: ignore[misc]
            for step in call.chain
        )
        return replace(call, **fields)

    def unrolled(self, outputs: tuple[Tensor | None, ...]) -> Unrolled:
        """The function's outputs (states, final state, final memory, memories, probabilities, gates) by name."""
        states, final_state, final_memory, memories, probabilities, *gates = outputs
        assert states is not None and final_state is not None
        seen = tuple(gate for gate in gates if gate is not None)
        return Unrolled(states, final_state, final_memory, memories, seen, probabilities)

    def spread(
        self,
        call: Recurrence,
        grads: Gradients,
        needed: tuple[bool, ...],
        turned: Callable[[Tensor, Tensor], Tensor],
    ) -> list[Tensor | None]:
        """All gradients in the order of ``tensors``; one big product for each weight, none that nobody asked for.

        Args:
            call: the recurrence.
            grads: what the engine found.
            needed: for each of ``tensors`` whether its gradient is wanted.
            turned: ``a.T @ b``.
        """
        wants = dict(zip(_FIELDS, needed, strict=False))
        term = grads.input_term
        projected = call.inputs is not None and call.weight_ih is not None
        found: dict[str, Tensor | None] = dict.fromkeys(_FIELDS)
        found["input_term"] = None if projected else term
        if projected:
            assert call.inputs is not None and call.weight_ih is not None
            found["inputs"] = grads.inputs
            if wants["weight_ih"]:
                found["weight_ih"] = turned(term, call.inputs)
            found["bias_ih"] = grads.bias_ih
        found["weight_hh"], found["bias_hh"] = grads.weight_hh, grads.bias_hh
        found["initial_state"], found["initial_memory"] = grads.initial_state, grads.initial_memory
        return [*(found[name] for name in _FIELDS), grads.second_term, *grads.extra, *grads.parameters]


class _Refuse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, *anchors: Tensor | None) -> Tensor:
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise SecondDerivativeError.asked(
            "statewise cpu engine",
            "Build the layer with engine='reference', which autograd can differentiate any number of times.",
        )


def refuse_second_derivative(grads: list[Tensor | None], anchors: tuple[Any, ...]) -> list[Tensor | None]:
    """Let gradients be used, but not be differentiated again: that would be silently wrong."""
    if not torch.is_grad_enabled():
        return grads
    return [None if grad is None else _Refuse.apply(grad, *anchors) for grad in grads]  # type: ignore[no-untyped-call]
