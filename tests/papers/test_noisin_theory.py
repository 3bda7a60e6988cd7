"""Known answers for what the noise does to the loss (Dieng et al. 2018, "Noisin", sections 4 and 7)."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from statewise import RNN, Noise
from statewise.heads import Bernoulli, Categorical, Gaussian, Likelihood, MixtureOfSoftmaxes, Poisson, Readout
from statewise.objectives import (
    Covariance,
    InfiniteExpectationError,
    audit,
    bracket,
    estimated_excess,
    exact_excess,
    k_sample_loss,
    predictive,
    second_order,
)
from statewise.transforms.laws import LAWS
from support import doubles, fill

DOUBLE = torch.float64

pytestmark = pytest.mark.usefixtures("as_users_have_it")

# The fixture F.
V = torch.sin(4 * torch.arange(3, dtype=DOUBLE)[:, None] + torch.arange(4, dtype=DOUBLE) + 1)
H = doubles(0.5, -0.8, 0.3).unsqueeze(0)
F = Readout(Categorical(), V)

# The tiny network G: a tanh RNN over four symbols, read by V.
SYMBOLS = torch.tensor([0, 2, 1, 3, 1])
INPUTS = one_hot(SYMBOLS[:-1], 4).to(DOUBLE).unsqueeze(1)
TARGETS = SYMBOLS[1:].unsqueeze(1)


def network(noise: Noise | None = None) -> RNN:
    layer = RNN(4, 3, bias=False, dtype=DOUBLE, transforms=noise)
    row, unit = torch.arange(4, dtype=DOUBLE)[:, None], torch.arange(3, dtype=DOUBLE)
    fill(layer, weight_ih_l0=torch.cos(1 + 3 * row + unit).T, weight_hh_l0=0.8 * torch.sin(2 + 3 * row[:3] + unit).T)
    return layer


@pytest.fixture
def clean() -> Tensor:
    """The states of G without noise, shape (4, 1, 3)."""
    with torch.no_grad():
        states: Tensor = network()(INPUTS)[0]
    return states


# --- check 2


def test_the_fixture_has_the_printed_scores_probabilities_and_variances() -> None:
    scores = F.scores(H)
    printed = doubles(1.3115104577, 0.5149747787, -0.7550263369, -1.3308597204)
    torch.testing.assert_close(scores[0], printed, rtol=0, atol=5e-11)
    assert Categorical().log_normalizer(scores).item() == pytest.approx(1.8115000800, abs=5e-11)
    printed = doubles(0.6065369542, 0.2734804060, 0.0768018603, 0.0431807796)
    torch.testing.assert_close(Categorical().mean(scores)[0], printed, rtol=0, atol=5e-11)
    printed = doubles(0.1383642975, 0.3354353283, 0.2731852925)
    torch.testing.assert_close(Categorical().curvature(V, scores)[0], printed, rtol=0, atol=5e-11)


@pytest.mark.parametrize(
    ("likelihood", "multiplicative", "additive"),
    [
        (Categorical(), 0.1369281804, 0.3734924591),
        (Bernoulli(), 0.2045719339, 0.6007525373),
        (Poisson(), 1.8785110510, 4.9248897402),
        (Gaussian(variance=0.5), 2.2308870092, 6.2893215430),
    ],
    ids=repr,
)
def test_the_penalty_of_unit_variance_is_the_printed_one(
    likelihood: Likelihood, multiplicative: float, additive: float
) -> None:
    for mode, printed in (("multiplicative", multiplicative), ("additive", additive)):
        found = second_order(Readout(likelihood, V), H, Covariance(1.0, mode))
        assert found.item() == pytest.approx(printed, abs=5.1e-11)


# --- checks 3 to 5


@pytest.mark.parametrize(
    ("law", "gamma", "excess", "ratio"),
    [
        ("gaussian", 0.1, 0.00137051, 1.00090),
        ("gaussian", 0.2, 0.00549624, None),
        ("gaussian", 0.4, 0.02218404, 1.01258),
        ("bernoulli", 0.5, 0.14286768, None),
        ("bernoulli", 0.9, 0.01798847, 1.18234),
        ("gamma", 0.4, 0.02002791, None),
        ("laplace", 0.4, 0.02225233, None),
        ("chi-square", 0.2, 0.01807468, 0.66001),
        ("beta", 0.5, 0.08024594, None),
    ],
)
def test_the_exact_excess_of_a_softmax_is_the_printed_one(
    law: str, gamma: float, excess: float, ratio: float | None
) -> None:
    noise = Noise(law, gamma)
    found = exact_excess(F, H, noise)
    assert found.total == pytest.approx(excess, abs=5.1e-9)
    assert found.error.item() < 1e-10
    if ratio is not None:
        assert found.total / second_order(F, H, noise).item() == pytest.approx(ratio, abs=5.1e-6)
    if law == "bernoulli":
        assert found.method == "all 8 masks"


@pytest.mark.parametrize(
    ("law", "limit"),
    [("bernoulli", 1.2030), ("beta", 1.2390), ("chi-square", 0.6467)],
    ids=["bernoulli", "beta", "chi"],
)
def test_rare_noise_is_not_small_noise_so_the_ratio_does_not_tend_to_one(law: str, limit: float) -> None:
    noise = Noise(law, 1 - 1e-5 if law == "bernoulli" else 1e-5)
    assert exact_excess(F, H, noise).total / second_order(F, H, noise).item() == pytest.approx(limit, abs=1e-4)


@pytest.mark.parametrize("mode", ["multiplicative", "additive"])
@pytest.mark.parametrize("law", LAWS)
def test_under_a_gaussian_likelihood_the_second_order_is_exact_for_every_law(law: str, mode: str) -> None:
    """Against the expectation itself, over every mask or by a Gauss rule of the law."""
    from statewise.objectives.expectation import expect

    readout, noise = Readout(Gaussian(variance=0.5), V), Noise(law, 0.4, mode=mode)
    moving = V * (H.T if mode == "multiplicative" else 1)
    scores = readout.scores(H)

    def excess(eps: Tensor) -> Tensor:
        moved = scores + eps @ moving
        return readout.likelihood.log_normalizer(moved) - readout.likelihood.log_normalizer(scores)

    expected = expect(noise, 3, excess, like=V, width=4).values.item()
    assert second_order(readout, H, noise).item() == pytest.approx(expected, rel=1e-12)
    assert exact_excess(readout, H, noise).total == pytest.approx(expected, rel=1e-12)


def test_an_infinite_expectation_is_reported_with_its_unit_and_output_and_is_no_number() -> None:
    """``h_i V_ik < 1 / sqrt 2`` is needed for all i and k, and unit 1 moves output 0 by 0.767."""
    found = exact_excess(Readout(Poisson(), V), H, Noise("chi-square", 0.2))
    assert not found.finite
    assert found.divergence is not None
    assert (found.divergence.unit, found.divergence.output) == (1, 0)
    assert found.divergence.exponent == (H[0, 1] * V[1, 0]).item() > 1 / math.sqrt(2)
    assert "infinite under Noise('chi-square', 0.2)" in found.sentence
    assert "unit 1 moves output 0" in found.sentence
    with pytest.raises(InfiniteExpectationError, match="unit 1 moves output 0"):
        _ = found.total


def test_a_poisson_excess_in_closed_form_is_the_mean_over_draws(generator: torch.Generator) -> None:
    readout = Readout(Poisson(), V, doubles(0.1, -0.2, 0.3, 0.0))
    for law in ("gaussian", "bernoulli", "beta"):
        noise = Noise(law, 0.4, placement="last")
        sampled = estimated_excess(readout, H, noise, samples=100_000, generator=generator)
        assert abs(exact_excess(readout, H, noise).total - sampled.total) < 5 * sampled.total_error


# --- check 6


def test_the_tiny_network_has_the_printed_penalty(clean: Tensor) -> None:
    assert second_order(F, clean, Covariance(1.0)).item() == pytest.approx(0.6372458292, abs=5.1e-11)
    assert second_order(F, clean, Covariance(1.0, "additive")).item() == pytest.approx(2.4432022230, abs=5.1e-11)


@pytest.mark.parametrize(
    ("mode", "gamma", "excess"),
    [
        ("multiplicative", 0.5, 0.15641233),
        ("multiplicative", 0.2, 0.02541279),
        ("multiplicative", 0.1, 0.00636762),
        ("additive", 0.1, 0.02434570),
    ],
)
def test_the_tiny_network_has_the_printed_exact_excess(clean: Tensor, mode: str, gamma: float, excess: float) -> None:
    found = exact_excess(F, clean, Noise("gaussian", gamma, mode=mode, placement="last"))
    assert found.total == pytest.approx(excess, abs=5.1e-9)


def test_a_monte_carlo_estimate_of_the_decomposition_agrees(clean: Tensor, generator: torch.Generator) -> None:
    noise = Noise("gaussian", 0.5, placement="last")
    found = estimated_excess(F, clean, noise, samples=50_000, generator=generator)
    assert abs(found.total - 0.15641233) < 5 * found.total_error
    # One million draws of the loss itself have a standard error of 0.00051; the control takes most of that away.
    assert found.total_error < 0.00051
    assert found.ratio == pytest.approx(0.15641233 / (0.25 * 0.6372458292), rel=0.02)


def test_the_auditor_tells_strong_noise_from_weak_in_the_tiny_network(generator: torch.Generator) -> None:
    strong = audit(network(Noise("gaussian", 0.5, placement="last")), INPUTS, generator=generator)
    weak = audit(network(Noise("gaussian", 0.5, placement="recurrent")), INPUTS, generator=generator)
    assert (strong.verdict, weak.verdict) == ("strong", "weak")
    mean = weak.layers[0].mean
    assert mean.steps == (2, 3, 4)
    printed = torch.tensor([-0.04836537, 0.00409931, 0.01739353], dtype=DOUBLE)
    assert ((mean.values[1, 0] - printed).abs() < mean.half_width[1, 0]).all()


# --- check 7


def test_the_strong_excess_of_the_scalar_network_is_the_printed_one() -> None:
    readout, state = Readout(Bernoulli(), torch.ones(1, 1, dtype=DOUBLE)), doubles(-0.4801570094).unsqueeze(0)
    assert exact_excess(readout, state, Noise("bernoulli", 0.5)).total == pytest.approx(0.0270040622, abs=1e-10)


# --- checks 8 and 9


def test_jensens_bounds_of_the_tiny_network_are_the_printed_ones(generator: torch.Generator) -> None:
    layer, repeats = network(Noise("gaussian", 0.5, placement="last")), 20_000

    def score(inputs: Tensor, targets: Tensor) -> Tensor:
        with torch.no_grad():
            return F.log_prob(layer(inputs, generator=generator)[0], targets)

    batch = INPUTS.expand(-1, repeats, -1), TARGETS.expand(-1, repeats)
    for samples, printed in ((2, -5.258), (8, -5.213)):
        found = predictive(score, *batch, samples=samples, chunk=4)
        error = found.sequence.std().item() / math.sqrt(repeats)
        assert abs(found.sequence.mean().item() - printed) < 0.003 + 4 * error
        assert abs(found.expected.mean().item() + 5.31905441) < 5 * found.expected.std().item() / math.sqrt(repeats)
        assert (found.expected <= found.sequence).all()
    one = predictive(score, INPUTS, TARGETS, samples=200_000, chunk=20_000)
    assert one.sequence.item() == pytest.approx(-5.19670245, abs=0.005)
    # Strong noise is independent over time, so the average may be taken token by token.
    assert one.log_prob.sum().item() == pytest.approx(-5.19670245, abs=0.005)


@pytest.mark.parametrize("placement", ["last", "recurrent"])
def test_the_excess_is_positive_in_both_placements_where_the_model_is_true(
    placement: str, clean: Tensor, generator: torch.Generator
) -> None:
    """With ``x_t`` replaced by its mean ``p_t`` the excess is a Bregman divergence, whatever the noise."""
    rows = 200_000
    truth = Categorical().mean(F.scores(clean))
    with torch.no_grad():
        noisy, _ = network(Noise("gaussian", 0.5, placement=placement))(
            INPUTS.expand(-1, rows, -1), generator=generator
        )
    lost = (F.log_prob(clean, truth) - F.log_prob(noisy, truth.expand(-1, rows, -1))).sum(0)
    assert lost.min() > -1e-12
    printed = 0.1800 if placement == "recurrent" else 0.15641233
    assert abs(lost.mean().item() - printed) < 0.001 + 4 * lost.std().item() / math.sqrt(rows)


# --- check 10


def test_the_certified_bracket_is_the_printed_one() -> None:
    """Masks are enumerated exactly; under normal noise the printed digits carry a quadrature error of 1e-6."""
    found = bracket(F, H, Noise("bernoulli", 0.41))
    assert found.lower.item() == pytest.approx(0.099861, abs=5.1e-7)
    assert found.by_curvature.item() == pytest.approx(0.644503, abs=5.1e-7)
    assert exact_excess(F, H, Noise("bernoulli", 0.41)).total == pytest.approx(0.194137, abs=5.1e-7)
    found = bracket(F, H, Noise("gaussian", 0.4))
    assert found.lower.item() == pytest.approx(0.015919, abs=1.5e-6)
    assert found.by_curvature.item() == pytest.approx(0.033575, abs=1.5e-6)
    assert found.lower.item() <= 0.02218404 <= found.upper.item() <= found.by_curvature.item()


# --- checks 16 and 17


def test_the_penalty_of_a_softmax_has_the_invariances_of_its_formula(generator: torch.Generator) -> None:
    scale = doubles(2.0, -0.5, 7.0)
    shifted = V + doubles(3.0, -2.0, 0.5).unsqueeze(1)
    for mode, invariant in (("multiplicative", True), ("additive", False)):
        noise = Covariance(1.0, mode)
        reference = second_order(F, H, noise).item()
        assert second_order(Readout(Categorical(), shifted), H, noise).item() == pytest.approx(reference, rel=1e-12)
        rescaled = second_order(Readout(Categorical(), V / scale.unsqueeze(1)), H * scale, noise).item()
        assert (rescaled == pytest.approx(reference, rel=1e-12)) is invariant
        constant = Readout(Categorical(), torch.ones_like(V) * doubles(1.0, -4.0, 0.3).unsqueeze(1))
        assert second_order(constant, H, noise).item() < 1e-14
        random = Readout(Categorical(), torch.randn(3, 4, generator=generator, dtype=DOUBLE))
        many = torch.randn(50, 3, generator=generator, dtype=DOUBLE)
        assert second_order(random, many, noise, reduction="none").min() > 0
    assert second_order(F, torch.zeros_like(H), Covariance(1.0)).item() == 0
    # Constant where p lives is enough: a class that is never predicted may have any weight.
    alone = torch.tensor([[1.0, 1.0, 9.0]], dtype=DOUBLE)
    silent = Readout(Categorical(), alone, doubles(0.0, 0.0, -1e4))
    assert second_order(silent, torch.ones(1, 1, dtype=DOUBLE), Covariance(1.0)).item() == pytest.approx(0, abs=1e-14)


def test_the_square_root_of_the_hessian_gives_the_printed_penalty() -> None:
    p = Categorical().mean(F.scores(H))[0]
    root = torch.diag(p.sqrt()) - torch.outer(p, p.sqrt())
    hessian = Categorical().hessian(F.scores(H))[0]
    torch.testing.assert_close(root @ root.T, hessian, rtol=0, atol=1e-15)
    assert hessian.sum(1).abs().max() < 1e-15
    b = V @ root
    assert torch.trace(b.T @ torch.diag(H[0] ** 2) @ b).item() / 2 == pytest.approx(0.1369281804, abs=5.1e-11)


# --- check 19


def test_the_k_sample_loss_has_the_same_mean_and_a_kth_of_the_variance(generator: torch.Generator) -> None:
    layer, repeats = network(Noise("gaussian", 0.5, placement="last")), 12_000

    def nll(states: Tensor, targets: Tensor) -> Tensor:
        """The mean over the K copies of each of many independent batches of one sequence."""
        losses = -F.log_prob(states, targets).sum(0)
        copies: Tensor = losses.unflatten(0, (-1, repeats))
        return copies.mean(0)

    found = {}
    for samples in (1, 4):
        with torch.no_grad():
            found[samples], _ = k_sample_loss(
                layer,
                nll,
                INPUTS.expand(-1, repeats, -1),
                TARGETS.expand(-1, repeats),
                samples=samples,
                generator=generator,
            )
    assert found[1].var().item() / found[4].var().item() == pytest.approx(4, rel=0.1)
    for losses in found.values():
        assert abs(losses.mean().item() - 5.31905441) < 5 * losses.std().item() / math.sqrt(repeats)


# --- what the theory does not cover


def test_a_mixture_of_softmaxes_has_no_explicit_penalty() -> None:
    with pytest.raises(TypeError, match="no explicit penalty"):
        Readout.of(MixtureOfSoftmaxes(3, 4, experts=2), Categorical())


def test_fed_back_noise_has_no_explicit_penalty(clean: Tensor) -> None:
    with pytest.raises(ValueError, match="not fed back"):
        second_order(F, clean, Noise("gaussian", 0.5, placement="recurrent"))
