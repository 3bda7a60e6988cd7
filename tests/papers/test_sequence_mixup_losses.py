"""Known answers for the losses of mixed labels (Karamzade et al. 2020, section 3 and Remark 1)."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import seeds
from statewise.mixup import InputMixup, MarkovBeta, Pairs
from support import Tolerance

DOUBLE = torch.float64
EXACT: Tolerance = {"rtol": 1e-12, "atol": 1e-12}


def batch(seed: int, *, steps: int = 4, size: int = 3, classes: int = 5) -> tuple[Pairs, Tensor, Tensor]:
    """Pairs of equal length, logits and labels."""
    generator = torch.Generator().manual_seed(seed)
    coefficients = torch.rand(steps, size, generator=generator, dtype=DOUBLE)
    pairs = Pairs.of(coefficients, second=torch.randperm(size, generator=generator), dtype=DOUBLE)
    logits = 3 * torch.randn(steps, size, classes, generator=generator, dtype=DOUBLE)
    return pairs, logits, torch.randint(classes, (steps, size), generator=generator)


@pytest.mark.parametrize(("policy", "loss"), [("zero", 3.327106), ("handover", 4.158883), ("truncate", 2.772589)])
def test_unequal_lengths_with_uniform_logits(policy: str, loss: float) -> None:
    """Four classes, lengths 3 and 2, lambda = 0.4."""
    share = torch.full((3, 1), 0.4, dtype=DOUBLE)
    pairs = Pairs.of(
        share, first=torch.tensor([0]), second=torch.tensor([1]), lengths=[3, 2], policy=policy, dtype=DOUBLE
    )
    found = pairs.cross_entropy(torch.zeros(3, 1, 4, dtype=DOUBLE), torch.zeros(3, 2, dtype=torch.long))
    assert float(found) == pytest.approx(loss, abs=5.1e-7)


@given(seed=seeds)
def test_the_weighted_losses_are_the_loss_of_the_mixed_label(seed: int) -> None:
    pairs, logits, labels = batch(seed)
    hot = F.one_hot(labels, 5).to(DOUBLE)
    mixed = F.cross_entropy(logits.flatten(0, 1), pairs.mix(hot).flatten(0, 1), reduction="none").view(4, 3)
    torch.testing.assert_close(pairs.cross_entropy(logits, labels, reduction="none"), mixed, **EXACT)
    torch.testing.assert_close(pairs.cross_entropy(logits, labels), mixed.sum(0).mean(), **EXACT)
    torch.testing.assert_close(pairs.cross_entropy(logits, labels, reduction="token"), mixed.mean(), **EXACT)


@given(seed=seeds)
def test_the_squared_error_is_that_of_the_members_less_their_distance(seed: int) -> None:
    pairs, outputs, _ = batch(seed)
    generator = torch.Generator().manual_seed(seed + 1)
    targets = torch.randn(4, 3, 5, generator=generator, dtype=DOUBLE)
    outputs.requires_grad_()
    found = pairs.squared_error(outputs, targets, reduction="none")
    own, other, share = targets[:, pairs.first], targets[:, pairs.second], pairs.coefficients
    parts = share * (outputs - own).square().sum(2) + (1 - share) * (outputs - other).square().sum(2)
    torch.testing.assert_close(found, parts - share * (1 - share) * (own - other).square().sum(2), **EXACT)
    gradients = [torch.autograd.grad(value.sum(), outputs, retain_graph=True)[0] for value in (found, parts)]
    torch.testing.assert_close(*gradients, **EXACT)


def test_a_sequences_label_is_mixed_by_the_mean_coefficient() -> None:
    """Remark 1: (0.9, 0.5, 0.2) has the mean 0.533333."""
    share = torch.tensor([[0.9], [0.5], [0.2]], dtype=DOUBLE)
    pairs = Pairs.of(share, first=torch.tensor([0]), second=torch.tensor([1]), lengths=[3, 3], dtype=DOUBLE)
    assert float(pairs.mean_coefficient) == pytest.approx(0.533333, abs=5.1e-7)
    for label, weight in ((0, 0.533333), (1, 0.466667)):
        logits = torch.zeros(1, 2, dtype=DOUBLE)
        logits[0, 1 - label] = 50.0  # so that a term is 50 times its weight
        found = pairs.classification(logits, torch.tensor([0, 1]))
        assert float(found) == pytest.approx(50 * weight, rel=1e-6)


@pytest.mark.parametrize(("policy", "mean"), [("zero", 0.4), ("handover", 0.6), ("truncate", 0.4)])
def test_the_mean_is_taken_after_the_treatment_of_lengths(policy: str, mean: float) -> None:
    share = torch.full((3, 1), 0.4, dtype=DOUBLE)
    pairs = Pairs.of(
        share, first=torch.tensor([0]), second=torch.tensor([1]), lengths=[3, 2], policy=policy, dtype=DOUBLE
    )
    assert float(pairs.mean_coefficient) == pytest.approx(mean)


@given(seed=seeds)
def test_a_language_model_has_the_coefficient_of_the_step_that_predicts(seed: int) -> None:
    """lambda_t CE(p_t, x_{t+1}) + (1 - lambda_t) CE(p_t, x'_{t+1}), per word."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(5, (5, 3), generator=generator)
    pairs, logits, _ = batch(seed)
    chances = logits.log_softmax(2)
    expected = 0.0
    for step in range(4):
        for place, (one, other) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
            share = float(pairs.coefficients[step, place])
            expected -= share * float(chances[step, place, words[step + 1, one]])
            expected -= (1 - share) * float(chances[step, place, words[step + 1, other]])
    assert float(pairs.language(logits, words[1:])) == pytest.approx(expected / 12, rel=1e-12)


@given(seed=seeds, alpha=st.sampled_from([0.0, math.inf]))
def test_without_mixing_or_with_halves_the_loss_is_that_of_the_members(seed: int, alpha: float) -> None:
    pairs, logits, labels = batch(seed)
    drawn = MarkovBeta(alpha).sample(3, 4, generator=torch.Generator().manual_seed(seed))
    pairs = Pairs.of(drawn, second=pairs.second, dtype=DOUBLE)
    losses = [
        F.cross_entropy(logits.flatten(0, 1), labels[:, side].flatten(), reduction="none").view(4, 3)
        for side in (pairs.first, pairs.second)
    ]
    chosen = torch.where(drawn == 1, *losses) if alpha == 0 else (losses[0] + losses[1]) / 2
    torch.testing.assert_close(pairs.cross_entropy(logits, labels, reduction="none"), chosen, **EXACT)


def test_a_loop_changes_in_two_lines(generator: torch.Generator) -> None:
    """And the loss that is minimised falls, while that of the plain network in eval mode falls too."""
    layer, head = torch.nn.GRU(4, 16), torch.nn.Linear(16, 3)
    x = torch.randn(6, 32, 4, generator=generator)
    tags = x[..., :3].argmax(2)
    mix, optimizer = InputMixup(alpha=0.5), torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.02)
    losses = []
    for _ in range(30):
        output, pairs = mix(layer, x, generator=generator)
        loss = pairs.cross_entropy(head(output), tags, reduction="token")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()) - float(pairs.irreducible(tags, reduction="token")))
    assert min(losses) > 0
    assert losses[-1] < losses[0] / 2
    output, pairs = mix(layer.eval(), x)
    assert pairs.cross_entropy(head(output), tags, reduction="token") < 0.6
