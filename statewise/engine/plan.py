"""Which engine runs a layer, and why not a faster one."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import statewise.engine.operators  # noqa: F401 - torch.compile and torch.export need it registered
from statewise.engine import cpu, device, reference
from statewise.engine.recurrence import Recurrence, Unrolled
from statewise.errors import EngineError
from statewise.kernels import load_triton
from statewise.native import load_native

ENGINES = ("auto", "reference", "cpu", "triton")


@dataclass(frozen=True)
class Plan:
    """The engine that runs, its form, and for each faster form the reason why it does not.

    Args:
        engine: the name of the engine.
        form: the way it runs: a loop, a compiled one, or the name of a kernel.
        why_not: for each faster form the reason why it does not run.
        kernel: of the accelerator's engine, its kernel with its tiles, and why it was chosen.

    >>> print(Plan("reference", "loop", ("cpu: the input is on cuda",)))
    reference (loop); not faster because: cpu: the input is on cuda
    """

    engine: str
    form: str
    why_not: tuple[str, ...] = ()
    kernel: device.Form | None = None

    def __str__(self) -> str:
        reasons = f"; not faster because: {'; '.join(self.why_not)}" if self.why_not else ""
        return f"{self.engine} ({self.form if self.kernel is None else self.kernel}){reasons}"

    def unroll(self, call: Recurrence) -> Unrolled:
        """Run a recurrence on the chosen engine."""
        return unroll_all([call], [self], chained=False)[0]


def unroll_all(calls: list[Recurrence], plans: list[Plan], *, chained: bool) -> list[Unrolled]:
    """Run recurrences by their plans: those of the accelerator's engine together, others one after the other.

    Args:
        calls: the directions of a layer or, if ``chained``, the layers of a stack from the bottom.
        plans: how each runs; a chain needs the accelerator's engine for all.
        chained: whether each reads the states of the one before.
    """
    kernels = [plan.kernel for plan in plans if plan.kernel is not None]
    if kernels and len(kernels) == len(plans):
        return device.unroll_together(calls, kernels, chained=chained, chunk=device.chunk_of(calls[0].layout.steps))
    return [_unroll_alone(plan, call) for plan, call in zip(plans, calls, strict=True)]


def _unroll_alone(plan: Plan, call: Recurrence) -> Unrolled:
    if plan.kernel is not None:
        return unroll_all([call], [plan], chained=False)[0]
    return cpu.unroll(call) if plan.engine == "cpu" else reference.unroll(call)


def choose(call: Recurrence, *, engine: str, differentiable_record: bool, together: int = 1) -> Plan:
    """Choose the fastest engine that computes exactly what was asked.

    Args:
        call: the recurrence.
        engine: "auto", or the name of an engine to insist on.
        differentiable_record: whether collected tensors must carry gradients.
        together: how many recurrences run side by side on an accelerator, and share it.
    """
    if not call.layout.rows:
        return Plan("reference", "loop", ("the batch is empty",))
    if engine == "reference":
        return Plan("reference", "loop", ("the layer was built with engine='reference'",))
    if engine == "triton" or (engine == "auto" and call.weight_hh.device.type == "cuda"):
        refusal = _why_not_triton(call, differentiable_record=differentiable_record)
        if refusal is None:
            kernel = device.form_of(call, together)
            return Plan("triton", kernel.name, (), kernel)
    else:
        refusal = _why_not_cpu(call, differentiable_record=differentiable_record)
        if refusal is None:
            return Plan("cpu", "native")
    if engine != "auto":
        raise EngineError(
            where=f"engine={engine!r}",
            got=f"a call that it cannot run: {refusal}",
            wanted="a call that it can run",
            remedy="Use engine='auto'.",
        )
    return Plan("reference", "loop", (f"{'triton' if call.weight_hh.is_cuda else 'cpu'}: {refusal}",))


def _why_not_triton(call: Recurrence, *, differentiable_record: bool) -> str | None:
    status, weight = load_triton(), call.weight_hh
    if not status.available:
        return status.reason
    if weight.device.type != status.device:
        return f"the layer is on {weight.device}"
    if weight.is_cuda and torch.version.hip is not None:
        return "its kernels are written for CUDA, and this torch is built for ROCm"
    if weight.is_cuda and torch.cuda.get_device_capability(weight.device) < (7, 5):
        return "its kernels need a device of compute capability 7.5 or more"
    if weight.dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        return f"it computes in float64, float32, bfloat16 and float16, not in {weight.dtype}"
    return _why_not_written(call, differentiable_record=differentiable_record) or device.why_not(call)


def _why_not_cpu(call: Recurrence, *, differentiable_record: bool) -> str | None:
    weight = call.weight_hh
    if weight.device.type != "cpu":
        return f"the layer is on {weight.device}"
    if weight.dtype not in (torch.float32, torch.float64):
        return f"it computes in float32 and float64, not in {weight.dtype}"
    refusal = _why_not_written(call, differentiable_record=differentiable_record)
    return refusal or cpu.why_not(call, load_native())


def _why_not_written(call: Recurrence, *, differentiable_record: bool) -> str | None:
    """What no derivative that is written out can give."""
    if any(drawn.rows.requires_grad for drawn in call.drawn()):
        return "gradients of drawn tensors need autograd in every step"
    if differentiable_record:
        return "collected tensors with gradients need autograd in every step"
    if torch.autograd.forward_ad._current_level >= 0:
        return "forward-mode derivatives need autograd in every step"
    return None
