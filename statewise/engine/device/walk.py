"""One recurrence on its way through time, forward and back: its buffers, and the launches of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor

from statewise.engine.device.form import Form
from statewise.engine.device.forms import PLANES
from statewise.engine.device.operands import Facts, Operands, padded, rounded
from statewise.engine.layout import Layout, Turn
from statewise.kernels import load_triton
from statewise.kernels.launch import Launcher
from statewise.transforms import Centroids, Noise, Zoneout
from statewise.transforms.centroids import SIMILARITIES

_MULTIPLY, _ADD, _ZONEOUT, _CENTROIDS = range(4)
ROOMS = 6  # what centroids leave behind: scale, state before, weights, soft weights, distances, probabilities


class Walk:
    """What the two ways share: sizes, the chain as the kernels read it, the launches' common arguments."""

    def __init__(self, facts: Facts, operands: Operands, form: Form) -> None:
        self.facts, self.given, self.form = facts, operands, form
        weight = operands.weight_hh
        self.replicas, self.dtype, self.device = weight.shape[0], weight.dtype, weight.device
        self.wide_dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
        layout = facts.layout
        self.batch, self.turns, self.rows = layout.batch, layout.steps, layout.rows
        self.hidden, self.width = facts.hidden, rounded(facts.hidden, 16)
        self.none = weight.new_empty(0)
        self.table = self.none if layout.dense else _table(layout, facts.reverse, self.device)
        self.order = layout.turns(reverse=facts.reverse)
        self._launchers: dict[tuple[str, bool], Launcher] = {}

    def empty(self, *shape: int, wide: bool = False) -> Tensor:
        """A buffer with the replicas first."""
        return torch.empty(self.replicas, *shape, dtype=self.wide_dtype if wide else self.dtype, device=self.device)

    @property
    def dense_forward(self) -> bool:
        """Whether the initial states lie before the others."""
        return self.facts.layout.dense and not self.facts.reverse

    def steps_of(self, long: Tensor) -> Tensor:
        """The rows of the steps themselves."""
        return long[:, self.batch :] if self.dense_forward else long[:, : self.rows]

    def moved(self, source: Tensor, blocks: int, rows: int, columns: int) -> Tensor:
        """Blocks of rows, (replicas, blocks * ..., ...), with zeros behind rows and columns; itself if it fits."""
        from statewise.kernels.pack import move

        parted = source.reshape(self.replicas, blocks, -1, source.shape[-1])
        if tuple(parted.shape[2:]) == (rows, columns) and parted.is_contiguous():
            return parted.flatten(1, 2)
        target = torch.empty(self.replicas, blocks, rows, columns, dtype=source.dtype, device=self.device)
        move(parted, target)
        return target.flatten(1, 2)

    def turned_weights(self) -> Tensor:
        """The recurrent weights as (replicas, width, blocks * width), the units that they read first."""
        from statewise.kernels.pack import move

        blocks = self.facts.blocks
        turned = self.empty(self.width, blocks, self.width)
        parted = self.given.weight_hh.reshape(self.replicas, blocks, self.hidden, self.hidden)
        move(parted.transpose(2, 3), turned.transpose(1, 2))
        return turned

    def edge(self) -> dict[str, Any]:
        """The constants of the kernels at the beginning of time."""
        return {
            "H": self.hidden,
            "Hp": self.width,
            "MASKED": self.facts.masks_state,
            "CONSTANT": self.facts.mask is not None and self.facts.mask[2],
            "enable_fp_fusion": True,
        }

    def first_turn(self) -> tuple[int, int, int, int]:
        """Rows, sequences, and of the first turn its first row and how many run."""
        return self.rows, self.batch, self.order[0].start, self.order[0].rows

    def tile(self) -> tuple[tuple[int, int, int], int]:
        """Grid and tile of the kernels that do one sequence each."""
        tile = min(1024, max(16, 1 << (self.width - 1).bit_length()))
        return (self.batch, self.replicas, -(-self.width // tile)), tile

    def launcher(self, kernel: Any, constants: Callable[[], dict[str, Any]], *, alone: bool = False) -> Launcher:
        """A kernel with its constants, which are the same for a whole walk; ``alone`` is for launches of one turn."""
        key = (kernel.__name__, alone)
        if key not in self._launchers:
            self._launchers[key] = _launcher(kernel, tuple(sorted(constants().items())))
        return self._launchers[key]

    def team_launcher(self, kernel: Any, warps: int, *, alone: bool) -> Launcher:
        """The launcher of a team."""
        return self.launcher(kernel, lambda: {**self._all_steps(), **self.meeting(warps, alone=alone)}, alone=alone)

    def _all_steps(self) -> dict[str, Any]:
        return {**self.common(), **self.walking(), **self._own_constants()}

    def _own_constants(self) -> dict[str, Any]:
        raise NotImplementedError

    def tiles(self, warps: int) -> dict[str, Any]:
        """The constants of the kernels that make one step."""
        return {"TILE": self.form.units, "BN": self.form.sequences, "num_warps": warps}

    def step_grid(self) -> tuple[int, int, int]:
        """The grid of the kernels that make one step."""
        return -(-self.width // self.form.units), self.groups(), self.replicas

    def meeting(self, warps: int, *, alone: bool) -> dict[str, Any]:
        """The constants of a team."""
        return {
            "UNITS": self.members(),
            "ALONE": alone,
            "num_warps": warps,
            "launch_cooperative_grid": not alone,
        }

    def common(self) -> dict[str, Any]:
        """The constants of every kernel."""
        facts, mask = self.facts, self.facts.mask or (False, False, False)
        import triton.language as tl

        return {
            "CELL": facts.kind,
            "ACTIVATION": facts.activation,
            "CHAIN": self.codes(),
            "H": self.hidden,
            "Hp": self.width,
            "BLOCKS": facts.blocks,
            "MIX": facts.coefficients is not None,
            "LAMBDA_CONSTANT": bool(facts.coefficients),
            "MASKED": facts.masks_state,
            "MASK_CONSTANT": mask[2],
            "ACC": tl.float64 if self.dtype == torch.float64 else tl.float32,
            "FAST": self.dtype.itemsize == 2 and not load_triton().interpreted,
            "enable_fp_fusion": True,
        }

    def product_mask(self) -> dict[str, Any]:
        """The constants of a mask on the product."""
        on, shared, constant = self.facts.mask or (False, False, False)
        return {"PMASKED": on, "PSHARED": on and shared, "PCONSTANT": on and constant}

    def walking(self) -> dict[str, Any]:
        """The constants of the kernels that make all steps."""
        return {
            "DENSE": self.facts.layout.dense,
            "REVERSE": self.facts.reverse,
            "BU": self.form.units,
            "BN": self.form.sequences,
            "PRECISION": "tf32" if torch.get_float32_matmul_precision() != "highest" else "ieee",
            "num_stages": 1,
        }

    def codes(self) -> tuple[tuple[int, ...], ...]:
        """The chain as the kernels read it."""
        found: list[tuple[int, ...]] = []
        for place, (transform, constant) in enumerate(self.facts.chain):
            if isinstance(transform, Centroids):
                similarity = SIMILARITIES.index(transform.similarity)
                noisy = self.given.drawn[2 * place] is not None
                flags = (transform.hard, transform.soft_gradient, noisy, self.facts.record)
                power = max(16, 1 << (transform.k - 1).bit_length())
                found.append((_CENTROIDS, transform.k, power, similarity, *map(int, flags)))
            elif isinstance(transform, Noise):
                found.append((_MULTIPLY if transform.mode == "multiplicative" else _ADD, int(constant)))
            else:
                assert isinstance(transform, Zoneout)
                found.append((_ZONEOUT, int(constant)))
        return tuple(found)

    def pointers(self, rooms: list[Tensor], grown: list[Tensor]) -> tuple[tuple[Tensor, ...], ...]:
        """What was drawn, learnt and is left behind by each transform, in the order of the kernels' table."""
        found: list[tuple[Tensor, ...]] = []
        left = iter(rooms)
        later = iter(grown)
        for place, (transform, _) in enumerate(self.facts.chain):
            draws = [_at_hand(tensor, self.none) for tensor in self.given.drawn[2 * place : 2 * place + 2]]
            if isinstance(transform, Centroids):
                centroids = self.given.learnt[place]
                assert centroids is not None
                own = [*(next(left) for _ in range(ROOMS)), next(later, self.none), next(later, self.none)]
                found.append((centroids.contiguous(), draws[0], *own))
            else:
                found.append(tuple(draws))
        return tuple(found)

    def centroids(self) -> list[Centroids]:
        """The transforms that leave something behind."""
        return [transform for transform, _ in self.facts.chain if isinstance(transform, Centroids)]

    def similarities(self) -> Tensor:
        """Room for the parts of the similarities that the members of teams have."""
        powers = [max(16, 1 << (transform.k - 1).bit_length()) for transform in self.centroids()]
        if self.form.name != "team" or not powers:
            return self.none
        return self.empty(self.groups() * self.members() * max(powers) * self.form.sequences, wide=True)

    memories: Tensor

    def _memories_of_steps(self) -> Tensor:
        return self.steps_of(self.memories) if self.memories.numel() else self.none

    def own(self) -> Tensor:
        """The cell's own parameters."""
        return self.none if self.given.extra is None else self.given.extra.contiguous()

    def groups(self) -> int:
        """Number of programs that share no sequence."""
        return -(-self.batch // self.form.sequences)

    def members(self) -> int:
        """Number of programs of a team."""
        return -(-self.width // self.form.units)

    def counters(self, launches: int) -> Tensor:
        """For each launch and group a counter of arrivals, far enough apart to be in different lines of a cache."""
        size = (launches, self.groups() * self.replicas * 32)
        return torch.zeros(size, dtype=torch.int32, device=self.device)

    def input_width(self, size: int) -> int:
        """What the matrix library multiplies fast: rows that begin at a multiple of 16 bytes."""
        return rounded(size, 16 // self.dtype.itemsize) if size >= 16 else size

    def old_start(self, turn: int) -> int:
        """The first row of the turn before, counted as the steps are."""
        if turn:
            return self.order[turn - 1].start
        return -self.batch if self.dense_forward else self.rows

    def long_row(self, row: int) -> int:
        """A row of the steps, counted in the long buffer."""
        return row + self.batch if self.dense_forward else row

    def multiply(self, left: Tensor, right: Tensor) -> Tensor:
        """A product of matrices for each replica, added up and given in the wide dtype."""
        if left.dtype == self.wide_dtype or left.device.type == "cpu":
            return left.to(self.wide_dtype) @ right.to(self.wide_dtype)
        if self.replicas == 1:
            return torch.mm(left[0], right[0], out_dtype=self.wide_dtype).unsqueeze(0)
        return torch.bmm(left, right, out_dtype=self.wide_dtype)


@cache
def _launcher(kernel: Any, constants: tuple[tuple[str, Any], ...]) -> Launcher:
    return Launcher(kernel, dict(constants))


def _at_hand(tensor: Tensor | None, none: Tensor) -> Tensor:
    return none if tensor is None else tensor.contiguous()


@cache
def _table(layout: Layout, reverse: bool, device: torch.device) -> Tensor:
    """Of each turn the first row, the rows that run, those that ran before, and the first row of the turn before."""
    turns = layout.turns(reverse=reverse)
    before = (0, *(turn.start for turn in turns))
    entries = [(*turn, old) for turn, old in zip(turns, before, strict=False)]
    return torch.tensor(entries, dtype=torch.int32, device=device)


def launches(turns: int, chunk: int) -> list[tuple[int, int]]:
    """The turns in pieces.

    >>> launches(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    return [(first, min(first + chunk, turns)) for first in range(0, turns, chunk)]


def launches_of(first: int, last: int) -> list[tuple[int, int]]:
    """One launch for all turns; where kernels are interpreted one for each, since there programs cannot wait."""
    if load_triton().interpreted:
        return [(turn, turn + 1) for turn in range(first, last)]
    return [(first, last)]


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
        # Where the cell saves as many planes as its input term has, they take its place.
        in_place = planes == blocks and not mixed
        self.planes = self.term if in_place else self.empty(self.rows, planes * self.width)
        self.second = self.empty(self.rows, planes * self.width) if mixed else self.none
        self.gated = self.empty(self.rows, self.width) if facts.two_products else self.none
        self.rooms = self._rooms()
        self.partial = self.similarities()
        self.bars = self.none

    def prepare(self, launches: int) -> None:
        """All that comes before the first turn, in the stream in which the turns will run."""
        self._begin()
        self.weight = self.given.weight_hh.contiguous()
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
            *(given.initial_state.contiguous(), _at_hand(given.initial_memory, self.none)),
            *(_at_hand(given.mask, self.none), self.states, self.memories, self.carried, self.carried_memory),
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
        if given.input_term is not None:
            term = given.input_term.reshape(self.replicas, self.rows, blocks, hidden)
            self.term.view(self.replicas, self.rows, blocks, self.width)[..., :hidden] = term
            self.term.view(self.replicas, self.rows, blocks, self.width)[..., hidden:] = 0
            if bias is not None:
                self.term += bias.unsqueeze(1)
            return
        assert given.weight_ih is not None
        wide = self.below.width if self.below is not None else self.input_width(given.weight_ih.shape[2])
        self.weight_ih = self.moved(given.weight_ih, blocks, self.width, wide)
        self.inputs = None if given.inputs is None else self.moved(given.inputs, 1, self.rows, wide)

    def project(self, first: int, last: int) -> None:
        """The input term of some turns; for a chained layer they are those of the layer below."""
        if self.given.input_term is not None:
            return
        source = self.below.steps_of(self.below.states) if self.below is not None else self.inputs
        assert source is not None
        here = slice(0, self.rows)
        if (first, last) != (0, self.turns):
            here = slice(self.facts.layout.offsets[first], self.facts.layout.offsets[last])
        rows, weight = source[:, here], self.weight_ih.transpose(1, 2)
        if self.replicas == 1:
            if self.bias is None:
                torch.mm(rows[0], weight[0], out=self.term[0, here])
            else:
                torch.addmm(self.bias[0], rows[0], weight[0], out=self.term[0, here])
        else:
            product = torch.bmm(rows, weight)
            self.term[:, here] = product if self.bias is None else product + self.bias.unsqueeze(1)

    def run(self, first: int, last: int, launch: int) -> None:
        """The turns from ``first`` to ``last``."""
        if self.form.name == "step":
            for turn in range(first, last):
                self._step(turn)
            return
        from statewise.kernels.solo import solo_forward
        from statewise.kernels.team import team_forward

        given = self.given
        states, memories = self.steps_of(self.states), self._memories_of_steps()
        head = (self.weight, self.term, self.planes, self.second, states, memories, self.values)
        tail = (
            *(self.carried, self.carried_memory, self.apart, self.own(), _at_hand(given.mask, self.none)),
            *(_at_hand(given.partner, self.none), _at_hand(given.coefficients, self.none), self.table),
        )
        pointers = self.pointers(self.rooms, [])
        sizes = (self.turns, self.rows, self.batch)
        warps = self.form.warps
        if self.form.name == "solo":
            launch_solo = self.launcher(solo_forward, lambda: {**self._all_steps(), "num_warps": warps})
            launch_solo((self.groups(), self.replicas), *head, self.gated, *tail, pointers, first, last, *sizes)
            return
        grid = (self.members(), self.groups(), self.replicas)
        for begin, end in launches_of(first, last):
            alone = end - begin == 1 and not self.rooms
            launch_team = self.team_launcher(team_forward, warps, alone=alone)
            launch_team(grid, *head, *tail, self.partial, self.bars[launch], pointers, begin, end, *sizes)

    def _own_constants(self) -> dict[str, Any]:
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
        mask = _at_hand(given.mask, none)
        launch = self.launcher(
            step_forward,
            lambda: {
                **self.common(),
                **self.product_mask(),
                **self.tiles(self.form.warps),
                **self._own_constants(),
                "ROW": self.form.sequences == 1,
            },
        )
        launch(
            self.step_grid(),
            *(product, self.term, self.planes, self.second, self.steps_of(self.states), self._memories_of_steps()),
            *(self.values, self.carried, self.carried_memory, self.apart, self.own(), mask, mask),
            *(_at_hand(given.partner, none), _at_hand(given.coefficients, none), self.pointers(self.rooms, [])),
            *(here.start, here.rows, here.kept),
            *((0, 0) if following is None else (following.start, following.rows)),
            *(self.rows, self.batch),
        )

    def _second_product(self, product: Tensor, here: Turn, cut: int) -> Tensor:
        """Of a cell with two products: its gates, then the product of the gated state."""
        from statewise.kernels.step import step_gates

        mask = _at_hand(self.given.mask, self.none)
        names = ("CELL", "H", "Hp", "MASKED", "MASK_CONSTANT", "ACC", "FAST", "enable_fp_fusion")
        launch = self.launcher(
            step_gates,
            lambda: {
                **{name: value for name, value in self.common().items() if name in names},
                **self.product_mask(),
                **self.tiles(self.form.warps),
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
        own = (self.planes, self.second, self.states, self.memories, self.values, self.gated, *self.rooms)
        return [*own, *(self._made(name) for name in ("weight_ih", "inputs"))]

    def _made(self, name: str) -> Tensor:
        """A padded operand, for the way back not to pad it again; nothing where it is the operand itself."""
        wide, given = getattr(self, name, None), getattr(self.given, name)
        if wide is None or given is None or wide.data_ptr() == given.data_ptr():
            return self.none
        return cast(Tensor, wide)

    def results(self) -> list[Tensor]:
        """States, final state, final memory, memories, probabilities, gates; empty where there are none."""
        hidden, facts = self.hidden, self.facts
        # Copies: what a user does to them must not reach the way back.
        states = self.steps_of(self.states)[..., :hidden].clone() if facts.record or self.top else self.none
        final = self.carried[..., :hidden].to(self.dtype, copy=True)
        final_memory = memories = probabilities = self.none
        gates: list[Tensor] = []
        if facts.cell.has_memory:
            final_memory = self.carried_memory[..., :hidden].to(self.dtype, copy=True)
        if facts.record:
            if facts.cell.has_memory:
                memories = self.steps_of(self.memories)[..., :hidden].to(self.dtype, copy=True)
            if self.rooms:
                probabilities = self.rooms[-1]
            gates = [self._gate(place) for place in range(len(facts.cell.observed))]
        return [states, final, final_memory, memories, probabilities, *gates]

    def _gate(self, place: int) -> Tensor:
        count = PLANES[self.facts.kind]
        gate = self.planes.view(self.replicas, self.rows, count, self.width)[:, :, place, : self.hidden]
        if self.facts.coefficients is None:
            return gate.clone()
        other = self.second.view(self.replicas, self.rows, count, self.width)[:, :, place, : self.hidden]
        weight = self._coefficients()
        return (weight * gate + (1 - weight) * other).to(self.dtype)

    def _coefficients(self) -> Tensor:
        """The coefficients of every row."""
        assert self.given.coefficients is not None
        if not self.facts.coefficients:
            return self.given.coefficients
        sizes = self.facts.layout.batch_sizes
        return torch.cat([self.given.coefficients[:, :size] for size in sizes], dim=1)


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
        self.planes, self.second, self.states, self.memories, self.values, self.gated, *rest = saved
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
        self.weight = self.given.weight_hh.contiguous()
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
        offsets = self.facts.layout.offsets
        here = slice(offsets[first], offsets[last])
        weight = above.input_weight()
        if self.replicas == 1:
            torch.mm(above.term[0, here], weight[0], out=self.grad[0, here])
        else:
            self.grad[:, here] = torch.bmm(above.term[:, here], weight)

    def pass_on(self, first: int, last: int) -> None:
        """The gradient of the inputs of some turns; it may be done while later turns are still walked."""
        weight = self.input_weight() if self.given.inputs is not None else None
        if weight is None:
            return
        here = slice(0, self.rows)
        if (first, last) != (0, self.turns):
            here = slice(self.facts.layout.offsets[first], self.facts.layout.offsets[last])
        if self.inputs_grad is None:
            self.inputs_grad = self.empty(self.rows, weight.shape[2])
        term = self._all_terms() if self.facts.coefficients is not None else self.term
        if self.replicas == 1:
            torch.mm(term[0, here], weight[0], out=self.inputs_grad[0, here])
        else:
            self.inputs_grad[:, here] = torch.bmm(term[:, here], weight)

    inputs_grad: Tensor | None = None

    def input_weight(self) -> Tensor:
        """The input weights as (replicas, blocks * width, inputs rounded up)."""
        if self.weight_ih.numel():
            return self.weight_ih
        assert self.given.weight_ih is not None
        return self.given.weight_ih.contiguous()

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
            *(self.weight, self.grad, self.planes, self.second, self.steps_of(self.states), self._memories_of_steps()),
            *(self.carried, self.carried_memory, self.term, self.second_term, self.product),
        )
        tail = (
            *(self.own(), _at_hand(given.mask, self.none), _at_hand(given.coefficients, self.none)),
            self.table,
        )
        pointers = self.pointers(self.rooms, self.grown)
        sizes = (self.turns, self.rows, self.batch)
        warps = self.form.warps_back
        if self.form.name == "solo":
            launch_solo = self.launcher(solo_backward, lambda: {**self._all_steps(), "num_warps": warps})
            launch_solo((self.groups(), self.replicas), *head, *tail, pointers, first, last, *sizes)
            return
        grid = (self.members(), self.groups(), self.replicas)
        for begin, end in reversed(launches_of(first, last)):
            alone = end - begin == 1 and not self.rooms
            launch_team = self.team_launcher(team_backward, warps, alone=alone)
            launch_team(grid, *head, self.came, *tail, self.partial, self.bars[launch], pointers, begin, end, *sizes)

    def _own_constants(self) -> dict[str, Any]:
        """The constants of the way back."""
        return {
            "AGAIN": self.facts.memory_changes or self.facts.coefficients is not None,
            "GIVEN": self.grad_width,
            "SPLIT": self.apart,
        }

    def _step(self, turn: int) -> None:
        from statewise.kernels.step import step_backward

        here, facts, given, none = self.order[turn], self.facts, self.given, self.none
        following = self.order[turn + 1] if self.rest is not None else None
        mask, old = _at_hand(given.mask, none), self.old_start(turn)
        launch = self.launcher(
            step_backward,
            lambda: {
                **self.common(),
                **self.product_mask(),
                **self.tiles(self.form.warps_back),
                **self._own_constants(),
                "BIAS": bool(self.apart_bias.numel()),
                "DENSE": facts.layout.dense,
                "ROW": self.form.sequences == 1,
            },
        )
        launch(
            self.step_grid(),
            *(none if self.rest is None else self.rest, self.grad, self.planes, self.second),
            *(self.steps_of(self.states), self._memories_of_steps(), self.carried, self.carried_memory),
            *(self.term, self.second_term, self.product, self.apart_bias, self.state_in, self.own(), mask, mask),
            *(_at_hand(given.coefficients, none), self.pointers(self.rooms, self.grown)),
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

        mask = _at_hand(self.given.mask, self.none)
        names = ("CELL", "H", "Hp", "BLOCKS", "MASKED", "MASK_CONSTANT", "ACC", "enable_fp_fusion")
        launch = self.launcher(
            step_gates_back,
            lambda: {
                **{name: value for name, value in self.common().items() if name in names},
                **{name: value for name, value in self.product_mask().items() if name != "PMASKED"},
                **self.tiles(self.form.warps_back),
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
        term = self._all_terms()
        sums = self._summed(term) if self._biased else None
        inputs = weight_ih = input_term = None
        if given.input_term is not None:
            input_term = self._blocks(term)
        else:
            assert given.weight_ih is not None
            size = given.weight_ih.shape[2]
            below = self.input_values
            assert below is not None
            weight_ih = self._weight(self._turned(term, below), size)
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
            partner=None,
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

    def _all_terms(self) -> Tensor:
        """The gradient of the input term; what belongs to a partner goes to the partner's row."""
        if self.facts.coefficients is None:
            return self.term
        assert self.given.partner is not None
        place, start = _places(self.facts.layout, self.device)
        index = self.given.partner[:, place] + start
        index += self.rows * torch.arange(self.replicas, device=self.device).unsqueeze(1)
        flat = self.term.flatten(0, 1).clone()
        # Sorted inside, so that partners of many rows get their sums in one order always.
        flat.index_put_((index.flatten(),), self.second_term.flatten(0, 1), accumulate=True)
        return flat.view_as(self.term)

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
        return torch.bmm(grad.transpose(1, 2), values)

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
        tile = 1 << (min(64, self.width) - 1).bit_length()
        launch = self.launcher(
            finish,
            lambda: {"MEMORY": memory, "KIND": kind, **self.edge(), "BN": self.form.sequences, "TILE": tile},
        )
        launch(
            (self.groups(), self.replicas, -(-self.width // tile)),
            *(self.carried, self.carried_memory, came, _at_hand(self.given.mask, self.none), grads[0], grads[-1]),
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
            return (grads * planes.sign()).sum(1, dtype=self.wide_dtype)
        i, f, g, _ = planes.view(self.replicas, self.rows, 4, self.width).to(self.wide_dtype).unbind(2)
        di, df, _, do = grads.view(self.replicas, self.rows, 4, self.width).to(self.wide_dtype).unbind(2)
        old = self._before(self.memories)
        again = self.facts.memory_changes or self.facts.coefficients is not None
        new = f * old + i * g if again else self.steps_of(self.memories)
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
            grad = self._turned(weights if transform.hard else soft, after)
            if transform.soft_gradient:
                grad = grad + self._turned(slope, before)
                if transform.similarity != "dot":
                    wide = padded(centroids.to(self.wide_dtype), self.width)
                    grad = grad - slope.sum(1).unsqueeze(2) * wide
            found.append(grad[..., : self.hidden].to(self.dtype))
        return found


@cache
def _places(layout: Layout, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each row its sequence, and the first row of its step."""
    sizes = torch.tensor(layout.batch_sizes)
    starts = torch.tensor(layout.offsets[:-1]).repeat_interleave(sizes)
    return (torch.arange(layout.rows) - starts).to(device), starts.to(device)


@cache
def _old_places(layout: Layout, reverse: bool, device: torch.device) -> Tensor:
    """For each row that of its old state, the initial ones lying behind all others."""
    found = torch.empty(layout.rows, dtype=torch.int64)
    before = 0
    for turn in layout.turns(reverse=reverse):
        sequence = torch.arange(turn.rows)
        old = torch.where(sequence < turn.kept, before + sequence, layout.rows + sequence)
        found[turn.start : turn.start + turn.rows] = old
        before = turn.start
    return found.to(device)
