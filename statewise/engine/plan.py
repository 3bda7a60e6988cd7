"""Which engine runs a layer, and why not a faster one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from statewise.engine import compiled, explicit, reference
from statewise.engine.recurrence import Recurrence, Unrolled
from statewise.errors import EngineError
from statewise.native import load_native

ENGINES = ("auto", "reference", "cpu")


@dataclass(frozen=True)
class Plan:
    """The engine that runs, its form, and for each faster form the reason why it does not.

    >>> print(Plan("reference", "loop", ("cpu: the input is on cuda",)))
    reference (loop); not faster because: cpu: the input is on cuda
    """

    engine: str
    form: str
    why_not: tuple[str, ...] = ()

    def __str__(self) -> str:
        reasons = f"; not faster because: {'; '.join(self.why_not)}" if self.why_not else ""
        return f"{self.engine} ({self.form}){reasons}"

    def unroll(self, call: Recurrence) -> Unrolled:
        """Run a recurrence on the chosen engine."""
        forms: dict[str, Callable[[Recurrence], Unrolled]] = {
            "loop": reference.unroll,
            "python": explicit.unroll,
            "native": compiled.unroll,
        }
        return forms[self.form](call)


def choose(call: Recurrence, *, engine: str, differentiable_record: bool) -> Plan:
    """Choose the fastest engine that computes exactly what was asked.

    Args:
        call: the recurrence.
        engine: "auto", or the name of an engine to insist on.
        differentiable_record: whether collected tensors must carry gradients.
    """
    if engine == "reference":
        return Plan("reference", "loop", ("the layer was built with engine='reference'",))
    refusal = _why_not_cpu(call, differentiable_record=differentiable_record)
    if refusal is not None:
        if engine == "cpu":
            raise EngineError(
                where="engine='cpu'",
                got=f"a call that it cannot run: {refusal}",
                wanted="a call that it can run",
                remedy="Use engine='auto'.",
            )
        return Plan("reference", "loop", (f"cpu: {refusal}",))
    status = load_native()
    lacking = compiled.why_not(call) if status.available else status.reason
    return Plan("cpu", "native") if lacking is None else Plan("cpu", "python", (f"native: {lacking}",))


def _why_not_cpu(call: Recurrence, *, differentiable_record: bool) -> str | None:
    weight = call.weight_hh
    if weight.device.type != "cpu":
        return f"the layer is on {weight.device}"
    if weight.dtype not in (torch.float32, torch.float64):
        return f"it computes in float32 and float64, not in {weight.dtype}"
    if any(drawn.rows.requires_grad for drawn in call.drawn()):
        return "gradients of drawn tensors need autograd in every step"
    if differentiable_record:
        return "collected tensors with gradients need autograd in every step"
    if torch.autograd.forward_ad._current_level >= 0:
        return "forward-mode derivatives need autograd in every step"
    if torch._C._are_functorch_transforms_active():
        return "torch.func transforms need autograd in every step"
    return None
