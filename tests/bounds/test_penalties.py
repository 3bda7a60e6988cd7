"""Bounds by Rademacher complexity from a profile."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from contracts.bounds import NET_A, BoundContract, about
from statewise.bounds.catalogue import BOUNDS, bound_named
from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.penalties import (
    SCALES,
    cover_nats_at,
    dudley,
    exp_or_infinity,
    log_range,
    massart,
    population_confidence,
    sample_confidence,
    theorem_2,
)
from statewise.bounds.profile import Block, Profile
from statewise.errors import ArgumentError


class TestTheorem2(BoundContract):
    name = "thm2"
    scale_free = False


class TestDudley(BoundContract):
    name = "dudley"
    scale_free = True


class TestMassart(BoundContract):
    name = "massart"
    scale_free = True


class TestTheOrderOfTheThree:
    def test_one_scale_is_an_eighth_of_all_and_the_paper_is_far_above(self) -> None:
        for growth in (0.5, 1.0, 1.5):
            net = replace(NET_A, norm_u=growth)
            one, every, paper = (
                each(profile, gamma=0.5, m=10**6).value
                for each, profile in ((massart, net.tight()), (dudley, net.tight()), (theorem_2, net.paper()))
            )
            assert 5 * one < every < 9 * one
            assert paper > 20 * every

    def test_the_printed_product_is_the_larger_one(self) -> None:
        for growth, hidden in product((0.0, 0.5, 1.0, 1.5), (1, 4, 30)):
            net = replace(NET_A, norm_u=growth, hidden=hidden)
            least = theorem_2(net.paper(), gamma=0.5, m=10**6)
            printed = theorem_2(net.paper(), gamma=0.5, m=10**6, log_product=net.log_printed_product())
            assert least.log_value <= printed.log_value


class TestTheRange:
    def test_no_complexity_is_above_it(self) -> None:
        """A margin of 100 for logits of length 4: the losses differ by little, so the penalty is small at any m."""
        value = bound_named("dudley").value(about(NET_A), gamma=100.0, risk=0.5, m=100)
        confidence = population_confidence(100, math.log(20))
        assert value == pytest.approx(0.5 + 2 * math.sqrt(2) * 4 / 100 + confidence)

    def test_it_is_at_most_1(self) -> None:
        assert log_range(NET_A.tight(), 0.01) == 0

    def test_a_class_of_one_function_costs_nothing(self) -> None:
        nothing = replace(NET_A, norm_v=0.0).tight()
        for each in (massart, dudley):
            assert each(nothing, gamma=0.5, m=100).value == 0
        for name, bound in BOUNDS.items():
            if bound.risk == "ramp" and bound.guarantee and name != "thm2":
                subject = about(replace(NET_A, norm_v=0.0))
                expected = 0.25 + population_confidence(10**4, math.log(20))
                assert bound.value(subject, gamma=0.5, risk=0.25, m=10**4) == pytest.approx(expected)


class TestTheComplexityItself:
    def test_a_class_that_can_be_searched_is_below_every_bound(self) -> None:
        """A coarse grid of weights: a lower bound on the complexity, in the mean over signs."""
        net = ElmanConstants(
            inputs=1, hidden=1, classes=2, steps=5, norm_u=1.0, norm_w=1.0, norm_v=1.0, input_bound=1.0
        )
        m, gamma, draw = 200, 0.5, np.random.default_rng(0)
        inputs, labels = draw.uniform(-1, 1, (5, m)), draw.integers(0, 2, m)
        grid = np.linspace(-1, 1, 7)
        U, W = (each.reshape(-1, 1) for each in np.meshgrid(grid, grid))
        h = np.zeros((len(U), m))
        for x in inputs:
            h = np.tanh(U * h + W * x)
        angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        gaps = math.sqrt(2) * np.cos(angles)  # V = (cos, sin): only the difference of its entries matters
        losses = np.clip(1 - np.outer(gaps, h).reshape(-1, m) * np.where(labels == 0, 1, -1) / gamma, 0, 1)
        signs = draw.choice([-1.0, 1.0], (m, 60))
        complexity = float((losses @ signs / m).max(0).mean())
        profile, paper = net.tight(), net.paper()
        bounds = [
            massart(profile, gamma=gamma, m=m).value,
            dudley(profile, gamma=gamma, m=m).value,
            theorem_2(paper, gamma=gamma, m=m, log_product=net.log_printed_product()).value,
        ]
        assert 0.03 < complexity < 0.06
        assert [each / 2 for each in bounds] == pytest.approx([0.559, 3.627, 23.6], rel=2e-3)
        assert all(2 * complexity < each for each in bounds)


class TestParts:
    def test_many_scales_at_once_are_as_one_by_one(self) -> None:
        still = Block(name="still", rows=3, columns=3, bound=1.0, log_lipschitz=-math.inf)
        zero = Block(name="zero", rows=2, columns=5, bound=0.0, log_lipschitz=1.0)
        filters = Block(name="filters", rows=3, columns=1, bound=0.3, log_lipschitz=2.0, free=3, stretch=math.sqrt(3))
        profile = replace(NET_A.tight(), blocks=(*NET_A.tight().blocks, still, zero, filters))
        one_by_one = [profile.cover_nats(float(scale)) for scale in SCALES[::25]]
        assert cover_nats_at(profile, SCALES[::25]).tolist() == pytest.approx(one_by_one, rel=1e-13)
        assert 0 in cover_nats_at(profile, SCALES + 30)

    def test_blocks_that_move_nothing_cost_nothing(self) -> None:
        still = Block(name="still", rows=3, columns=3, bound=1.0, log_lipschitz=-math.inf)
        shares = tuple(math.exp(each) for each in NET_A.tight().log_shares)
        plain = replace(NET_A.tight(), shares=shares)
        more = replace(plain, blocks=(*plain.blocks, still), shares=(*shares, 1.0))
        for each in (massart, dudley):
            assert each(more, gamma=0.5, m=100).log_value == each(plain, gamma=0.5, m=100).log_value

    def test_a_logarithm_below_0_leaves_the_first_term(self) -> None:
        tiny = Block(name="V", rows=2, columns=2, bound=1e-9, log_lipschitz=math.log(1e-9))
        profile = Profile(
            architecture="tiny", blocks=(tiny,), steps=1, log_hidden=-40.0, log_output=-40.0, log_growth=0.0
        )
        assert theorem_2(profile, gamma=0.5, m=100).value == pytest.approx(2 * 4 / 50)

    def test_confidence(self) -> None:
        assert sample_confidence(50, math.log(20)) == pytest.approx(3 * math.sqrt(math.log(40) / 100))
        assert population_confidence(50, math.log(20)) == pytest.approx(math.sqrt(math.log(20) / 100))

    def test_an_unknown_bound_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="one of kl_occam"):
            bound_named("theorem")

    def test_what_no_float_holds(self) -> None:
        assert exp_or_infinity(709.5) == math.inf
        assert exp_or_infinity(709.0) < math.inf
