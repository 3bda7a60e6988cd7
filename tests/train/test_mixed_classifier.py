"""Training a classifier on mixed pairs: that it learns, what it tells, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from statewise.data import Images, Sequences, copying
from statewise.errors import ArgumentError
from statewise.mixup import Pairs
from statewise.models import ClassifierConfig
from statewise.models.steps import StepConfig
from statewise.train import (
    ClassifierSettings,
    RoundedWeights,
    RunFolder,
    load_classifier,
    train_classifier,
    train_steps,
)
from statewise.train.tasks import CLASSES

SITES = ("input", "pre-output", "through-time")
CONFIG = ClassifierConfig(hidden=8, embedding=4)
SETTINGS = ClassifierSettings(epochs=2, batch=16, lr=0.02, mixup="input")


def words(count: int = 60) -> Sequences:
    """Accepted if they end in 1."""
    texts = [format(number, "b") for number in range(count)]
    return Sequences.from_words(texts, [int(text.endswith("1")) for text in texts])


def records(folder: Path) -> list[dict[str, Any]]:
    return [record for record in RunFolder(folder).metrics() if "epoch" in record]


@pytest.mark.parametrize("site", SITES)
def test_what_is_learnt_from_pairs_holds_for_sequences_as_they_are(site: str, tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=8, mixup=site, alpha=0.2, rho=0.1)
    result = train_classifier(CONFIG, settings, words(), words(), {}, tmp_path / "run")
    found = records(tmp_path / "run")
    assert found[-1]["train_loss"] < found[0]["train_loss"]
    assert found[-1]["clean_loss"] < found[-1]["train_loss"]
    assert result.valid.soft.error < 0.05
    model, told = load_classifier(tmp_path / "run")
    assert told["training"]["mixup"] == site
    assert model.classify(["101", "10"]).tolist() == [1, 0]


@pytest.mark.parametrize("pairing", ["double", "permute"])
def test_an_epoch_has_as_many_updates_with_pairs_as_without(pairing: str, tmp_path: Path) -> None:
    train_classifier(CONFIG, replace(SETTINGS, pairing=pairing), words(), words(), {}, tmp_path / "mixed")
    train_classifier(CONFIG, replace(SETTINGS, mixup="none"), words(), words(), {}, tmp_path / "plain")
    mixed, plain = (records(tmp_path / name)[-1]["updates"] for name in ("mixed", "plain"))
    assert mixed == plain
    assert "clean_loss" not in records(tmp_path / "plain")[-1]


def test_a_last_example_alone_is_trained_on_as_it_is(tmp_path: Path) -> None:
    train_classifier(CONFIG, replace(SETTINGS, epochs=1, pairing="derange"), words(33), words(), {}, tmp_path / "run")
    assert records(tmp_path / "run")[-1]["updates"] == 3


def test_pictures_are_mixed_by_their_numbers(tmp_path: Path) -> None:
    values = np.zeros((40, 4, 4), dtype=np.uint8)
    values[::2, :2] = 255
    labels = np.arange(40) % 2
    pictures = Images(
        values=values.reshape(40, 16), labels=labels, classes=("top", "none"), height=4, width=4, by="rows"
    )
    config = ClassifierConfig(hidden=8, readout="h")
    settings = replace(SETTINGS, epochs=4, mixup="through-time")
    result = train_classifier(config, settings, pictures, pictures, {}, tmp_path / "run")
    assert result.valid.soft.error == 0.0


def test_lengths_grow_by_the_loss_of_words_as_they_are(tmp_path: Path) -> None:
    """That of mixed labels has a floor above what counts as solved, so the lesson would never end."""
    settings = replace(SETTINGS, epochs=8, lr=0.05, alpha=1.0, mixup="pre-output", curriculum_start=5, solved=0.2)
    train_classifier(CONFIG, settings, words(120), words(), {}, tmp_path / "run")
    found = records(tmp_path / "run")
    assert found[-1]["longest"] > found[0]["longest"]
    assert min(record["train_loss"] for record in found) > 0.2


def test_callbacks_see_the_pairs_too(tmp_path: Path) -> None:
    acting = (RoundedWeights(levels=5),)
    train_classifier(CONFIG, replace(SETTINGS, epochs=1), words(), words(), {}, tmp_path / "run", callbacks=acting)
    weights, _ = RunFolder(tmp_path / "run").load_model()
    assert len(weights["head.weight"].unique()) <= 5


def test_the_loss_is_weighed_by_the_mean_coefficient_and_so_are_the_errors() -> None:
    """Known answer K21 of the coefficients (0.9, 0.5, 0.2): 0.5333 and 0.4667."""
    pairs = Pairs.of(
        torch.tensor([[0.9], [0.5], [0.2]]), first=torch.tensor([0]), second=torch.tensor([1]), lengths=[3, 3]
    )
    logits = torch.tensor([[1.0, 3.0]])
    loss, wrong = CLASSES.mixed_loss(logits, torch.tensor([0, 1]), pairs)
    both = -logits.log_softmax(1)[0]
    torch.testing.assert_close(loss, 0.8 / 1.5 * both[0] + 0.7 / 1.5 * both[1])
    torch.testing.assert_close(wrong, torch.tensor(2 * 0.8 / 1.5))  # of two labels


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"mixup": "output"}, "mixup"),
        ({"mixup": "input", "alpha": -1.0}, "alpha"),
        ({"mixup": "input", "rho": 2.0}, "rho"),
        ({"pairing": "nearest"}, "pairing"),
        ({"lengths": "cut"}, "lengths"),
        ({"mixup": "input", "batch": 1}, "batch"),
    ],
)
def test_settings_of_mixing_that_are_none_are_refused_by_name(given: dict[str, Any], where: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        ClassifierSettings(**given)
    assert refused.value.where == f"ClassifierSettings.{where}"


def test_a_graph_cannot_hold_pairs(tmp_path: Path) -> None:
    alike = Sequences.from_words(["01", "10", "11", "00"], [0, 1, 1, 0])
    with pytest.raises(ArgumentError, match="pairs are drawn on the host"):
        train_classifier(CONFIG, SETTINGS, alike, alike, {}, tmp_path / "run", graph=True)


def test_steps_are_not_mixed_here(tmp_path: Path) -> None:
    task = copying(delay=3, n=2, count=10)
    with pytest.raises(ArgumentError, match="classifier of steps"):
        train_steps(StepConfig(hidden=4), SETTINGS, task, task, {}, tmp_path / "run")
