"""Mixing the states of any cell, however they are nested."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import DtypeError, ShapeError


def mix_state(first: Any, second: Any, coefficient: Float[Tensor, "*shape"] | float, *, dim: int = -2) -> Any:
    """``lambda s + (1 - lambda) s'`` for two states of the same structure.

    A state is a tensor, or tuples, lists and dictionaries of states, such as the ``(h, c)`` of an LSTM; None stays
    None, and tensors of whole numbers, such as counters, must agree (Karamzade et al. 2020, through-time mixup).

    Args:
        first: the state that has the weight ``lambda``.
        second: the other one.
        coefficient: ``lambda``: a number, or one for each sequence, shape (batch,).
        dim: which dimension of the tensors is the batch, by default the last but one.

    >>> h, c = mix_state((torch.ones(1, 2, 3), torch.zeros(1, 2, 3)), (torch.zeros(1, 2, 3),) * 2, 0.25)
    >>> h[0, 0].tolist(), c[0, 0].tolist()
    ([0.25, 0.25, 0.25], [0.0, 0.0, 0.0])
    """
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return _mix_tensors(first, second, coefficient, dim)
    if first is None and second is None:
        return None
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return {name: mix_state(part, second[name], coefficient, dim=dim) for name, part in first.items()}
    if isinstance(first, tuple | list) and isinstance(second, tuple | list) and len(first) == len(second):
        parts = [mix_state(*both, coefficient, dim=dim) for both in zip(first, second, strict=True)]
        return rebuilt(first, parts)
    raise DtypeError(
        where="mix_state",
        got=f"{type(first).__name__} and {type(second).__name__}",
        wanted="two states of the same structure: tensors, or tuples, lists and dictionaries of them",
    )


def select_state(state: Any, rows: Tensor, *, dim: int = -2) -> Any:
    """Some sequences of a state, by their indices.

    >>> select_state((torch.arange(3.0).reshape(1, 3, 1),), torch.tensor([2, 2]))[0].flatten().tolist()
    [2.0, 2.0]
    """
    if isinstance(state, Tensor):
        return state.index_select(dim, rows.to(state.device, non_blocking=True))
    if isinstance(state, dict):
        return {name: select_state(part, rows, dim=dim) for name, part in state.items()}
    if isinstance(state, tuple | list):
        return rebuilt(state, [select_state(part, rows, dim=dim) for part in state])
    return state


def detached(state: Any) -> Any:
    """A state without its history, as truncated backpropagation carries it on.

    >>> detached((torch.ones(1, requires_grad=True), None))[0].requires_grad
    False
    """
    if isinstance(state, Tensor):
        return state.detach()
    if isinstance(state, dict):
        return {name: detached(part) for name, part in state.items()}
    if isinstance(state, tuple | list):
        return rebuilt(state, [detached(part) for part in state])
    return state


def rebuilt(like: Any, parts: list[Any]) -> Any:
    """Parts in a tuple, list or named tuple of the kind of another.

    >>> rebuilt((1, 2), [3, 4])
    (3, 4)
    """
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


def _mix_tensors(first: Tensor, second: Tensor, coefficient: Tensor | float, dim: int) -> Tensor:
    if first.shape != second.shape:
        raise ShapeError(where="mix_state", got=f"{tuple(first.shape)} and {tuple(second.shape)}", wanted="one shape")
    if not first.is_floating_point():
        if not torch.equal(first, second):
            raise DtypeError(
                where="mix_state", got=f"different {first.dtype}", wanted="real numbers, which can be mixed"
            )
        return first
    weight = torch.as_tensor(coefficient, device=first.device)
    if weight.ndim:
        weight = weight.reshape([-1 if axis == dim % first.ndim else 1 for axis in range(first.ndim)])
    return (weight * first + (1 - weight) * second).to(first.dtype)
