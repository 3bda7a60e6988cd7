"""Orders that the paper prints: how they grow, and that they are no guarantees."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from contracts.bounds import NET_A
from statewise.bounds.table1 import COLUMNS, printed_complexity, table_1
from statewise.errors import ArgumentError


def order(column: str, growth: float, **changes: Any) -> float:
    given: dict[str, Any] = {
        "dimension": 9.0,
        "steps": 10,
        "two_one": 5.0,
        "squared_frobenius": 7.0,
        "gamma": 0.5,
        "m": 400,
    }
    found = table_1(column, log_growth=math.log(growth), **(given | changes))
    assert not found.guarantee
    return math.exp(found.log_value)


@pytest.mark.parametrize(
    ("column", "below", "at", "above"),
    [
        ("theorem 2", 9.0, 90.0, math.sqrt(729 * 10)),
        ("bound 3", 50.0, 500.0, 10 * 2**10 * 5),
        ("bound 4", math.sqrt(63), 90 * math.sqrt(7), 9 * 2**10 * math.sqrt(7)),
    ],
)
def test_the_table(column: str, below: float, at: float, above: float) -> None:
    found = [order(column, growth) for growth in (0.5, 1.0, 2.0)]
    assert found == pytest.approx([each / (20 * 0.5) for each in (below, at, above)])


def test_orthogonal_weights_tie_theorem_2_with_bound_4_below_1() -> None:
    """‖A‖_F = √d: √(d · d)."""
    assert order("bound 4", 0.5, squared_frobenius=9.0) == pytest.approx(order("theorem 2", 0.5))
    assert order("bound 4", 1.0, squared_frobenius=9.0) > order("theorem 2", 1.0)


@pytest.mark.parametrize("column", COLUMNS)
def test_no_growth_is_too_large(column: str) -> None:
    found = table_1(
        column,
        log_growth=math.log(3),
        dimension=100.0,
        steps=5000,
        two_one=1.0,
        squared_frobenius=1.0,
        gamma=1.0,
        m=100,
    )
    assert math.isfinite(found.log_value)


def test_an_unknown_column() -> None:
    with pytest.raises(ArgumentError, match="column"):
        order("theorem 3", 1.0)


def test_the_complexity_of_the_introduction() -> None:
    sums = sum(0.5**n for n in range(10))
    root = math.sqrt(32)
    expected = root * min(math.sqrt(root), sums) * 2 * math.sqrt(math.log(10 * math.sqrt(root) * sums))
    found = printed_complexity(replace(NET_A, norm_u=0.5))
    assert math.exp(found.log_value) == pytest.approx(expected)
    assert not found.guarantee
    assert math.isfinite(printed_complexity(replace(NET_A, norm_u=3.0, steps=5000)).log_value)
