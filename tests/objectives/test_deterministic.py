"""Noisin without noise."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from statewise import LSTM, Noise
from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.heads import Categorical, Gaussian, Readout
from statewise.objectives import Covariance, deterministic_loss, exact_excess, second_order, sensitivity
from support import tolerance

DOUBLE = torch.float64
NOISE = Noise("gaussian", 0.5, placement="last")


def make() -> tuple[nn.Linear, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    states = torch.randn(5, 2, 3, dtype=DOUBLE, generator=generator)
    return nn.Linear(3, 4, dtype=DOUBLE), states, torch.randint(4, (5, 2), generator=generator)


def test_it_is_the_mean_loss_plus_the_mean_penalty() -> None:
    head, states, words = make()
    readout = Readout.of(head, Categorical())
    found = deterministic_loss(readout, states, words, NOISE, strength=0.3)
    risk = nn.functional.cross_entropy(head(states).flatten(0, 1), words.flatten())
    penalty = second_order(readout, states, NOISE) / 10
    torch.testing.assert_close(found.risk, risk, **tolerance(DOUBLE))
    torch.testing.assert_close(found.penalty, penalty, **tolerance(DOUBLE))
    torch.testing.assert_close(found.loss, risk + 0.3 * penalty, **tolerance(DOUBLE))


def test_the_sensitivity_of_each_unit_is_logged_without_gradient() -> None:
    head, states, words = make()
    readout = Readout.of(head, Categorical())
    found = deterministic_loss(readout, states, words, NOISE)
    torch.testing.assert_close(found.sensitivity, sensitivity(readout, states).mean((0, 1)).detach())
    assert not found.sensitivity.requires_grad
    torch.testing.assert_close(0.25 / 2 * found.sensitivity.sum(), found.penalty.detach())


@pytest.mark.usefixtures("as_users_have_it")
def test_it_trains_a_network_to_a_smaller_penalty_than_the_plain_loss_does() -> None:
    found = {}
    for strength in (0.0, 5.0):
        torch.manual_seed(0)
        layer, head = LSTM(3, 6), nn.Linear(6, 4)
        x, words = torch.randn(6, 8, 3), torch.randint(4, (6, 8))
        optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.05)
        for _ in range(20):
            optimizer.zero_grad()
            result = deterministic_loss(Readout.of(head, Categorical()), layer(x)[0], words, NOISE, strength=strength)
            result.loss.backward()
            optimizer.step()
        found[strength] = result
    assert found[5.0].penalty < 0.5 * found[0.0].penalty
    assert found[5.0].risk < math.log(4)


def test_under_a_gaussian_likelihood_it_is_the_expected_loss_itself() -> None:
    head, states, _ = make()
    readout, observed = Readout.of(head, Gaussian(0.5)), torch.zeros(5, 2, 4, dtype=DOUBLE)
    found = deterministic_loss(readout, states, observed, NOISE)
    excess = exact_excess(readout, states, NOISE).values.mean()
    torch.testing.assert_close(found.loss.detach(), found.risk.detach() + excess, **tolerance(DOUBLE))


def test_correlated_noise_can_be_stood_in_for() -> None:
    head, states, words = make()
    readout, covariance = Readout.of(head, Categorical()), Covariance(torch.eye(3, dtype=DOUBLE) * 0.25 + 0.1)
    found = deterministic_loss(readout, states, words, covariance)
    torch.testing.assert_close(found.penalty, second_order(readout, states, covariance, reduction="mean"))


def test_what_does_not_fit_is_refused() -> None:
    head, states, words = make()
    readout = Readout.of(head, Categorical())
    with pytest.raises(ArgumentError, match="strength"):
        deterministic_loss(readout, states, words, NOISE, strength=-1.0)
    with pytest.raises(LengthError, match="at least one row"):
        deterministic_loss(readout, states[:0], words[:0], NOISE)
    with pytest.raises(ShapeError, match="observed"):
        deterministic_loss(readout, states, words[:3], NOISE)
    with pytest.raises(ArgumentError, match="not fed back"):
        deterministic_loss(readout, states, words, Noise("gaussian", 0.5, placement="recurrent"))
