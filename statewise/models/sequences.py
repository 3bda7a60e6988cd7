"""Sequences as a classifier is given them, checked and laid out for a recurrent layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.engine import Layout
from statewise.engine.layout import moved
from statewise.errors import ArgumentError, DtypeError, LengthError, ShapeError
from statewise.kernels import transformed
from statewise.layers.packing import Packing

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)


@dataclass(frozen=True)
class Laid:
    """Sequences of a batch, steps first: a dense tensor where all are of one length, else packed.

    Attributes:
        source: token ids or numbers.
        lengths: of all sequences, the start token included; None where all are as long as ``source``.
        batch: how many sequences there are.
    """

    source: Tensor | PackedSequence
    lengths: Tensor | None
    batch: int

    def map(self, change: Callable[[Tensor], Tensor]) -> Tensor | PackedSequence:
        """The source with something done to every step."""
        if not isinstance(self.source, PackedSequence):
            return change(self.source)
        packed = self.source
        return PackedSequence(change(packed.data), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)

    def all_lengths(self, device: torch.device) -> Tensor:
        """The lengths as a tensor, also where all are equal."""
        if self.lengths is not None:
            return self.lengths.to(device)
        assert isinstance(self.source, Tensor)
        return torch.full((self.batch,), len(self.source), device=device)


def sequences_of(packed: PackedSequence) -> Tensor:
    """For each row of packed sequences, which of them, in the order of the batch, it is a step of.

    Args:
        packed: sequences in any order.

    >>> sequences_of(Packing.of(torch.tensor([1, 2]), device="cpu").pack(torch.ones(2, 2, 1))).tolist()
    [1, 0, 1]
    """
    sequence, _ = Layout.of_sizes(tuple(packed.batch_sizes.tolist())).places
    sorted_rows = moved(torch.from_numpy(sequence), packed.data.device)
    return sorted_rows if packed.sorted_indices is None else packed.sorted_indices[sorted_rows]


def lay_out(
    inputs: Tensor,
    lengths: Tensor | None,
    *,
    where: str,
    tokens: int | None,
    features: int | None,
    start: int | None,
) -> Laid:
    """Check a padded batch and lay it out; what stands beyond a sequence's end is never looked at.

    Args:
        inputs: token ids (batch, steps), or numbers (batch, steps, features).
        lengths: of each sequence; None where all are full. Best on the CPU: elsewhere the host waits for them.
        where: the model's name, for errors.
        tokens: how many there are, if the inputs are ids.
        features: width of a step, if they are numbers.
        start: the id that is put before every sequence, or None.
    """
    check_shape(inputs, where=where, tokens=tokens, features=features)
    batch, steps = inputs.shape[:2]
    if lengths is not None:
        lengths = _check_lengths(lengths, where=where, batch=batch, steps=steps)
        if batch and int(lengths.min()) == int(lengths.max()):
            inputs, lengths = inputs[:, : int(lengths[0])], None
    if start is None and batch:
        _refuse_empty(lengths, inputs.shape[1], where=where, tokens=tokens)
    if tokens is not None:
        inputs = inputs.long()
        if inputs.device.type == "cpu" and not transformed():  # elsewhere it would make the host wait
            check_ids(inputs, lengths, where=where, tokens=tokens)
    if start is not None:
        inputs = torch.cat([inputs.new_full((batch, 1), start), inputs], dim=1)
        lengths = None if lengths is None else lengths + 1
    if lengths is None or not batch:
        return Laid(inputs.transpose(0, 1), None, batch)
    packing = Packing.of(lengths, device=inputs.device)
    return Laid(packing.pack(inputs.transpose(0, 1)), lengths, batch)


def check_shape(inputs: Tensor, *, where: str, tokens: int | None, features: int | None) -> None:
    """Refuse what is neither ids (batch, steps) nor numbers (batch, steps, features).

    Args:
        inputs: the batch.
        where: the model's name.
        tokens: how many there are, if the inputs are ids.
        features: width of a step, if they are numbers.
    """
    if not isinstance(inputs, Tensor):
        raise DtypeError(where=f"{where} inputs", got=type(inputs).__name__, wanted="a tensor")
    if tokens is not None and inputs.dtype not in INTEGERS:
        raise DtypeError(where=f"{where} inputs", got=str(inputs.dtype), wanted="whole numbers, the ids of tokens")
    if tokens is not None and inputs.ndim != 2:
        raise ShapeError(where=f"{where} inputs", got=tuple(inputs.shape), wanted="(batch, steps)")
    if features is not None and (inputs.ndim != 3 or inputs.shape[2] != features):
        raise ShapeError(where=f"{where} inputs", got=tuple(inputs.shape), wanted=f"(batch, steps, {features})")


def _check_lengths(lengths: Tensor, *, where: str, batch: int, steps: int) -> Tensor:
    if not isinstance(lengths, Tensor) or lengths.dtype not in INTEGERS:
        got = str(lengths.dtype) if isinstance(lengths, Tensor) else type(lengths).__name__
        raise DtypeError(where=f"{where} lengths", got=got, wanted="a tensor of whole numbers")
    if tuple(lengths.shape) != (batch,):
        raise ShapeError(where=f"{where} lengths", got=tuple(lengths.shape), wanted=f"({batch},), one a sequence")
    lengths = lengths.long().cpu()
    wrong = ((lengths < 0) | (lengths > steps)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise LengthError(
            where=f"{where} lengths[{row}]",
            got=int(lengths[row]),
            wanted=f"from 0 to {steps}, the steps given",
        )
    return lengths


def _refuse_empty(lengths: Tensor | None, steps: int, *, where: str, tokens: int | None) -> None:
    row = 0 if lengths is None else int(lengths.argmin())
    if (steps if lengths is None else int(lengths[row])) == 0:
        raise LengthError(
            where=f"{where} lengths[{row}]",
            got="an empty sequence",
            wanted="at least one step",
            remedy="start_token=True makes the empty sequence legal." if tokens is not None else "Leave it out.",
        )


def check_ids(ids: Tensor, lengths: Tensor | None, *, where: str, tokens: int) -> None:
    """Refuse ids that no token has, but for those beyond a sequence's end.

    Args:
        ids: (batch, steps).
        lengths: of the sequences; None where all are full.
        where: the model's name.
        tokens: how many there are.
    """
    if ids.numel() == 0:
        return
    low, high = ids.aminmax()
    if low >= 0 and high < tokens:
        return
    wrong = (ids < 0) | (ids >= tokens)
    if lengths is not None:
        wrong &= torch.arange(ids.shape[1]) < lengths.unsqueeze(1)
    if wrong.any():
        row, step = wrong.nonzero()[0].tolist()
        raise ArgumentError(
            where=f"{where} inputs[{row}, {step}]",
            got=f"token {int(ids[row, step])}",
            wanted=f"a token from 0 to {tokens - 1}",
        )


def steps_inside(inputs: Tensor, lengths: Tensor, *, where: str) -> Tensor:
    """Which steps of a padded batch belong to their sequence, (batch, steps).

    Args:
        inputs: the batch.
        lengths: of its sequences.
        where: the model's name.

    >>> steps_inside(torch.zeros(2, 3), torch.tensor([1, 3]), where="model").tolist()
    [[True, False, False], [True, True, True]]
    """
    batch, steps = inputs.shape[:2]
    checked = _check_lengths(lengths, where=where, batch=batch, steps=steps).to(inputs.device)
    return torch.arange(steps, device=inputs.device) < checked.unsqueeze(1)
