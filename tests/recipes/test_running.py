"""Runs are made once; one that comes to nothing does not stop the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.data import TokenStream, sample_corpus
from statewise.errors import DivergedError
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes.results import write_results
from statewise.report import compare_with_published
from statewise.train.fit import train_language_model
from statewise.train.run import RunFolder

CPU = torch.device("cpu")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def smoke(folder: Path, name: str = "noisin/table3", **asked: Any) -> Outcome:
    return reproduce(find_recipe(name), Request(scale="smoke", **{"epochs": 1, **asked}), folder)


def test_a_smoke_run_needs_no_data_and_measures_what_the_run_folder_says(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, rows=("none",))
    (one,) = outcome.measured
    last = RunFolder(tmp_path / one.name).metrics()[-1]
    assert (one.valid, one.test) == (last["valid_perplexity"], last["test_perplexity"])
    assert outcome.corpus is sample_corpus()
    assert one.epochs == len(one.curve) == 1


def test_a_run_with_more_epochs_than_asked_for_is_taken_as_it_is(tmp_path: Path) -> None:
    longer = smoke(tmp_path, rows=("none",), epochs=2).measured[0]
    assert smoke(tmp_path, rows=("none",), epochs=1).measured[0].test == longer.test


def test_a_run_that_diverges_is_noted_and_the_others_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverging(config: Any, *arguments: Any, **options: Any) -> Any:
        if config.noise == "gaussian":
            raise DivergedError(where="epoch 1", got="a loss of nan", wanted="a finite one")
        return train_language_model(config, *arguments, **options)

    monkeypatch.setattr("statewise.recipes.running.train_language_model", diverging)
    outcome = smoke(tmp_path, rows=("gaussian", "none"))
    assert [one.line.row for one in outcome.measured] == ["none"]
    assert "a loss of nan" in outcome.failed["medium-gaussian-recurrent-seed1111"]
    path = write_results(outcome, tmp_path, device=CPU)
    assert json.loads(path.read_text())["failed"]
    assert "diverged" in compare_with_published(outcome).markdown()


def test_fine_tuning_begins_with_the_best_weights_and_adapting_with_the_fine_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sample_corpus()
    short = replace(whole, valid=TokenStream(whole.valid[:200].numpy()), test=TokenStream(whole.test[:200].numpy()))
    monkeypatch.setattr("statewise.recipes.recipe.sample_corpus", lambda: short)
    outcome = smoke(tmp_path, "noisin/table5", finetune=1)
    trained, tuned, adapted = outcome.measured
    first, then = trained.curve[-1]["train_perplexity"], tuned.curve[0]["train_perplexity"]
    assert then < first
    assert {one.parameters for one in outcome.measured} == {trained.parameters}
    settings = json.loads((tmp_path / adapted.name / "adapted.json").read_text())["settings"]
    assert settings["model"] == tuned.name
    assert smoke(tmp_path, "noisin/table5", finetune=1).measured == outcome.measured
