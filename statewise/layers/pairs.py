"""Pairs of sequences on their way through a stack: which rows they are made of, and which batch a layer runs on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from statewise.engine import Drawn, Layout, Member, Mixed, Recurrence, deal, project
from statewise.engine.layout import Array
from statewise.errors import ArgumentError, DtypeError, LengthError, ShapeError
from statewise.layers.batch import Batch
from statewise.transforms import Pairing


@dataclass(frozen=True)
class Paired:
    """A pairing in the engines' layout.

    Attributes:
        layer: the one that mixes.
        batch: the pairs; their rows are made at the mixing layer.
        members: the places of both members of each pair among the sorted sequences, (2, pairs).
        first: the first members; None where they are the sequences as they lie.
        second: the second members.
        coefficients: the weights of the first members.
        shown: for each of the user's pairs the user's number of its first member; None for its own number.
    """

    layer: int
    batch: Batch
    members: Tensor
    first: Member | None
    second: Member
    coefficients: Drawn
    shown: Tensor | None

    def mix(self, call: Recurrence, blank: Tensor | None, *, plainly: bool) -> Recurrence:
        """The recurrence of the pairs: the sequences are projected once, and their rows dealt out to the pairs.

        Args:
            call: the recurrence with the inputs of the sequences.
            blank: the input term of the zero vector, which is the bias; None for zero.
            plainly: whether by torch's operations alone.
        """
        term = call.input_term
        if term is None:
            assert call.inputs is not None and call.weight_ih is not None
            term = call.project() if plainly else project(call.inputs, call.weight_ih, call.bias_ih)
        first, second = deal(term, blank if self._ends else None, self.first, self.second, plainly=plainly)
        mixed = Mixed(second, self.coefficients)
        return replace(call, inputs=None, weight_ih=None, bias_ih=None, input_term=first, mixed=mixed)

    @property
    def _ends(self) -> bool:
        """Whether a member ends before its pair."""
        return self.second.ends or (self.first is not None and self.first.ends)

    def start(self, states: Tensor) -> Tensor:
        """The initial states of the pairs, from those of the sequences, mixed by the coefficients of the first step."""
        weight = self.coefficients.rows[: self.batch.layout.batch]
        first, second = (states.index_select(1, member.to(states.device, non_blocking=True)) for member in self.members)
        return (weight * first + (1 - weight) * second).to(states.dtype)

    def of_first(self, states: Tensor) -> Tensor:
        """Of something of every sequence, in the user's order, that of the first member of every pair."""
        if self.shown is None:
            return states
        return states.index_select(1, self.shown.to(states.device, non_blocking=True))


@dataclass(frozen=True)
class Batches:
    """What each layer of a stack runs on: the sequences and, from the mixing layer on, the pairs."""

    own: Batch
    paired: Paired | None = None

    def at(self, layer: int) -> Batch:
        """What a layer runs on."""
        return self.own if self.paired is None or layer < self.paired.layer else self.paired.batch

    def entering(self, layer: int) -> Batch:
        """What the inputs of a layer are rows of: at the mixing layer still the sequences."""
        return self.own if self.paired is None or layer <= self.paired.layer else self.paired.batch

    def mixes(self, layer: int) -> bool:
        """Whether a layer is the one that mixes."""
        return self.paired is not None and layer == self.paired.layer

    def started(self) -> Batch:
        """A batch of as many sequences as initial states are drawn for: all that a layer of the stack may have."""
        batches = [self.at(0)] if self.paired is None else [self.at(0), self.paired.batch]
        return batches[0] if len(batches) == 1 else max(batches, key=lambda batch: batch.layout.batch)


def read_pairs(
    batch: Batch, pairing: Pairing | None, *, where: str, mixing: int | None, layers: int, training: bool
) -> Batches:
    """Check a pairing and lay it out, if there is one.

    Args:
        batch: the sequences.
        pairing: which of them are mixed; None for none.
        where: the layer's name, for errors.
        mixing: the layer of the stack that mixes where the pairing names none; None if none does.
        layers: how many the stack has.
        training: whether the stack is being trained.
    """
    if pairing is None:
        return Batches(batch)
    if not isinstance(pairing, Pairing):
        raise DtypeError(where=where, got=type(pairing).__name__, wanted="a Pairing")
    layer = mixing if pairing.layer is None else pairing.layer
    if layer is None:
        raise ArgumentError(
            where=where,
            got="a pairing that names no layer",
            wanted="a layer with ThroughTimeMix among its transforms",
            remedy="Build it with transforms=ThroughTimeMix(), or name the layer: Pairing(..., layer=0).",
        )
    if not training:
        raise ArgumentError(
            where=where,
            got="a pairing in eval mode",
            wanted="none: sequences are mixed in training only",
            remedy="Call the layer without it, or call .train() first.",
        )
    layout = batch.layout
    if not layout.rows:
        got, remedy = "a pairing of an empty batch", "Call the layer without it."
        raise LengthError(where=where, got=got, wanted="sequences to mix", remedy=remedy)
    pairing.check(steps=layout.steps, batch=layout.batch, layers=layers, device=batch.rows.device)
    return Batches(batch, pair_up(pairing, batch, layer))


