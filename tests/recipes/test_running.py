"""Runs are made once; one that comes to nothing does not stop the others."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.data import Corpus, TokenStream, sample_corpus
from statewise.errors import ArgumentError, DivergedError
from statewise.models import Score
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes.cases import Case
from statewise.recipes.results import write_results
from statewise.recipes.running import finished, stopped_early
from statewise.report import compare_with_published
from statewise.report.comparison import curves
from statewise.train.fit import train_language_model
from statewise.train.run import RunFolder
from statewise.train.settings import TrainingSettings

CPU = torch.device("cpu")


def smoke(folder: Path, name: str = "noisin/table3", **asked: Any) -> Outcome:
    return reproduce(find_recipe(name), Request(scale="smoke", **{"epochs": 1, **asked}), folder)


def test_a_smoke_run_needs_no_data_and_measures_what_the_run_folder_says(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, rows=("none",))
    (one,) = outcome.measured
    last = RunFolder(tmp_path / one.name).metrics()[-1]
    assert (one.valid, one.test) == (last["valid_perplexity"], last["test_perplexity"])
    assert outcome.data is sample_corpus()
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


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smoke run has a short text."""
    whole = sample_corpus()
    parts = (TokenStream(part.numpy()) for part in (whole.train[:1500], whole.valid[:150], whole.test[:150]))
    short = Corpus(whole.name, whole.vocabulary, *parts)
    monkeypatch.setattr("statewise.recipes.language_recipe.sample_corpus", lambda: short)


@pytest.mark.usefixtures("brief")
def test_fine_tuning_begins_with_the_best_weights_and_adapting_with_the_fine_tuned(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, "noisin/table5", finetune=1)
    trained, tuned, adapted = outcome.measured
    first, then = trained.curve[-1]["train_perplexity"], tuned.curve[0]["train_perplexity"]
    assert then < first
    assert {one.parameters for one in outcome.measured} == {trained.parameters}
    settings = json.loads((tmp_path / adapted.name / "adapted.json").read_text())["settings"]
    assert settings["model"] == tuned.name
    assert smoke(tmp_path, "noisin/table5", finetune=1).measured == outcome.measured


@pytest.mark.usefixtures("brief")
def test_fine_tuning_that_may_take_longer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statewise.recipes.running.dynamic_perplexity", lambda *_, **__: Score(2.0, 1))
    assert smoke(tmp_path, "noisin/table5", finetune=1).measured[1].epochs == 1
    longer = smoke(tmp_path, "noisin/table5", finetune=3)
    assert longer.measured[1].epochs == 3
    assert smoke(tmp_path, "noisin/table5", finetune=2).measured[1] == longer.measured[1]


@pytest.mark.parametrize(
    ("rules", "valid", "ended"),
    [
        ({}, [9, 8, 9, 9, 9, 9, 9, 9, 9], False),
        ({"patience": 2}, [9, 8, 9], False),
        ({"patience": 2}, [9, 8, 9, 9], True),
        ({"stop_non_monotone": True}, [9, 8, 7, 6, 5, 4], False),
        ({"stop_non_monotone": True}, [9, 8, 7, 6, 5, 4, 9.5], True),  # one bad epoch after a new best
        ({"stop_non_monotone": True}, [9, 8, 8.5, 8.5, 8.5, 8.5, 8.5, 8.5], True),
    ],
)
def test_a_short_run_has_stopped_early_only_if_its_rules_say_so(
    rules: dict[str, Any], valid: list[float], ended: bool
) -> None:
    assert stopped_early(TrainingSettings(**rules), valid) is ended


def test_a_run_that_was_ended_by_its_rule_is_finished(tmp_path: Path) -> None:
    recipe = find_recipe("noisin/table3")
    case = recipe.steps(recipe.complete(Request(scale="smoke", rows=("none",))))[0]
    assert isinstance(case, Case)
    settings = replace(case.settings, epochs=30, non_monotone=1, stop_non_monotone=True, lr=60.0, divide=None)
    case = replace(case, settings=settings, config=replace(case.config, hidden=(4,)))
    result = train_language_model(case.config, settings, sample_corpus(), tmp_path / "run")
    assert result.epochs < 30, "the rule has ended the run"
    found = finished(case, sample_corpus(), tmp_path / "run")
    assert found is not None
    assert found.epochs == result.epochs
    without = replace(case, settings=replace(settings, stop_non_monotone=False))
    assert finished(without, sample_corpus(), tmp_path / "run") is None


@pytest.mark.usefixtures("brief")
def test_an_infinite_perplexity_is_written_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statewise.recipes.running.dynamic_perplexity", lambda *_, **__: Score(5000.0, 1))
    for _ in range(2):
        outcome = smoke(tmp_path, "noisin/table5", finetune=0)
        assert outcome.measured[1].test == math.inf
    assert json.loads((tmp_path / outcome.measured[1].name / "adapted.json").read_text())["test"] == "inf"


def test_numbers_that_are_not_finite_can_be_told(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, rows=("none",), seeds=2)
    folder = tmp_path / outcome.measured[0].name
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    epoch, last = (json.dumps({**json.loads(lines[at]), "valid_perplexity": ("inf", None)[at]}) for at in (0, -1))
    (folder / "metrics.jsonl").write_text(f"{epoch}\n{last}\n")
    again = smoke(tmp_path, rows=("none",), seeds=2)
    assert again.measured[0].curve[0]["valid_perplexity"] == math.inf
    assert math.isnan(again.measured[0].valid)
    assert "nan ± nan" in compare_with_published(again).markdown()
    assert "inf" in curves(again).markdown()
    write_results(again, tmp_path, device=CPU)


@pytest.mark.usefixtures("brief")
def test_fine_tuning_belongs_to_the_weights_that_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statewise.recipes.running.dynamic_perplexity", lambda *_, **__: Score(2.0, 1))
    short, long, again, longer = (
        smoke(tmp_path, "noisin/table5", epochs=epochs, finetune=finetune)
        for epochs, finetune in ((1, 1), (3, 1), (1, 1), (1, 2))
    )
    assert short.measured[1].name != long.measured[1].name
    # More epochs than were asked for are taken, and then the fine-tuning is that of those.
    assert again.measured == long.measured
    assert longer.measured[0] == long.measured[0]
    assert (longer.measured[1].name, longer.measured[1].epochs) == (long.measured[1].name, 2)
    for outcome in (short, long, again, longer):
        assert outcome.measured[1].valid <= outcome.measured[0].valid
        write_results(outcome, tmp_path, device=CPU)


def test_what_is_named_twice_is_one_run(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, rows=("none", "none"), sizes=("medium", "medium"), placements=("recurrent", "recurrent"))
    assert len(outcome.measured) == 1
    assert "±" not in compare_with_published(outcome).markdown()


def test_a_finished_run_on_the_same_text_by_another_name_is_found(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, rows=("none",))
    (one,) = outcome.measured
    case = outcome.steps[one.name]
    assert isinstance(case, Case)
    whole = outcome.data
    elsewhere = Corpus("elsewhere", whole.vocabulary, whole.train, whole.valid, whole.test)
    assert finished(case, elsewhere, tmp_path / one.name) == one


def test_counting_parameters_leaves_the_generator_of_the_user_alone(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    smoke(tmp_path, rows=("none",))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("as_users_have_it")
def test_an_unknown_convention_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"--dynamic: got newer, wanted one of new, old"):
        Request(convention="newer")  # type: ignore[arg-type]
