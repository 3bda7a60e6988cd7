"""Any two sets of steps instead of a Start and an End: their table, and how large its rank can be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from statewise.errors import ArgumentError
from statewise.memory.counts import steps_cap
from statewise.memory.field import Table
from statewise.memory.grid import Weights, grid_matrix
from statewise.memory.sharper_bound import proved_bound
from statewise.memory.split import split_of
from statewise.memory.telling import counted, listed
from statewise.memory.whole import exceeds, whole

#: Which steps are the rows: so many of the first ones, or these, counted from 0.
Split = int | tuple[int, ...]
#: Words whose scores are all written down, to be cut at every place or where the rows are not the first steps.
MOST = 1 << 24


def partition_of(steps: int, split: int | Sequence[int] | None, *, where: str) -> Split:
    """Which steps are the rows: a number if they are the first ones, else the steps themselves, in order.

    Args:
        steps: T.
        split: how many are the Start, or which steps, counted from 0, are the rows; None for half of an even T.
        where: what was asked, for errors.

    >>> partition_of(6, None, where="here"), partition_of(6, [4, 0, 2], where="here"), partition_of(6, [1, 0], where="")
    (3, (0, 2, 4), 2)
    """
    steps = whole(steps, where=f"{where}.steps")
    if not isinstance(split, Sequence) or isinstance(split, str):
        return split_of(steps, split, where=where, name="steps")
    rows = tuple(sorted(whole(step, where=f"{where}.split", least=0, most=steps - 1) for step in split))
    if len(set(rows)) < len(rows):
        raise ArgumentError(where=f"{where}.split", got=tuple(split), wanted="every step at most once")
    return len(rows) if rows == tuple(range(len(rows))) else rows


def split_text(split: Split) -> str:
    """Which steps are the rows, in words.

    Args:
        split: of :func:`partition_of`.

    >>> split_text(2), split_text((0, 2, 4))
    ('Start of 2 steps', 'steps 0, 2 and 4 against all others (counted from 0)')
    """
    if isinstance(split, int):
        return f"Start of {counted(split, 'step')}"
    return f"step{'s' if len(split) > 1 else ''} {listed(split)} against all others (counted from 0)"


def partition_table(weights: Weights, *, steps: int, rows: tuple[int, ...], templates: Table | None = None) -> Table:
    """The last output for every word of the steps of the rows, down, and of all others, across.

    Args:
        weights: of a circuit.
        steps: T.
        rows: steps, counted from 0, in order.
        templates: their features, (templates, features); None for one-hot ones.

    >>> from statewise.memory.drawn import drawn_weights
    >>> from statewise.memory.field import Field
    >>> weights = drawn_weights(Field(), inputs=2, width=2, depth=2, seed=0)
    >>> partition_table(weights, steps=4, rows=(0, 2, 3)).shape
    (8, 2)
    """
    symbols = weights.inputs[0].shape[1] if templates is None else len(templates)
    if exceeds(symbols, steps, MOST):
        raise ArgumentError(
            where="the table of Start and End",
            got=f"{symbols}^{steps} words",
            wanted=f"at most {MOST:,} where the rows are not the first steps",
            remedy="Take fewer steps or symbols.",
        )
    table = grid_matrix(weights, steps=steps, split=steps // 2, templates=templates)
    others = [step for step in range(steps) if step not in rows]
    cut: Table = table.reshape([symbols] * steps).transpose(*rows, *others).reshape(symbols ** len(rows), -1)
    return cut


def partition_bound(*, M: int, R: int, T: int, L: int, rows: Split, continuous: bool = False) -> int:
    """No circuit has a larger rank between the steps of the rows and all others, on M templates.

    New bound, the least of three: what the rows can tell apart, what the others can, and the product of
    :func:`~statewise.memory.sharper_bound.proved_bound` over the places where one ends and the other begins. For a
    function of T steps is a tensor train whose bonds are its ranks at the splits, and what is cut out of a train meets
    the rest at these bonds (Oseledets 2011, Theorem 2.1).

    Args:
        M: templates, or the width of continuous inputs.
        R: channels of each layer.
        T: steps.
        L: layers.
        rows: steps, counted from 0, in order; a number for so many of the first.
        continuous: whether inputs are any vectors.

    >>> partition_bound(M=2, R=2, T=8, L=1, rows=(0, 1, 4, 5)), partition_bound(M=2, R=2, T=8, L=1, rows=4)
    (8, 2)
    """
    sizes = {"M": M, "R": R, "T": T, "L": L}
    if isinstance(rows, int):
        return proved_bound(**sizes, split=rows, continuous=continuous)
    others = [step for step in range(T) if step not in rows]
    places = [[T - 1 - step for step in side] for side in (rows, others)]
    caps = [steps_cap(M=M, R=R, L=L, before_last=side, continuous=continuous) for side in places]
    edges = [step for step in range(1, T) if (step in rows) != (step - 1 in rows)]
    return min(*caps, math.prod(proved_bound(**sizes, split=edge, continuous=continuous) for edge in edges))
