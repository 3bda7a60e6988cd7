from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError, MissingExtraError
from statewise.memory.elimination import block_rank, rank, row_basis
from statewise.memory.field import Field, Table, WideField

SEEDS = st.integers(0, 2**32 - 1)


def low_rank(rows: int, columns: int, inner: int, seed: int = 0) -> Table:
    field, generator = Field(), np.random.default_rng(seed)
    return field.matmul(field.draw(generator, rows, inner), field.draw(generator, inner, columns))


def sparse(rows: int, columns: int, share: float, seed: int = 0) -> Table:
    generator = np.random.default_rng(seed)
    return np.where(generator.random((rows, columns)) < share, Field().draw(generator, rows, columns), 0.0)


@given(rows=st.integers(1, 12), columns=st.integers(1, 12), inner=st.integers(0, 12), seed=SEEDS)
def test_all_ways_agree_on_small_matrices(rows: int, columns: int, inner: int, seed: int) -> None:
    field, table = Field(), low_rank(rows, columns, inner, seed)
    expected = min(rows, columns, inner)
    assert rank(table, field, backend="numpy") == rank(table, field, backend="flint") == expected
    wide = WideField(field.prime)
    assert {rank(field.integers(table).astype(object), wide, backend=way) for way in ("numpy", "auto")} == {expected}


@pytest.mark.parametrize(
    ("rows", "columns", "inner"), [(128, 128, 128), (130, 300, 129), (300, 140, 77), (200, 200, 199), (260, 260, 1)]
)
def test_both_backends_agree_across_blocks(rows: int, columns: int, inner: int) -> None:
    """More rows than a block: full rank, short by one, far below, and of either shape."""
    table = low_rank(rows, columns, inner)
    assert rank(table, Field(), backend="numpy") == rank(table, Field(), backend="flint") == inner


@pytest.mark.parametrize("share", [0.003, 0.01, 0.015])
def test_both_backends_agree_where_most_entries_are_zero(share: float) -> None:
    """A block then has its pivots in columns far apart, and needs more than one look."""
    table = sparse(300, 280, share)
    found = rank(table, Field(), backend="numpy")
    assert found == rank(table, Field(), backend="flint") < 280


def test_columns_that_repeat_each_other_do_not_hide_the_rest() -> None:
    table = np.concatenate((np.repeat(low_rank(200, 2, 2), 100, axis=1), low_rank(200, 150, 150, seed=1)), axis=1)
    assert block_rank(table, Field()) == 152


def test_the_matrix_is_left_as_it_was() -> None:
    table = low_rank(150, 150, 90)
    before = table.copy()
    block_rank(table, Field())
    row_basis(table, Field())
    assert np.array_equal(table, before)


@given(rows=st.integers(1, 10), columns=st.integers(1, 10), inner=st.integers(0, 10), seed=SEEDS)
def test_a_reduced_basis_depends_on_the_space_alone(rows: int, columns: int, inner: int, seed: int) -> None:
    field, table = Field(), low_rank(rows, columns, inner, seed)
    basis = row_basis(table, field)
    mixed = field.matmul(field.draw(np.random.default_rng(seed), rows + 3, rows), table)
    assert np.array_equal(row_basis(mixed, field), basis)
    assert len(basis) == min(rows, columns, inner)
    pivots = [int(np.argmax(row != 0)) for row in basis]
    assert pivots == sorted(pivots)
    assert np.array_equal(basis[:, pivots], np.eye(len(basis)))


def test_a_basis_of_more_rows_than_a_block() -> None:
    field, table = Field(), low_rank(300, 200, 140)
    basis = row_basis(table, field)
    assert len(basis) == 140
    assert rank(np.concatenate((basis, table)), field) == 140


def test_no_rows_have_no_rank() -> None:
    assert (
        rank(np.zeros((0, 3)), Field())
        == rank(np.zeros((3, 3)), Field())
        == len(row_basis(np.zeros((3, 3)), Field()))
        == 0
    )


def test_without_the_extra_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    table = low_rank(20, 20, 7)
    assert rank(table, Field()) == 7
    assert rank(Field().integers(table).astype(object), WideField(Field().prime)) == 7
    with pytest.raises(MissingExtraError, match="statewise\\[exact\\]"):
        rank(table, Field(), backend="flint")


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(ArgumentError, match="flint"):
        rank(np.eye(2), Field(), backend="sage")


@pytest.mark.slow
@pytest.mark.parametrize("inner", [1500, 1200])
def test_both_backends_agree_on_a_large_matrix(inner: int) -> None:
    table = low_rank(1500, 1500, inner)
    assert rank(table, Field(), backend="numpy") == rank(table, Field(), backend="flint") == inner
