"""The theory of sequence mixup as it holds; each test says which printed statement of the paper it replaces.

Karamzade et al. 2020, section 3.2: Theorem 1 (over-regularisation), Theorem 2 (memory), Theorem 3 (spectral
compression), and "zero training error".
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import few_examples, seeds
from statewise import RNN
from statewise.mixup import (
    MarkovBeta,
    PreOutputMixup,
    affine_floor,
    affine_residual,
    irreducible_ce,
    mixup_floor,
    unlike_share,
)
from statewise.mixup.quadrature import symmetric_nodes
from support import fill

DOUBLE = torch.float64


class TestZeroTrainingErrorIsOutOfReach:
    """Replaces "the training error reaches 0" for cross-entropy: mixed labels have an entropy."""

    @pytest.mark.parametrize(
        ("alpha", "value"),
        [(1.0, 0.5), (0.5, 2 * math.log(2) - 1), (2.0, 7 / 12), (0.1, 0.13472), (0.2, 0.22766), (0.7, 0.44435)],
    )
    def test_the_entropy_of_two_unlike_labels(self, alpha: float, value: float, generator: torch.Generator) -> None:
        assert irreducible_ce(alpha) == pytest.approx(value, abs=5.1e-6)
        drawn = MarkovBeta(alpha).sample(200_000, 1, generator=generator)
        entropy = -torch.xlogy(drawn, drawn) - torch.xlogy(1 - drawn, 1 - drawn)
        assert float(entropy.mean()) == pytest.approx(value, abs=0.003)

    def test_its_limits(self) -> None:
        assert irreducible_ce(math.inf) == math.log(2)
        assert irreducible_ce(0.0) == 0
        assert irreducible_ce(1e9) == pytest.approx(math.log(2), rel=1e-8)
        assert irreducible_ce(1.0, [0.83, 0.17]) == pytest.approx(0.5 * unlike_share([0.83, 0.17]))


class TestTheFloorOfASoftmax:
    """Replaces zero error for what the experiments use, linear logits and cross-entropy.

    The states of a class collapse, and confidence in an unmixed token is capped.
    """

    @pytest.mark.parametrize(
        ("alpha", "classes", "gap", "pure", "floor"),
        [
            (1.0, 2, 3.54228, 0.97187, 0.273899),
            (1.0, 3, 4.14654, 0.96933, 0.396554),
            (1.0, 5, 4.90397, 0.97119, 0.522195),
            (1.0, 17, 6.69697, 0.98063, 0.744386),
            (0.5, 2, 3.72118, 0.97637, 0.215848),
            (0.5, 17, 6.60698, 0.97884, 0.583911),
            (0.1, 17, 7.12632, 0.98730, 0.214029),
        ],
    )
    def test_the_printed_values(self, alpha: float, classes: int, gap: float, pure: float, floor: float) -> None:
        found = mixup_floor(alpha, classes)
        assert (found.value, found.gap, found.p_pure) == pytest.approx((floor, gap, pure), abs=5.1e-6)
        assert found.irreducible < found.value

    def test_unlike_pairs_alone(self) -> None:
        """A logit of slope 5.199364 in lambda: twice the gap."""
        found = mixup_floor(1.0, 2, unlike_only=True)
        assert (2 * found.gap, found.value) == pytest.approx((5.199364, 0.504947), abs=5.1e-7)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_free_logits_find_the_same(self, classes: int) -> None:
        """Frequencies that differ in the tenth digit take the way of unbalanced classes."""
        free = torch.full((classes,), 1 / classes, dtype=DOUBLE)
        free[0] += 1e-9
        assert mixup_floor(1.0, free).value == pytest.approx(mixup_floor(1.0, classes).value, abs=1e-8)

    @few_examples
    @given(seed=seeds, alpha=st.sampled_from([0.2, 1.0, 3.0]))
    def test_no_logits_of_any_network_are_below_it(self, seed: int, alpha: float) -> None:
        """States of a class need not be one point, and classes need not be balanced."""
        draw = np.random.default_rng(seed)
        frequencies = draw.dirichlet(np.full(3, 3.0))
        labels = draw.choice(3, 60, p=frequencies)
        if len(set(labels.tolist())) < 3:
            return
        counts = torch.bincount(torch.from_numpy(labels)).to(DOUBLE)
        floor = mixup_floor(alpha, counts)
        noise = torch.from_numpy(draw.normal(size=(60, 3)))
        states = floor.logits[torch.from_numpy(labels)]
        exact = expected_loss(states, torch.from_numpy(labels), alpha)
        assert exact == pytest.approx(floor.value, abs=1e-8)
        assert expected_loss(states + 0.1 * noise, torch.from_numpy(labels), alpha) > floor.value
        assert floor.excess(exact + 0.25) == pytest.approx(0.25)
        assert floor.irreducible < floor.value


class TestTheorem1:
    """Replaces "if H < C - 1 the error cannot approach 0": this needs an affine output map, and has a floor then."""

    @pytest.mark.parametrize(("alpha", "classes", "width"), [(1.0, 4, 2), (0.5, 5, 2), (2.0, 4, 1), (1.0, 3, 2)])
    def test_the_affine_floor_is_the_least_squared_error(self, alpha: float, classes: int, width: int) -> None:
        """Points of the classes and an affine map, found by descent, come down to it and no further."""
        lam, weight = symmetric_nodes(alpha, 4)  # exact: the error is a polynomial in lambda
        generator = torch.Generator().manual_seed(3)
        points, matrix = (
            torch.randn(*shape, generator=generator, dtype=DOUBLE).requires_grad_()
            for shape in ((classes, width), (width, classes))
        )
        bias = torch.zeros(classes, dtype=DOUBLE, requires_grad=True)
        solver = torch.optim.LBFGS([points, matrix, bias], max_iter=400, line_search_fn="strong_wolfe")

        def error() -> Tensor:
            off = points @ matrix + bias - torch.eye(classes, dtype=DOUBLE)
            mixed = lam.reshape(-1, 1, 1, 1) * off.unsqueeze(1) + (1 - lam.reshape(-1, 1, 1, 1)) * off
            return (weight.reshape(-1, 1, 1) * mixed.square().sum(3)).sum() / classes**2

        def closure() -> Tensor:
            solver.zero_grad()
            value = error()
            value.backward()
            return value

        solver.step(closure)
        assert float(error().detach()) == pytest.approx(affine_floor(alpha, classes, width), abs=1e-6)

    def test_the_printed_value(self) -> None:
        assert affine_floor(1.0, 4, 2) == pytest.approx(1 / 6)
        assert affine_floor(1.0, 5, 3) == pytest.approx(0.1333, abs=5e-5)
        assert affine_floor(1.0, 4, 3) == affine_floor(1.0, 4, 9) == 0

    def test_a_curved_output_map_reaches_0_with_fewer_units(self) -> None:
        """Four classes at a triangle and its centre: each segment is an edge of a map that is linear piece by piece."""
        corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1 / 3, 1 / 3]], dtype=DOUBLE)
        worst = 0.0
        for one, other in itertools.product(range(4), repeat=2):
            for share in torch.linspace(0, 1, 11, dtype=DOUBLE):
                found = barycentric(share * corners[one] + (1 - share) * corners[other])
                wanted = torch.zeros(4, dtype=DOUBLE)
                wanted[one] += share
                wanted[other] += 1 - share
                worst = max(worst, float((found - wanted).square().sum()))
        assert worst < 1e-20
        assert affine_floor(1.0, 4, 2) > 0.16

    def test_that_map_is_not_affine_on_the_convex_hull(self) -> None:
        """Replaces "g is affine on the hull of all states": segments between states of one step bind it, no more."""
        one, other = torch.tensor([0.1, 0.1], dtype=DOUBLE), torch.tensor([0.5, 0.5], dtype=DOUBLE)
        middle = barycentric((one + other) / 2)
        assert (middle - (barycentric(one) + barycentric(other)) / 2).abs().max() > 0.1


class TestTheorems2And3:
    """Replace "no memory below H = 2C - 1" and "mutually orthogonal subspaces whose dimensions add up to H - C + 1".

    The task y_t = x_{t-1} on bits, H = C = 2: the state (x_{t-1}, x_t) of a linear network, g(h) = (h_1, 1 - h_1).
    """

    def test_a_bit_is_remembered_at_zero_error_though_h_is_below_2c_minus_1(self, generator: torch.Generator) -> None:
        layer = delay()
        bits = torch.randint(2, (9, 16), generator=generator)
        mix = PreOutputMixup(alpha=1.0, rho=0.5)
        states, pairs = mix(layer, bits.to(DOUBLE).unsqueeze(2), generator=generator)
        outputs = torch.stack((states[..., 0], 1 - states[..., 0]), 2)
        before = torch.cat((torch.zeros_like(bits[:1]), bits[:-1]))
        targets = torch.stack((before, 1 - before), 2).to(DOUBLE)
        assert float(pairs.squared_error(outputs, targets).detach()) < 1e-28
        assert affine_floor(1.0, 2, 2) == 0

    def test_the_state_is_no_function_of_the_input_and_the_last_label(self, generator: torch.Generator) -> None:
        bits = torch.randint(2, (200,), generator=generator)
        states = delay()(bits.to(DOUBLE).reshape(-1, 1, 1))[0][:, 0].round().long()
        seen: dict[tuple[int, int], set[tuple[int, ...]]] = {}
        for time in range(2, 200):
            key = int(bits[time]), int(bits[time - 2])  # x_t and y_{t-1}
            seen.setdefault(key, set()).add(tuple(states[time].tolist()))
        assert [len(found) for found in seen.values()] == [2, 2, 2, 2]

    def test_classes_lie_in_parallel_sets_across_the_output_weights(self) -> None:
        """Each of rank 1, so that the sum is 2 and not H - C + 1 = 1; differences are orthogonal to W's columns."""
        states = torch.tensor(list(itertools.product((0.0, 1.0), repeat=2)), dtype=DOUBLE)  # (x_{t-1}, x_t)
        weights = torch.tensor([[1.0, -1.0], [0.0, 0.0]], dtype=DOUBLE)
        directions = []
        for label in (0.0, 1.0):
            rows = states[states[:, 0] == label]
            centred = rows - rows.mean(0)
            assert int(torch.linalg.matrix_rank(centred)) == 1
            assert (centred @ weights).abs().max() == 0
            directions.append(torch.linalg.svd(centred)[2][0])
        assert float((directions[0] * directions[1]).sum().abs()) == pytest.approx(1)

    @few_examples
    @given(seed=seeds, classes=st.integers(2, 5), more=st.integers(0, 3))
    def test_with_an_affine_map_a_class_lies_in_a_translate_of_one_kernel(
        self, seed: int, classes: int, more: int
    ) -> None:
        """At H = C - 1 every class is one point and the state holds the label only; from H = C on there is room."""
        generator = torch.Generator().manual_seed(seed)
        width = classes - 1 + more
        centred = torch.eye(classes, dtype=DOUBLE) - 1 / classes
        basis = torch.linalg.qr(centred[:, : classes - 1])[0]  # the right side of W^T h = e_i - b, in its own space
        inner = torch.randn(width, classes - 1, generator=generator, dtype=DOUBLE)
        weights = inner @ basis.T
        kernel = width - int(torch.linalg.matrix_rank(weights))
        assert kernel == more == width - classes + 1
        labels = torch.arange(classes).repeat(6)
        right = centred[labels]
        solved = torch.linalg.lstsq(weights.T, right.T).solution.T
        free = torch.linalg.svd(weights.T)[2][classes - 1 :]
        states = solved + torch.randn(len(labels), more, generator=generator, dtype=DOUBLE) @ free
        torch.testing.assert_close(states @ weights, right, rtol=1e-8, atol=1e-8)
        for label in range(classes):
            rows = states[labels == label]
            inside = rows - rows.mean(0)
            assert (inside @ weights).abs().max() < 1e-8
            assert int(torch.linalg.matrix_rank(inside, atol=1e-8)) == more

    def test_a_network_that_is_affine_between_states_has_no_residual(self, generator: torch.Generator) -> None:
        one, other = torch.randn(2, 5, 3, generator=generator, dtype=DOUBLE)
        flat = torch.randn(3, 2, generator=generator, dtype=DOUBLE)
        bent = affine_residual(lambda h: h @ flat, one, other)
        straight = affine_residual(lambda h: torch.stack((h[:, 0].sigmoid(), 1 - h[:, 0].sigmoid()), 1).log(), one, one)
        assert (bent > 1e-4).all()
        assert straight.abs().max() < 1e-12


