"""The bare recurrence: cells applied once, with nothing done to the state afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from statewise.cells import Cell


class StepWeights(NamedTuple):
    """What one application of a cell needs: the weights of a layer, in the dtype in which it is computed."""

    weight_ih: Tensor
    bias_ih: Tensor | None
    weight_hh: Tensor
    bias_hh: Tensor | None
    extra: tuple[Tensor, ...]


class PlainProduct:
    """The recurrent product of a single step, without masks."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, ones: bool) -> None:
        self._weight, self._bias, self._ones = weight, bias, ones

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        size = self._weight.shape[1]
        blocks = slice(first * size, last * size)
        product = torch.ones_like(value) if self._ones else value @ self._weight[blocks].T
        return product if self._bias is None else product + self._bias[blocks]


def apply_once(
    cell: Cell, rows: Tensor, state: Tensor, memory: Tensor | None, weights: StepWeights, *, ones: bool = False
) -> tuple[Tensor, Tensor | None]:
    """One application of a cell: ``u_t, c_t = cell(W x_t + b, U h_{t-1} + b', c_{t-1})``.

    Args:
        cell: the transition function.
        rows: the inputs, (batch, input).
        state: (batch, hidden).
        memory: (batch, hidden), for cells that have one.
        weights: of the layer.
        ones: whether the product ``U h`` is 1, as at the start of a sequence of an arithmetic circuit.

    >>> from statewise.cells import RNNCell
    >>> identity = StepWeights(torch.eye(2), None, torch.eye(2), None, ())
    >>> apply_once(RNNCell("identity"), torch.ones(1, 2), torch.full((1, 2), 0.5), None, identity)[0]
    tensor([[1.5000, 1.5000]])
    """
    term = torch.nn.functional.linear(rows, weights.weight_ih, weights.bias_ih)
    product = PlainProduct(weights.weight_hh, weights.bias_hh, ones=ones)
    moved = cell.forward(term, state, memory, product, weights.extra)
    return moved.state, moved.memory


def apply_stack_once(
    cell: Cell,
    rows: Tensor,
    initial: tuple[Tensor, Tensor | None, bool],
    weights: Iterable[StepWeights],
) -> tuple[Tensor, Tensor, Tensor | None]:
    """One application of the cell of each layer, each on what the one below it gives.

    Args:
        cell: the transition function of all layers.
        rows: the inputs of the lowest, (batch, input).
        initial: states (layers, batch, hidden), memories likewise or None, and whether the products are 1.
        weights: of each layer, from the bottom.

    Returns:
        The top layer's state, the states and the memories of all.
    """
    states, memories, ones = initial
    moved: list[Tensor] = []
    kept: list[Tensor] = []
    for layer, own in enumerate(weights):
        memory = None if memories is None else memories[layer]
        rows, memory = apply_once(cell, rows, states[layer], memory, own, ones=ones)
        moved.append(rows)
        if memory is not None:
            kept.append(memory)
    return rows, torch.stack(moved), torch.stack(kept) if kept else None
