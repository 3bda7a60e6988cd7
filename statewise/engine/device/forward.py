"""The way forward of a recurrence: its buffers, its input term, its turns, and what it leaves and shows."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from statewise.engine.device.form import Form
from statewise.engine.device.walk import ROOMS, Walk, at_hand, launches_of
from statewise.engine.layout import Turn
from statewise.engine.operands import Facts, Operands
from statewise.kernels.codes import PLANES


class Forward(Walk):
    """The way forward of one recurrence."""

    def __init__(self, facts: Facts, operands: Operands, form: Form, below: Forward | None) -> None:
        super().__init__(facts, operands, form)
        self.below, self.top = below, True
        if below is not None:
            below.top = False
        blocks = facts.blocks
        self.states = self.empty(self.rows + self.batch, self.width)
        self.carried = self.empty(self.batch, self.width, wide=True)
        self.memories = self.carried_memory = self.none
        if facts.cell.has_memory:
            self.memories = self.empty(self.rows + self.batch, self.width, wide=True)
            self.carried_memory = self.empty(self.batch, self.width, wide=True)
        self.values = self.empty(self.rows, self.width) if facts.copies else self.none
        self.term = self.empty(self.rows, blocks * self.width)
        planes = PLANES[facts.kind]
        mixed = facts.coefficients is not None
        self.second_term = self.empty(self.rows, blocks * self.width) if mixed else self.none
        # Where the cell saves as many planes as its input term has, they take its place.
        in_place = planes == blocks
        self.planes = self.term if in_place else self.empty(self.rows, planes * self.width)
        self.second = self.second_term
        if mixed and not in_place:
            self.second = self.empty(self.rows, planes * self.width)
        self.gated = self.empty(self.rows, self.width) if facts.two_products else self.none
        self.rooms = self._rooms()
        self.partial = self.similarities()
        self.bars = self.none

    def prepare(self, launches: int) -> None:
        """All that comes before the first turn, in the stream in which the turns will run."""
        self._begin()
        self.weight = self.given.weight_hh
        if self.form.name != "solo":
            self.weight = self.moved(self.weight, self.facts.blocks, self.width, self.width)
        if self.form.name == "team":
            self.bars = self.counters(launches)
        self._prepare_input()

    def _begin(self) -> None:
        """Initial states and memories to where the first turn looks for them."""
        from statewise.kernels.pack import begin

        given, facts = self.given, self.facts
        grid, tile = self.tile()
        launch = self.launcher(
            begin, lambda: {"COPY": facts.copies, "MEMORY": facts.cell.has_memory, **self.edge(), "TILE": tile}
        )
        launch(
            grid,
            *(given.initial_state, at_hand(given.initial_memory, self.none)),
            *(at_hand(given.mask, self.none), self.states, self.memories, self.carried, self.carried_memory),
            *(self.values, *self.first_turn(), 0 if self.dense_forward else self.rows),
        )

    def _rooms(self) -> list[Tensor]:
        found: list[Tensor] = []
        for centroids in self.centroids():
            scale = torch.empty(2, dtype=self.wide_dtype, device=self.device)
            scale[0].fill_(1 / centroids.temperature)
            scale[1].fill_(centroids.sharpness)
            needed = (centroids.hard, True, centroids.similarity == "euclidean", self.facts.record)
            small = [self.empty(self.rows, centroids.k, wide=True) if need else self.none for need in needed]
            found += [scale, self.empty(self.rows, self.width, wide=True), *small]
        return found

    def _prepare_input(self) -> None:
        """Weights and bias of the input term, padded; the bias of a product that is merely added belongs to it."""
        given, blocks, hidden = self.given, self.facts.blocks, self.hidden
        bias, self.apart = given.bias_hh, self.none
        if bias is not None and not self.facts.cell.additive:
            self.apart = self.moved(bias[:, -hidden:].unsqueeze(1), 1, 1, self.width)
            bias = torch.cat((bias[:, :-hidden], torch.zeros_like(bias[:, -hidden:])), dim=1)
        if given.bias_ih is not None:
            bias = given.bias_ih if bias is None else bias + given.bias_ih
        if bias is not None:
            bias = self.moved(bias.reshape(self.replicas, blocks, hidden), blocks, 1, self.width).flatten(1)
        self.bias = bias
        if given.second_term is not None:
            self._take_in(given.second_term, self.second_term)
        if given.input_term is not None:
            self._take_in(given.input_term, self.term)
            return
        assert given.weight_ih is not None
        wide = self.below.width if self.below is not None else self.input_width(given.weight_ih.shape[2])
        self.weight_ih = self.moved(given.weight_ih, blocks, self.width, wide)
        self.inputs = None if given.inputs is None else self.moved(given.inputs, 1, self.rows, wide)

    def _take_in(self, given: Tensor, target: Tensor) -> None:
        """An input term that comes ready to its place, padded, with the bias of the product."""
        blocks, hidden = self.facts.blocks, self.hidden
        parted = target.view(self.replicas, self.rows, blocks, self.width)
        parted[..., hidden:] = 0
        term, inside = given.reshape(self.replicas, self.rows, blocks, hidden), parted[..., :hidden]
        if self.bias is None:
            inside.copy_(term)
        else:
            torch.add(term, self.bias.view(self.replicas, 1, blocks, self.width)[..., :hidden], out=inside)

    def project(self, first: int, last: int) -> None:
        """The input term of some turns; for a chained layer they are those of the layer below."""
        if self.given.input_term is not None:
            return
        source = self.below.steps_of(self.below.states) if self.below is not None else self.inputs
        assert source is not None
        here = self.rows_of(first, last)
        self.multiply_into(self.term[:, here], source[:, here], self.weight_ih.transpose(1, 2), self.bias)

    def run(self, first: int, last: int, launch: int) -> None:
        """The turns from ``first`` to ``last``."""
        if self.form.name == "step":
            for turn in range(first, last):
                self._step(turn)
            return
        from statewise.kernels.solo import solo_forward
        from statewise.kernels.team import team_forward

        given = self.given
        states, memories = self.steps_of(self.states), self.memories_of_steps()
        head = (self.weight, self.term, self.second_term, self.planes, self.second, states, memories, self.values)
        tail = (
            *(self.carried, self.carried_memory, self.apart, self.own(), at_hand(given.mask, self.none)),
            *(at_hand(given.coefficients, self.none), self.table),
        )
        pointers = self.pointers(self.rooms, [])
        sizes = (self.turns, self.rows, self.batch)
        if self.form.name == "solo":
            launch_solo = self.launcher(solo_forward, self.all_steps)
            launch_solo((self.groups(), self.replicas), *head, self.gated, *tail, pointers, first, last, *sizes)
            return
        grid = (self.members(), self.groups(), self.replicas)
        for begin, end in launches_of(first, last):
            alone = end - begin == 1 and not self.rooms
            launch_team = self.team_launcher(team_forward, alone=alone)
            launch_team(grid, *head, *tail, self.partial, self.bars[launch], pointers, begin, end, *sizes)

    def own_constants(self) -> dict[str, Any]:
        """The constants of the way forward."""
        return {
            "ONE": self.facts.start_at_one,
            "BIASED": bool(self.apart.numel()),
            "COPY": self.facts.copies,
        }

    def _step(self, turn: int) -> None:
        from statewise.kernels.step import step_forward

        here, facts, given, none = self.order[turn], self.facts, self.given, self.none
        following = self.order[turn + 1] if turn + 1 < self.turns else None
        old = self.old_start(turn)
        source = self.values[:, here.start :] if facts.copies else self.states[:, self.long_row(old) :]
        cut = (facts.blocks - facts.two_products) * self.width
        product = self.multiply(source[:, : here.rows], self.weight[:, :cut].transpose(1, 2))
        if facts.two_products:
            product = self._second_product(product, here, cut)
        mask = at_hand(given.mask, none)
        launch = self.launcher(
            step_forward,
            lambda: {
                **self.common(),
                **self.product_mask(),
                **self.tiles(),
                **self.own_constants(),
                "ROW": self.form.sequences == 1,
            },
        )
        launch(
            self.step_grid(),
            *(product, self.term, self.second_term, self.planes, self.second, self.steps_of(self.states)),
            *(self.memories_of_steps(), self.values, self.carried, self.carried_memory, self.apart, self.own()),
            *(mask, mask, at_hand(given.coefficients, none), self.pointers(self.rooms, [])),
            *(here.start, here.rows, here.kept),
            *((0, 0) if following is None else (following.start, following.rows)),
            *(self.rows, self.batch),
        )

    def _second_product(self, product: Tensor, here: Turn, cut: int) -> Tensor:
        """Of a cell with two products: its gates, then the product of the gated state."""
        from statewise.kernels.step import step_gates

        mask = at_hand(self.given.mask, self.none)
        names = ("CELL", "H", "Hp", "MASKED", "MASK_CONSTANT", "ACC", "FAST", "enable_fp_fusion")
        launch = self.launcher(
            step_gates,
            lambda: {
                **{name: value for name, value in self.common().items() if name in names},
                **self.product_mask(),
                **self.tiles(),
            },
        )
        launch(
            self.step_grid(),
            *(product, self.term, self.planes, self.carried, self.gated, mask, mask),
            *(here.start, here.rows, self.rows, self.batch),
        )
        gated = self.gated[:, here.start : here.start + here.rows]
        return self.multiply(gated, self.weight[:, cut:].transpose(1, 2))

    def saved(self) -> list[Tensor]:
        """What the way back needs."""
        rooms = [self.none if place % ROOMS == ROOMS - 1 else room for place, room in enumerate(self.rooms)]
        own = (self.planes, self.second, self.states, self.memories, self.values, self.gated, *rooms)
        return [*own, *(self._made(name) for name in ("weight_ih", "inputs"))]

    def _made(self, name: str) -> Tensor:
        """A padded operand, for the way back not to pad it again; nothing where it is the operand itself."""
        wide, given = getattr(self, name, None), getattr(self.given, name)
        if wide is None or given is None or wide.data_ptr() == given.data_ptr():
            return self.none
        return cast(Tensor, wide)

    def results(self, *, single: bool) -> list[Tensor]:
        """States, final state, final memory, memories, probabilities, gates; empty where there are none.

        All are copies and no views, so that a user may do with them what he likes; ``single`` leaves the replicas out.
        """
        hidden, facts = self.hidden, self.facts

        def copy(tensor: Tensor) -> Tensor:
            return (tensor[0] if single else tensor).to(self.dtype, copy=True)

        final_memory = memories = probabilities = self.none
        gates: list[Tensor] = []
        states = copy(self.steps_of(self.states)[..., :hidden]) if facts.record or self.top else self.none
        final = copy(self.carried[..., :hidden])
        if facts.cell.has_memory:
            final_memory = copy(self.carried_memory[..., :hidden])
        if facts.record:
            if facts.cell.has_memory:
                memories = copy(self.steps_of(self.memories)[..., :hidden])
            if self.rooms:
                probabilities = (self.rooms[-1][0] if single else self.rooms[-1]).clone()
            gates = [copy(self._gate(place)) for place in range(len(facts.cell.observed))]
        return [states, final, final_memory, memories, probabilities, *gates]

    def _gate(self, place: int) -> Tensor:
        count = PLANES[self.facts.kind]
        gate = self.planes.view(self.replicas, self.rows, count, self.width)[:, :, place, : self.hidden]
        if self.facts.coefficients is None:
            return gate
        other = self.second.view(self.replicas, self.rows, count, self.width)[:, :, place, : self.hidden]
        weight = self._coefficients()
        return (weight * gate + (1 - weight) * other).to(gate.dtype)

    def _coefficients(self) -> Tensor:
        """The coefficients of every row."""
        assert self.given.coefficients is not None
        if not self.facts.coefficients:
            return self.given.coefficients
        sizes = self.facts.layout.batch_sizes
        return torch.cat([self.given.coefficients[:, :size] for size in sizes], dim=1)
