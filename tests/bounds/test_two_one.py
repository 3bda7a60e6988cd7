"""Bounds from sums of entries and of row lengths."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from contracts.bounds import NET_A, BoundContract, about
from statewise.bounds.catalogue import bound_named
from statewise.bounds.profile import Block
from statewise.bounds.two_one import entry_sum, from_integral, maurey_nats, tied, unrolled_log_k
from statewise.errors import ArgumentError, AssumptionError

ENTRIES = {"U": 4.0, "V": 4.0, "W": 3.0}


class TestTied(BoundContract):
    name = "thm3_l1"
    scale_free = True


class TestUnrolled(BoundContract):
    name = "bartlett_unrolled"
    scale_free = True


class TestMaurey:
    def test_some_mean_of_that_many_corners_is_near(self) -> None:
        """The covering lemma itself: the best of many draws is within ε in the Frobenius norm."""
        draw = np.random.default_rng(0)
        matrix = draw.normal(size=(3, 4))
        total, distance = float(np.abs(matrix).sum()), 1.5
        terms = round(maurey_nats(total, distance, 12) / math.log(24))
        chances = np.abs(matrix).ravel() / total
        picks = draw.choice(12, (500, terms), p=chances)
        means = np.stack([np.bincount(pick, minlength=12) for pick in picks]) / terms
        near = total * means * np.sign(matrix).ravel() - matrix.ravel()
        assert np.linalg.norm(near, axis=1).min() < distance

    def test_columns_give_entries(self) -> None:
        matrix = np.random.default_rng(1).normal(size=(5, 3))
        columns = float(np.linalg.norm(matrix, axis=0).sum())
        assert np.abs(matrix).sum() <= entry_sum(columns, 5)
        assert np.abs(np.ones((5, 3))).sum() == pytest.approx(entry_sum(3 * math.sqrt(5), 5))


class TestTheIntegral:
    @pytest.mark.parametrize(("k", "counts", "top"), [(0.5, 3.0, 1.0), (4.0, 20.0, 0.3), (0.01, 0.5, 1.0)])
    def test_it_is_the_integral_from_the_best_end(self, k: float, counts: float, top: float) -> None:
        m = 10**4
        ends = np.geomspace(1e-7, top, 20001)
        totals = 4 * ends + 12 / math.sqrt(m) * (k * np.log(top / ends) + top * math.sqrt(counts))
        assert from_integral(math.log(k), counts, math.log(top), m).value == pytest.approx(2 * totals.min(), rel=1e-6)

    def test_beyond_its_range_the_value_is_the_range_and_the_penalty_still_grows(self) -> None:
        bound, subject = bound_named("thm3_l1"), about(NET_A)
        assert bound.value(subject, gamma=50.0, risk=0.0, m=10**4) == pytest.approx(
            2 * math.sqrt(2) * 4 / 50 + math.sqrt(math.log(20) / 2e4)
        )
        assert bound.log_penalty(subject, gamma=0.001, m=100) > bound.log_penalty(subject, gamma=0.01, m=100) > 2

    def test_it_does_not_jump_where_the_logarithm_ends(self) -> None:
        edge = math.log(100 / 3)  # 3K = √m r̄
        below, above = (from_integral(edge + each, 3.0, 0.0, 10**4).log_value for each in (-1e-9, 1e-9))
        assert below == pytest.approx(above, abs=1e-8)

    def test_nothing_to_cover_costs_nothing(self) -> None:
        assert from_integral(-math.inf, 0.0, 0.0, 100).value == 0
        assert from_integral(1.0, 2.0, -math.inf, 100).value == 0


class TestWhatItRefuses:
    def test_a_block_without_a_sum(self) -> None:
        with pytest.raises(AssumptionError, match="the entries of W"):
            tied(NET_A.tight(), {"U": 4.0, "V": 4.0}, gamma=0.5, m=100)

    def test_a_block_in_another_norm(self) -> None:
        filters = Block(name="U", rows=3, columns=1, bound=0.3, log_lipschitz=2.0, free=3, stretch=2.0)
        with pytest.raises(AssumptionError, match="not spectral"):
            tied(replace(NET_A.tight(), blocks=(filters,)), ENTRIES, gamma=0.5, m=100)

    def test_a_sum_below_0(self) -> None:
        with pytest.raises(ArgumentError, match="the entries of U"):
            tied(NET_A.tight(), {**ENTRIES, "U": -1.0}, gamma=0.5, m=100)
        with pytest.raises(ArgumentError, match="the rows of V"):
            unrolled_log_k(NET_A, cell_rows=1.0, head_rows=math.nan, gamma=0.5)


def test_matrices_of_zeros_are_not_counted() -> None:
    """What is left of a sum of entries near 0 is ℓ_k; at 0 that goes too."""
    tiny, none = (tied(NET_A.tight(), {**ENTRIES, "U": each}, gamma=0.5, m=10**9).nats for each in (1e-24, 0.0))
    assert tiny - none == pytest.approx(math.log(32), abs=1e-4)


def test_the_unrolled_sum_step_by_step() -> None:
    net = replace(NET_A, norm_u=1.3, steps=4, rho_h=0.9, rho_y=1.2, start_norm=0.7, head_bias=True)
    eta = [0.7]
    for _ in range(4):
        eta.append(1.3 * 0.9 * eta[-1] + 0.9)
    eta = [eta[0], *(min(2.0, each) for each in eta[1:])]
    cell, head = math.log(2 * 4 * 6), math.log(2 * 2 * 5)
    terms = [
        1.2 * 2 * 0.9 * (1.3 * 0.9) ** (4 - s) * 5.0 * math.sqrt(eta[s - 1] ** 2 + 1) * math.sqrt(cell)
        for s in range(1, 5)
    ]
    terms.append(1.2 * 3.0 * math.sqrt(eta[4] ** 2 + 1) * math.sqrt(head))
    expected = math.sqrt(2) / 0.5 * sum(each ** (2 / 3) for each in terms) ** 1.5
    found = unrolled_log_k(net, cell_rows=5.0, head_rows=3.0, gamma=0.5)
    assert math.exp(found) == pytest.approx(expected, rel=1e-12)
