"""The best margin of a grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from contracts.bounds import NET_A, about
from statewise.bounds.catalogue import BOUNDS, bound_named
from statewise.bounds.grid import margin_levels
from statewise.bounds.margins import margin_risk, ramp_risk
from statewise.bounds.search import SortedMargins, best_over_margins
from statewise.errors import ArgumentError, AssumptionError, NonFiniteError

SUBJECT = about(NET_A)
DRAWN = np.random.default_rng(0).normal(1.5, 0.7, 20_000)


class TestSortedMargins:
    def test_risks_are_those_of_the_plain_formulas(self) -> None:
        table, plain = SortedMargins(DRAWN), torch.from_numpy(DRAWN)
        for gamma in (1e-6, 0.3, 1.0, 2.0, 50.0, float(np.sort(DRAWN)[-3])):
            assert table.margin_risk(gamma) == margin_risk(plain, gamma)
            assert table.ramp_risk(gamma) == pytest.approx(ramp_risk(plain, gamma), abs=1e-14)

    def test_tensors_and_arrays(self) -> None:
        assert SortedMargins(torch.tensor([0.5, 2.0])).largest == SortedMargins([2.0, 0.5]).largest == 2

    def test_margins_equal_to_the_level_count_as_wrong(self) -> None:
        table = SortedMargins([1.0, 1.0, 2.0, 2.0])
        assert (table.margin_risk(1.0), table.ramp_risk(1.0)) == (0.5, 0.0)

    @pytest.mark.parametrize("wrong", [[], [[1.0, 2.0]]])
    def test_what_is_no_vector(self, wrong: list[float]) -> None:
        with pytest.raises(ArgumentError, match="margins"):
            SortedMargins(wrong)

    def test_nan(self) -> None:
        with pytest.raises(NonFiniteError, match="margins"):
            SortedMargins([1.0, math.nan])

    def test_levels_are_positive(self) -> None:
        for risk in (SortedMargins(DRAWN).ramp_risk, SortedMargins(DRAWN).margin_risk):
            with pytest.raises(ArgumentError, match="gamma"):
                risk(0.0)


class TestTheSearch:
    @pytest.mark.parametrize("name", [name for name, bound in BOUNDS.items() if bound.guarantee])
    def test_it_is_the_least_over_the_grid_with_all_that_is_paid(self, name: str) -> None:
        bound, table = bound_named(name), SortedMargins(DRAWN)
        found = best_over_margins(bound, SUBJECT, table, delta=0.05, ledger={"U": 2.0, "V": 1.5}, octaves=5)
        values = {}
        for level in margin_levels(float(DRAWN.max()), octaves=5):
            risk = (table.ramp_risk if bound.risk == "ramp" else table.margin_risk)(level.value)
            paid = 3.5 + level.nats
            values[level.value] = bound.value(SUBJECT, gamma=level.value, risk=risk, m=20_000, delta=0.05, paid=paid)
        assert found.value == min(values.values()) == values[found.gamma]
        assert set(found.paid) == {"U", "V", "gamma"}
        paid = sum(found.paid.values())
        penalty = bound.penalty(SUBJECT, gamma=found.gamma, m=20_000, delta=0.05, paid=paid)
        assert (found.log_penalty, found.nats, found.bound) == (penalty.log_value, penalty.nats, name)

    def test_the_certificate_says_something_here(self) -> None:
        found = best_over_margins(bound_named("kl_occam"), SUBJECT, DRAWN, delta=0.05)
        error = float((DRAWN <= 0).mean())
        assert error < found.value < 0.1
        assert 0 < found.gamma < 1

    def test_all_wrong(self) -> None:
        found = best_over_margins(bound_named("kl_occam"), SUBJECT, -np.abs(DRAWN), delta=0.05)
        assert (found.value, found.risk) == (1, 1)

    def test_an_order_is_refused(self) -> None:
        with pytest.raises(AssumptionError, match="zhang_order"):
            best_over_margins(bound_named("zhang_order"), SUBJECT, DRAWN, delta=0.05)

    def test_a_margin_is_paid_once(self) -> None:
        with pytest.raises(ArgumentError, match="ledger"):
            best_over_margins(bound_named("kl_occam"), SUBJECT, DRAWN, delta=0.05, ledger={"gamma": 1.0})

    def test_one_sequence(self) -> None:
        with pytest.raises(ArgumentError, match=r"^m: got 1"):
            best_over_margins(bound_named("kl_occam"), SUBJECT, [1.0], delta=0.05)
