"""The recipes of Sequence Mixup's taggers ask for what the paper did, run, are found again, and judge by pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.recipes import RECIPES, Outcome, Request, find_recipe, reproduce
from statewise.recipes.lines import Line
from statewise.recipes.mixup_tagging import TEST, TaggerTable, significance
from statewise.recipes.published_mixup import TABLE1, TABLE1_STANDARD
from statewise.recipes.results import write_results
from statewise.recipes.tags import TagCase, Tagged, finished
from statewise.report import compare_with_published
from statewise.report.pictures import draw_pictures

CPU = torch.device("cpu")
PICTURES = {"figure4": {"rho.png"}, "figure5": {"spectra.png"}}
TABLES = [name for name, recipe in RECIPES.items() if isinstance(recipe, TaggerTable)]


def smoke(folder: Path, name: str, **asked: Any) -> Outcome:
    return reproduce(find_recipe(f"sequence-mixup/{name}"), Request(scale="smoke", **asked), folder)


def case_of(name: str, row: str, **asked: Any) -> TagCase:
    recipe = find_recipe(f"sequence-mixup/{name}")
    case = recipe.planned(recipe.complete(Request(rows=(row,), **asked)))[0]
    assert isinstance(case, TagCase)
    return case


@pytest.mark.parametrize("name", TABLES)
def test_the_smoke_of_every_table_runs_and_has_every_row(tmp_path: Path, name: str) -> None:
    rows = ("standard", "input-0.5", "through-time-0.5") if name.endswith(("table1", "figure4")) else ("all",)
    outcome = smoke(tmp_path, name.removeprefix("sequence-mixup/"), rows=rows, epochs=1)
    table = compare_with_published(outcome)
    assert {one.line.row for one in outcome.measured} == set(outcome.request.rows)
    assert "SMOKE RUN" in table.notes[0]
    found = json.loads(write_results(outcome, tmp_path, device=CPU, command="typed").read_text())
    assert found["comparable"] is False
    for run in found["runs"]:
        assert {"f1", "strict_f1", "loss", "ece"} <= run["tests"][TEST].keys()
        assert "tagged" not in run
    drawn = {path.name for path in draw_pictures(outcome, tmp_path)}
    assert drawn == PICTURES.get(name.removeprefix("sequence-mixup/"), set())
    assert all((tmp_path / picture).stat().st_size for picture in drawn)
    if name.endswith("figure5"):
        spectra = found["runs"][0]["spectra"]
        assert all(0 <= one["leakage"] <= 1 for one in spectra.values())


def test_a_finished_run_is_found_and_one_with_other_settings_is_not(tmp_path: Path) -> None:
    first = smoke(tmp_path, "table1", rows=("input-0.5",), epochs=1)
    one = first.measured[0]
    before = (tmp_path / one.name / "model.safetensors").stat().st_mtime_ns
    again = smoke(tmp_path, "table1", rows=("input-0.5",), epochs=1)
    assert again.measured == first.measured
    assert (tmp_path / one.name / "model.safetensors").stat().st_mtime_ns == before
    case, sets = again.steps[one.name], again.data["sets"]
    assert isinstance(case, TagCase)
    assert finished(case, sets, tmp_path / one.name)
    assert not finished(case.overridden({"alpha": 0.7}), sets, tmp_path / one.name)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_table_1_is_trained_as_published(cell: str) -> None:
    case = case_of("table1", "through-time-0.2", sizes=(cell,), seeds=1)
    config, settings = case.config, case.settings
    assert (config.cell, config.hidden, config.layers, config.head) == (cell, 256, 1, "softmax")
    assert not config.bidirectional
    assert (config.characters, config.dropout, config.word_dropout) == (0, 0.0, 0.0)
    assert (settings.optimizer, settings.lr, settings.schedule, settings.step_every) == ("sgd", 0.1, "steps", 10)
    assert (settings.epochs, settings.batch, settings.clip, settings.divide) == (50, 32, 5.0, 2.0)
    assert (settings.mixup, settings.alpha, settings.rho) == ("through-time", 0.2, 0.0)
    assert (settings.pairing, settings.passes, settings.lengths) == ("double", 2, "zero")
    assert case_of("table1", "standard", sizes=(cell,)).settings.passes == 1


def test_table_2_has_the_published_network_and_dropout_and_targets_that_fit_the_mixing() -> None:
    standard, mixed = (case_of("table2", row) for row in ("standard", "pre-output"))
    assert (standard.config.head, standard.config.bidirectional, standard.config.dropout) == ("crf", True, 0.5)
    assert (standard.config.word_dropout, mixed.config.word_dropout) == (0.05, 0.0)
    settings = mixed.settings
    assert (settings.mixup, settings.alpha, settings.rho, settings.crf_mode) == ("pre-output", 0.1, 0.0, "coupled")
    assert (settings.pairing, settings.passes, settings.lengths) == ("sorted", 1, "handover")
    assert (settings.optimizer, settings.lr, settings.schedule, settings.epochs) == ("adam", 0.0015, "cosine", 60)
    assert replace(standard.settings, mixup="pre-output", alpha=0.1) == replace(
        settings, crf_mode="prefix", pairing="double", lengths="zero"
    )


def test_rows_of_figure_4_set_rho() -> None:
    case = case_of("figure4", "input-0.25")
    assert (case.settings.mixup, case.settings.rho, case.settings.alpha) == ("input", 0.25, 0.5)


def test_mixing_is_not_set_where_nothing_is_mixed() -> None:
    overridden = case_of("table1", "standard").overridden({"alpha": 2.0, "mixup": "input", "lr": 0.5}).settings
    assert (overridden.mixup, overridden.alpha, overridden.lr) == ("none", 0.5, 0.5)


def test_every_cell_and_alpha_has_three_published_numbers() -> None:
    assert set(TABLE1) == set(TABLE1_STANDARD)
    assert all(
        len(row) == 3 and all(65 < each < 80 for each in row) for rows in TABLE1.values() for row in rows.values()
    )
    assert find_recipe("sequence-mixup/table1").beside("lstm", "input-0.5") == (74.73, None)  # type: ignore[attr-defined]


def test_the_paired_test_tells_a_difference_from_none() -> None:
    gold = (("B-X", "O"),) * 40

    def run(given: tuple[tuple[str, str], ...]) -> Tagged:
        return Tagged(name="x", line=Line(row="x"), seed=0, tagged={TEST: (gold, given)})

    right, wrong = run(gold), run((("O", "O"),) * 20 + gold[20:])
    assert significance([(right, right)]) == 1.0
    assert significance([(right, wrong)]) < 0.01
