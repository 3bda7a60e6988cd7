"""States by class: what every measurement of states begins with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError, NonFiniteError, ShapeError

IGNORED = -100  # the label of padding, as torch's losses have it

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

Rows = Float[np.ndarray, "_ hidden"]  # each class has its own number of them


def class_names(classes: int | Sequence[str], where: str) -> tuple[str, ...]:
    """The names of classes; a number of classes are called 0, 1 and so on.

    >>> class_names(3, "spectrum")
    ('0', '1', '2')
    """
    if isinstance(classes, str) or (isinstance(classes, int) and classes < 1):
        raise ArgumentError(where=f"{where}.classes", got=classes, wanted="a number >= 1, or a sequence of names")
    return tuple(map(str, range(classes) if isinstance(classes, int) else classes))


def rows_by_class(
    states: Float[Tensor, "rows hidden"], labels: Int[Tensor, " rows"], count: int, where: str
) -> list[Rows]:
    """The states of each class in double precision, on the CPU; rows of padding (label -100) belong to none.

    Args:
        states: a row each.
        labels: of the rows.
        count: how many classes there are.
        where: who asks, for errors.
    """
    check_rows(states, f"{where}.states")
    if len(states) != len(labels):
        raise ShapeError(where=f"{where}.labels", got=f"{len(labels)} labels", wanted=f"{len(states)}, one a state")
    known = checked_labels(labels, count, where)
    rows = states.detach().cpu().double().numpy()
    if not np.isfinite(rows[known != IGNORED]).all():
        raise NonFiniteError(where=f"{where}.states", got="NaN or infinity", wanted="finite states")
    return [rows[known == one] for one in range(count)]


def check_rows(rows: Float[Tensor, "rows width"], where: str) -> None:
    """Refuse what is no tensor of rows of real numbers.

    >>> import torch
    >>> check_rows(torch.zeros(3, 2), "spectrum.states")
    """
    if not isinstance(rows, Tensor) or not rows.is_floating_point():
        got = f"a tensor of {rows.dtype}" if isinstance(rows, Tensor) else type(rows).__name__
        remedy = "" if isinstance(rows, Tensor) else "Of an array make one: torch.as_tensor(array)."
        raise DtypeError(where=where, got=got, wanted="a tensor of real numbers", remedy=remedy)
    if rows.ndim != 2:
        raise ShapeError(where=where, got=tuple(rows.shape), wanted="two dimensions: a row each")


def checked_labels(labels: Int[Tensor, " rows"], count: int, where: str) -> Int[np.ndarray, " rows"]:
    """The labels on the CPU, all of them classes or padding.

    Args:
        labels: of rows.
        count: how many classes there are.
        where: who asks, for errors.
    """
    if not isinstance(labels, Tensor) or labels.dtype not in WHOLE:
        got = f"a tensor of {labels.dtype}" if isinstance(labels, Tensor) else type(labels).__name__
        remedy = "" if isinstance(labels, Tensor) else "Of an array make one: torch.as_tensor(array)."
        raise DtypeError(where=f"{where}.labels", got=got, wanted="a tensor of whole numbers", remedy=remedy)
    if labels.ndim != 1:
        raise ShapeError(where=f"{where}.labels", got=tuple(labels.shape), wanted="(rows,), one a row")
    known = labels.detach().cpu().numpy()
    wrong = known[(known != IGNORED) & ((known < 0) | (known >= count))]
    if len(wrong):
        wanted = f"classes from 0 to {count - 1}, or {IGNORED} for rows to leave out"
        raise ArgumentError(where=f"{where}.labels", got=int(wrong[0]), wanted=wanted)
    return known


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first aligned at the left and the others at the right.

    >>> print(table(["class", "rows"], [["per", "12"], ["O", "130"]]))
    class  rows
    per      12
    O       130
    """
    lines = [columns, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]

    def laid(line: Sequence[str]) -> str:
        first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        return "  ".join([first.strip().ljust(widths[0]), *others]).rstrip()

    return "\n".join(map(laid, lines))
