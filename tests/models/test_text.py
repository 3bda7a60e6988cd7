"""Scoring and generating text."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from statewise.errors import ArgumentError, LengthError
from statewise.models import LanguageModel, LanguageModelConfig, generate, perplexity, score

WORDS = 12


@pytest.fixture
def model(generator: torch.Generator) -> LanguageModel:
    config = LanguageModelConfig(hidden=(8, 8), noise="gaussian", gamma=1.0, output_dropout=0.5, zero_biases=False)
    return config.build(WORDS, generator=generator).double()


@pytest.fixture
def stream(generator: torch.Generator) -> Tensor:
    return torch.randint(WORDS, (50, 2), generator=generator)


@pytest.mark.parametrize("length", [1, 7, 49])
def test_a_score_does_not_depend_on_the_cut_into_segments(model: LanguageModel, stream: Tensor, length: int) -> None:
    log_probabilities = model.eval()(stream[:-1])[0]
    expected = -float(log_probabilities.gather(-1, stream[1:].unsqueeze(-1)).sum().detach())
    model.train()
    starts = range(0, 49, length)
    segments = [(stream[s : min(s + length, 49)], stream[s + 1 : min(s + length, 49) + 1]) for s in starts]
    found = score(model, segments)
    assert found.tokens == 98
    assert math.isclose(found.nll, expected, rel_tol=1e-12)
    assert math.isclose(found.perplexity, math.exp(expected / 98), rel_tol=1e-12)
    assert model.training, "the mode is left as it was"


def test_a_target_of_minus_one_is_read_but_not_scored(model: LanguageModel, stream: Tensor) -> None:
    targets = stream[1:].clone()
    targets[10:, 1] = -1
    all_of_first = score(model, [(stream[:-1, :1], stream[1:, :1])])
    part_of_second = score(model, [(stream[:10, 1:], stream[1:11, 1:])])
    found = score(model, [(stream[:-1], targets)])
    assert found.tokens == 59
    assert math.isclose(found.nll, all_of_first.nll + part_of_second.nll, rel_tol=1e-12)


def test_nothing_scored_has_no_perplexity(model: LanguageModel) -> None:
    with pytest.raises(LengthError, match="no predicted token"):
        _ = score(model, []).perplexity


def test_at_temperature_zero_the_likeliest_word_comes_every_time(model: LanguageModel, stream: Tensor) -> None:
    words = generate(model, stream[:5], length=6, temperature=0.0)
    so_far = stream[:5]
    for word in words:
        expected = model.eval()(so_far)[0][-1].argmax(-1)
        assert torch.equal(word, expected)
        so_far = torch.cat([so_far, word.unsqueeze(0)])


def test_drawn_words_follow_the_models_distribution(model: LanguageModel) -> None:
    prompt = torch.zeros(1, 20_000, dtype=torch.long)
    words = generate(model, prompt, length=1, temperature=0.7, generator=torch.Generator().manual_seed(0))
    log_probabilities = model.eval()(prompt[:, :1])[0][0, 0].detach()
    expected = (log_probabilities / 0.7).softmax(-1)
    found = words[0].bincount(minlength=WORDS) / 20_000
    assert float((found - expected).abs().max()) < 4 * 0.5 / math.sqrt(20_000)


def test_only_the_likeliest_and_never_a_forbidden_word_is_drawn(model: LanguageModel) -> None:
    prompt = torch.zeros(1, 500, dtype=torch.long)
    best = model.eval()(prompt[:, :1])[0][0, 0].topk(4).indices
    draw = torch.Generator().manual_seed(0)
    words = generate(model, prompt, length=1, top=3, forbidden=[int(best[0])], generator=draw)
    assert set(words.flatten().tolist()) == set(best[1:].tolist())


def test_one_seed_gives_one_text(model: LanguageModel, stream: Tensor) -> None:
    texts = [generate(model, stream[:2], length=9, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert torch.equal(texts[0], texts[1])
    assert not torch.equal(texts[0], texts[2])
    assert generate(model, stream[:2], length=0).shape == (0, 2)


def test_senseless_settings_are_refused(model: LanguageModel, stream: Tensor) -> None:
    with pytest.raises(ArgumentError, match=r"length: got -1"):
        generate(model, stream, length=-1)
    with pytest.raises(ArgumentError, match=r"temperature: got -0.5"):
        generate(model, stream, length=1, temperature=-0.5)
    with pytest.raises(ArgumentError, match=r"top: got 13"):
        generate(model, stream, length=1, top=13)


def test_of_a_prompt_only_the_last_step_asks_the_head(
    model: LanguageModel, stream: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, log_prob = [], model.head.log_prob

    def noted(features: Tensor) -> Tensor:
        asked.append(features.shape[0])
        return log_prob(features)

    monkeypatch.setattr(model.head, "log_prob", noted)
    generate(model, stream, length=3)
    assert asked == [1, 1, 1]


def test_a_temperature_close_to_zero_gives_the_likeliest_word(model: LanguageModel, stream: Tensor) -> None:
    words = generate(model, stream[:5], length=4, temperature=1e-310)
    assert torch.equal(words, generate(model, stream[:5], length=4, temperature=0.0))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_word_must_be_left_to_draw(model: LanguageModel, stream: Tensor, temperature: float) -> None:
    with pytest.raises(ArgumentError, match=r"forbidden: got every word"):
        generate(model, stream, length=1, temperature=temperature, forbidden=range(WORDS))
    left = generate(model, stream, length=3, temperature=temperature, forbidden=range(1, WORDS))
    assert not left.any()


@pytest.mark.usefixtures("as_users_have_it")
def test_what_is_no_word_and_no_count_is_named(model: LanguageModel, stream: Tensor) -> None:
    for forbidden in ([WORDS], [-1], [1.5]):
        with pytest.raises(ArgumentError, match=r"forbidden: got .*, wanted words from 0 to 11"):
            generate(model, stream, length=1, forbidden=forbidden)  # type: ignore[arg-type]
    for prompt in (stream + WORDS, stream - WORDS):
        with pytest.raises(ArgumentError, match=r"prompt: got .*, wanted words from 0 to 11"):
            generate(model, prompt, length=1)
    with pytest.raises(ArgumentError, match=r"top: got 1.5"):
        generate(model, stream, length=1, top=1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"temperature: got warm"):
        generate(model, stream, length=1, temperature="warm")  # type: ignore[arg-type]


def test_a_perplexity_beyond_all_numbers_is_infinite() -> None:
    assert perplexity(math.log(8)) == pytest.approx(8)
    assert perplexity(1000.0) == math.inf
