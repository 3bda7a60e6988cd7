"""The kernel's functions around a recurrence, on tensors: draws, products, pairs, the CRF and the readout's loss.

Each is a plain function, which the package calls. Those of the CRF are operators of ``torch.library``, too, which
``torch.compile`` and ``torch.export`` see; there torch's own operations take the place of the others.
Tensors are on the CPU and contiguous, of float32 or float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from statewise.errors import ArgumentError, LengthError, SecondDerivativeError
from statewise.native import library
from statewise.native.library import dtype_code, pointer, roomy, run, unfilled


def fill_counted(
    out: Tensor, seed: int, kind: int, scale: float, shift: float, bound: int, shapes: Sequence[float]
) -> Tensor:
    """Fill a float32 tensor with the numbers of a recipe (statewise/transforms/recipes.py), in place.

    Raises:
        ValueError: if the kernel knows no such law.
    """
    if not 0 <= kind <= 7:
        raise ValueError(f"statewise: the kernel knows no law {kind}; it has 0 to 7.")
    steps = out.shape[0]
    structure: Any = library.Fill(
        threads=torch.get_num_threads(),
        steps=steps,
        size=out.numel() // steps if steps else 0,
        seed=seed,
        kind=kind,
        bound=bound,
        scale=scale,
        shift=shift,
        out=pointer(out),
    )
    structure.shapes[: len(shapes)] = list(shapes)
    if out.numel():
        run("sw_fill_counted", structure)
    return out


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None, transpose: bool) -> Tensor:
    """``x @ weight.T + bias``, or ``x @ weight`` without ``transpose``: faster than the general matrix library."""
    (rows, inner), columns = x.shape, weight.shape[0 if transpose else 1]
    out = unfilled((rows, columns), x)
    _product(x, weight, bias, out, rows=rows, inner=inner, columns=columns, transpose=transpose)
    return out


def multiply_turned(grad: Tensor, values: Tensor) -> Tensor:
    """``grad.T @ values``, a weight's gradient."""
    (inner, rows), columns = grad.shape, values.shape[1]
    out = grad.new_empty(rows, columns)
    _product(grad, values, None, out, rows=rows, inner=inner, columns=columns, turned=1)
    return out


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor, **sizes: int) -> None:
    given = {"from_": pointer(x), "weight": pointer(weight), "bias": pointer(bias), "to": pointer(out)}
    if out.numel():
        run(
            "sw_multiply", library.Product(dtype=dtype_code(x.dtype), threads=torch.get_num_threads(), **sizes, **given)
        )


def deal(term: Tensor, index: Tensor, blank: Tensor | None) -> Tensor:
    """The rows of a term by index; -1 is the blank, or 0 if there is none."""
    out = unfilled((index.shape[0], term.shape[1]), term)
    given = {"second": pointer(index), "term": pointer(term), "blank": pointer(blank), "to_second": pointer(out)}
    _deal("sw_deal_rows", term, pairs=index.shape[0], **given)
    return out


def collect(
    grad_first: Tensor, first: Tensor | None, grad_second: Tensor, second: Tensor, rows: int
) -> tuple[Tensor, Tensor]:
    """The derivative of :func:`deal` for both members: of every row, and of the blank; no ``first``: as they lie."""
    grad = unfilled((rows, grad_second.shape[1]), grad_second)
    blank = grad_second.new_empty(grad_second.shape[1])
    given = {"grad_first": grad_first, "first": first, "grad_second": grad_second, "second": second}
    given |= {"grad_term": grad, "grad_blank": blank}
    pointers = {name: pointer(tensor) for name, tensor in given.items()}
    _deal("sw_collect_rows", grad_second, rows=rows, pairs=grad_second.shape[0], **pointers)
    return grad, blank


def _deal(name: str, like: Tensor, **given: Any) -> None:
    code, threads = dtype_code(like.dtype), torch.get_num_threads()
    run(name, library.Deal(dtype=code, threads=threads, width=like.shape[1], **given))