def delay() -> RNN:
    """A linear network whose state is the last two bits."""
    layer = RNN(1, 2, nonlinearity="identity", bias=False, dtype=DOUBLE)
    fill(layer, weight_ih_l0=torch.tensor([[0.0], [1.0]]), weight_hh_l0=torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    return layer


def barycentric(point: Tensor) -> Tensor:
    """The map that is linear on the three triangles around the centre of (0, 0), (1, 0), (0, 1)."""
    weights = torch.stack((1 - point.sum(), point[0], point[1]))
    least = weights.min()
    return torch.cat((weights - least, (3 * least).reshape(1)))


def expected_loss(states: Tensor, labels: Tensor, alpha: float) -> float:
    """The cross-entropy of all pairs of rows of logits, averaged over lambda."""
    lam, weight = symmetric_nodes(alpha, 64)
    total = 0.0
    for share, mass in zip(lam.tolist(), weight.tolist(), strict=True):
        chances = (share * states.unsqueeze(1) + (1 - share) * states).log_softmax(2)
        first = chances.gather(2, labels.reshape(-1, 1, 1).expand(-1, len(labels), 1))
        second = chances.gather(2, labels.reshape(1, -1, 1).expand(len(labels), -1, 1))
        total -= mass * float((share * first + (1 - share) * second).mean())
    return total
