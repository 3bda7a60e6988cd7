"""Perplexity of a stream, without and with noise."""

from __future__ import annotations

import math

import pytest
import torch

from statewise.data import TokenStream, sample_corpus
from statewise.errors import ArgumentError
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.train import evaluate_stream, evaluate_with_noise

STREAM = TokenStream(sample_corpus().valid[:301].numpy())


def model(gamma: float = 1.0) -> LanguageModel:
    config = LanguageModelConfig(hidden=(9, 9), noise="gaussian", gamma=gamma, zero_biases=False)
    return config.build(len(sample_corpus().vocabulary), generator=torch.Generator().manual_seed(2)).double()


@pytest.mark.parametrize("at_once", [1, 64, 4096])
def test_one_column_scores_every_token_but_the_first_given_the_whole_past(at_once: int) -> None:
    found = evaluate_stream(model(), STREAM, at_once=at_once)
    text = torch.as_tensor(STREAM[:301]).unsqueeze(1)
    log_probabilities = model().eval()(text[:-1])[0].detach()
    expected = -float(log_probabilities.gather(-1, text[1:].unsqueeze(-1)).sum())
    assert found.tokens == 300
    assert math.isclose(found.nll, expected, rel_tol=1e-12)


@pytest.mark.parametrize("batch", [2, 7, 10])
def test_several_columns_score_the_same_tokens(batch: int) -> None:
    found = evaluate_stream(model(), STREAM, batch=batch, at_once=50)
    assert found.tokens == 300
    assert found.perplexity == pytest.approx(evaluate_stream(model(), STREAM).perplexity, rel=0.05)


def test_without_noise_every_draw_is_the_same() -> None:
    quiet = evaluate_stream(model(0.0), STREAM, batch=3)
    drawn = evaluate_with_noise(model(0.0), STREAM, samples=4, batch=3, at_once=100)
    assert drawn.tokens == 300
    assert math.isclose(drawn.nll, quiet.nll, rel_tol=1e-12)


def test_an_ensemble_predicts_better_than_its_members_on_average() -> None:
    """By Jensen's inequality, token by token."""

    network = model()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(4)  # so that noise matters

    def score(samples: int, seed: int) -> float:
        draw = torch.Generator().manual_seed(seed)
        return evaluate_with_noise(network, STREAM, samples=samples, generator=draw).nll

    members = [score(1, seed) for seed in range(10)]
    assert score(50, 0) < min(members)


def test_the_mode_is_left_as_it_was_and_no_draws_are_refused() -> None:
    quiet = model().eval()
    evaluate_with_noise(quiet, STREAM, samples=1)
    assert not any(module.training for module in quiet.modules())
    with pytest.raises(ArgumentError, match=r"samples: got 0"):
        evaluate_with_noise(quiet, STREAM, samples=0)
