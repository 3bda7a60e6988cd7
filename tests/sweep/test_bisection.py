from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.sweep.bisection import Strategy

values = st.lists(st.integers(0, 1000), min_size=1, max_size=60, unique=True).map(sorted)


def searched(plan: Strategy, truth: dict[int, bool]) -> tuple[dict[int, bool], int]:
    """What is known in the end, and after how many rounds."""
    known: dict[int, bool] = {}
    rounds = 0
    while chosen := plan.next_values(list(truth), known):
        assert 1 <= len(chosen) <= plan.at_once
        assert not set(chosen) & set(known)
        known |= {value: truth[value] for value in chosen}
        rounds += 1
    return known, rounds


def largest(known: dict[int, bool]) -> int | None:
    return max((value for value, solved in known.items() if solved), default=None)


@given(values=values, data=st.data(), at_once=st.integers(1, 5), verify=st.integers(0, 3))
def test_bisection_finds_the_largest_of_what_is_monotone(
    values: list[int], data: st.DataObject, at_once: int, verify: int
) -> None:
    count = data.draw(st.integers(0, len(values)))
    truth = {value: place < count for place, value in enumerate(values)}
    known, rounds = searched(Strategy(at_once=at_once, verify_above=verify), truth)
    assert largest(known) == (values[count - 1] if count else None)
    assert rounds <= math.ceil(math.log(len(values) + 1, at_once + 1)) + 1 + verify


@given(values=values, data=st.data(), at_once=st.integers(1, 4), verify=st.integers(0, 2))
def test_galloping_finds_the_largest_of_what_is_monotone_and_tries_nothing_far_too_hard(
    values: list[int], data: st.DataObject, at_once: int, verify: int
) -> None:
    count = data.draw(st.integers(0, len(values)))
    truth = {value: place < count for place, value in enumerate(values)}
    known, rounds = searched(Strategy(method="galloping", at_once=at_once, verify_above=verify), truth)
    assert largest(known) == (values[count - 1] if count else None)
    places = [values.index(value) for value in known]
    if at_once == 1:
        assert max(places) <= 2 * max(count, 1) + verify  # 2^k - 1 is the first beyond count - 1 at most
        assert rounds <= 2 * math.ceil(math.log2(count + 1)) + 2 + verify
    assert places[0] == 0  # from the easy end


def test_galloping_takes_growing_steps_and_then_halves() -> None:
    plan, truth = Strategy(method="galloping", verify_above=0), {value: value <= 100 for value in range(0, 500, 10)}
    assert list(searched(plan, truth)[0]) == [0, 10, 30, 70, 150, 110, 90, 100]
    assert list(searched(plan, dict.fromkeys(truth, False))[0]) == [0]
    assert list(searched(plan, {0: True, 10: True, 20: True})[0]) == [0, 10, 20]


@given(
    values=values,
    data=st.data(),
    verify=st.integers(0, 3),
    at_once=st.integers(1, 3),
    method=st.sampled_from(["bisection", "galloping"]),
)
def test_halving_of_anything_tells_the_largest_it_met_and_tries_what_it_must(
    values: list[int], data: st.DataObject, verify: int, at_once: int, method: str
) -> None:
    truth = {value: data.draw(st.booleans()) for value in values}
    known, _ = searched(Strategy(method=method, verify_above=verify, at_once=at_once), truth)
    above = [value for value in values if largest(known) is None or value > largest(known)]  # type: ignore[operator]
    assert all(value in known and not truth[value] for value in above[: 1 + verify])


@given(values=values, data=st.data(), misses=st.integers(1, 3), at_once=st.integers(1, 4))
def test_ascending_stops_after_misses_in_a_row(
    values: list[int], data: st.DataObject, misses: int, at_once: int
) -> None:
    truth = {value: data.draw(st.booleans()) for value in values}
    known, _ = searched(Strategy(method="ascending", misses=misses, at_once=at_once), truth)
    row, wanted = 0, []
    for value in values:
        if row == misses:
            break
        wanted.append(value)
        row = 0 if truth[value] else row + 1
    assert set(wanted) <= set(known)
    assert len(known) - len(wanted) < at_once
    if at_once == 1:
        assert list(known) == wanted


def test_a_harder_value_that_is_solved_moves_the_answer() -> None:
    """30 fails by bad luck; the value above it shows that."""
    truth = {10: True, 20: True, 30: False, 40: True, 50: False, 60: False, 70: False}
    assert largest(searched(Strategy(verify_above=0), {**truth, 40: False})[0]) == 20
    assert largest(searched(Strategy(verify_above=1), truth)[0]) == 40


@pytest.mark.parametrize("wrong", [{"method": "guess"}, {"misses": 0}, {"verify_above": -1}, {"at_once": 0}])
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=f"Strategy.{next(iter(wrong))}"):
        Strategy(**wrong)
