"""Bounds from noise that the weights can bear."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contracts.bounds import NET_A, BoundContract
from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.logs import Floats
from statewise.bounds.pac_bayes import (
    log_deviation,
    log_perturbation,
    log_tolerance,
    pac_bayes,
    zhang,
    zhang_order,
)
from statewise.errors import ArgumentError

LN20 = math.log(20)


class TestPacBayes(BoundContract):
    name = "pac_bayes"
    scale_free = False


class TestZhang(BoundContract):
    name = "zhang"
    scale_free = False


class TestZhangOrder(BoundContract):
    name = "zhang_order"
    scale_free = True

    def test_longer_inputs_never_help(self) -> None:
        """It knows nothing of them."""
        assert self.log_penalty(replace(NET_A, input_bound=3.0)) == self.log_penalty()

    def test_below_1_it_grows_with_the_square_of_the_steps(self) -> None:
        values = [self.log_penalty(replace(NET_A, norm_u=0.5, steps=each)) for each in (1, 2, 4)]
        assert [one - values[0] for one in values] == pytest.approx([0, 2 * math.log(2), 4 * math.log(2)])


def _norm_ball(draw: np.random.Generator, shape: tuple[int, int], bound: float) -> Floats:
    kind = draw.integers(3)
    matrix = draw.normal(size=shape)
    if kind == 1:
        matrix = np.outer(draw.normal(size=shape[0]), draw.normal(size=shape[1]))
    elif kind == 2:
        matrix = np.abs(np.eye(*shape)) + 0.1 * np.abs(matrix)
    result: Floats = matrix * bound / np.linalg.norm(matrix, 2)
    return result


class TestTheNoise:
    @pytest.mark.parametrize("activation", ["tanh", "identity"])
    def test_no_perturbation_moves_logits_farther(self, activation: str) -> None:
        """300 networks, some with biases and starts; the worst is near the bound, so it is not idle."""
        draw, worst = np.random.default_rng(3), 0.0
        act = np.tanh if activation == "tanh" else np.asarray
        for _ in range(300):
            u, v, w, size, start = draw.uniform(0.1, 1.6, 5)
            net = ElmanConstants(
                inputs=2,
                hidden=3,
                classes=2,
                steps=int(draw.integers(1, 9)),
                norm_u=u,
                norm_w=w,
                norm_v=v,
                input_bound=1.0,
                cap=1.0 if activation == "tanh" else math.inf,
                start_norm=start if draw.random() < 0.5 else 0.0,
                head_bias=bool(draw.integers(2)),
            )
            norms = {"U": u, "V": v, "W": w}
            one = {name: _norm_ball(draw, shape, norms[name]) for name, shape in net.shapes.items()}
            # Noise along the weights moves the most.
            along = draw.random() < 0.5
            other = {
                name: matrix + (matrix * size / norms[name] if along else _norm_ball(draw, matrix.shape, size))
                for name, matrix in one.items()
            }
            x = draw.normal(size=2)
            inputs = np.stack([x] * net.steps) / np.linalg.norm(x)
            moved = np.linalg.norm(_logits(one, inputs, net, act) - _logits(other, inputs, net, act))
            worst = max(worst, float(moved) / math.exp(log_perturbation(net, math.log(size))))
        assert 0.6 < worst <= 1 + 1e-12

    def test_the_tolerance_is_the_largest_that_moves_logits_by_a_quarter_margin(self) -> None:
        for net in (NET_A, replace(NET_A, norm_u=1.5, cap=math.inf), replace(NET_A, norm_v=0.0, norm_w=0.0)):
            found = log_tolerance(net, 0.5)
            assert log_perturbation(net, found) == pytest.approx(math.log(0.125), abs=1e-9)
            assert log_perturbation(net, found) <= math.log(0.125)
            assert log_perturbation(net, found + 1e-9) > math.log(0.125)

    def test_noise_stays_in_the_tolerance_half_of_the_time(self) -> None:
        draw, net = np.random.default_rng(0), replace(NET_A, inputs=6, hidden=9, classes=3)
        deviation, tolerance = math.exp(log_deviation(net, 0.5)), math.exp(log_tolerance(net, 0.5))
        inside = [
            all(np.linalg.norm(draw.normal(size=shape), 2) * deviation <= tolerance for shape in net.shapes.values())
            for _ in range(200)
        ]
        assert sum(inside) > 150

    def test_the_larger_of_two_deviations_is_taken(self) -> None:
        """The sharper tail is for wide networks, the paper's for narrow ones."""
        narrow, wide = NET_A, replace(NET_A, hidden=100)
        ratio = [math.exp(log_tolerance(net, 0.5) - log_deviation(net, 0.5)) for net in (narrow, wide)]
        assert ratio[0] == pytest.approx(math.sqrt(8 * math.log(48)))
        assert ratio[1] == pytest.approx(20 + math.sqrt(2 * math.log(6)))


class TestTheBound:
    def test_weights_of_zero_leave_the_luck(self) -> None:
        found = pac_bayes(NET_A, 0.0, gamma=0.5, m=101, log_failures=LN20)
        assert found.value == pytest.approx(4 * math.sqrt(math.log(6 * 101 * 20) / 100))
        assert found.nats == 0

    def test_bounded_states_help(self) -> None:
        given: dict[str, Any] = {"gamma": 0.5, "m": 10**6, "log_failures": LN20}
        for growth in (0.5, 1.0, 1.5):
            net = replace(NET_A, norm_u=growth, steps=20)
            assert pac_bayes(net, 6.0, **given).value < zhang(net, 6.0, **given).value
            assert pac_bayes(replace(net, cap=math.inf), 6.0, **given) == zhang(net, 6.0, **given)

    def test_the_stand_in_grows_like_the_square_of_the_steps(self) -> None:
        one, other = (
            zhang(replace(NET_A, steps=each), 6.0, gamma=0.5, m=10**6, log_failures=LN20).log_value
            for each in (2000, 4000)
        )
        assert (other - one) / math.log(2) == pytest.approx(2, abs=0.01)

    def test_an_order_is_no_guarantee(self) -> None:
        order = zhang_order(NET_A, gamma=0.5, m=10**6)
        assert not order.guarantee
        assert math.exp(order.log_value) == pytest.approx(math.sqrt(32) * 100 * 2 / 500)

    @pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
    def test_a_norm_that_is_none(self, wrong: float) -> None:
        with pytest.raises(ArgumentError, match="squared_norm"):
            pac_bayes(NET_A, wrong, gamma=0.5, m=100, log_failures=LN20)


def _logits(matrices: dict[str, Floats], inputs: Floats, net: ElmanConstants, act: object) -> Floats:
    assert callable(act)
    h = np.full(net.hidden, net.start_norm / math.sqrt(net.hidden))
    for x in inputs:
        h = act(matrices["U"] @ h + matrices["W"] @ x)
    read = np.append(h, 1.0) if net.head_bias else h
    result: Floats = matrices["V"] @ read
    return result
