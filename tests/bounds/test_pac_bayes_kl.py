"""The randomised network draws what it says, its KL is right, and the certificate holds on laws with a known error."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

import statewise
from statewise.bounds.grid import nats
from statewise.bounds.kl import kl_inverse
from statewise.bounds.pac_bayes_kl import certify_gibbs, gibbs_bound, mean_bound, quadratic_objective
from statewise.bounds.randomised import RandomisedNetwork
from statewise.errors import ArgumentError, AssumptionError


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Classifier(nn.Module):
    """Logits of the last state."""

    def __init__(self, core: nn.Module) -> None:
        super().__init__()
        self.core, self.out = core, nn.Linear(4, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.core(inputs)[0]
        logits: torch.Tensor = self.out(states[:, -1])
        return logits


CORES = [nn.RNN, nn.GRU, nn.LSTM, statewise.RNN, statewise.GRU, statewise.LSTM]


@pytest.mark.parametrize("core", CORES, ids=lambda core: f"{core.__module__.split('.')[0]}-{core.__name__}")
def test_a_call_computes_with_the_drawn_weights(core: type[nn.Module]) -> None:
    """Some layers keep a list of their weights of their own; it must not be the old one that is used."""
    network = RandomisedNetwork(Classifier(core(3, 4, batch_first=True)), deviation=0.5)
    inputs = torch.randn(5, 6, 3, generator=seeded(1))
    answer = network(inputs, generator=seeded(7))
    fresh = Classifier(core(3, 4, batch_first=True))
    fresh.load_state_dict(network.draw(generator=seeded(7)))
    torch.testing.assert_close(answer, fresh(inputs))
    assert (network(inputs, generator=seeded(8)) - answer).abs().max() > 1e-3


@pytest.mark.parametrize("core", CORES, ids=lambda core: f"{core.__module__.split('.')[0]}-{core.__name__}")
def test_gradients_reach_means_and_deviations(core: type[nn.Module]) -> None:
    network = RandomisedNetwork(Classifier(core(3, 4, batch_first=True)))
    network(torch.randn(5, 6, 3, generator=seeded(1)), generator=seeded()).square().sum().backward()
    for parameter in network.parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None
            assert parameter.grad.abs().sum() > 0


def test_the_network_that_was_given_stays_as_it_is() -> None:
    linear = nn.Linear(3, 2)
    RandomisedNetwork(linear)
    assert all(parameter.requires_grad for parameter in linear.parameters())


def test_the_divergence_is_that_of_torch() -> None:
    network = RandomisedNetwork(nn.Linear(5, 4), deviation=0.1)
    with torch.no_grad():
        for parameter in network.log_deviations:
            parameter.add_(torch.randn(parameter.shape, generator=seeded()))
    found, price = network.priced_divergence()
    expected, expected_price = 0.0, 0.0
    for mean, log in zip(network.means, network.log_deviations, strict=True):
        mean, deviation = mean.detach().double(), log.detach().double().exp()
        index = round(8 * math.log2(math.sqrt((mean**2 + deviation**2).mean())))
        expected += float(kl_divergence(Normal(mean, deviation), Normal(0.0, 2.0 ** (index / 8))).sum())
        expected_price += nats(index)
    assert found == pytest.approx(expected, rel=1e-9)
    assert price == pytest.approx(expected_price, rel=1e-12)
    assert network.divergence().item() <= found
    assert network.divergence().item() == pytest.approx(found, rel=0.01)


def test_no_other_scale_of_the_prior_is_better() -> None:
    network = RandomisedNetwork(nn.Linear(5, 4, bias=False), deviation=0.1)
    mean, deviation = network.means[0].detach().double(), torch.tensor(0.1, dtype=torch.float64)
    others = [float(kl_divergence(Normal(mean, deviation), Normal(0.0, 2.0 ** (j / 8))).sum()) for j in range(-80, 40)]
    assert network.priced_divergence()[0] == pytest.approx(min(others), rel=1e-6)


def test_a_posterior_that_is_the_prior_costs_nothing_but_its_scales() -> None:
    linear = nn.Linear(6, 3)
    trained_elsewhere = {name: value.detach() for name, value in linear.named_parameters()}
    network = RandomisedNetwork(linear, centre=trained_elsewhere, deviation=2.0**-5)
    found, price = network.priced_divergence()
    assert found == pytest.approx(0, abs=1e-6)
    assert price == pytest.approx(2 * nats(-40), rel=1e-12)
    fixed = RandomisedNetwork(linear, centre="start", deviation=0.03, prior_deviation=0.03)
    assert fixed.priced_divergence() == pytest.approx((0, 0), abs=1e-6)
    wide = RandomisedNetwork(linear, centre="start", deviation=0.03, prior_deviation=0.3)
    assert wide.priced_divergence()[0] == pytest.approx(21 * (math.log(10) + 0.5 * (0.01 - 1)), rel=1e-6)


def test_the_bound_is_the_inverted_kl() -> None:
    expected = kl_inverse(0.02, (50 + math.log(2 * math.sqrt(30_000) / 0.04)) / 30_000)
    assert gibbs_bound(0.02, divergence=50.0, m=30_000, delta=0.04) == expected
    with pytest.raises(AssumptionError):
        gibbs_bound(0.02, divergence=50.0, m=7, delta=0.04)


@pytest.mark.parametrize(("rate", "spread"), [(0.02, 0.0), (0.3, 0.0), (0.1, 0.1)])
def test_the_mean_is_bounded_as_often_as_promised(rate: float, spread: float) -> None:
    generator = seeded(3)
    failures = 0
    for _ in range(400):
        values = (torch.rand(200, generator=generator) < rate).double()
        if spread:
            values = rate + spread * (2 * torch.rand(200, generator=generator, dtype=torch.float64) - 1)
        failures += mean_bound(values, delta=0.2) < rate
    assert failures <= 0.2 * 400
    assert mean_bound(torch.full((5000,), 0.1), delta=0.01) < kl_inverse(0.1, math.log(200) / 5000)


@pytest.mark.parametrize("loss", [0.0, 0.03, 0.4])
@pytest.mark.parametrize("divergence", [0.0, 100.0])
def test_the_smooth_objective_lies_above_the_bound(loss: float, divergence: float) -> None:
    value = quadratic_objective(torch.tensor(loss), torch.tensor(divergence), m=1000, delta=0.05)
    assert float(value) >= gibbs_bound(loss, divergence=divergence, m=1000, delta=0.05)


def linear_task(count: int, *, flip: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = seeded(seed)
    inputs = torch.randn(count, 4, generator=generator)
    labels = (inputs[:, 0] > 0) ^ (torch.rand(count, generator=generator) < flip)
    return inputs, labels.long()


def trained(inputs: torch.Tensor, labels: torch.Tensor, *, steps: int = 150) -> RandomisedNetwork:
    torch.manual_seed(0)
    network = RandomisedNetwork(nn.Linear(4, 2), deviation=0.1)
    adam = torch.optim.Adam(network.parameters(), lr=0.05)
    generator = seeded(5)
    for _ in range(steps):
        right = network(inputs, generator=generator).softmax(-1).gather(1, labels[:, None])
        adam.zero_grad()
        quadratic_objective((1 - right).mean(), network.divergence(), m=len(inputs)).backward()
        adam.step()
    return network


def test_a_trained_network_is_certified_and_the_certificate_is_true() -> None:
    inputs, labels = linear_task(2000, flip=0.05, seed=0)
    network = trained(inputs, labels)
    found = certify_gibbs(network, inputs, labels, generator=seeded(1), draws=2000, batch=20)
    fresh_inputs, fresh_labels = linear_task(20_000, flip=0.05, seed=1)
    fresh = certify_gibbs(network, fresh_inputs, fresh_labels, generator=seeded(2), draws=500, batch=100).observed
    assert fresh < found.bound < 0.2
    assert found.observed < found.empirical < found.bound
    assert not found.vacuous
    assert "randomised network" in str(found)


def test_random_labels_get_no_certificate_below_a_half() -> None:
    inputs, labels = linear_task(100, flip=0.5, seed=2)
    found = certify_gibbs(trained(inputs, labels), inputs, labels, generator=seeded(), draws=500, batch=20)
    assert found.bound > 0.5
    assert found.vacuous


def test_the_mode_of_the_network_is_given_back() -> None:
    class Dropping(nn.Linear):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            assert not self.training
            return super().forward(inputs)

    network = RandomisedNetwork(Dropping(4, 2)).train()
    certify_gibbs(network, *linear_task(50, flip=0.0, seed=0), generator=seeded(), draws=2)
    assert network.training


def test_answers_that_are_no_numbers_are_wrong() -> None:
    class Broken(nn.Linear):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return super().forward(inputs) * math.nan

    found = certify_gibbs(
        RandomisedNetwork(Broken(4, 2)), *linear_task(50, flip=0.0, seed=0), generator=seeded(), draws=9
    )
    assert found.observed == 1


def test_bad_arguments_are_named() -> None:
    linear = nn.Linear(4, 2)
    inputs, labels = linear_task(50, flip=0.0, seed=0)
    with pytest.raises(ArgumentError, match="deviation"):
        RandomisedNetwork(linear, deviation=0.0)
    with pytest.raises(ArgumentError, match="prior_deviation"):
        RandomisedNetwork(linear, prior_deviation=-1.0)
    with pytest.raises(ArgumentError, match="centre"):
        RandomisedNetwork(linear, centre={"weight": torch.zeros(2, 4)})
    with pytest.raises(ArgumentError, match="parameters"):
        RandomisedNetwork(nn.Tanh())
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        mean_bound(torch.tensor([0.5, 1.5]), delta=0.1)
    network = RandomisedNetwork(linear)
    with pytest.raises(ArgumentError, match="delta"):
        certify_gibbs(network, inputs, labels, generator=seeded(), delta=1.0)
    with pytest.raises(ArgumentError, match="label"):
        certify_gibbs(network, inputs, labels[:-1], generator=seeded())
    with pytest.raises(AssumptionError, match="sequences"):
        certify_gibbs(network, inputs[:5], labels[:5], generator=seeded())