def crf_forward(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor, every: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``log Z`` of every prefix or of the whole, and what the way back needs: native/crf.h."""
    steps, batch, tags = emissions.shape
    out = emissions.new_zeros((steps, batch) if every else (batch,))
    # Zeros, since nothing is written for steps beyond a sequence's end.
    weights = emissions.new_zeros(batch, steps, (tags + 7) // 8 * 8, dtype=torch.float64)
    sums, logged = torch.zeros_like(weights), emissions.new_empty(batch, dtype=torch.bool)
    made = {"row_weights": weights, "row_sums": sums, "logged": logged, "out": out}
    _crf("sw_crf_forward", emissions.shape, lengths, every, emissions=emissions, transitions=transitions, start=start,
         end=end, **made)  # fmt: skip
    return out, weights, sums, logged


def crf_backward(
    incoming: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor,
    every: bool,
    weights: Tensor,
    sums: Tensor,
    logged: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of emissions, transitions, start and end."""
    shape = (weights.shape[1], weights.shape[0], end.shape[0])
    grads = incoming.new_zeros(shape), *(torch.empty_like(each) for each in (transitions, start, end))
    given = {"incoming": incoming, "transitions": transitions, "start": start, "end": end}
    given |= {"row_weights": weights, "row_sums": sums, "logged": logged}
    _crf("sw_crf_backward", shape, lengths, every, **given, **_crf_gradients(*grads))
    return grads  # type: ignore[return-value]


def crf_path_score(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    tags: Tensor,
    lengths: Tensor,
    weights: Tensor | None,
    pair_weights: Tensor | None,
) -> Tensor:
    """The weighted score of one path for each sequence."""
    out = emissions.new_empty(emissions.shape[1])
    given = {"emissions": emissions, "transitions": transitions, "start": start, "end": end, "path": tags}
    given |= {"weights": weights, "pair_weights": pair_weights, "out": out}  # type: ignore[dict-item]
    _crf("sw_crf_score", emissions.shape, lengths, False, **given)
    return out


def crf_path_score_backward(
    incoming: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    tags: Tensor,
    lengths: Tensor,
    weights: Tensor | None,
    pair_weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of emissions, transitions, start and end."""
    shape = (*tags.shape, end.shape[0])
    grads = incoming.new_zeros(shape), *(torch.zeros_like(each) for each in (transitions, start, end))
    given = {"incoming": incoming, "path": tags, "weights": weights, "pair_weights": pair_weights}
    _crf("sw_crf_score_backward", shape, lengths, False, **given, **_crf_gradients(*grads))
    return grads  # type: ignore[return-value]


def _crf_gradients(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> dict[str, Tensor]:
    return {"grad_emissions": emissions, "grad_transitions": transitions, "grad_start": start, "grad_end": end}


def _crf(name: str, shape: Sequence[int], lengths: Tensor, every: bool, **tensors: Tensor | None) -> None:
    steps, batch, tags = shape
    floating = next(tensor for tensor in tensors.values() if tensor is not None and tensor.is_floating_point())
    pointers = {field: pointer(tensor) for field, tensor in tensors.items()}
    sizes = {"steps": steps, "batch": batch, "tags": tags, "every": every, "lengths": pointer(lengths)}
    code, threads = dtype_code(floating.dtype), torch.get_num_threads()
    run(name, library.Crf(dtype=code, threads=threads, **sizes, **pointers))


def readout_loss(
    states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, gradients: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The losses of replicas, which come first in every tensor, and their gradients, empty where none are wanted."""
    count, rows, width = states.shape
    classes = weight.shape[1]
    if (weight.shape, bias.shape, targets.shape) != ((count, classes, width), (count, classes), (count, rows)):
        raise ValueError("statewise: the sizes of readout_loss do not belong together.")
    given = {"states": states, "weight": weight, "bias": bias, "targets": targets}
    given = {name: tensor if tensor[0].is_contiguous() else tensor.contiguous() for name, tensor in given.items()}
    losses, none = states.new_empty(count), states.new_empty(0)
    grads = (none, none, none)
    if gradients:
        shapes = (count, classes, width), (count, classes)
        grads = roomy((count, rows, width), states), *(states.new_zeros(shape) for shape in shapes)  # type: ignore[assignment]
    given |= dict(zip(("grad_states", "grad_weight", "grad_bias"), grads, strict=True))
    arrays = {name: library.Array(pointer(each), each.stride(0)) for name, each in given.items()}
    sizes = {"replicas": count, "rows": rows, "width": width, "classes": classes, "losses": pointer(losses)}
    code, threads = dtype_code(states.dtype), torch.get_num_threads()
    run("sw_readout_loss", library.Readout(dtype=code, threads=threads, **sizes, **arrays))
    return losses, *grads


def _check_crf(emissions_shape: Sequence[int], lengths: Tensor, tags: Tensor | None = None) -> None:
    """Refuse lengths and tags beyond what the kernel may read, where a compiled graph could not look at them."""
    steps, batch, count = emissions_shape
    if lengths.shape != (batch,) or bool(((lengths < 1) | (lengths > steps)).any()):
        raise LengthError(where="CRF.lengths", got=lengths.tolist(), wanted=f"{batch} lengths from 1 to {steps}")
    if tags is None:
        return
    inside = torch.arange(steps)[:, None] < lengths
    if tags.shape != (steps, batch) or bool((((tags < 0) | (tags >= count)) & inside).any()):
        remedy = "Padding belongs beyond the lengths."
        wanted = f"({steps}, {batch}) tags from 0 to {count - 1}"
        raise ArgumentError(where="CRF.tags", got=tags.tolist(), wanted=wanted, remedy=remedy)


def _recorded_forward(emissions: Tensor, *given: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    _check_crf(emissions.shape, lengths=given[3])
    return crf_forward(emissions, *given)


def _recorded_score(emissions: Tensor, *given: Any) -> Tensor:
    _check_crf(emissions.shape, tags=given[3], lengths=given[4])
    return crf_path_score(emissions, *given)


def _forward_in_sizes(emissions: Tensor, a: Tensor, start: Tensor, end: Tensor, lengths: Tensor, every: bool) -> Any:
    steps, batch, tags = emissions.shape
    weights, sums = (emissions.new_empty(batch, steps, (tags + 7) // 8 * 8, dtype=torch.float64) for _ in range(2))
    out = emissions.new_empty((steps, batch) if every else (batch,))
    return out, weights, sums, emissions.new_empty(batch, dtype=torch.bool)


def _gradients_in_sizes(incoming: Tensor, steps: int, batch: int, *scores: Tensor) -> Any:
    return incoming.new_empty(steps, batch, scores[-1].shape[0]), *map(torch.empty_like, scores)


def _save_forward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, *scores, ctx.every = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*scores, *output[1:])


def _differentiate_forward(ctx: Any, incoming: Tensor, *_: Tensor) -> tuple[Any, ...]:
    *scores, weights, sums, logged = ctx.saved_tensors
    made = (ctx.every, weights, sums, logged)
    return *torch.ops.statewise.crf_backward(incoming.contiguous(), *scores, *made), None, None


def _save_score(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:])


def _differentiate_score(ctx: Any, incoming: Tensor) -> tuple[Any, ...]:
    grads = torch.ops.statewise.crf_path_score_backward(incoming.contiguous(), *ctx.saved_tensors)
    return *grads, None, None, None, None


def _refuse_second(ctx: Any, *grads: Any) -> Any:
    raise SecondDerivativeError.asked("CRF", "Build it with engine='reference', which autograd can differentiate.")


def _register() -> None:
    options: dict[str, Any] = {"mutates_args": (), "device_types": "cpu"}
    chain, four = "Tensor transitions, Tensor start, Tensor end", "(Tensor, Tensor, Tensor, Tensor)"
    path = "Tensor tags, Tensor lengths, Tensor? weights, Tensor? pair_weights"
    made = "Tensor weights, Tensor sums, Tensor logged"

    def register(name: str, function: Any, schema: str, sizes: Any) -> Any:
        operator = torch.library.custom_op(f"statewise::{name}", function, schema=schema, **options)
        operator.register_fake(sizes)
        return operator

    operator = register(
        "crf_forward",
        _recorded_forward,
        f"(Tensor emissions, {chain}, Tensor lengths, bool every) -> {four}",
        _forward_in_sizes,
    )
    operator.register_autograd(_differentiate_forward, setup_context=_save_forward)
    operator = register(
        "crf_backward",
        crf_backward,
        f"(Tensor incoming, {chain}, Tensor lengths, bool every, {made}) -> {four}",
        lambda incoming, a, start, end, lengths, every, weights, *rest: _gradients_in_sizes(
            incoming, weights.shape[1], weights.shape[0], a, start, end
        ),
    )
    operator.register_autograd(_refuse_second)
    operator = register(
        "crf_path_score",
        _recorded_score,
        f"(Tensor emissions, {chain}, {path}) -> Tensor",
        lambda emissions, *rest: emissions.new_empty(emissions.shape[1]),
    )
    operator.register_autograd(_differentiate_score, setup_context=_save_score)
    operator = register(
        "crf_path_score_backward",
        crf_path_score_backward,
        f"(Tensor incoming, {chain}, {path}) -> {four}",
        lambda incoming, a, start, end, tags, *rest: _gradients_in_sizes(incoming, *tags.shape, a, start, end),
    )
    operator.register_autograd(_refuse_second)


_register()
