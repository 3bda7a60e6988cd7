"""The objective with several noises at once: each sequence of a batch is run K times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.errors import ArgumentError, DtypeError, ShapeError


class Sampled(NamedTuple):
    """The loss over all samples, and the states that each of them has reached."""

    loss: Tensor
    state: Any


def k_sample_loss(
    model: Callable[..., tuple[Any, Any]],
    loss: Callable[[Any, Any], Tensor],
    inputs: Tensor | PackedSequence,
    targets: Any,
    state: Any = None,
    *,
    samples: int = 1,
    batch_dim: int = 1,
    **options: Any,
) -> Sampled:
    """The loss averaged over K noises for each sequence.

    ``1/K sum_k sum_t -log p(x_t | z_t(eps^(k)))`` (Dieng et al. 2018, eqs. 17-18): an average of logarithms, so K
    changes the variance of the gradient, by 1/K, and not the objective. The batch is repeated K times, and each copy
    gets noise of its own; with ``samples=1`` nothing is repeated, and the random numbers are those of a plain pass.

    Noise that is fed back gives each copy another state, so K states are returned; give them to the next segment.

    Args:
        model: a layer or a model, called as ``model(inputs, state, **options)``, that returns (output, state).
        loss: from the output and the targets to a mean over all rows, such as ``torch.nn.CrossEntropyLoss()``.
        inputs: one batch, with the sequences along ``batch_dim``, or a PackedSequence.
        targets: of the batch, with the sequences along ``batch_dim``; a PackedSequence, or a tuple of these.
        state: None, the states of the batch, or what the last call returned, with K states for each sequence; tensors
            of shape (layers, batch, hidden), alone or in tuples and lists.
        samples: K.
        batch_dim: the dimension of inputs and targets that counts the sequences.
        **options: further arguments of the model, such as ``generator``.

    >>> from statewise import LSTM, Noise
    >>> layer = LSTM(3, 4, transforms=Noise("gaussian", 0.5))
    >>> mse, x, y = torch.nn.MSELoss(), torch.zeros(5, 2, 3), torch.zeros(5, 2, 4)
    >>> loss, state = k_sample_loss(layer, mse, x, y, samples=8)
    >>> state[0].shape
    torch.Size([1, 16, 4])
    >>> loss, state = k_sample_loss(layer, mse, x, y, state, samples=8)
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise ArgumentError(where="k_sample_loss.samples", got=samples, wanted="a whole number of at least 1")
    batch = _sequences(inputs, batch_dim)
    carried = tile_state(state, samples, batch=batch)
    output, reached = model(tile(inputs, samples, batch_dim), carried, **options)
    return Sampled(loss(output, _each(targets, lambda part: tile(part, samples, batch_dim))), reached)


def tile(batch: Any, samples: int, batch_dim: int = 1) -> Any:
    """A batch K times over: row ``b`` of copy ``k`` is row ``k * batch + b``.

    >>> tile(torch.tensor([[1, 2]]), 2)
    tensor([[1, 2, 1, 2]])
    """
    if samples == 1:
        return batch
    if isinstance(batch, PackedSequence):
        return _tile_packed(batch, samples)
    repeats = [1] * batch.ndim
    repeats[batch_dim] = samples
    return batch.repeat(repeats)


def tile_state(state: Any, samples: int, *, batch: int) -> Any:
    """States for K copies of a batch: the batch's own K times, or those that the copies have reached already.

    >>> tile_state(torch.zeros(1, 2, 4), 3, batch=2).shape
    torch.Size([1, 6, 4])
    """

    def one(part: Tensor) -> Tensor:
        if part.ndim != 3 or part.shape[1] not in (batch, samples * batch):
            raise ShapeError(
                where="k_sample_loss state",
                got=tuple(part.shape),
                wanted=f"(layers, {batch}, hidden), or (layers, {samples * batch}, hidden) from the call before",
                remedy="Keep the number of samples and the batch from one segment to the next.",
            )
        return part if part.shape[1] == samples * batch else tile(part, samples)

    return None if state is None else _each(state, one)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply to a tensor, or to all in nested tuples and lists."""
    if isinstance(value, Tensor | PackedSequence):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_each(part, change) for part in value)
    raise DtypeError(where="k_sample_loss", got=type(value).__name__, wanted="tensors, alone or in tuples and lists")


def _sequences(inputs: Tensor | PackedSequence, batch_dim: int) -> int:
    if isinstance(inputs, PackedSequence):
        return int(inputs.batch_sizes[0])
    if inputs.ndim <= batch_dim:
        raise ShapeError(
            where="k_sample_loss inputs",
            got=tuple(inputs.shape),
            wanted=f"a batch, with the sequences along dimension {batch_dim}",
            remedy="Give a single sequence as a batch of one.",
        )
    return inputs.shape[batch_dim]


def _tile_packed(packed: PackedSequence, samples: int) -> PackedSequence:
    """Copies of a sequence stay neighbours among the sorted rows, so that lengths still fall."""
    batch = int(packed.batch_sizes[0])
    order = packed.sorted_indices
    if order is None:
        order = torch.arange(batch, device=packed.data.device)
    copies = torch.arange(samples, device=order.device)
    order = (order.unsqueeze(1) + batch * copies).flatten()
    unsorted = torch.empty_like(order)
    unsorted[order] = torch.arange(len(order), device=order.device)
    data = packed.data.repeat_interleave(samples, 0)
    return PackedSequence(data, packed.batch_sizes * samples, order, unsorted)
