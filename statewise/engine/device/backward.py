"""The way back of a recurrence: its turns, and the gradients of all that it was given."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from statewise.engine.device.form import Form, padded, power_of_two
from statewise.engine.device.walk import ROOMS, Walk, at_hand, launches_of
from statewise.engine.layout import Layout, Turn
from statewise.engine.operands import Facts, Operands
from statewise.transforms import Centroids


class Backward(Walk):
    """The way back of one recurrence."""

    def __init__(
        self,
        facts: Facts,
        operands: Operands,
        form: Form,
        saved: list[Tensor],
        grads: tuple[Tensor | None, Tensor | None, Tensor | None],
        above: Backward | None,
    ) -> None:
        super().__init__(facts, operands, form)
        self.above = above
        # Where only the way back has replicas they share what was saved, which the kernels cannot.
        kept = [tensor.contiguous() for tensor in saved]
        self.planes, self.second, self.states, self.memories, self.values, self.gated, *rest = kept
        *self.rooms, self.weight_ih, self.inputs = rest
        given_states, final, final_memory = grads
        blocks = facts.blocks
        self.grad = self.none if given_states is None else given_states.contiguous()
        self.grad_width = 0 if given_states is None else self.hidden
        self.final, self.final_memory = final, final_memory
        self.term = self.empty(self.rows, blocks * self.width)
        mixed = facts.coefficients is not None
        self.second_term = self.empty(self.rows, blocks * self.width) if mixed else self.none
        # The gradient of the product is another than that of the input term.
        self.apart = not facts.cell.additive or facts.masks_product or mixed
        self.product = self.empty(self.rows, blocks * self.width) if self.apart else self.term
        self.apart_bias = self.none
        if facts.masks_product and not facts.cell.additive:
            self.apart_bias = self.empty(self.rows, self.width)  # the mask of a product does not act on its bias
        self.state_in = self.empty(self.batch, self.width, wide=True) if facts.two_products else self.none
        self.grown: list[Tensor] = []
        for centroids in self.centroids():
            self.grown.append(self.empty(self.rows, self.width, wide=True))
            self.grown.append(self.empty(self.rows, centroids.k, wide=True))
        if above is not None:
            self.grad, self.grad_width = self.empty(self.rows, self.width), self.width
        self.came = self.bars = self.partial = self.none
        if form.name == "team":
            size = (2, self.replicas, self.groups(), self.members(), self.width, form.sequences)
            self.came = torch.empty(size, dtype=self.wide_dtype, device=self.device)
            self.partial = self.similarities()
        self.found: list[Tensor | None] = []
        self.rest: Tensor | None = None  # what came through the product of the last turn that was undone

    def prepare(self, launches: int) -> None:
        """All that comes before the first turn, in the stream in which the turns will run."""
        self.carried = self._start(self.final)
        self.carried_memory = self._start(self.final_memory) if self.facts.cell.has_memory else self.none
        self.weight = self.given.weight_hh
        if self.form.name == "step":
            self.weight = self.moved(self.weight, self.facts.blocks, self.width, self.width)
        if self.form.name == "team":
            self.weight = self.turned_weights()
            self.bars = self.counters(launches)
        self.read_inputs()

    def _start(self, grad: Tensor | None) -> Tensor:
        from statewise.kernels.pack import move

        if grad is None:
            return torch.zeros(self.replicas, self.batch, self.width, dtype=self.wide_dtype, device=self.device)
        target = self.empty(1, self.batch, self.width, wide=True)
        move(grad.unsqueeze(1), target)
        return target.squeeze(1)

    def receive(self, first: int, last: int) -> None:
        """The gradient of the states of some turns, from the input term of the layer above."""
        above = self.above
        if above is None:
            return
        here = self.rows_of(first, last)
        self.multiply_into(self.grad[:, here], above.term[:, here], above.input_weight())

    def pass_on(self, first: int, last: int) -> None:
        """The gradient of the inputs of some turns; it may be done while later turns are still walked."""
        if self.given.inputs is None:
            return
        here, weight = self.rows_of(first, last), self.input_weight()
        if self.inputs_grad is None:
            self.inputs_grad = self.empty(self.rows, weight.shape[2])
        self.multiply_into(self.inputs_grad[:, here], self.term[:, here], weight)

    inputs_grad: Tensor | None = None

    def input_weight(self) -> Tensor:
        """The input weights as (replicas, blocks * width, inputs rounded up)."""
        if self.weight_ih.numel():
            return self.weight_ih
        assert self.given.weight_ih is not None
        return self.given.weight_ih

    def run(self, first: int, last: int, launch: int) -> None:
        """The turns from ``last`` back to ``first``."""
        if self.form.name == "step":
            for turn in reversed(range(first, last)):
                self._step(turn)
            return
        from statewise.kernels.solo import solo_backward
        from statewise.kernels.team import team_backward

        given = self.given
        head = (
            *(self.weight, self.grad, self.planes, self.second, self.steps_of(self.states), self.memories_of_steps()),
            *(self.carried, self.carried_memory, self.term, self.second_term, self.product),
        )
        tail = (
            *(self.own(), at_hand(given.mask, self.none), at_hand(given.coefficients, self.none)),
            self.table,
        )
        pointers = self.pointers(self.rooms, self.grown)
        sizes = (self.turns, self.rows, self.batch)
        if self.form.name == "solo":
            launch_solo = self.launcher(solo_backward, self.all_steps)
            launch_solo((self.groups(), self.replicas), *head, *tail, pointers, first, last, *sizes)
            return
        grid = (self.members(), self.groups(), self.replicas)
        for begin, end in reversed(launches_of(first, last)):
            alone = end - begin == 1 and not self.rooms
            launch_team = self.team_launcher(team_backward, alone=alone)
            launch_team(grid, *head, self.came, *tail, self.partial, self.bars[launch], pointers, begin, end, *sizes)

    def own_constants(self) -> dict[str, Any]:
        """The constants of the way back."""
        return {
            "AGAIN": self.facts.memory_anew,
            "GIVEN": self.grad_width,
            "SPLIT": self.apart,
        }

    def _step(self, turn: int) -> None:
        from statewise.kernels.step import step_backward

        here, facts, given, none = self.order[turn], self.facts, self.given, self.none
        following = self.order[turn + 1] if self.rest is not None else None
        mask, old = at_hand(given.mask, none), self.old_start(turn)
        launch = self.launcher(
            step_backward,
            lambda: {
                **self.common(),
                **self.product_mask(),
                **self.tiles(),
                **self.own_constants(),
                "BIAS": bool(self.apart_bias.numel()),
                "DENSE": facts.layout.dense,
                "ROW": self.form.sequences == 1,
            },
        )
        launch(
            self.step_grid(),
            *(none if self.rest is None else self.rest, self.grad, self.planes, self.second),
            *(self.steps_of(self.states), self.memories_of_steps(), self.carried, self.carried_memory),
            *(self.term, self.second_term, self.product, self.apart_bias, self.state_in, self.own(), mask, mask),
            *(at_hand(given.coefficients, none), self.pointers(self.rooms, self.grown)),
            *(here.start, here.rows, here.kept, old),
            *((0, 0) if following is None else (following.start, following.rows)),
            *(self.rows, self.batch),
        )
        rows, cut = slice(here.start, here.start + here.rows), facts.blocks * self.width
        if facts.two_products:
            cut -= self.width
            self._gates_back(here, old, self.multiply(self.product[:, rows, cut:], self.weight[:, cut:]))
        self.rest = self.multiply(self.product[:, rows, :cut], self.weight[:, :cut])

    def _gates_back(self, here: Turn, old: int, gated: Tensor) -> None:
        """Of a cell with two products: from the gradient of the gated state to those of its gates."""
        from statewise.kernels.step import step_gates_back

        mask = at_hand(self.given.mask, self.none)
        names = ("CELL", "H", "Hp", "BLOCKS", "MASKED", "MASK_CONSTANT", "ACC", "enable_fp_fusion")
        launch = self.launcher(
            step_gates_back,
            lambda: {
                **{name: value for name, value in self.common().items() if name in names},
                **{name: value for name, value in self.product_mask().items() if name != "PMASKED"},
                **self.tiles(),
                "SPLIT": self.apart,
                "DENSE": self.facts.layout.dense,
            },
        )
        launch(
            self.step_grid(),
            *(gated, self.state_in, self.planes, self.steps_of(self.states), self.carried, self.term, self.product),
            *(mask, mask, here.start, here.rows, here.kept, old, self.rows, self.batch),
        )

    def gradients(self) -> Operands:
        """The gradients of all operands, in their places; None where there is none."""
        given, facts, hidden = self.given, self.facts, self.hidden
        sums = self._summed_terms() if self._biased else None
        inputs = weight_ih = input_term = None
        if given.input_term is not None:
            input_term = self._blocks(self.term)
        else:
            assert given.weight_ih is not None
            size = given.weight_ih.shape[2]
            below = self.input_values
            assert below is not None
            weight_ih = self._weight(self._turned(self.term, below), size)
            if self.inputs_grad is not None:
                inputs = self.inputs_grad[..., :size]
        state, memory = self._initial()
        return Operands(
            inputs=inputs,
            input_term=input_term,
            weight_ih=weight_ih,
            bias_ih=None if given.bias_ih is None or sums is None else self._blocks(sums),
            weight_hh=self._weight(self._recurrent(), hidden),
            bias_hh=None if given.bias_hh is None or sums is None else self._recurrent_bias(sums),
            initial_state=state,
            initial_memory=memory,
            extra=self._extra(),
            mask=None,
            second_term=None if given.second_term is None else self._blocks(self.second_term),
            coefficients=None,
            learnt=self._learnt(),
            drawn=[None] * (2 * len(facts.chain)),
        )

    @property
    def _biased(self) -> bool:
        return self.given.bias_ih is not None or self.given.bias_hh is not None

    input_values: Tensor | None = None  # of a chained layer, the states of the layer below

    def read_inputs(self) -> None:
        """What met the input weights, padded as the way forward had it."""
        if self.inputs.numel():
            self.input_values = self.inputs
        elif self.given.inputs is not None:
            self.input_values = self.given.inputs

    def _summed(self, rows: Tensor) -> Tensor:
        """The sum over all rows, by the matrix library: that is several times faster."""
        ones = rows.new_ones(1, 1, rows.shape[1]).expand(self.replicas, 1, -1)
        return self.multiply(ones, rows).squeeze(1).to(self.dtype)

    def _summed_terms(self) -> Tensor:
        """The sums of the gradients of the input terms, which are those of the biases."""
        sums = self._summed(self.term)
        return sums if self.facts.coefficients is None else sums + self._summed(self.second_term)

    def _blocks(self, padded_blocks: Tensor) -> Tensor:
        """Blocks of the hidden size from blocks of the width."""
        parted = padded_blocks.view(*padded_blocks.shape[:-1], self.facts.blocks, self.width)
        return parted[..., : self.hidden].flatten(-2)

    def _weight(self, grad: Tensor, size: int) -> Tensor:
        """The gradient of a weight without its padding."""
        from statewise.kernels.pack import move

        parted = grad.view(self.replicas, self.facts.blocks, self.width, -1)
        if (self.width, parted.shape[3]) == (self.hidden, size):
            return grad
        target = self.empty(self.facts.blocks, self.hidden, size)
        move(parted, target)
        return target.flatten(1, 2)

    def _turned(self, grad: Tensor, values: Tensor) -> Tensor:
        """``grad.T @ values`` for each replica."""
        if self.replicas == 1:
            return torch.mm(grad[0].T, values[0]).unsqueeze(0)
        pieces = pieces_of(grad.shape[1]) if grad.dtype.itemsize > 2 else 1
        return turned_in_pieces(grad, values, pieces)

    def _before(self, long: Tensor) -> Tensor:
        """For every row the one of the turn before."""
        if self.facts.layout.dense:
            return long[:, : self.rows] if self.dense_forward else long[:, self.batch :]
        return long[:, _old_places(self.facts.layout, self.facts.reverse, self.device)]

    def _recurrent(self) -> Tensor:
        """The gradient of the recurrent weights: a product over all steps for each kind of value they met."""
        values = self.values if self.facts.copies else self._before(self.states)
        if not self.facts.two_products:
            return self._turned(self.product, values)
        cut = self.product.shape[2] - self.width
        parts = (self._turned(self.product[:, :, :cut], values), self._turned(self.product[:, :, cut:], self.gated))
        return torch.cat(parts, dim=1)

    def _recurrent_bias(self, sums: Tensor) -> Tensor:
        """The gradient of the product's bias; where the last block is kept apart it has a sum of its own."""
        if self.facts.cell.additive:
            return self._blocks(sums).clone()
        apart = self.apart_bias if self.apart_bias.numel() else self.product[:, :, -self.width :]
        last = self._summed(apart)
        return self._blocks(torch.cat((sums[:, : -self.width], last), dim=1))

    def _initial(self) -> tuple[Tensor, Tensor | None]:
        """The gradients of the initial state and memory."""
        from statewise.kernels.pack import finish

        memory = self.facts.cell.has_memory
        came, kind = (self.none, 0) if self.rest is None else (self.rest, 1)
        if self.form.name == "team":
            came, kind = self.came[0], 2
        grads = [self.empty(self.batch, self.hidden) for _ in range(1 + memory)]
        tile = power_of_two(min(64, self.width))
        launch = self.launcher(
            finish,
            lambda: {"MEMORY": memory, "KIND": kind, **self.edge(), "BN": self.form.sequences, "TILE": tile},
        )
        launch(
            (self.groups(), self.replicas, -(-self.width // tile)),
            *(self.carried, self.carried_memory, came, at_hand(self.given.mask, self.none), grads[0], grads[-1]),
            *(*self.first_turn(), self.members()),
        )
        return grads[0], grads[1] if memory else None

    def _extra(self) -> Tensor | None:
        """The gradient of the cell's own parameters."""
        if self.given.extra is None:
            return None
        members = [(self.planes, self.term)]
        if self.facts.coefficients is not None:
            members.append((self.second, self.second_term))
        total = sum(self._extra_of(*member) for member in members)
        assert isinstance(total, Tensor)
        return total[..., : self.hidden].to(self.dtype)

    def _extra_of(self, planes: Tensor, grads: Tensor) -> Tensor:
        if self.facts.activation == "modrelu":
            from statewise.kernels.pack import signed_sums

            found: Tensor = signed_sums(grads.contiguous(), planes.contiguous(), self.wide_dtype)  # type: ignore[no-untyped-call]
            return found
        i, f, g, _ = planes.view(self.replicas, self.rows, 4, self.width).to(self.wide_dtype).unbind(2)
        di, df, _, do = grads.view(self.replicas, self.rows, 4, self.width).to(self.wide_dtype).unbind(2)
        old = self._before(self.memories)
        new = f * old + i * g if self.facts.memory_anew else self.steps_of(self.memories)
        return torch.stack(((di * old).sum(1), (df * old).sum(1), (do * new).sum(1)), dim=1)

    def _learnt(self) -> list[Tensor | None]:
        """The gradients of the centroids: products over all rows."""
        found: list[Tensor | None] = []
        left, later = iter(self.rooms), iter(self.grown)
        for (transform, _), centroids in zip(self.facts.chain, self.given.learnt, strict=True):
            if not isinstance(transform, Centroids) or centroids is None:
                found.append(None)
                continue
            _, before, weights, soft, _, _ = (next(left) for _ in range(ROOMS))
            after, slope = next(later), next(later)
            wide = padded(centroids.to(self.wide_dtype), self.width)
            grad = transform.learnt_gradient(wide, before, weights if transform.hard else soft, after, slope)
            found.append(grad[..., : self.hidden].to(self.dtype))
        return found


def turned_in_pieces(grad: Tensor, values: Tensor, pieces: int) -> Tensor:
    """``grad.T @ values`` for each replica, as a sum over pieces of the rows.

    The matrix library sums over all rows of a replica one after the other; pieces of them it does side by side.
    """
    if pieces == 1:
        return torch.bmm(grad.transpose(1, 2), values)
    left, right = (rows.unflatten(1, (pieces, -1)).flatten(0, 1) for rows in (grad, values))
    parts: Tensor = torch.bmm(left.transpose(1, 2), right).unflatten(0, (len(grad), pieces))
    return parts.sum(1)


def pieces_of(rows: int) -> int:
    """Into how many equal pieces of some hundred rows a sum over many rows is cut: a power of two.

    >>> pieces_of(12_800), pieces_of(300), pieces_of(12_801)
    (32, 1, 1)
    """
    return math.gcd(rows, power_of_two(max(1, rows // 512)))


@lru_cache(maxsize=64)
def _old_places(layout: Layout, reverse: bool, device: torch.device) -> Tensor:
    """For each row that of its old state, the initial ones lying behind all others."""
    found = torch.empty(layout.rows, dtype=torch.int64)
    before = 0
    for turn in layout.turns(reverse=reverse):
        sequence = torch.arange(turn.rows)
        old = torch.where(sequence < turn.kept, before + sequence, layout.rows + sequence)
        found[turn.start : turn.start + turn.rows] = old
        before = turn.start
    return found.to(device, non_blocking=True)
