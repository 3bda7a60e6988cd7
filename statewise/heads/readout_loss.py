"""A readout and its cross-entropy as one function; the C++ kernel on a CPU never writes the scores to memory."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch._C import _functorch

from statewise.errors import SecondDerivativeError
from statewise.kernels import traced, transformed
from statewise.native import load_native, operators

_MOST_BYTES = 768 * 1024  # of the weights: larger ones do not stay in a core's cache, and torch's products serve better


def readout_loss(
    states: Float[Tensor, "*rows width"],
    weight: Float[Tensor, "classes width"],
    bias: Float[Tensor, " classes"],
    targets: Int[Tensor, "*rows"],
) -> Float[Tensor, ""]:
    """The mean over rows of ``logsumexp(scores) - scores[target]`` with ``scores = states weight^T + bias``.

    On a CPU one kernel makes the loss and, where they are wanted, its gradients, tile by tile of rows, and under
    ``torch.func.vmap`` for all replicas side by side. It equals torch's ``cross_entropy(linear(...))`` up to rounding,
    and its digits do not depend on the number of threads. Torch's own functions serve where there is no kernel, on
    other devices, in half precision, for readouts of very many classes, and for the transforms of ``torch.func`` that
    the kernel does not know: all but ``vmap`` and one ``grad``.

    Args:
        states: what is read.
        weight: of the readout.
        bias: of the readout.
        targets: the classes that were to be predicted. -100 is padding: such a row does not count, as with torch. Any
            other number outside the classes is refused by torch; the kernel gives NaN as loss and gradients.

    Raises:
        SecondDerivativeError: if autograd is to differentiate the kernel's gradients.

    >>> states, targets = torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long)
    >>> round(readout_loss(states, torch.zeros(4, 5), torch.zeros(4), targets).exp().item(), 4)
    4.0
    """
    rows, chosen = states.flatten(0, -2), targets.flatten()
    if not _fits(rows, weight, bias, chosen):
        return F.cross_entropy(F.linear(rows, weight, bias), chosen)
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (states, weight, bias))
    # A transform may hide from here what it differentiates.
    front = (tensor.unsqueeze(0) for tensor in (rows, weight, bias, chosen))
    losses: Tensor = _Loss.apply(learns or transformed(), *front)[0]  # type: ignore[no-untyped-call]
    return losses.squeeze(0)


class _Loss(torch.autograd.Function):
    """Losses of replicas, which come first in every tensor, and beside them their gradients, for the way back."""

    @staticmethod
    def forward(gradients: bool, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        return operators.readout_loss(states, weight, bias, targets, gradients)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:], *inputs[1:4])

    @staticmethod
    def backward(ctx: Any, grads: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        if grads is None:
            return None, None, None, None, None
        needed = tuple(map(bool, ctx.needs_input_grad[1:4]))
        # Autograd may make what it gets a leaf's own and add to it; a transform does not.
        found = _Back.apply(needed, transformed(), grads, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return None, *found, None

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], gradients: bool, *row: Tensor) -> tuple[Any, Any]:
        wide = _batched(info.batch_size, dims[1:], row)
        return _split(info.batch_size, _Loss.apply(gradients, *wide))  # type: ignore[no-untyped-call]


class _Back(torch.autograd.Function):
    """The gradients of each replica times that of its loss.

    It has no derivative of its own, and is told what the gradients depend on, that autograd may come and be refused.
    """

    @staticmethod
    def forward(needed: tuple[bool, ...], lend: bool, grads: Tensor, *saved: Tensor) -> tuple[Tensor | None, ...]:
        # Where the loss is what is differentiated, nothing is left to do, and the states' gradients are large.
        ready = lend and bool((grads == 1).all())
        return tuple(
            None if not wanted else each if ready else each * grads.view(-1, *[1] * (each.dim() - 1))
            for wanted, each in zip(needed, saved[:3], strict=True)
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise SecondDerivativeError.asked(
            "readout_loss",
            "Use torch.nn.functional.cross_entropy of torch.nn.functional.linear, which have all of them.",
        )

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], needed: tuple[bool, ...], lend: bool, *row: Tensor) -> tuple[Any, Any]:
        wide = _batched(info.batch_size, dims[2:], row)
        return _split(info.batch_size, _Back.apply(needed, lend, *wide))  # type: ignore[no-untyped-call]


def _batched(count: int, dims: tuple[int | None, ...], tensors: tuple[Tensor, ...]) -> list[Tensor]:
    """So many times as many replicas; what they share is shared by a view."""
    each = zip(tensors, dims, strict=True)
    wide = (tensor.expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0) for tensor, dim in each)
    return [tensor.flatten(0, 1) for tensor in wide]


def _split(count: int, tensors: tuple[Tensor | None, ...]) -> tuple[Any, Any]:
    """What more replicas gave, with the new dimension in front, and where that is."""
    found = tuple(None if tensor is None else tensor.unflatten(0, (count, -1)) for tensor in tensors)
    return found, tuple(None if tensor is None else 0 for tensor in tensors)


def _fits(rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> bool:
    """Whether the kernel takes these; what does not belong together is left to torch, which says so."""
    if rows.dtype not in (torch.float32, torch.float64) or targets.dtype != torch.int64 or not rows.numel():
        return False
    if any(tensor.device.type != "cpu" for tensor in (rows, weight, bias, targets)):
        return False
    if weight.shape != (*bias.shape, rows.shape[1]) or targets.shape != rows.shape[:1] or not weight.numel():
        return False
    if {weight.dtype, bias.dtype} != {rows.dtype} or weight.numel() * weight.element_size() > _MOST_BYTES:
        return False
    return not traced() and _known_transforms() and load_native().available


def _known_transforms() -> bool:
    known, kinds = _functorch.TransformType, [level.key() for level in _functorch.get_interpreter_stack() or ()]
    return all(kind in (known.Vmap, known.Grad) for kind in kinds) and kinds.count(known.Grad) <= 1
