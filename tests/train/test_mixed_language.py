"""Training a language model on mixed columns of a text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.data import Corpus, TokenStream, sample_corpus
from statewise.errors import ArgumentError
from statewise.models import LanguageModelConfig
from statewise.train import RunFolder, TrainingSettings, load_language_model, train_language_model
from statewise.train.mixed_language import MixedObjective, following_pairs, kept_pairs, pairs_from
from support import tolerance

SITES = ("input", "pre-output", "through-time")
CPU = torch.device("cpu")
CONFIG = LanguageModelConfig(hidden=(8,))
SETTINGS = TrainingSettings(epochs=2, batch=8, bptt=20, optimizer="adam", lr=0.02, mixup="input", mixup_rho=0.2)


def corpus() -> Corpus:
    whole, sizes = sample_corpus(), {"train": 1500, "valid": 300, "test": 300}
    parts = {name: TokenStream(getattr(whole, name)[:count].numpy()) for name, count in sizes.items()}
    return Corpus("sample", whole.vocabulary, **parts)


@pytest.mark.parametrize("widths", [(8, 8), (6, 8)], ids=["stack", "widths"])
@pytest.mark.parametrize("site", SITES)
def test_a_model_learns_from_mixed_columns_and_is_validated_on_the_text(
    site: str, widths: tuple[int, ...], tmp_path: Path
) -> None:
    config = replace(CONFIG, hidden=widths, zoneout=0.1, output_dropout=0.1, activation=0.1, temporal=0.1)
    train_language_model(config, replace(SETTINGS, mixup=site), corpus(), tmp_path / "run")
    first, last = [record for record in RunFolder(tmp_path / "run").metrics() if "epoch" in record]
    assert last["train_perplexity"] < first["train_perplexity"]
    assert last["valid_perplexity"] < first["valid_perplexity"]
    assert load_language_model(tmp_path / "run")[0].words == len(corpus().vocabulary)


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_columns_that_are_not_mixed_give_the_plain_loss_and_state_over_two_segments(site: str, cell: str) -> None:
    """With alpha 0 and equal columns every pair is two of the same text."""
    model = replace(CONFIG, cell=cell, hidden=(5, 6), activation=0.3, temporal=0.3).build(9).double().train()
    mixer = replace(SETTINGS, mixup=site, mixup_alpha=1.0).mixer()
    assert mixer is not None
    objective = MixedObjective(model, mixer)
    text = torch.randint(9, (13, 1), generator=torch.Generator().manual_seed(0)).expand(13, 4)
    pairs, state, plain = None, None, None
    for start, steps in ((0, 7), (7, 5)):
        pairs = following_pairs(mixer, pairs, steps, 4, CPU)
        words, following = text[start : start + steps], text[start + 1 : start + steps + 1]
        total, (nll, state) = objective(words, following, state, pairs)
        expected = model.loss(words, following, plain)
        plain = expected.state
        torch.testing.assert_close(total, expected.total, **tolerance(torch.float32))
        torch.testing.assert_close(nll, expected.nll, **tolerance(torch.float32))
        torch.testing.assert_close(state, plain, **tolerance(torch.float32))


@pytest.mark.parametrize("site", SITES)
def test_partners_persist_where_the_state_is_mixed(site: str) -> None:
    mixer = replace(SETTINGS, mixup=site).mixer()
    assert mixer is not None
    torch.manual_seed(0)
    first = following_pairs(mixer, None, 7, 40, CPU)
    second = following_pairs(mixer, first, 5, 40, CPU)
    persist = site != "pre-output"
    assert torch.equal(first.second, second.second) == persist
    assert second.continues == persist
    assert not bool((first.first == first.second).any())


@pytest.mark.parametrize("site", ["input", "through-time"])
def test_pairs_that_were_kept_go_on_as_they_would_have(site: str) -> None:
    mixer = replace(SETTINGS, mixup=site).mixer()
    assert mixer is not None
    before = following_pairs(mixer, None, 7, 4, CPU)
    kept = {name.removeprefix("pairs."): tensor for name, tensor in kept_pairs(before).items()}
    found = []
    for pairs in (before, pairs_from(kept, mixer)):
        torch.manual_seed(3)
        found.append(following_pairs(mixer, pairs, 5, 4, CPU))
    assert torch.equal(found[0].exact, found[1].exact)
    assert torch.equal(found[0].second, found[1].second)
    assert (found[0].layer, found[0].continues) == (found[1].layer, found[1].continues)


@pytest.mark.parametrize(
    ("model", "training", "told"),
    [
        ({"noise": "gaussian", "gamma": 0.5, "placement": "penalty"}, {}, "penalty"),
        ({}, {"samples": 2}, "2 samples"),
    ],
)
def test_what_cannot_be_mixed_is_refused(
    model: dict[str, Any], training: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match=told):
        train_language_model(replace(CONFIG, **model), replace(SETTINGS, **training), corpus(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"mixup": "output"}, "mixup"),
        ({"mixup": "input", "mixup_alpha": -1.0}, "mixup_alpha"),
        ({"mixup": "input", "mixup_rho": 1.5}, "mixup_rho"),
        ({"mixup": "input", "batch": 1}, "batch"),
    ],
)
def test_settings_of_mixing_that_are_none_are_refused_by_name(given: dict[str, Any], where: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        TrainingSettings(**given)
    assert refused.value.where == f"TrainingSettings.{where}"
