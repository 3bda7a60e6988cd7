"""States by class: what every measurement of states begins with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, NonFiniteError, ShapeError

IGNORED = -100  # the label of padding, as torch's losses have it

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
    if len(states) != len(labels):
        raise ShapeError(where=f"{where}.labels", got=f"{len(labels)} labels", wanted=f"{len(states)}, one a state")
    known = checked_labels(labels, count, where)
    rows = states.detach().cpu().double().numpy()
    if not np.isfinite(rows[known != IGNORED]).all():
        raise NonFiniteError(where=f"{where}.states", got="NaN or infinity", wanted="finite states")
    return [rows[known == one] for one in range(count)]


def checked_labels(labels: Int[Tensor, " rows"], count: int, where: str) -> Int[np.ndarray, " rows"]:
    """The labels on the CPU, all of them classes or padding.

    Args:
        labels: of rows.
        count: how many classes there are.
        where: who asks, for errors.
    """
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
