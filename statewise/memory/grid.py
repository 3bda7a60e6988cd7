"""The table of a circuit's last output: a row for every Start, a column for every End, without rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statewise.errors import ArgumentError
from statewise.memory.field import Arithmetic, Table
from statewise.memory.whole import exceeds

#: Tables with more rows or columns are refused.
LARGEST = 8192
_TOGETHER = 1 << 16  # numbers of one state that are worked on together, so that they stay in a core's cache


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """The weights of a deep arithmetic circuit in the form of one arithmetic.

    ``h[t, l] = (WH[l] h[t-1, l]) * (WI[l] h[t, l-1])``, ``h[t, 0] = f(x_t)``, ``y = WO h[T, L]`` (Ziv 2019, eq. 2.4).

    Args:
        arithmetic: that all tables are of.
        inputs: ``WI``, one matrix a layer; the first has a column for each input feature.
        recurrent: ``WH``.
        readout: ``WO``, one row.
        first: ``WH h_0``, one column a layer; ones by the convention of the theory.
    """

    arithmetic: Arithmetic
    inputs: tuple[Table, ...]
    recurrent: tuple[Table, ...]
    readout: Table
    first: tuple[Table, ...]

    def step(self, products: Sequence[Table], term: Table) -> list[Table]:
        """The states of all layers after one step.

        Args:
            products: ``WH h`` of every layer, (channels, sequences, 1 or more).
            term: ``WI f(x)`` of the first layer, which is multiplied with broadcasting.
        """
        return self._step(products, term, len(self.inputs))

    def products(self, states: Sequence[Table]) -> list[Table]:
        """``WH h`` of every layer."""
        return [self._apply(weight, state) for weight, state in zip(self.recurrent, states, strict=True)]

    def scores(self, products: Sequence[Table], term: Table) -> Table:
        """The output after one more step, (sequences, 1 or more).

        ``WO (a * (WI h))`` is ``(WI^T (WO^T * a)) . h``: what is done to the product a is done once for all inputs of
        the step, and the last layer, the bulk of the work, costs one multiplication less for each of its weights.

        Args:
            products: as :meth:`step` takes them.
            term: as :meth:`step` takes it.
        """
        gate = self.arithmetic.multiply(products[-1], self.readout.T[:, :, None])
        if len(self.inputs) == 1:
            met = self.arithmetic.multiply(gate, term)
        else:
            below = self._step(products[:-1], term, len(self.inputs) - 1)[-1]
            met = self.arithmetic.multiply(below, self._apply(self.inputs[-1].T, gate))
        found: Table = self._apply(self.arithmetic.ones(1, len(met)), met)[0]
        return found

    def begin(self, sequences: int) -> list[Table]:
        """The products before the first step, (channels, sequences, 1)."""
        return [np.repeat(first[:, :, None], sequences, axis=1) for first in self.first]

    def rows_together(self, columns: int) -> int:
        """How many rows of a table are worked on together: their states stay in a core's cache."""
        return max(1, _TOGETHER // (columns * max(map(len, self.inputs))))

    def _step(self, products: Sequence[Table], term: Table, layers: int) -> list[Table]:
        states = [self.arithmetic.multiply(products[0], term)]
        for weight, product in zip(self.inputs[1:layers], products[1:layers], strict=True):
            states.append(self.arithmetic.multiply(self._apply(weight, states[-1]), product))
        return states

    def _apply(self, weight: Table, state: Table) -> Table:
        flat = self.arithmetic.matmul(weight, state.reshape(state.shape[0], -1))
        return flat.reshape(len(weight), *state.shape[1:])


def grid_matrix(weights: Weights, *, steps: int, split: int, templates: Table | None = None) -> Table:
    """The last output for every word of templates, the Start's words down and the End's across (Ziv 2019, eq. 2.8).

    The first symbol is the most significant. Every state is computed once for all words that begin alike:
    O(M^T L R^2) operations.

    Args:
        weights: of a circuit.
        steps: T.
        split: s, how many steps are the Start.
        templates: their features, (templates, features); None for one-hot ones.

    >>> from statewise.memory.field import Integers
    >>> whole = Integers()
    >>> one = Weights(
    ...     arithmetic=whole,
    ...     inputs=(whole.of([[1, 2], [3, -1]]),),
    ...     recurrent=(whole.of([[1, 1], [0, 1]]),),
    ...     readout=whole.of([[1, 2]]),
    ...     first=(whole.ones(2, 1),),
    ... )
    >>> grid_matrix(one, steps=2, split=1).tolist()
    [[22, 2], [-5, 4]]
    """
    term = input_terms(weights, templates)[:, None, :]
    symbols = term.shape[-1]
    rows, columns = check_sizes(symbols, steps=steps, split=split)
    if split == steps:  # the last symbols as columns, and then not
        return grid_matrix(weights, steps=steps, split=steps - 1, templates=templates).reshape(rows, 1)
    products = weights.begin(1)
    for _ in range(split):
        products = weights.products(_flat(weights.step(products, term)))
    together = weights.rows_together(columns)
    table = np.empty((rows, columns), dtype=weights.readout.dtype)
    for row in range(0, rows, together):
        chunk = [product[:, row : row + together] for product in products]
        table[row : row + together] = _ends(weights, chunk, term, steps - split).reshape(-1, columns)
    return table


def input_terms(weights: Weights, templates: Table | None) -> Table:
    """``WI f(x)`` of each template, (channels, templates)."""
    if templates is None:
        return weights.inputs[0]
    return weights.arithmetic.matmul(weights.inputs[0], templates.T)


def check_sizes(symbols: int, *, steps: int, split: int) -> tuple[int, int]:
    """The sides of a table that is small enough to be written down.

    Args:
        symbols: M, templates.
        steps: T.
        split: s.

    >>> check_sizes(4, steps=12, split=6)
    (4096, 4096)
    """
    if exceeds(symbols, max(split, steps - split), LARGEST):
        raise ArgumentError(
            where="the table of Start and End",
            got=f"{symbols}^{split} x {symbols}^{steps - split} entries",
            wanted=f"at most {LARGEST} rows and columns",
            remedy="Take fewer steps or symbols. One layer has shallow_rank(...), which needs no table. "
            "sampled_rank(...) has a table of a size that you choose, but answers another question: a lower bound on "
            "the rank on continuous inputs, any vectors, which can be larger than that on symbols.",
        )
    return symbols**split, symbols ** (steps - split)


def _ends(weights: Weights, products: list[Table], term: Table, steps: int) -> Table:
    """The scores after every End, for some states after the Start."""
    for _ in range(steps - 1):
        products = weights.products(_flat(weights.step(products, term)))
    return weights.scores(products, term)


def _flat(states: list[Table]) -> list[Table]:
    """Every pair of a sequence and its next symbol is a sequence."""
    return [state.reshape(len(state), -1, 1) for state in states]
