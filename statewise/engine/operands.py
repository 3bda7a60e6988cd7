"""A recurrence as the compiled engines see it: what is known before it runs, and a flat row of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, cast

from torch import Tensor

from statewise.cells import (
    Cell,
    GRUCell,
    LSTMCell,
    MGUCell,
    PeepholeLSTMCell,
    RACCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from statewise.engine.fitting import alike, check_weights, constant_in_time, fit, widths
from statewise.engine.layout import Layout
from statewise.engine.recurrence import Recurrence
from statewise.transforms import StateTransform, Zoneout

# The names by which the kernels know the cells.
CELLS: dict[type[Cell], str] = {
    RNNCell: "rnn",
    LSTMCell: "lstm",
    PeepholeLSTMCell: "peephole",
    GRUCell: "gru",
    ResetBeforeGRUCell: "reset_before",
    MGUCell: "mgu",
    RACCell: "rac",
}


@dataclass(frozen=True)
class Facts:
    """All of a recurrence but its numbers.

    Attributes:
        chain: the state transforms, each with whether what it drew is constant in time.
        mask: of recurrent dropout whether it is on the projection, shared by the gates, constant in time; or None.
        coefficients: of through-time mixing whether they are constant in time; None if nothing is mixed.
        chained: whether its inputs are the states of the layer below, which runs in the same call.
    """

    cell: Cell
    layout: Layout
    reverse: bool
    hidden: int
    chain: tuple[tuple[StateTransform, bool], ...]
    mask: tuple[bool, bool, bool] | None
    coefficients: bool | None
    start_at_one: bool
    record: bool
    chained: bool

    @property
    def kind(self) -> str:
        """The kernels' name of the cell."""
        return CELLS[type(self.cell)]

    @property
    def activation(self) -> str:
        """The nonlinearity, of the Elman cell."""
        return self.cell.nonlinearity if isinstance(self.cell, RNNCell) else ""

    @property
    def blocks(self) -> int:
        """Number of gates, as the weights have them."""
        return len(self.cell.blocks)

    @property
    def two_products(self) -> bool:
        """Whether the candidate's product is taken of the gated state."""
        return self.kind in ("mgu", "reset_before")

    @property
    def masks_state(self) -> bool:
        """Whether recurrent dropout acts on the state before the product."""
        return self.mask is not None and not self.mask[0]

    @property
    def masks_product(self) -> bool:
        """Whether recurrent dropout acts on the product."""
        return self.mask is not None and self.mask[0]

    @property
    def memory_changes(self) -> bool:
        """Whether the memory after a step is another than the cell's."""
        return self.cell.has_memory and any(isinstance(transform, Zoneout) for transform, _ in self.chain)

    @property
    def memory_anew(self) -> bool:
        """Whether the way back computes the cell's new memory anew, since what is kept is another."""
        return self.memory_changes or self.coefficients is not None

    @property
    def copies(self) -> bool:
        """Whether what meets the weights needs a buffer of its own, since the old states do not lie evenly."""
        return self.masks_state or not self.layout.dense


@dataclass
class Operands:
    """The tensors of a recurrence; in the engine each has the replicas as its first dimension."""

    inputs: Tensor | None
    input_term: Tensor | None
    weight_ih: Tensor | None
    bias_ih: Tensor | None
    weight_hh: Tensor
    bias_hh: Tensor | None
    initial_state: Tensor
    initial_memory: Tensor | None
    extra: Tensor | None
    mask: Tensor | None
    second_term: Tensor | None  # of through-time mixing
    coefficients: Tensor | None
    learnt: list[Tensor | None]  # the centroids of each transform
    drawn: list[Tensor | None]  # two for each transform

    def flat(self) -> list[Tensor | None]:
        """All of them in a fixed order."""
        return [*(getattr(self, name) for name in _SINGLE), *self.learnt, *self.drawn]

    @classmethod
    def of(cls, transforms: int, row: Iterator[Tensor | None]) -> Operands:
        """The counterpart of :meth:`flat` for so many transforms; takes as many of the row as it needs."""
        single, learnt, drawn = (list(islice(row, count)) for count in (len(_SINGLE), transforms, 2 * transforms))
        return cast(Operands, cast(Any, cls)(*single, learnt, drawn))

    def replicated(self) -> Operands:
        """With one replica."""
        return self._map(lambda tensor: tensor.unsqueeze(0))

    def laid_out(self) -> Operands:
        """As the kernels read them: their elements one after the other."""
        return self._map(Tensor.contiguous)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Operands:
        row = (None if tensor is None else change(tensor) for tensor in self.flat())
        return Operands.of(len(self.learnt), row)


# The names of all that is one tensor, looked up once, since every pass asks for them.
_SINGLE = tuple(entry.name for entry in fields(Operands) if entry.name not in ("learnt", "drawn"))
# The place of the recurrent weights, which every recurrence has, among the flat operands.
WEIGHT = _SINGLE.index("weight_hh")


def facts_of(call: Recurrence, *, chained: bool = False) -> Facts:
    """All of a recurrence but its numbers."""
    mask, mixed = call.mask, call.mixed
    return Facts(
        cell=call.cell,
        layout=call.layout,
        reverse=call.reverse,
        hidden=call.hidden,
        chain=tuple((step.transform, constant_in_time(step)) for step in call.chain),
        mask=None if mask is None else (mask.on_projection, mask.shared, mask.mask.constant),
        coefficients=None if mixed is None else mixed.coefficients.constant,
        start_at_one=call.start_at_one,
        record=call.record,
        chained=chained,
    )


def operands_of(call: Recurrence, *, chained: bool) -> Operands:
    """The numbers of a recurrence, checked: the kernels trust their shapes."""
    check_weights(call)
    drawn: list[Tensor | None] = []
    for step in call.chain:
        drawn += [*(fit(one, call, widths(step, call)) for one in alike(step, call)), None, None][:2]
    mask, mixed = call.mask, call.mixed
    gates = 1 if mask is None or mask.shared else len(call.cell.blocks)
    return Operands(
        inputs=None if chained else call.inputs,
        input_term=call.input_term,
        weight_ih=call.weight_ih,
        bias_ih=call.bias_ih,
        weight_hh=call.weight_hh,
        bias_hh=call.bias_hh,
        initial_state=call.initial_state,
        initial_memory=call.initial_memory,
        extra=call.extra[0] if call.extra else None,
        mask=None if mask is None else fit(mask.mask, call, gates * call.hidden),
        second_term=None if mixed is None else mixed.second_term,
        coefficients=None if mixed is None else fit(mixed.coefficients, call, 1),
        learnt=[step.parameters[0] if step.parameters else None for step in call.chain],
        drawn=drawn,
    )
