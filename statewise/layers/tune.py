"""Measuring which kernel is the fastest for a layer on this device."""

from __future__ import annotations

from statistics import median

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.engine import Plan
from statewise.engine.device import Form, Machine, candidates, facts_of, remember, trying
from statewise.errors import EngineError
from statewise.layers.base import RecurrentLayer


def tune(layer: RecurrentLayer, input: Tensor | PackedSequence, *, repetitions: int = 10) -> Plan:
    """Measure all kernels that can run a layer on such an input, and let the fastest run from now on.

    A training step is timed in every form, each captured in a CUDA graph. What was found is kept in a file for this
    kind of device, so that it serves later processes too; it counts for inputs of any length, and for batches up to
    the same power of two.

    Args:
        layer: a layer on a CUDA device, with parameters that want gradients.
        input: an input of the shape that is to become fast.
        repetitions: how often each form is timed.

    Returns:
        The plan that the layer now has for this input.
    """
    call, together = layer.first_recurrence(input)
    weight = call.weight_hh
    if weight.device.type != "cuda":
        raise EngineError(
            where="tune",
            got=f"a layer on {weight.device}",
            wanted="one on a CUDA device",
            remedy="There is nothing to choose on a CPU.",
        )
    if layer.plan(input).kernel is None or not any(parameter.requires_grad for parameter in layer.parameters()):
        raise EngineError(
            where="tune",
            got=f"a layer that trains on: {layer.plan(input)}",
            wanted="one that the triton engine runs, with parameters that want gradients",
            remedy="The plan says why it does not; parameters are thawed by requires_grad_().",
        )
    facts = facts_of(call)
    timed = {}
    with torch.cuda.device(weight.device):
        for form in candidates(facts, dtype=weight.dtype, machine=Machine.of(weight.device)):
            seconds = _time(layer, input, form, repetitions)
            if seconds is not None:
                timed[form] = seconds
    if not timed:
        raise EngineError(
            where="tune",
            got="no kernel that could be captured in a CUDA graph",
            wanted="a layer whose step can be captured",
            remedy="Give sequences of one length and no pairing: with others the host waits for the device.",
        )
    best = min(timed, key=lambda form: timed[form])
    name = torch.cuda.get_device_name(weight.device)
    remember(best, facts, dtype=weight.dtype, device_name=name, layers=together)
    return layer.plan(input)


def _time(layer: RecurrentLayer, input: Tensor | PackedSequence, form: Form, repetitions: int) -> float | None:
    """The milliseconds of a training step in one form; None where it cannot run."""

    def step() -> None:
        output = layer(input)[0]
        data = output.data if isinstance(output, PackedSequence) else output
        torch.autograd.grad(data.sum(), [p for p in layer.parameters() if p.requires_grad], allow_unused=True)

    try:
        with trying(form):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    step()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
    except (RuntimeError, EngineError):
        return None  # a form that this device has no room for
    times: list[float] = []
    for _ in range(repetitions):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return median(times)
