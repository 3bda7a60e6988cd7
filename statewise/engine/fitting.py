"""What a kernel trusts is checked before it: shapes and dtypes that fit each other, draws of one kind in time."""

from __future__ import annotations

import torch
from torch import Tensor

from statewise.engine.recurrence import Drawn, Recurrence, Step
from statewise.errors import DtypeError, ShapeError
from statewise.transforms import Centroids, Zoneout


def alike(step: Step, call: Recurrence) -> tuple[Drawn, ...]:
    """The draws of a transform, as many as the kernel reads, and all of one kind in time."""
    wanted = 2 if isinstance(step.transform, Zoneout) else len(step.draws[:1]) if step.parameters else 1
    if len(step.draws) != wanted:
        name = type(step.transform).__name__
        raise ShapeError(where="draws", got=f"{len(step.draws)} tensors for {name}", wanted=f"{wanted}")
    if constant_in_time(step):
        return step.draws
    sizes = call.layout.batch_sizes
    return tuple(
        Drawn(torch.cat([drawn.rows[:size] for size in sizes]), constant=False) if drawn.constant else drawn
        for drawn in step.draws
    )


def constant_in_time(step: Step) -> bool:
    """Whether a kernel reads one row for each sequence: never for centroids' noise, nor for one of two masks alone."""
    return bool(step.draws) and all(drawn.constant for drawn in step.draws) and not step.parameters


def check_weights(call: Recurrence) -> None:
    """Refuse tensors whose shapes contradict each other: the kernel trusts them."""
    hidden, blocks, batch = call.hidden, len(call.cell.blocks), call.layout.batch
    width = blocks * hidden
    inputs = None if call.inputs is None else call.inputs.shape[1]
    wanted: dict[str, tuple[Tensor | None, tuple[int, ...]]] = {
        "weight_hh": (call.weight_hh, (width, hidden)),
        "bias_hh": (call.bias_hh, (width,)),
        "weight_ih": (call.weight_ih, (width, inputs or 0)),
        "bias_ih": (call.bias_ih, (width,)),
        "input_term": (call.input_term, (call.layout.rows, width)),
        "initial_state": (call.initial_state, (batch, hidden)),
        "initial_memory": (call.initial_memory, (batch, hidden)),
    }
    if call.mixed is not None:
        wanted["second input_term"] = (call.mixed.second_term, (call.layout.rows, width))
    for (name, rows), own in zip(call.cell.extra_parameters, call.extra, strict=True):
        wanted[name] = (own, (rows, hidden) if rows else (hidden,))
    for step in call.chain:
        for name, shape in step.transform.parameter_shapes(hidden).items():
            wanted[name] = (step.parameters[0], shape)
    for name, (tensor, shape) in wanted.items():
        if tensor is not None and tuple(tensor.shape) != shape:
            raise ShapeError(where=f"{call.cell.name} {name}", got=tuple(tensor.shape), wanted=f"{shape}")
        if tensor is not None and tensor.dtype != call.weight_hh.dtype:
            raise DtypeError(
                where=f"{call.cell.name} {name}",
                got=str(tensor.dtype),
                wanted=f"{call.weight_hh.dtype}, as weight_hh has",
            )


def fit(drawn: Drawn, call: Recurrence, width: int) -> Tensor:
    """The rows of a drawn tensor: a kernel trusts their shape, so it is checked here."""
    wanted = (call.layout.batch if drawn.constant else call.layout.rows, width)
    if drawn.rows.shape != wanted:
        raise ShapeError(
            where="draws",
            got=f"rows of shape {tuple(drawn.rows.shape)}",
            wanted=f"{wanted}",
            remedy="Draw anew with layer.draw(input).",
        )
    return drawn.rows


def widths(step: Step, call: Recurrence) -> int:
    """The width of what a transform draws."""
    return step.transform.k if isinstance(step.transform, Centroids) else call.hidden
