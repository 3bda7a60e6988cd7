"""Dynamic evaluation of a language model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from statewise.data import Columns, Corpus, TokenStream, sample_corpus
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.train.adapting import dynamic_perplexity, language_statistics
from statewise.train.dynamic import dynamic_evaluation
from statewise.train.evaluation import evaluate_stream


def short_corpus() -> Corpus:
    """Some hundred words of the embedded text."""
    whole = sample_corpus()
    train, valid = (
        TokenStream(stream[:length].numpy()) for stream, length in ((whole.train, 1500), (whole.valid, 400))
    )
    return replace(whole, train=train, valid=valid)


@pytest.fixture
def model(generator: torch.Generator) -> LanguageModel:
    config = LanguageModelConfig(hidden=(6,), noise="gaussian", gamma=0.5, weight_drop=0.5, output_dropout=0.5)
    return config.build(len(short_corpus().vocabulary), generator=generator).double()


def test_without_steps_it_is_plain_evaluation_in_eval_mode(model: LanguageModel) -> None:
    corpus = short_corpus()
    model.train()
    still = dynamic_perplexity(model, corpus.train, corpus.valid, lr=0.0, decay=0.0, epsilon=1e-3)
    plain = evaluate_stream(model, corpus.valid)
    assert still.tokens == plain.tokens == len(corpus.valid) - 1
    assert still.nll == pytest.approx(plain.nll, rel=1e-6)
    assert model.training


def test_it_learns_from_what_it_has_scored_and_leaves_the_model_as_it_was(model: LanguageModel) -> None:
    corpus = short_corpus()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    statistics = language_statistics(model, corpus.train, batch=20)
    plain, moving = (
        dynamic_perplexity(model, statistics, corpus.valid, lr=lr, decay=1e-3, epsilon=1e-4) for lr in (0.0, 1e-4)
    )
    assert moving.perplexity < plain.perplexity
    assert all(torch.equal(before[name], parameter) for name, parameter in model.named_parameters())


def test_the_old_convention_is_the_new_one_with_converted_settings(model: LanguageModel) -> None:
    corpus = short_corpus()
    statistics = language_statistics(model, corpus.train, batch=20)
    tensors, root = len(statistics.roots), statistics.batches**0.5
    old = dynamic_perplexity(model, statistics, corpus.valid, lr=2e-3, decay=0.05, epsilon=1e-3, convention="old")
    new = dynamic_perplexity(
        model, statistics, corpus.valid, lr=2e-3 / root, decay=0.05 / tensors, epsilon=1e-3 / root, convention="new"
    )
    assert old.nll == pytest.approx(new.nll, rel=1e-9)


def test_rate_and_decay_go_with_the_length_of_a_segment(model: LanguageModel) -> None:
    corpus = short_corpus()
    statistics = language_statistics(model, corpus.train, batch=20)
    tens = dynamic_perplexity(model, statistics, corpus.valid, lr=1e-4, decay=1e-3, epsilon=1e-4, segment=10)

    def loss(tokens: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, int, Any]:
        log_probabilities, state = model(tokens, state)
        return -log_probabilities.gather(-1, targets.unsqueeze(-1)).sum(), targets.numel(), state

    segments = Columns(corpus.valid, 1).segments(10)
    by_hand = dynamic_evaluation(
        loss,
        model.named_parameters(),
        segments,
        statistics=statistics,
        lr=2e-4,
        decay=2e-3,
        epsilon=1e-4,
        model=model,
    )
    assert tens.nll == pytest.approx(by_hand.nll, rel=1e-6)


def test_statistics_of_penn_treebank_would_be_of_1859_batches() -> None:
    stream = TokenStream(torch.zeros(929_589, dtype=torch.int64).numpy())
    assert Columns(stream, 100).updates(5) == 1859
