"""The recipes of state-regularized networks ask for what the paper did, run, resume, and judge honestly."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.automata import load_machine, witness
from statewise.data import tomita
from statewise.errors import ArgumentError, DivergedError, RunFolderError
from statewise.recipes import RECIPES, Outcome, Request, find_recipe, reproduce
from statewise.recipes.automata import AutomatonCase
from statewise.recipes.cases import Case
from statewise.recipes.example_table import ExampleTable
from statewise.recipes.examples import ExampleCase, Scored, finished
from statewise.recipes.lines import Line
from statewise.recipes.published_states import PARENTHESES, TABLE1, TABLE2
from statewise.recipes.results import write_results
from statewise.recipes.state_tomita import task_of
from statewise.report import compare_with_published
from statewise.train import train_classifier
from statewise.train.harden import LearntAutomaton, learn_automaton
from statewise.train.run import RunFolder

CPU = torch.device("cpu")
TABLES = [name for name, recipe in RECIPES.items() if isinstance(recipe, ExampleTable)]


def smoke(folder: Path, name: str, **asked: Any) -> Outcome:
    return reproduce(find_recipe(f"state-regularized/{name}"), Request(scale="smoke", **asked), folder)


def case_of(name: str, **asked: Any) -> ExampleCase:
    recipe = find_recipe(f"state-regularized/{name}")
    case = recipe.planned(recipe.complete(Request(**asked)))[0]
    assert isinstance(case, ExampleCase)
    return case


@pytest.mark.parametrize("name", TABLES)
def test_the_smoke_of_every_table_runs_and_names_every_test_of_every_row(tmp_path: Path, name: str) -> None:
    outcome = smoke(tmp_path, name.removeprefix("state-regularized/"), rows=("all",), sizes=("all",), epochs=1)
    recipe = outcome.recipe
    assert isinstance(recipe, ExampleTable)
    assert {(one.line.size, one.line.row) for one in outcome.measured} == {
        (size, row) for size in recipe.sizes for row in recipe.rows
    }
    published = {(size, row, test) for size in recipe.sizes for row in recipe.rows for test in recipe.beside(size, row)}
    made = {(one.line.size, one.line.row, test) for one in outcome.measured for test in one.tests}
    assert published <= made, "the sets are called as the published numbers are"
    table = compare_with_published(outcome)
    assert len(table.rows) == len(made)
    assert "SMOKE RUN" in table.notes[0]
    found = json.loads(write_results(outcome, tmp_path, device=CPU, command="typed").read_text())
    assert found["comparable"] is False
    assert set(found["data"]["examples"]) == set(recipe.sizes)
    assert found["runs"][0]["model"]["cell"] == ("peephole" if name.endswith("table2") else "lstm")
    assert {run["seed"] for run in found["runs"]} == {1111}


def test_a_finished_run_is_found_and_more_epochs_go_on(tmp_path: Path) -> None:
    asked = {"rows": ("sr-lstm-p",), "sizes": ("small",), "overrides": (("schedule", "constant"),)}
    first = smoke(tmp_path, "table1", epochs=1, **asked)
    place = tmp_path / first.measured[0].name
    before = (place / "model.safetensors").stat().st_mtime_ns
    assert smoke(tmp_path, "table1", epochs=1, **asked).measured == first.measured
    assert (place / "model.safetensors").stat().st_mtime_ns == before
    longer = smoke(tmp_path, "table1", epochs=3, **asked).measured[0]
    whole = smoke(tmp_path / "whole", "table1", epochs=3, **asked).measured[0]
    assert (longer.epochs, longer.tests, longer.valid) == (3, whole.tests, whole.valid)
    assert smoke(tmp_path, "table1", epochs=2, **asked).measured[0] == longer, "more than was asked is taken"


def test_other_epochs_of_a_run_whose_rate_falls_to_its_last_are_refused(tmp_path: Path) -> None:
    asked = {"rows": ("lstm",), "overrides": (("schedule", "cosine"), ("hidden", 4))}
    first = smoke(tmp_path, "table7", epochs=2, **asked)
    assert smoke(tmp_path, "table7", epochs=2, **asked).measured == first.measured
    for epochs in (1, 3):
        with pytest.raises(RunFolderError, match=rf"training\.epochs was 2 and is now {epochs}.*another folder"):
            smoke(tmp_path, "table7", epochs=epochs, **asked)


def test_updates_that_were_left_out_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    norms = itertools.chain([math.inf], itertools.repeat(1.0))
    monkeypatch.setattr("statewise.train.eager.clip_grad_norm_", lambda *_: torch.tensor(next(norms)))
    outcome = smoke(tmp_path, "table7", epochs=1, rows=("lstm", "lstm-p"))
    assert [one.skipped for one in outcome.measured] == [1, 0]
    runs = json.loads(write_results(outcome, tmp_path, device=CPU).read_text())["runs"]
    assert [run["skipped"] for run in runs] == [1, 0]
    told = " ".join(compare_with_published(outcome).notes)
    assert "their gradient overflowed: mnist-lstm-seed1111 1 of 4." in told


def test_automata_are_not_learnt_by_epochs() -> None:
    recipe = find_recipe("state-regularized/tomita")
    with pytest.raises(ArgumentError, match=r"--epochs of state-regularized/tomita: got 3.*Leave it out"):
        recipe.complete(Request(epochs=3))
    whole = recipe.complete(Request())
    assert recipe.complete(whole) == whole
    assert recipe.complete(Request(scale="smoke")).epochs is None


def test_a_run_that_its_patience_ended_is_finished_and_other_settings_are_another_run(tmp_path: Path) -> None:
    asked = {"rows": ("lstm",), "overrides": (("patience", 1), ("lr", 1e-9), ("curriculum_start", None))}
    one = smoke(tmp_path, "table3", epochs=9, **asked).measured[0]
    assert one.epochs < 9
    outcome = smoke(tmp_path, "table3", epochs=9, **asked)
    case, sets = outcome.steps[one.name], outcome.data["100"]
    assert isinstance(case, ExampleCase)
    assert finished(case, sets, tmp_path / one.name) == one
    assert finished(case.overridden({"patience": 5}), sets, tmp_path / one.name) is None
    assert finished(case.overridden({"hidden": 7}), sets, tmp_path / one.name) is None


def test_a_run_that_diverges_is_noted_and_the_others_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverging(config: Any, *arguments: Any, **options: Any) -> Any:
        if config.cell == "peephole":
            raise DivergedError(where="epoch 1", got="a loss of nan", wanted="a finite one")
        return train_classifier(config, *arguments, **options)

    monkeypatch.setattr("statewise.recipes.examples.train_classifier", diverging)
    outcome = smoke(tmp_path, "table3", rows=("lstm-p", "lstm"), epochs=1)
    assert [one.line.row for one in outcome.measured] == ["lstm"]
    assert "a loss of nan" in outcome.failed["100-lstm-p-seed1111"]
    assert "diverged" in compare_with_published(outcome).markdown()


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"rows": ("lstm",), "epochs": 3}

    def stopped(*arguments: Any, **options: Any) -> Any:
        def stop(record: Any) -> None:
            raise KeyboardInterrupt

        return train_classifier(*arguments, **options, on_epoch=stop)

    with monkeypatch.context() as patch:
        patch.setattr("statewise.recipes.examples.train_classifier", stopped)
        with pytest.raises(KeyboardInterrupt):
            smoke(tmp_path / "stopped", "table7", **asked)
    one, whole = (smoke(tmp_path / name, "table7", **asked).measured[0] for name in ("stopped", "whole"))
    assert (one.tests, one.valid, one.epochs) == (whole.tests, whole.valid, 3)


def test_seeds_are_told_as_mean_median_and_the_best_by_validation() -> None:
    recipe = find_recipe("state-regularized/table1")
    errors = {1111: (0.3, 0.01), 1112: (0.1, 0.05), 1113: (0.2, 0.30)}  # on validation, on every test
    measured = [
        Scored(
            name=f"small-sr-lstm-p-seed{seed}",
            line=Line(row="sr-lstm-p", size="small"),
            seed=seed,
            epochs=epochs,
            seconds=10.0,
            valid={"error": valid, "loss": 1.0},
            tests={name: {"error": test, "loss": 1.0} for name in PARENTHESES},
        )
        for epochs, (seed, (valid, test)) in enumerate(errors.items(), start=4)
    ]
    sheet = recipe.sheet(measured, recipe.complete(Request()))
    assert sheet.columns[3] == "published"
    assert sheet.rows[0] == [
        *("sr-lstm-p", "small", PARENTHESES[0]),
        *("0.017", "0.120 ± 0.157", "0.050", "0.050", "3", "4-6", "30"),
    ]
    assert [row[3] for row in sheet.rows] == [f"{value:.3f}" for value in TABLE1["small", "sr-lstm-p"]]


def test_the_networks_are_those_of_the_paper() -> None:
    found = {row: case_of("table1", rows=(row,)).config for row in find_recipe("state-regularized/table1").rows}
    assert {row: (config.cell, bool(config.centroids)) for row, config in found.items()} == {
        "lstm": ("lstm", False),
        "lstm-p": ("peephole", False),
        "sr-lstm": ("lstm", True),
        "sr-lstm-p": ("peephole", True),
    }
    assert [case_of("table2", rows=(row,)).config.centroids for row in TABLE2] == [(2,), (5,), (10,), (50,)]
    pixels = case_of("table7", rows=("sr-lstm-p-50",), epochs=7, precision="bf16")
    assert (pixels.config.cell, pixels.config.hidden, pixels.config.centroids) == ("peephole", 256, (50,))
    assert (pixels.settings.epochs, pixels.settings.precision, pixels.settings.schedule) == (7, "bf16", "cosine")
    reviews = case_of("table5", rows=("sr-lstm-p-50",)).config
    assert (reviews.cell, reviews.hidden, reviews.centroids) == ("peephole", 256, (50,))
    assert case_of("table5", rows=("sr-lstm",)).config.centroids == (10,)
    assert [case_of("copying", sizes=(size,)).config.hidden for size in ("100", "500")] == [128, 256]
    memory = case_of("copying", rows=("sr-lstm-p-20",))
    assert (memory.config.centroids, memory.settings.optimizer, memory.settings.batch) == ((20,), "adam", 128)


def test_short_reviews_are_the_last_words_or_the_first_of_the_same_reviews() -> None:
    recipe = find_recipe("state-regularized/table4")
    assert isinstance(recipe, ExampleTable)
    last, first = (
        recipe.sets(Request(scale="smoke", overrides=overrides), "256", None) for overrides in ((), (("first", 1),))
    )
    for ends, begins in zip(last.train.texts(), first.train.texts(), strict=True):
        assert len(ends.split()) <= 3
        assert len(begins.split()) == len(ends.split())
    assert last.train.texts() != first.train.texts()
    for sets, cut in ((last, slice(-3, None)), (first, slice(3))):
        whole = sets.tests["train 200"].texts()  # 30 words: all that a review of the smoke set has
        assert [text.split()[cut] for text in whole[: len(sets.train)]] == [each.split() for each in sets.train.texts()]


def test_settings_can_be_set_and_what_has_no_centroids_gets_none() -> None:
    asked = (("hidden", 64), ("lr", 0.002), ("centroids", 7))
    assert case_of("table1", rows=("sr-lstm",), overrides=asked).config.centroids == (7,)
    plain = case_of("table1", rows=("lstm",), overrides=asked)
    assert (plain.config.hidden, plain.settings.lr, plain.config.centroids) == (64, 0.002, ())
    recipe = find_recipe("state-regularized/lm")
    language = recipe.planned(recipe.complete(Request(overrides=(("hidden", 20), ("lr", 1.0)))))[0]
    assert isinstance(language, Case)
    assert (language.config.hidden, language.settings.lr) == ((20,), 1.0)


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("table1", ("hiden", 3), "hidden"),
        ("table1", ("hidden", -3), "ClassifierConfig.hidden"),
        ("table1", ("lr", "fast"), "such as 0.01"),
        ("table1", ("max_length", "long"), "such as 100"),
        ("tomita", ("restarts", 0), "Hardening.restarts"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_before_anything_is_made(
    name: str, wrong: tuple[str, Any], told: str
) -> None:
    with pytest.raises(ArgumentError, match=told):
        find_recipe(f"state-regularized/{name}").complete(Request(overrides=(wrong,)))


@pytest.mark.usefixtures("as_users_have_it")
def test_what_has_an_option_cannot_be_set() -> None:
    with pytest.raises(ArgumentError, match="--epochs"):
        Request(overrides=(("epochs", 3),))


def test_an_automaton_is_learnt_judged_written_and_found_again(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, "tomita", rows=("1",))
    (one,) = outcome.measured
    target = tomita(1).minimal
    assert target is not None
    machine = load_machine(tmp_path / one.name / "machine.json")
    assert one.found["recovered"] is (witness(machine, target) is None)
    assert one.found["recovered"], "the simplest language in a hundred steps"
    assert (tmp_path / one.name / "machine.svg").read_text().startswith("<svg")
    before = (tmp_path / one.name / "result.json").stat().st_mtime_ns
    assert smoke(tmp_path, "tomita", rows=("1",)).measured == [one]
    assert (tmp_path / one.name / "result.json").stat().st_mtime_ns == before
    assert "1 of 1" in compare_with_published(outcome).markdown()
    found = json.loads(write_results(outcome, tmp_path, device=CPU).read_text())
    assert found["runs"][0]["settings"]["seed"] == 0
    assert found["data"]["words"][one.name]["train"] > 200


def test_a_machine_that_is_not_the_true_one_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*arguments: Any, **options: Any) -> LearntAutomaton:
        return learn_automaton(*arguments, hardening=replace(options["hardening"], steps=1, restarts=1))

    monkeypatch.setattr("statewise.recipes.automata.learn_automaton", short)
    outcome = smoke(tmp_path, "tomita", rows=("5", "random"), count=1)
    assert [one.found["recovered"] for one in outcome.measured] == [False, False]
    table = compare_with_published(outcome)
    assert [row[4] for row in table.rows] == ["0 of 1", "0 of 1"]
    assert any("multiplicative-5-seed0 (" in note for note in table.notes)


def test_random_machines_have_the_sizes_that_were_promised_and_seeds_of_their_own() -> None:
    recipe = find_recipe("state-regularized/tomita")
    cases = recipe.steps(recipe.complete(Request(rows=("random",), count=12)))
    tasks = [task_of(case) for case in cases if isinstance(case, AutomatonCase)]
    assert len(tasks) == 12
    assert {len(task.target) for task in tasks} <= set(range(4, 9))
    assert {len(task.target.alphabet) for task in tasks} == {2, 3, 4}
    assert len({task.target for task in tasks}) == 12
    grammars = recipe.steps(recipe.complete(Request(rows=("5",))))
    assert [case.name for case in grammars] == [f"multiplicative-5-seed{seed}" for seed in range(10)]


def test_the_language_models_claim_no_difference_to_another_text(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, "lm", epochs=1)
    assert [one.line.row for one in outcome.measured] == ["lstm", "lstm-p", "sr-lstm", "sr-lstm-p"]
    full = Outcome(outcome.recipe, outcome.recipe.complete(Request()), outcome.data, outcome.measured, outcome.steps)
    table = compare_with_published(full)
    assert "test published (not comparable)" in table.columns
    assert {row[-4] for row in table.rows} == {"-"}
    assert RunFolder(tmp_path / outcome.measured[-1].name).config()["model"]["centroids"] == 8
