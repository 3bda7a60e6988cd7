"""What the two ways of a recurrence through time share: its sizes, and how its kernels are launched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

from statewise.engine.device.form import Form, power_of_two, rounded
from statewise.engine.device.precision import tf32_allowed
from statewise.engine.layout import Layout
from statewise.engine.operands import Facts, Operands
from statewise.kernels import codes, load_triton
from statewise.kernels.launch import Launcher
from statewise.transforms import Centroids, Noise, Zoneout
from statewise.transforms.centroids import SIMILARITIES

ROOMS = 6  # what centroids leave behind: scale, state before, weights, soft weights, distances, probabilities


class Walk(ABC):
    """One recurrence on its way through time; :class:`Forward` and :class:`Backward` are the two ways."""

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
        tile = min(1024, max(16, power_of_two(self.width)))
        return (self.batch, self.replicas, -(-self.width // tile)), tile

    def launcher(self, kernel: Any, constants: Callable[[], dict[str, Any]], *, alone: bool = False) -> Launcher:
        """A kernel with its constants, which are the same for a whole walk; ``alone`` is for launches of one turn."""
        key = (kernel.__name__, alone)
        if key not in self._launchers:
            self._launchers[key] = _launcher(kernel, tuple(sorted(constants().items())))
        return self._launchers[key]

    def team_launcher(self, kernel: Any, *, alone: bool) -> Launcher:
        """The launcher of a team."""
        return self.launcher(kernel, lambda: {**self.all_steps(), **self.meeting(alone=alone)}, alone=alone)

    def all_steps(self) -> dict[str, Any]:
        """The constants of the kernels that make all steps."""
        return {**self.common(), **self.walking(), **self.own_constants()}

    @abstractmethod
    def own_constants(self) -> dict[str, Any]:
        """The constants that only this way has."""

    @abstractmethod
    def prepare(self, launches: int) -> None:
        """All that comes before the first turn, in the stream in which the turns will run."""

    @abstractmethod
    def run(self, first: int, last: int, launch: int) -> None:
        """Some turns."""

    def tiles(self) -> dict[str, Any]:
        """The constants of the kernels that make one step."""
        return {"TILE": self.form.units, "BN": self.form.sequences, "num_warps": self.form.warps}

    def step_grid(self) -> tuple[int, int, int]:
        """The grid of the kernels that make one step."""
        return -(-self.width // self.form.units), self.groups(), self.replicas

    def meeting(self, *, alone: bool) -> dict[str, Any]:
        """The constants of a team."""
        return {"UNITS": self.members(), "ALONE": alone, "launch_cooperative_grid": not alone}

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
            "PRECISION": "tf32" if tf32_allowed() else "ieee",
            "num_stages": 1,
            "num_warps": self.form.warps,
        }

    def codes(self) -> tuple[tuple[int, ...], ...]:
        """The chain as the kernels read it."""
        found: list[tuple[int, ...]] = []
        for place, (transform, constant) in enumerate(self.facts.chain):
            if isinstance(transform, Centroids):
                similarity = SIMILARITIES.index(transform.similarity)
                noisy = self.given.drawn[2 * place] is not None
                flags = (transform.hard, transform.soft_gradient, noisy, self.facts.record)
                power = max(16, power_of_two(transform.k))
                found.append((codes.CENTROIDS, transform.k, power, similarity, *map(int, flags)))
            elif isinstance(transform, Noise):
                found.append((codes.MULTIPLY if transform.mode == "multiplicative" else codes.ADD, int(constant)))
            else:
                assert isinstance(transform, Zoneout)
                found.append((codes.ZONEOUT, int(constant)))
        return tuple(found)

    def pointers(self, rooms: list[Tensor], grown: list[Tensor]) -> tuple[tuple[Tensor, ...], ...]:
        """What was drawn, learnt and is left behind by each transform, in the order of the kernels' table."""
        found: list[tuple[Tensor, ...]] = []
        left = iter(rooms)
        later = iter(grown)
        for place, (transform, _) in enumerate(self.facts.chain):
            draws = [at_hand(tensor, self.none) for tensor in self.given.drawn[2 * place : 2 * place + 2]]
            if isinstance(transform, Centroids):
                centroids = self.given.learnt[place]
                assert centroids is not None
                own = [*(next(left) for _ in range(ROOMS)), next(later, self.none), next(later, self.none)]
                found.append((centroids, draws[0], *own))
            else:
                found.append(tuple(draws))
        return tuple(found)

    def centroids(self) -> list[Centroids]:
        """The transforms that leave something behind."""
        return [transform for transform, _ in self.facts.chain if isinstance(transform, Centroids)]

    def similarities(self) -> Tensor:
        """Room for the parts of the similarities that the members of teams have."""
        powers = [max(16, power_of_two(transform.k)) for transform in self.centroids()]
        if self.form.name != "team" or not powers:
            return self.none
        return self.empty(self.groups() * self.members() * max(powers) * self.form.sequences, wide=True)

    memories: Tensor

    def memories_of_steps(self) -> Tensor:
        """The rows of the memories that belong to steps; nothing where the cell has none."""
        return self.steps_of(self.memories) if self.memories.numel() else self.none

    def own(self) -> Tensor:
        """The cell's own parameters."""
        return self.none if self.given.extra is None else self.given.extra

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

    def rows_of(self, first: int, last: int) -> slice:
        """The rows of some turns, where they lie side by side: of all, and in the order of time."""
        return slice(self.facts.layout.offsets[first], self.facts.layout.offsets[last])

    def multiply_into(self, target: Tensor, left: Tensor, right: Tensor, bias: Tensor | None = None) -> None:
        """A product of matrices for each replica, in their own dtype, into its place."""
        if self.replicas > 1:
            product = torch.bmm(left, right)
            target.copy_(product if bias is None else product + bias.unsqueeze(1))
        elif bias is None:
            torch.mm(left[0], right[0], out=target[0])
        else:
            torch.addmm(bias[0], left[0], right[0], out=target[0])

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


def at_hand(tensor: Tensor | None, none: Tensor) -> Tensor:
    """A tensor, or what stands for none."""
    return none if tensor is None else tensor


@lru_cache(maxsize=64)
def _table(layout: Layout, reverse: bool, device: torch.device) -> Tensor:
    """Of each turn the first row, the rows that run, those that ran before, and the first row of the turn before."""
    turns = layout.turns(reverse=reverse)
    before = (0, *(turn.start for turn in turns))
    entries = [(*turn, old) for turn, old in zip(turns, before, strict=False)]
    return torch.tensor(entries, dtype=torch.int32).to(device, non_blocking=True)


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
