"""The rank of a matrix over a finite field: by python-flint where it is, and by numpy's products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from statewise.errors import ArgumentError, MissingExtraError
from statewise.memory.field import Field, Table, WideField

#: Rows that are eliminated together; their products have so many terms, see :class:`Field`.
BLOCK = 128
#: Columns that are looked at beyond as many as there are rows.
MORE = 8
#: Smaller matrices are python-flint's, whose loops are compiled; of larger ones the processor's products are faster.
SMALL = 400
BACKENDS = ("auto", "flint", "numpy")


def rank(table: Table, field: Field | WideField, *, backend: str = "auto") -> int:
    """The rank of a matrix over a field, exactly.

    Args:
        table: a matrix of numbers in the form of the field.
        field: any.
        backend: "numpy" eliminates blocks of rows by products of matrices; "flint" asks python-flint (extra
            ``exact``); "auto" takes the faster one for this matrix and this machine's packages.

    >>> field = Field()
    >>> rank(field.of([[1, 2], [2, 4]]), field), rank(field.of([[1, 2], [2, 5]]), field)
    (1, 2)
    """
    if backend not in BACKENDS:
        raise ArgumentError(where="rank.backend", got=backend, wanted=f"one of {', '.join(BACKENDS)}")
    if not table.size:
        return 0
    wide = isinstance(field, WideField)
    if backend == "flint" or (backend == "auto" and (wide or max(table.shape) <= SMALL)):
        matrix = _flint_matrix()
        if matrix is not None:
            return int(matrix(*table.shape, field.integers(table).ravel().tolist(), field.prime).rank())
        if backend == "flint":
            raise MissingExtraError.of("rank(backend='flint')", package="python-flint", extra="exact")
    return _wide_rank(table, field) if isinstance(field, WideField) else block_rank(table, field)


def block_rank(table: Table, field: Field) -> int:
    """The rank by elimination of whole blocks of rows: ``C <- C - C_J (P_J)^-1 P`` for pivot rows P and columns J.

    Args:
        table: a matrix of residues; it is left as it is.
        field: their field.

    >>> block_rank(np.eye(300), Field()), block_rank(np.ones((300, 200)), Field())
    (300, 1)
    """
    # The shorter side is eliminated row by row. In a random order neighbours are not more alike than others, so that a
    # block is regular in its first columns whenever it can be.
    shorter = table if table.shape[0] <= table.shape[1] else table.T
    order = np.random.default_rng(0)
    rest = np.ascontiguousarray(shorter[np.ix_(*(order.permutation(side) for side in shorter.shape))])
    found = 0
    while rest.size and rest.any():
        block, rest = rest[:BLOCK], rest[BLOCK:]
        rows, columns, inverse = _pivots(block, field)
        found += len(columns)
        if len(columns) and len(rest):
            factors = field.matmul(rest[:, columns], inverse)
            rest, pivots = _without(columns, rest, block[rows])
            field.subtract_product(rest, factors, pivots)
    return found


def row_basis(table: Table, field: Field) -> Table:
    """The reduced basis of the rows of a matrix: no row of zeros, and the identity in the columns of its pivots.

    Args:
        table: a matrix of residues.
        field: their field.

    >>> row_basis(Field().of([[2, 4, 0], [1, 2, 0], [0, 0, 3]]), Field()).tolist()
    [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    """
    basis = np.zeros((0, table.shape[1]))
    taken = np.zeros(0, dtype=np.int64)
    for first in range(0, len(table), BLOCK):
        rows = np.array(table[first : first + BLOCK], dtype=np.float64)
        if len(basis):
            field.subtract_product(rows, rows[:, taken], basis)
        fresh, columns = _reduced(rows, field)
        if len(fresh) and len(basis):
            field.subtract_product(basis, basis[:, columns], fresh)
        basis, taken = np.concatenate((basis, fresh)), np.concatenate((taken, columns))
    return basis[np.argsort(taken)]


def _without(columns: Table, *parts: Table) -> list[Table]:
    """Matrices without some columns, whose places their last ones take: nothing else is moved."""
    width = parts[0].shape[1]
    left = width - len(columns)
    gaps, movers = np.sort(columns[columns < left]), np.setdiff1d(np.arange(left, width), columns)
    for part in parts:
        part[:, gaps] = part[:, movers]
    return [part[:, :left] for part in parts]


def _pivots(block: Table, field: Field) -> tuple[Table, Table, Table]:
    """Rows and columns of a largest regular part of some rows, and the inverse of that part.

    Only as many columns as there are rows left are looked at together: nearly always that is once.
    """
    work, left = block.copy(), np.arange(len(block))
    parts: list[tuple[Table, Table]] = []
    inverse = np.zeros((0, 0))
    while len(left := left[work[left].any(axis=1)]):
        seen = np.flatnonzero(work[left].any(axis=0))[: len(left) + MORE]
        _, places, chosen, inverse = _eliminated(work[np.ix_(left, seen)], field)
        rows, columns = left[chosen], seen[places]
        parts.append((rows, columns))
        left = np.delete(left, chosen)
        update = work[left]
        field.subtract_product(update, field.matmul(update[:, columns], inverse), work[rows])
        work[left] = update
    if not parts:
        return left, left, inverse
    rows, columns = (np.concatenate(each) for each in zip(*parts, strict=True))
    if len(parts) > 1:
        _, places, _, inverse = _eliminated(block[np.ix_(rows, columns)], field)
        columns = columns[places]
    return rows, columns, inverse


def _eliminated(block: Table, field: Field) -> tuple[Table, Table, Table, Table]:
    """Gauss and Jordan on a few rows: their reduced basis, its columns, the rows it is of, and the inverse there."""
    size, width = block.shape
    work = np.concatenate((block, np.eye(size)), axis=1)
    rows: list[int] = []
    columns: list[int] = []
    for row in range(size):
        place = int(np.argmax(work[row, :width] != 0))
        pivot = work[row, place]
        if pivot == 0:
            continue
        work[row] = field.multiply(work[row], np.array([field.inverse(pivot)]))
        factors = work[:, place].copy()
        factors[row] = 0
        work -= field.multiply(factors[:, None], work[row][None])
        field.reduce(work)
        rows.append(row)
        columns.append(place)
    chosen = np.array(rows, dtype=np.int64)
    # Row i of the transform is what makes pivot i; it is the inverse's row of that pivot's column.
    return work[chosen, :width], np.array(columns, dtype=np.int64), chosen, work[np.ix_(chosen, width + chosen)]


def _reduced(rows: Table, field: Field) -> tuple[Table, Table]:
    basis, columns, _, _ = _eliminated(rows, field)
    return basis, columns


def _wide_rank(table: Table, field: WideField) -> int:
    """Elimination of Python's own numbers."""
    work, found = table.copy(), 0
    for column in range(work.shape[1]):
        below = np.flatnonzero(work[found:, column])
        if not len(below):
            continue
        pivot = found + int(below[0])
        work[[found, pivot]] = work[[pivot, found]]
        scaled = work[found] * pow(int(work[found, column]), -1, field.prime) % field.prime
        work[found + 1 :] = (work[found + 1 :] - work[found + 1 :, column, None] * scaled) % field.prime
        found += 1
        if found == len(work):
            break
    return found


def _flint_matrix() -> Any:
    """The type of python-flint's matrices; None where it is missing, or cannot be loaded."""
    try:
        from flint import nmod_mat
    except ImportError:
        return None
    return nmod_mat
