"""Predicting with the noise on."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.objectives import predictive
from support import tolerance

DOUBLE = torch.float64


def replay(values: Tensor) -> Any:
    """A model that gives out known log-probabilities (samples, steps, batch), one sample after the other."""
    left = [values]

    def score(inputs: Tensor, targets: Tensor) -> Tensor:
        now = inputs.shape[1] // values.shape[2]
        taken, left[0] = left[0][:now], left[0][now:]
        return taken.transpose(0, 1).flatten(1)

    return score


@pytest.mark.parametrize("chunk", [None, 1, 3, 7, 100])
def test_chunks_change_nothing(chunk: int | None, generator: torch.Generator) -> None:
    values = 3 * torch.randn(7, 5, 2, generator=generator, dtype=DOUBLE)
    batch = torch.zeros(5, 2, dtype=DOUBLE)
    found = predictive(replay(values), batch, batch, samples=7, chunk=chunk)
    torch.testing.assert_close(found.log_prob, values.exp().mean(0).log(), **tolerance(DOUBLE))
    torch.testing.assert_close(found.sequence, values.sum(1).exp().mean(0).log(), **tolerance(DOUBLE))
    torch.testing.assert_close(found.expected, values.sum(1).mean(0), **tolerance(DOUBLE))
    assert (found.expected <= found.sequence).all()
    assert found.samples == 7
    assert found.perplexity == pytest.approx(math.exp(-found.log_prob.mean().item()))


def test_tiny_probabilities_do_not_underflow() -> None:
    values = torch.full((3, 4, 1), -5000.0)
    batch = torch.zeros(4, 1)
    found = predictive(replay(values), batch, batch, samples=3, chunk=2)
    assert found.sequence.item() == pytest.approx(-20_000)
    assert found.log_prob.tolist() == [[-5000.0]] * 4


def test_one_sample_is_a_plain_pass() -> None:
    values = torch.randn(1, 4, 2)
    batch = torch.zeros(4, 2)
    found = predictive(replay(values), batch, batch, samples=1)
    torch.testing.assert_close(found.log_prob, values[0])
    torch.testing.assert_close(found.sequence, found.expected)


def test_the_bound_does_not_fall_with_more_samples(generator: torch.Generator) -> None:
    """In expectation, over many sequences of a Gaussian log-probability."""
    batch, found = torch.zeros(1, 20_000, dtype=DOUBLE), []
    for samples in (1, 2, 4, 16):
        values = torch.randn(samples, 1, 20_000, generator=generator, dtype=DOUBLE)
        found.append(predictive(replay(values), batch, batch, samples=samples).sequence.mean().item())
    assert found == sorted(found)
    assert found[-1] < 0.5  # the marginal, log E exp of a standard normal number


def test_it_says_what_it_found() -> None:
    batch = torch.zeros(2, 1)
    assert predictive(replay(torch.zeros(4, 2, 1)), batch, batch, samples=4).sentence.startswith("over 4 noises")


@pytest.mark.usefixtures("as_users_have_it")
def test_what_does_not_fit_is_refused() -> None:
    batch = torch.zeros(2, 1)
    for options in ({"samples": 0}, {"samples": 2, "chunk": 0}, {"samples": True}):
        with pytest.raises(ArgumentError, match="at least 1"):
            predictive(replay(torch.zeros(4, 2, 1)), batch, batch, **options)
    with pytest.raises(ShapeError, match="predictive score"):
        predictive(lambda inputs, targets: inputs.sum(0), batch, batch, samples=2)
