"""The order of depths: it holds, fails, or is not known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from capacities import bounded, tried
from statewise.recipes.capacity_order import order
from statewise.sweep.network_capacity import NetworkCapacity


def judged(*networks: NetworkCapacity) -> bool | None:
    ((_, holds),) = order(networks)
    return holds


def test_what_is_decided_within_the_iterations_is_told() -> None:
    answers = order([bounded(3, 50), bounded(1, None), bounded(2, 0)])
    assert answers == [("depth 3 (50) >= depth 2 (0) >= depth 1 (none)", True)]
    assert judged(bounded(1, 50), bounded(2, 0), bounded(3, 100)) is False
    assert judged(bounded(1, 50), bounded(2, 50)) is True, "as much is no less"
    assert order([bounded(1, 50)]) == []
    assert judged(bounded(1, None), bounded(2, None)) is False, "nothing is no order"
    assert judged(bounded(1, 0, "failed"), bounded(2, 50, "failed")) is True


@pytest.mark.parametrize("how", ["untried", "stopped", "broken"])
def test_what_the_clock_has_ended_is_known_from_below(how: str) -> None:
    assert bounded(1, 50, how).span == (50, math.inf)
    assert order([bounded(1, 50, how), bounded(2, 50)]) == [("depth 2 (50) >= depth 1 (at least 50)", None)]
    assert judged(bounded(1, 50), bounded(2, 50, how)) is True, "the deeper one can only have more"
    assert judged(bounded(1, 100, how), bounded(2, 50)) is False, "more time would not mend that"
    assert judged(bounded(1, 100), bounded(2, 0, how), bounded(3, 50)) is False, "whatever is between"
    assert judged(bounded(1, None), bounded(2, None, how)) is None, "nothing is known to be solved"
    assert order([bounded(1, None, how), bounded(2, 50)]) == [("depth 2 (50) >= depth 1 (unknown)", None)]


def test_what_solves_the_largest_value_may_solve_more() -> None:
    assert bounded(1, 150).span == (150, math.inf)
    assert judged(bounded(1, 150), bounded(2, 150)) is None
    assert judged(bounded(1, 100), bounded(2, 150)) is True


def test_a_harder_value_that_is_not_solved_bounds_it_from_above() -> None:
    harder = replace(bounded(1, 0, "stopped"), tries=(tried(0, 1.0), tried(50, 0.5, "stopped"), tried(150, 0.5)))
    assert harder.span == (0, 100)
    assert judged(harder, bounded(2, 100)) is True
    assert judged(harder, bounded(2, 50)) is None
    assert replace(harder, tries=(tried(0, 0.5),)).span == (-1, -1)
