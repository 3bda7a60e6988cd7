"""What an engine trusts is checked before it: shapes and dtypes that fit each other, draws of one kind in time."""

from __future__ import annotations

import torch
from torch import Tensor

from statewise.engine.recurrence import Drawn, Recurrence, Step
from statewise.errors import DtypeError, ShapeError
from statewise.transforms import Centroids, Noise, Zoneout

_REMEDY = "Draw anew with layer.draw(input)."
_WEIGHTS_REMEDY = "Give the layer tensors like those of its own state_dict()."


def check_draws(call: Recurrence) -> None:
    """Refuse draws that do not fit the transforms that the kernels know; others know themselves what they draw."""
    for step in call.chain:
        if type(step.transform) in (Noise, Zoneout, Centroids):
            _check_count(step)
            for drawn in step.draws:
                fit(drawn, call, widths(step, call))


def _check_count(step: Step) -> None:
    wanted = 2 if isinstance(step.transform, Zoneout) else len(step.draws[:1]) if step.parameters else 1
    if len(step.draws) != wanted:
        name = type(step.transform).__name__
        raise ShapeError(where="draws", got=f"{len(step.draws)} tensors for {name}", wanted=f"{wanted}", remedy=_REMEDY)


def alike(step: Step, call: Recurrence) -> tuple[Drawn, ...]:
    """The draws of a transform, as many as the kernel reads, and all of one kind in time."""
    _check_count(step)
    if constant_in_time(step):
        return step.draws
    return tuple(
        Drawn(torch.cat([drawn.rows[:size] for size in call.layout.batch_sizes]), constant=False)
        if drawn.constant
        else drawn
        for drawn in step.draws
    )


def constant_in_time(step: Step) -> bool:
    """Whether a kernel reads one row for each sequence: never for centroids' noise, nor for one of two masks alone."""
    return len(step.draws) > 0 and all(drawn.constant for drawn in step.draws) and not step.parameters


def check_weights(call: Recurrence) -> None:
    """Refuse tensors whose shapes contradict each other: a kernel trusts them."""
    hidden, blocks, batch = call.hidden, len(call.cell.blocks), call.layout.batch
    width = blocks * hidden
    inputs = None if call.inputs is None else call.inputs.shape[1]
    wanted: list[tuple[str, Tensor | None, tuple[int, ...]]] = [
        ("weight_hh", call.weight_hh, (width, hidden)),
        ("bias_hh", call.bias_hh, (width,)),
        ("weight_ih", call.weight_ih, (width, inputs or 0)),
        ("bias_ih", call.bias_ih, (width,)),
        ("input_term", call.input_term, (call.layout.rows, width)),
        ("initial_state", call.initial_state, (batch, hidden)),
        ("initial_memory", call.initial_memory, (batch, hidden)),
    ]
    if call.mixed is not None:
        wanted.append(("second input_term", call.mixed.second_term, (call.layout.rows, width)))
    for (name, rows), own in zip(call.cell.extra_parameters, call.extra, strict=True):
        wanted.append((name, own, (rows, hidden) if rows else (hidden,)))
    for step in call.chain:
        shapes = step.transform.parameter_shapes(hidden)
        wanted += [(name, own, shapes[name]) for name, own in zip(shapes, step.parameters, strict=True)]
    for name, tensor, shape in wanted:
        if tensor is not None and tuple(tensor.shape) != shape:
            raise ShapeError(
                where=f"{call.cell.name} {name}", got=tuple(tensor.shape), wanted=f"{shape}", remedy=_WEIGHTS_REMEDY
            )
        if tensor is not None and tensor.dtype != call.weight_hh.dtype:
            raise DtypeError(
                where=f"{call.cell.name} {name}",
                got=str(tensor.dtype),
                wanted=f"{call.weight_hh.dtype}, as weight_hh has",
                remedy=_WEIGHTS_REMEDY,
            )


def fit(drawn: Drawn, call: Recurrence, width: int) -> Tensor:
    """The rows of a drawn tensor: a kernel trusts their shape, so it is checked here."""
    wanted = (call.layout.batch if drawn.constant else call.layout.rows, width)
    if drawn.rows.shape != wanted:
        raise ShapeError(
            where="draws",
            got=f"rows of shape {tuple(drawn.rows.shape)}",
            wanted=f"{wanted}",
            remedy=_REMEDY,
        )
    return drawn.rows


def widths(step: Step, call: Recurrence) -> int:
    """The width of what a transform draws."""
    return step.transform.k if isinstance(step.transform, Centroids) else call.hidden
