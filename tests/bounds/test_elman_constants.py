"""The class of Elman networks that the paper is about."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contracts.bounds import NET_A
from statewise.bounds.elman_constants import ElmanConstants, log_geometric_up_to, log_powers
from statewise.bounds.logs import Floats, log_geometric, log_geometric_derivative
from statewise.errors import ArgumentError

ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0),
    "identity": np.asarray,
}


def in_ball(draw: np.random.Generator, shape: tuple[int, ...], bound: float) -> Floats:
    """A matrix of that norm: Gaussian, of rank 1, or near the identity."""
    kind = draw.integers(3)
    matrix = draw.normal(size=shape)
    if kind == 1:
        matrix = np.outer(draw.normal(size=shape[0]), draw.normal(size=shape[1]))
    elif kind == 2:
        matrix = np.eye(shape[0], shape[1]) + 0.05 * np.abs(matrix)
    result: Floats = matrix * bound / np.linalg.norm(matrix, 2)
    return result


def run(net: ElmanConstants, matrices: dict[str, Floats], inputs: Floats, activation: str) -> tuple[Floats, Floats]:
    """The last state and the logits."""
    h = np.full(net.hidden, net.start_norm / math.sqrt(net.hidden))
    for x in inputs:
        h = ACTIVATIONS[activation](matrices["U"] @ h + matrices["W"] @ x)
    return h, matrices["V"] @ (np.append(h, 1.0) if net.head_bias else h)


class TestAgainstNetworks:
    @pytest.mark.parametrize("activation", list(ACTIVATIONS))
    def test_no_two_members_are_farther_apart(self, activation: str) -> None:
        """‖y - y'‖ <= Σ L_k ‖A_k - A'_k‖, tight and as in the paper, with biases of the head and starts."""
        draw, worst = np.random.default_rng(0), {"state": 0.0, "tight": 0.0, "paper": 0.0}
        for _ in range(150):
            norms = dict(zip("UVW", draw.uniform(0.1, 1.8, 3), strict=True))
            net = ElmanConstants(
                inputs=2,
                hidden=3,
                classes=2,
                steps=int(draw.integers(1, 12)),
                norm_u=norms["U"],
                norm_w=norms["W"],
                norm_v=norms["V"],
                input_bound=1.0,
                cap=1.0 if activation == "tanh" else math.inf,
                start_norm=float(draw.choice([0.0, 0.0, 0.8])),
                head_bias=bool(draw.integers(2)),
            )
            one = {name: in_ball(draw, shape, norms[name]) for name, shape in net.shapes.items()}
            share = draw.choice([0.5, 1e-4])
            other = {k: (1 - share) * a + share * in_ball(draw, a.shape, norms[k]) for k, a in one.items()}
            only = str(draw.choice(["U", "V", "W", "UVW"]))
            other = {name: other[name] if name in only else one[name] for name in one}
            x = (
                draw.normal(size=(net.steps, 2))
                if draw.random() < 0.5
                else np.tile(draw.normal(size=2), (net.steps, 1))
            )
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            (h, y), (_, z) = run(net, one, x, activation), run(net, other, x, activation)
            worst["state"] = max(worst["state"], float(np.linalg.norm(h)) / math.exp(net.tight().log_hidden))
            assert np.linalg.norm(y) <= math.exp(net.tight().log_output) * (1 + 1e-12)
            for form, profile in (("tight", net.tight()), ("paper", net.paper())):
                allowed = sum(
                    math.exp(block.log_lipschitz) * float(np.linalg.norm(one[block.name] - other[block.name], 2))
                    for block in profile.blocks
                )
                worst[form] = max(worst[form], float(np.linalg.norm(y - z)) / (allowed + 1e-13))
        assert worst["state"] <= 1 + 1e-12
        assert 0.5 < worst["paper"] <= worst["tight"] <= 1 + 1e-9

    def test_states_of_linear_networks_are_as_long_as_said(self) -> None:
        net = replace(NET_A, cap=math.inf, norm_u=1.3, norm_w=0.7, start_norm=0.4, hidden=2, inputs=2)
        aligned = {"U": 1.3 * np.eye(2), "W": 0.7 * np.eye(2), "V": 2.0 * np.eye(2)}
        inputs = np.full((net.steps, 2), 1 / math.sqrt(2))
        h, y = run(net, aligned, inputs, "identity")
        assert np.linalg.norm(h) == pytest.approx(math.exp(net.tight().log_hidden), rel=1e-12)
        assert np.linalg.norm(y) == pytest.approx(math.exp(net.tight().log_output), rel=1e-12)


class TestForms:
    @pytest.mark.parametrize("growth", [0.0, 0.5, 1.0, 1 + 1e-9, 1.5])
    def test_tight_is_the_derivative_where_nothing_is_capped(self, growth: float) -> None:
        net = replace(NET_A, norm_u=growth, cap=math.inf, norm_w=0.6, rho_h=0.9, rho_y=1.1, input_bound=1.4)
        log_beta = net.log_growth
        expected = math.log(1.1 * 0.81 * 2 * 0.6 * 1.4) + log_geometric_derivative(log_beta, 10)
        assert net.tight().blocks[0].log_lipschitz == pytest.approx(expected, rel=1e-12)

    def test_tight_is_never_above_the_paper(self) -> None:
        for growth in (0.0, 0.5, 1.0, 1.5):
            for steps in (1, 2, 9):
                for start, bias in ((0.0, False), (0.7, True)):
                    net = replace(NET_A, norm_u=growth, steps=steps, start_norm=start, head_bias=bias)
                    both = zip(net.tight().blocks, net.paper().blocks, strict=True)
                    assert all(one.log_lipschitz <= other.log_lipschitz + 1e-12 for one, other in both)

    def test_sizes(self) -> None:
        assert replace(NET_A, head_bias=True).shapes == {"U": (4, 4), "V": (2, 5), "W": (4, 2)}
        assert (NET_A.parameters, replace(NET_A, head_bias=True).parameters) == (32, 34)
        assert NET_A.tight().parameters == 32

    def test_a_head_with_a_bias_reads_a_1(self) -> None:
        net = replace(NET_A, head_bias=True)
        assert math.exp(net.tight().log_output) == pytest.approx(2 * math.sqrt(2.0**2 + 1))
        assert math.exp(net.tight().blocks[1].log_lipschitz) == pytest.approx(math.sqrt(5))

    @pytest.mark.parametrize("beta", [0.0, 0.3, 1 - 1e-12, 1.0, 1 + 1e-12, 2.5])
    def test_sums_up_to_each_step(self, beta: float) -> None:
        log_beta = -math.inf if beta == 0 else math.log(beta)
        assert log_geometric_up_to(log_beta, 400).tolist() == pytest.approx(
            [log_geometric(log_beta, each) for each in range(401)], rel=1e-13
        )
        assert log_powers(log_beta, 3)[0] == 0

    def test_time_is_linear_in_the_steps(self) -> None:
        assert math.isfinite(replace(NET_A, norm_u=3.0, steps=1_000_000).tight().blocks[0].log_lipschitz)


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": 0},
        {"hidden": 0},
        {"classes": 1},
        {"steps": 0},
        {"norm_u": -1.0},
        {"norm_w": math.inf},
        {"norm_v": math.nan},
        {"input_bound": 0.0},
        {"cap": 0.0},
        {"rho_h": 0.0},
        {"rho_y": math.inf},
        {"start_norm": -1.0},
    ],
)
def test_constants_that_are_none_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=f"ElmanConstants.{next(iter(wrong))}"):
        replace(NET_A, **wrong)
