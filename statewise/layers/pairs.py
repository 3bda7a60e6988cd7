"""Pairs of sequences on their way through a stack: which rows they are made of, and which batch a layer runs on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from statewise.engine import Drawn, Layout, Member, Mixed, Recurrence, deal, project
from statewise.errors import ShapeError
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

    def mix(self, call: Recurrence, blank: Tensor | None) -> Recurrence:
        """The recurrence of the pairs: the sequences are projected once, and their rows dealt out to the pairs.

        Args:
            call: the recurrence with the inputs of the sequences.
            blank: the input term of the zero vector, which is the bias; None for zero.
        """
        term = call.input_term
        if term is None:
            assert call.inputs is not None and call.weight_ih is not None
            term = project(call.inputs, call.weight_ih, call.bias_ih)
        first, second = deal(term, blank if self._ends else None, self.first, self.second)
        mixed = Mixed(second, self.coefficients)
        return replace(call, inputs=None, weight_ih=None, bias_ih=None, input_term=first, mixed=mixed)

    @property
    def _ends(self) -> bool:
        """Whether a member ends before its pair."""
        return self.second.ends or (self.first is not None and self.first.ends)

    def start(self, states: Tensor) -> Tensor:
        """The initial states of the pairs, from those of the sequences, mixed by the coefficients of the first step."""
        weight = self.coefficients.rows[: self.batch.layout.batch].to(states.dtype)
        first, second = (states.index_select(1, member.to(states.device)) for member in self.members)
        return weight * first + (1 - weight) * second

    def of_first(self, states: Tensor) -> Tensor:
        """Of something of every sequence, in the user's order, that of the first member of every pair."""
        return states if self.shown is None else states.index_select(1, self.shown.to(states.device))


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
        return max(batches, key=lambda batch: batch.layout.batch)


def pair_up(pairing: Pairing, batch: Batch, layer: int) -> Paired:
    """Lay a pairing out for a batch that it fits; with integers on the CPU and lengths nothing waits for a device."""
    device, places = batch.rows.device, batch.places
    if places is not None and pairing.lengths is None:
        places = places.cpu()
    home = torch.device("cpu") if places is None else places.device
    count = len(pairing.partner)
    numbers = torch.arange(count)
    both = torch.stack((numbers if pairing.first is None else pairing.first, pairing.partner))
    own = torch.tensor(batch.layout.lengths())
    known = home.type == "cpu"
    placed = places[both] if places is not None and known else both
    lengths = own[placed].amax(0) if pairing.lengths is None else pairing.lengths
    # Pairs that are equally long keep the order of their first members: then these often lie as they should.
    order = torch.argsort(placed[0] - lengths * batch.layout.batch, stable=True)
    if bool((lengths == lengths[0]).all()) and batch.order is None:
        order = numbers
    layout = _layout_of(lengths[order])
    same = known and layout == batch.layout and torch.equal(placed[0][order], numbers)
    if places is not None and not known:
        placed = places[both.to(home)]
    members = placed[:, order.to(home)]
    sequence, step = (part.to(home) for part in layout.places)
    where = members[:, sequence]
    present = step < own.to(home)[where]
    index = torch.where(present, torch.tensor(batch.layout.offsets[:-1]).to(home)[step] + where, -1)
    ended = [not known or not bool(part.all()) for part in present]
    first, second = (
        Member(rows, ends=end, repeated=len(torch.unique(numbers)) < count)
        for rows, end, numbers in zip(index.to(device, non_blocking=True), ended, both, strict=True)
    )
    same = same and not ended[0]
    return Paired(
        layer=layer,
        batch=_batch_of(batch, layout, order, same=same, batched=batch.batched or count != 1),
        members=members,
        first=None if same else first,
        second=second,
        coefficients=_coefficients(pairing, layout, order, batch),
        shown=pairing.first,
    )


def _layout_of(lengths: Tensor) -> Layout:
    """The layout of sequences that are sorted by their lengths."""
    steps = torch.arange(int(lengths[0]))
    return Layout(tuple((lengths > steps.unsqueeze(1)).sum(1).tolist()))


def _batch_of(batch: Batch, layout: Layout, order: Tensor, *, same: bool, batched: bool) -> Batch:
    places = torch.argsort(order)
    found = replace(batch, rows=batch.rows[:0], layout=layout, batched=batched)
    if same:
        return found
    if torch.equal(order, places) and torch.equal(order, torch.arange(len(order))):
        return replace(found, order=None, places=None)
    device = batch.rows.device
    return replace(found, order=order.to(device, non_blocking=True), places=places.to(device, non_blocking=True))


def _coefficients(pairing: Pairing, layout: Layout, order: Tensor, batch: Batch) -> Drawn:
    steps, like = pairing.coefficients.shape[0], batch.rows
    if steps not in (1, layout.steps, batch.layout.steps):
        raise ShapeError(
            where="Pairing.coefficients",
            got=tuple(pairing.coefficients.shape),
            wanted=f"1 or {layout.steps} steps, as the longest pair has",
        )
    weights = pairing.coefficients.to(like.dtype).unsqueeze(2)
    weights = weights[: layout.steps].index_select(1, order.to(weights.device))
    if weights.shape[0] == 1 and layout.steps > 1:
        return Drawn(weights[0].to(like.device, non_blocking=True), constant=True)
    return Drawn(layout.pack(weights).to(like.device, non_blocking=True), constant=False)
