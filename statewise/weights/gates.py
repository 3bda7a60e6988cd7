"""Stacked gates: torch keeps the recurrent matrices of an LSTM or GRU in one ``(gates * hidden, hidden)`` tensor."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError


def split_gates(
    weight: Float[Tensor, "stacked columns"], *, gates: int, where: str = "weight"
) -> Float[Tensor, "gates rows columns"]:
    """View a stacked weight as one matrix a gate: ``(gates * rows, columns) -> (gates, rows, columns)``.

    Args:
        weight: the stacked matrix.
        gates: how many matrices are stacked (1 RNN, 2 MGU, 3 GRU, 4 LSTM).
        where: the name that an error reports.

    >>> import torch
    >>> split_gates(torch.zeros(12, 3), gates=4).shape
    torch.Size([4, 3, 3])
    """
    if gates < 1:
        raise ArgumentError(where=f"{where} gates", got=gates, wanted="an integer >= 1", remedy="An LSTM has 4.")
    rows = weight.shape[0]
    if rows == 0 or weight.shape[1] == 0 or rows % gates:
        raise ShapeError(
            where=where,
            got=f"shape {tuple(weight.shape)}",
            wanted=f"a non-empty matrix whose rows divide into {gates} gates",
            remedy="Give the number of gates that this weight stacks (1 RNN, 2 MGU, 3 GRU, 4 LSTM).",
        )
    blocks: Tensor = weight.unflatten(0, (gates, rows // gates))
    return blocks


def count_gates(weight: Tensor, *, gatewise: bool, where: str) -> int:
    """Number of square blocks that a hidden-to-hidden weight stacks; 1 when it is to be taken whole.

    >>> import torch
    >>> count_gates(torch.zeros(12, 3), gatewise=True, where="weight_hh_l0")
    4
    """
    if not gatewise:
        return 1
    if weight.ndim != 2 or 0 in weight.shape or weight.shape[0] % weight.shape[1]:
        raise ShapeError(
            where=where,
            got=f"shape {tuple(weight.shape)}",
            wanted="(gates * hidden, hidden), square blocks on top of each other",
            remedy="gatewise=True is for hidden-to-hidden weights.",
        )
    return weight.shape[0] // weight.shape[1]
