"""What an engine gets and gives: one layer in one direction, as tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from statewise.cells import Cell
from statewise.engine.layout import Layout, Turn
from statewise.transforms import StateTransform


class Drawn(NamedTuple):
    """A drawn tensor in the layout: a row for each step and sequence, or one for each sequence if constant in time."""

    rows: Tensor
    constant: bool

    def at(self, turn: Turn) -> Tensor:
        """The rows of one step."""
        return self.rows[: turn.rows] if self.constant else self.rows[turn.start : turn.start + turn.rows]


class Step(NamedTuple):
    """A state transform with what it drew and learns for this layer and direction."""

    transform: StateTransform
    draws: tuple[Drawn, ...]
    parameters: tuple[Tensor, ...]


class GateMask(NamedTuple):
    """Dropout masks of the recurrent term: on the vector or on its projection, shared by the gates or one for each."""

    mask: Drawn
    on_projection: bool
    shared: bool


class Mixed(NamedTuple):
    """Through-time mixing: the input term of the second members, and the coefficients of the first as a column."""

    second_term: Tensor
    coefficients: Drawn


@dataclass(frozen=True)
class Recurrence:
    """One layer in one direction, ready to be unrolled by any engine.

    The input term is ``inputs @ weight_ih.T + bias_ih``, unless the caller has computed it (``input_term``).

    Attributes:
        start_at_one: the recurrent product of a fresh row is 1 instead of ``U h_0`` (the circuits' convention);
            ``initial_state`` is then zero.
        record: whether gates and probabilities are to be seen; without it they may be missing from the result.
    """

    cell: Cell
    layout: Layout
    reverse: bool
    inputs: Tensor | None
    input_term: Tensor | None
    weight_ih: Tensor | None
    bias_ih: Tensor | None
    weight_hh: Tensor
    bias_hh: Tensor | None
    extra: tuple[Tensor, ...]
    initial_state: Tensor
    initial_memory: Tensor | None
    start_at_one: bool
    chain: tuple[Step, ...]
    mask: GateMask | None
    mixed: Mixed | None
    record: bool

    @property
    def hidden(self) -> int:
        """Number of hidden units."""
        return self.weight_hh.shape[1]

    def drawn(self) -> list[Drawn]:
        """Everything drawn: by the transforms, for the gates, and the coefficients of mixing."""
        found = [drawn for step in self.chain for drawn in step.draws]
        found += [] if self.mask is None else [self.mask.mask]
        return found + ([] if self.mixed is None else [self.mixed.coefficients])

    def project(self) -> Tensor:
        """The input term of all steps as one product, shape (rows, blocks * hidden)."""
        if self.input_term is not None:
            return self.input_term
        assert self.inputs is not None and self.weight_ih is not None
        return torch.nn.functional.linear(self.inputs, self.weight_ih, self.bias_ih)


class Unrolled(NamedTuple):
    """What an engine gives: the states of all steps, where every sequence ended, and what was asked to be seen."""

    states: Tensor
    final_state: Tensor
    final_memory: Tensor | None
    memories: Tensor | None
    gates: tuple[Tensor, ...]
    probabilities: Tensor | None
