"""What was looked up in the data is rounded up, and paid for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.passes import few_examples
from statewise.bounds.grid import Ledger, margin_levels, nats, prefix_nats, round_up, weight
from statewise.errors import ArgumentError, AssumptionError


def test_the_law_of_the_grid_is_a_law() -> None:
    assert weight(0) == pytest.approx(1 / 3, rel=1e-15)
    assert weight(5) == weight(-5) == pytest.approx(1 / 63, rel=1e-15)
    assert nats(5) == pytest.approx(4.143134726, rel=1e-9)
    most = 10**4
    # What is beyond sums to a telescope: 2 * (2/3) / (most + 2).
    assert sum(map(weight, range(-most, most + 1))) + (4 / 3) / (most + 2) == pytest.approx(1, abs=1e-12)
    assert sum(math.exp(-prefix_nats(number)) for number in range(1, 10**4)) + 1 / 10**4 == pytest.approx(1, abs=1e-12)


@few_examples
@given(value=st.floats(1e-12, 1e12))
def test_a_constant_is_rounded_up_by_an_eighth_of_an_octave_at_most(value: float) -> None:
    found = round_up(value)
    assert value <= found.value < value * 2 ** (1 / 8) * (1 + 1e-12)
    assert found.nats > 0
    assert round_up(found.value) == found


def test_points_of_the_grid_stay_and_zero_is_allowed() -> None:
    assert [round_up(2.0**power).value for power in range(-5, 6)] == [2.0**power for power in range(-5, 6)]
    assert 0 < round_up(0.0).value < 1e-18
    with pytest.raises(ArgumentError, match="finite"):
        round_up(math.inf)
    with pytest.raises(ArgumentError, match="finite"):
        round_up(-1.0)


def test_margins_go_down_from_the_largest_that_is_of_use() -> None:
    levels = list(margin_levels(3.0, octaves=2))
    assert [level.value for level in levels] == pytest.approx([2 * 2**0.5, 2, 2**0.5, 1, 2**-0.5])
    assert [level.nats for level in levels] == pytest.approx([nats(index) for index in (3, 2, 1, 0, -1)])
    assert list(margin_levels(0.0)) == []


def test_the_ledger_adds_up_and_holds_promises() -> None:
    ledger = Ledger(promised={"U": 1.0})
    assert ledger.up("U", 0.5) == pytest.approx(1.0, rel=2e-9)
    assert ledger.up("V", 0.5) == 0.5
    assert ledger.signed("bias", 0.3) == 0.375
    assert ledger.nats == pytest.approx({"U": 0.0, "V": nats(-8), "bias": nats(3)})
    assert ledger.total == pytest.approx(nats(-8) + nats(3))
    with pytest.raises(ArgumentError, match="twice"):
        ledger.up("V", 1.0)
    with pytest.raises(AssumptionError, match="as was promised"):
        Ledger(promised={"U": 1.0}).up("U", 1.01)
    with pytest.raises(ArgumentError, match="finite"):
        ledger.signed("other", math.nan)


def test_what_projection_leaves_above_a_promise_is_within_the_class() -> None:
    below, above = (Ledger(promised={"U": 1.0}).up("U", value) for value in (0.5, 1 + 5e-10))
    assert below == above >= 1 + 5e-10
    assert Ledger(promised={"bias": -1.0}).signed("bias", -1.0) == pytest.approx(-1.0, rel=2e-9)


def test_only_counts_from_one_have_a_code() -> None:
    with pytest.raises(ArgumentError, match="at least 1"):
        prefix_nats(0)