def pair_up(pairing: Pairing, batch: Batch, layer: int) -> Paired:
    """Lay a pairing out for a batch that it fits.

    All numbers are the host's, in numpy, which is quicker with so few. Only the places of a packed batch that was
    sorted are on its device: where the pairing gives the lengths of the pairs they stay there, and nothing waits.
    """
    device, places = batch.rows.device, batch.places
    apart = places if places is not None and places.device.type != "cpu" and pairing.lengths is not None else None
    numbers = np.arange(len(pairing.partner))
    both = np.stack((numbers if pairing.first is None else _numbers(pairing.first), _numbers(pairing.partner)))
    placed = both if places is None or apart is not None else _numbers(places)[both]
    own = np.array(batch.layout.lengths())
    lengths = own[placed].max(0) if pairing.lengths is None else _numbers(pairing.lengths)
    # Pairs that are equally long keep the order of their first members: then these often lie as they should.
    order = np.argsort(placed[0] - lengths * batch.layout.batch, kind="stable")
    if batch.order is None and (lengths == lengths[0]).all():
        order = numbers
    layout = Layout.of(lengths)
    if apart is None:
        members = placed[:, order]
        index, ends = _rows_of(members, own, batch.layout, layout)
        places_of = torch.from_numpy(members)
        # In the batch's order, too: pair i is that of sequence i.
        same = layout == batch.layout and not ends[0] and bool(((members[0] == numbers) & (both[0] == numbers)).all())
    else:
        places_of = apart[torch.from_numpy(both[:, order]).to(device, non_blocking=True)]
        index, ends, same = _rows_on_device(places_of, own, batch.layout, layout), (True, True), False
    index = index.to(device, non_blocking=True)
    first, second = (
        Member(rows, ends=end, repeated=int(np.bincount(which).max()) > 1)
        for rows, end, which in zip(index, ends, both, strict=True)
    )
    found = replace(batch, rows=batch.rows[:0], layout=layout, batched=batch.batched or len(numbers) != 1)
    return Paired(
        layer=layer,
        batch=found if same else _sorted_by(found, order),
        members=places_of,
        first=None if same else first,
        second=second,
        coefficients=_coefficients(pairing, layout, order, batch),
        shown=pairing.first,
    )


def _numbers(tensor: Tensor) -> Array:
    """The numbers of a tensor, on the host; as a list first, since torch.func's transforms know no arrays."""
    return np.array(tensor.tolist())


def _rows_of(members: Array, own: Array, sequences: Layout, pairs: Layout) -> tuple[Tensor, tuple[bool, bool]]:
    """For every row of the pairs the rows of both members, -1 where one has ended; and whether it does."""
    sequence, step = pairs.places
    where = members[:, sequence]
    index = np.ascontiguousarray(np.array(sequences.offsets)[step] + where)  # numpy chose another order of dimensions
    if sequences.dense:
        return torch.from_numpy(index), (False, False)
    ended = step >= own[where]
    index[ended] = -1
    return torch.from_numpy(index), (bool(ended[0].any()), bool(ended[1].any()))


def _rows_on_device(members: Tensor, own: Array, sequences: Layout, pairs: Layout) -> Tensor:
    """The same where only the device knows which places the members have."""
    numbers = (*pairs.places, own, np.array(sequences.offsets))
    sequence, step, lengths, offsets = (torch.from_numpy(n).to(members.device, non_blocking=True) for n in numbers)
    where = members[:, sequence]
    return torch.where(step < lengths[where], offsets[step] + where, -1)


def _sorted_by(batch: Batch, order: Array) -> Batch:
    """The pairs with the order in which they lie."""
    if (order == np.arange(len(order))).all():
        return replace(batch, order=None, places=None)
    device = batch.rows.device
    order_and_places = torch.from_numpy(np.stack((order, np.argsort(order)))).to(device, non_blocking=True)
    return replace(batch, order=order_and_places[0], places=order_and_places[1])


def _coefficients(pairing: Pairing, layout: Layout, order: Array, batch: Batch) -> Drawn:
    """The coefficients as a column, in at least single precision, as the weights of the labels have it.

    Triton's kernels take them so, and compute with them in single precision. The other engines compute all of a layer
    in one dtype: of a layer in half precision they round these, too.
    """
    weights, like = pairing.coefficients, batch.rows
    if weights.shape[0] not in (1, layout.steps, batch.layout.steps):
        raise ShapeError(
            where="Pairing.coefficients",
            got=tuple(weights.shape),
            wanted=f"1 or {layout.steps} steps, as the longest pair has",
        )
    weights = weights[: layout.steps].to(torch.promote_types(like.dtype, torch.float32)).unsqueeze(2)
    if not (order == np.arange(len(order))).all():
        weights = weights.index_select(1, torch.from_numpy(order).to(weights.device, non_blocking=True))
    constant = weights.shape[0] == 1 and layout.steps > 1
    rows = weights[0] if constant else layout.pack(weights)
    return Drawn(rows.to(like.device, non_blocking=True), constant)
