"""The layer at work: torch.nn's interface around a cell, transforms and an engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.engine import GateMask, Plan, Recurrence, Step, Unrolled, choose, unroll_all
from statewise.errors import ArgumentError, ShapeError
from statewise.layers.batch import Batch, autocast_off, check_generator, read, read_state
from statewise.layers.collected import Collected, check_kinds
from statewise.layers.drawing import START, DrawingLayer
from statewise.layers.draws import Draws
from statewise.layers.pairs import Batches, read_pairs
from statewise.layers.plain import StepWeights, apply_stack_once
from statewise.native import load_native
from statewise.transforms import Pairing, Place, Randomness, RecurrentDropout, StateTransform, ThroughTimeMix
from statewise.weights import restore_weight_drop

State = Tensor | tuple[Tensor, Tensor]
# Initial states and memories of all layers and directions, and whether fresh products are one.
Initial = tuple[Sequence[Tensor], Sequence[Tensor] | None, bool]


class RecurrentLayer(DrawingLayer):
    """A recurrent layer with torch.nn's interface, whose hidden state can be acted on between two steps.

    ``a_t = W x_t + b``, ``u_t, c_t = cell(a_t, U h_{t-1}, c_{t-1})``, ``h_t = transforms(u_t)`` (fed back),
    ``y_t = outputs(h_t)`` (not fed back).

    Within a layer the places come in a fixed order: inputs, gate masks, cell (or through-time mix), state, outputs.
    Transforms of one place act in the order in which they are given.
    """

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: State | None = None,
        *,
        collect: Iterable[str] = (),
        collect_grad: bool = False,
        generator: torch.Generator | None = None,
        draws: Draws | None = None,
        pairing: Pairing | None = None,
    ) -> Any:
        """Run the layer over sequences, as torch.nn's layers do.

        Args:
            input: (steps, batch, input), batch first if the layer is, (steps, input), or a PackedSequence.
            hx: the initial state, (layers * directions, batch, hidden); for the LSTM family a pair (h, c).
            collect: what to return of the inside: some of "states", "cells", "gates", "probabilities".
            collect_grad: whether the collected tensors carry gradients; the reference engine then runs.
            generator: source of everything drawn; None means torch's global one. Idle beside ``draws``.
            draws: what :meth:`draw` gave, to repeat a pass exactly.
            pairing: which sequences are mixed through time, how strongly, and in which layer. All that is given back is
                then of the pairs; of the layers below the mixing one the final states are those of the first members,
                and what is collected belongs to the sequences.

        Returns:
            The output, the final state, and a :class:`Collected` if ``collect`` names anything.
        """
        options: dict[str, Any] = {"collect": collect, "collect_grad": collect_grad, "generator": generator}
        options |= {"draws": draws, "pairing": pairing}
        if torch.compiler.is_compiling() and not (self._traceable(generator) and draws is None and pairing is None):
            # A compiled model breaks its graph here, since the engines are compiled already.
            from statewise.layers.uncompiled import eagerly

            return eagerly(self._run, input, hx, **options)
        return self._run(input, hx, **options)

    def _traceable(self, generator: torch.Generator | None) -> bool:
        """Whether torch's compiler shall look into a pass: on a CPU, draws and the kernel are operators to it."""
        if self.weight_ih_l0.device.type != "cpu" or generator is not None or self.check_finite:
            return False
        # The plain loop is a graph of all its steps, which takes minutes to compile: only where nothing else will do.
        asked = self.engine == "reference" or torch.compiler.is_exporting()
        return asked or (self.engine in ("auto", "cpu") and load_native().available)

    def _run(
        self,
        input: Tensor | PackedSequence,
        hx: State | None,
        *,
        collect: Iterable[str],
        collect_grad: bool,
        generator: torch.Generator | None,
        draws: Draws | None,
        pairing: Pairing | None,
    ) -> Any:
        kinds = check_kinds(collect, where=self._name)
        batches = self._batches(input, pairing)
        with autocast_off(batches.own.rows.device):
            if draws is not None:
                self._check_draws(draws, batches)
                restore_weight_drop(self, draws.weights)
            else:
                draws = self._draw_all(batches, generator, starts=hx is None)
            initial = self._initial_of(hx, batches, draws)
            rows, ran, seen = batches.own.rows, [], bool(kinds)
            stretches = deque(self._stretches(batches, draws))
            while stretches:
                layers = stretches.popleft()
                entering = self._outside(Place.INPUT, rows, layers[0], batches.entering(layers[0]), draws)
                calls = [
                    self._recurrence(
                        layer, direction, self._below(entering, layer, layers), initial, batches, draws, seen
                    )
                    for layer in layers
                    for direction in range(self.num_directions)
                ]
                plans = [self._choose(call, collect_grad and seen, len(calls)) for call in calls]
                if len(layers) > 1 and any(plan.kernel is None for plan in plans):
                    stretches.extendleft(range(layer, layer + 1) for layer in reversed(layers))
                    continue
                unrolled = unroll_all(calls, plans, chained=len(layers) > 1)
                ran += [[one] for one in unrolled] if len(layers) > 1 else [unrolled]
                rows = _side_by_side([one.states for one in ran[-1]])
                rows = self._outside(Place.OUTPUT, rows, layers[-1], batches.at(layers[-1]), draws)
        output = batches.at(self.num_layers - 1).give_back(rows, batch_first=self.batch_first)
        final = self._final(ran, batches)
        return (output, final, self._collect(kinds, ran, batches, collect_grad)) if kinds else (output, final)

    def plain_step(
        self, input: Tensor, hx: State | None = None, *, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "batch hidden"], State]:
        """One application of each layer's cell, with every transform of inputs, states and outputs left out.

        ``u, c = cell(W x + b, U h, c)``: so a classifier reads an end token (Wang & Niepert 2019, section 3).

        Args:
            input: one step of every sequence, (batch, input).
            hx: the state, as in :meth:`forward`; None for the layer's own beginning.
            generator: source of a beginning that is drawn; idle in other layers.

        Returns:
            The top layer's ``u``, and the state of all layers.
        """
        if self.bidirectional:
            raise ArgumentError(
                where=f"{self._name}.plain_step",
                got="a bidirectional layer",
                wanted="one direction: a single step has no sequence to come back through",
            )
        if not isinstance(input, Tensor) or input.ndim != 2:
            got = tuple(input.shape) if isinstance(input, Tensor) else type(input).__name__
            raise ShapeError(where=f"{self._name}.plain_step input", got=got, wanted=f"(batch, {self.input_size})")
        batch = self._read(input.unsqueeze(1 if self.batch_first else 0))
        with autocast_off(batch.rows.device):
            check_generator(generator, where=self._name, device=batch.rows.device)
            randomness = Randomness(generator, device=batch.rows.device)
            start = self._draw_start(batch, randomness.stream(START)) if hx is None else None
            initial = self._initial(hx, batch, Draws(start=start))
            weights = (self._weights_of(f"_l{layer}", batch) for layer in range(self.num_layers))
            output, states, memories = apply_stack_once(self.cell, batch.rows, initial, weights)
        return output, states if memories is None else (states, memories)

    def draw(
        self,
        input: Tensor | PackedSequence,
        *,
        generator: torch.Generator | None = None,
        pairing: Pairing | None = None,
    ) -> Draws:
        """Draw everything random that a pass over this input, in these pairs, needs, for ``forward(..., draws=)``."""
        return self._draw_all(self._batches(input, pairing), generator)

    def plan(
        self, input: Tensor | PackedSequence, *, pairing: Pairing | None = None, collect_grad: bool = False
    ) -> Plan:
        """Which engine would run this input, and for each faster one why not; the arguments are forward's."""
        batches = self._batches(input, pairing)
        own = batches.own.rows
        # A generator of its own, so that asking changes nothing; the meta device has none, and draws no numbers.
        source = None if own.is_meta else torch.Generator(own.device).manual_seed(0)
        draws = self._draw(batches, source)
        initial = self._initial_of(None, batches, draws)
        plans = []
        for layers in self._stretches(batches, draws):
            for layer in layers:
                rows = own.new_zeros(batches.entering(layer).layout.rows, self._input_width(layer))
                call = self._recurrence(layer, 0, rows, initial, batches, draws, record=False)
                plans.append(self._choose(call, collect_grad, len(layers) * self.num_directions))
        # The stack is as fast as its slowest layer.
        return max(plans, key=lambda plan: ("solo", "team", "step", "native", "loop").index(plan.form))

    def first_recurrence(self, input: Tensor | PackedSequence) -> tuple[Recurrence, int]:
        """The recurrence of the first layer for an input, and how many run side by side with it, itself included."""
        batches = Batches(self._read(input))
        rows = batches.own.rows
        draws = self._draw(batches, torch.Generator(rows.device).manual_seed(0))
        initial = self._initial_of(None, batches, draws)
        call = self._recurrence(0, 0, rows, initial, batches, draws, record=False)
        return call, len(self._stretches(batches, draws)[0]) * self.num_directions

    def _stretches(self, batches: Batches, draws: Draws) -> list[range]:
        """The layers in stretches that run as a wavefront, on an accelerator: a new one where sequences become pairs.

        Where something acts between the layers of a stretch, they run one after the other.
        """
        count, rows = self.num_layers, batches.own.rows
        apart = [range(layer, layer + 1) for layer in range(count)]
        if self.engine not in ("auto", "triton") or self.num_directions > 1 or count == 1:
            return apart
        if rows.device.type != "cuda" and self.engine != "triton":
            return apart
        cut = 0 if batches.paired is None else batches.paired.layer
        found: list[range] = []
        for stretch in (range(cut), range(cut, count)):
            together = bool(stretch) and not any(self._acts_between(*entry, stretch) for entry in draws.tensors.items())
            found += [stretch] if together else apart[stretch.start : stretch.stop]
        return found

    def _acts_between(self, key: tuple[int, int, int], drawn: tuple[Tensor, ...], stretch: range) -> bool:
        """Whether something that was drawn acts on what one layer of a stretch gives to the next."""
        transform, layer = self._drawing[key[0]], key[1]
        if layer not in stretch:
            return False
        masks_input = isinstance(transform, RecurrentDropout) and drawn[0].shape[2] > 0
        if masks_input or transform.place is Place.INPUT:
            return layer > stretch[0]
        return transform.place is Place.OUTPUT and layer < stretch[-1]

    def _below(self, rows: Tensor, layer: int, layers: range) -> Tensor:
        """The inputs of a layer; in a stretch those of the upper ones do not exist yet."""
        return rows if layer == layers[0] else rows.new_empty(0, self._input_width(layer))

    def _read(self, input: Tensor | PackedSequence) -> Batch:
        return read(
            input,
            where=self._name,
            input_size=self.input_size,
            batch_first=self.batch_first,
            like=self.weight_ih_l0,
            finite=self.check_finite,
        )

    def _choose(self, call: Recurrence, differentiable_record: bool, together: int) -> Plan:
        return choose(call, engine=self.engine, differentiable_record=differentiable_record, together=together)

    def _initial_of(self, hx: State | None, batches: Batches, draws: Draws) -> Initial:
        """Initial states of all layers, those of pairs mixed where they are given for sequences."""
        own, paired = batches.own, batches.paired
        if paired is None:
            states, memory, at_one = self._initial(hx, own, draws)
            return states.unbind(), None if memory is None else memory.unbind(), at_one
        cut = paired.layer * self.num_directions
        if hx is None:
            above = self._initial(None, paired.batch, draws)
            below = self._initial(None, own, draws) if cut else above
        else:
            below = self._initial(hx, own, draws)
            above = paired.start(below[0]), None if below[1] is None else paired.start(below[1]), False
        memories = None
        if below[1] is not None and above[1] is not None:
            memories = [*below[1][:cut], *above[1][cut:]]
        return [*below[0][:cut], *above[0][cut:]], memories, above[2]

    def _initial(self, hx: State | None, batch: Batch, draws: Draws) -> tuple[Tensor, Tensor | None, bool]:
        """Initial states and memories of all layers, and whether fresh products are one."""
        shape = (self.num_layers * self.num_directions, batch.layout.batch, self.hidden_size)
        if hx is None:
            state, at_one = self._default_state(shape, batch, draws)
            state = state.to(batch.rows.dtype)  # one that is learnt, or drawn before autocast, has the weights' dtype
            return state, torch.zeros_like(state) if self.cell.has_memory else None, at_one
        parts = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        if len(parts) != 1 + self.cell.has_memory:
            raise ShapeError(
                where=f"{self._name} hx",
                got=f"{len(parts)} tensor(s)",
                wanted="a pair (h, c)" if self.cell.has_memory else "one tensor",
            )
        checked = [
            read_state(part, name, batch=batch, where=self._name, shape=shape, finite=self.check_finite)
            for name, part in zip(("hx", "cx"), parts, strict=False)
        ]
        return checked[0], checked[1] if self.cell.has_memory else None, False

    def _default_state(self, shape: tuple[int, int, int], batch: Batch, draws: Draws) -> tuple[Tensor, bool]:
        return batch.rows.new_zeros(shape), False

    def _batches(self, input: Tensor | PackedSequence, pairing: Pairing | None) -> Batches:
        """What each layer runs on."""
        mixing = next((t.layers[0] for t in self._transforms if isinstance(t, ThroughTimeMix) and t.layers), None)
        return read_pairs(
            self._read(input),
            pairing,
            where=f"{self._name} pairing",
            mixing=mixing,
            layers=self.num_layers,
            training=self.training,
        )

    def _recurrence(
        self,
        layer: int,
        direction: int,
        rows: Tensor,
        initial: Initial,
        batches: Batches,
        draws: Draws,
        record: bool,
    ) -> Recurrence:
        suffix, slot = self._suffixes(layer)[direction], layer * self.num_directions + direction
        states, memories, at_one = initial
        batch = batches.at(layer)
        weights = self._weights_of(suffix, batch)
        call = Recurrence(
            cell=self.cell,
            layout=batch.layout,
            reverse=direction == 1,
            inputs=rows,
            input_term=None,
            **weights._asdict(),
            initial_state=states[slot],
            initial_memory=None if memories is None else memories[slot],
            start_at_one=at_one,
            chain=self._chain(layer, direction, batch, draws),
            mask=None,
            mixed=None,
            record=record,
        )
        call = self._mask_gates(call, layer, direction, batches, draws)
        paired = batches.paired
        if paired is None or not batches.mixes(layer):
            return call
        return paired.mix(call, weights.bias_ih, plainly=self.engine == "reference")

    def _weights_of(self, suffix: str, batch: Batch) -> StepWeights:
        biases = ("bias_ih", "bias_hh") if self.bias else ()
        weights = {name: self._in_dtype_of(batch, name + suffix) for name in ("weight_ih", "weight_hh", *biases)}
        return StepWeights(
            weight_ih=weights["weight_ih"],
            bias_ih=weights.get("bias_ih"),
            weight_hh=weights["weight_hh"],
            bias_hh=weights.get("bias_hh"),
            extra=tuple(self._in_dtype_of(batch, name + suffix) for name, _ in self.cell.extra_parameters),
        )

    def _in_dtype_of(self, batch: Batch, name: str) -> Tensor:
        """A weight in the dtype in which the batch is computed, which under autocast may be another than its own."""
        weight = getattr(self, name)
        assert isinstance(weight, Tensor)
        return weight.to(batch.rows.dtype)

    def _chain(self, layer: int, direction: int, batch: Batch, draws: Draws) -> tuple[Step, ...]:
        chain = []
        for index, transform in enumerate(self._transforms):
            drawn = draws.tensors.get((index, layer, direction))
            if drawn is None or transform.place is not Place.STATE or not isinstance(transform, StateTransform):
                continue
            suffix = self._suffixes(layer)[direction]
            names = self._learnt(index, transform, layer)
            learnt = tuple(self._in_dtype_of(batch, name + suffix) for name in names)
            chain.append(Step(transform, tuple(self._lay_out(tensor, batch) for tensor in drawn), learnt))
        return tuple(chain)

    def _mask_gates(self, call: Recurrence, layer: int, direction: int, batches: Batches, draws: Draws) -> Recurrence:
        """Put recurrent dropout into a call: its input masks here, its recurrent masks into the product."""
        for index, transform in enumerate(self._transforms):
            drawn = draws.tensors.get((index, layer, direction))
            if drawn is None or not isinstance(transform, RecurrentDropout):
                continue
            for_input, for_state = (mask.to(batches.own.rows.dtype) for mask in drawn)
            projected = transform.mask_on == "projection"
            if for_input.shape[2]:
                entering = batches.entering(layer)
                mask = entering.layout.pack(self._over_time(for_input, entering))
                call = _mask_input(call, mask, projected=projected, shared=transform.share_gates)
            if for_state.shape[2]:
                mask_rows = self._lay_out(for_state, batches.at(layer))
                call = replace(call, mask=GateMask(mask_rows, projected, transform.share_gates))
        return call

    def _final(self, ran: list[list[Unrolled]], batches: Batches) -> State:
        state = self._as_given([[one.final_state for one in layer] for layer in ran], batches)
        if not self.cell.has_memory:
            return state
        memories = [[one.final_memory for one in layer if one.final_memory is not None] for layer in ran]
        return state, self._as_given(memories, batches)

    @staticmethod
    def _as_given(states: list[list[Tensor]], batches: Batches) -> Tensor:
        """States of all layers in the user's order; below the mixing layer those of the first members."""
        cut = 0 if batches.paired is None else batches.paired.layer
        batch = batches.at(cut)
        found = batch.unsort(torch.stack([one for layer in states[cut:] for one in layer]), dim=1)
        if cut and batches.paired is not None:
            below = batches.own.unsort(torch.stack([one for layer in states[:cut] for one in layer]), dim=1)
            found = torch.cat((batches.paired.of_first(below), found))
        return found if batch.batched else found.squeeze(1)

    def _collect(
        self, kinds: frozenset[str], ran: list[list[Unrolled]], batches: Batches, with_grad: bool
    ) -> Collected:
        def show(layer: int, parts: Sequence[Tensor | None]) -> Tensor | None:
            present = [part if with_grad else part.detach() for part in parts if part is not None]
            batch = batches.at(layer)
            return batch.show(_side_by_side(present), batch_first=self.batch_first) if present else None

        found: dict[str, tuple[Any, ...]] = {}
        if "states" in kinds:
            found["states"] = tuple(show(place, [u.states for u in layer]) for place, layer in enumerate(ran))
        if "cells" in kinds and self.cell.has_memory:
            found["cells"] = tuple(show(place, [u.memories for u in layer]) for place, layer in enumerate(ran))
        if "gates" in kinds:
            found["gates"] = tuple(
                {name: show(place, [u.gates[i] for u in layer]) for i, name in enumerate(self.cell.observed)}
                for place, layer in enumerate(ran)
            )
        if "probabilities" in kinds:
            alphas = ([one.probabilities for one in layer] for layer in ran)
            found["probabilities"] = tuple(show(place, layer) for place, layer in enumerate(alphas))
        return Collected(**found)


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)


def _mask_input(call: Recurrence, mask: Tensor, *, projected: bool, shared: bool) -> Recurrence:
    """Mask the input term: the inputs themselves, or gate by gate, which needs the term computed here."""
    assert call.inputs is not None and call.weight_ih is not None
    if shared and not projected:
        return replace(call, inputs=call.inputs * mask)
    blocks = len(call.cell.blocks)
    if projected:
        term = (call.inputs @ call.weight_ih.T) * (mask.repeat(1, blocks) if shared else mask)
    else:
        masks, weights = mask.chunk(blocks, dim=1), call.weight_ih.chunk(blocks)
        term = torch.cat([(call.inputs * m) @ w.T for m, w in zip(masks, weights, strict=True)], dim=1)
    if call.bias_ih is not None:
        term = term + call.bias_ih
    return replace(call, inputs=None, weight_ih=None, bias_ih=None, input_term=term)
