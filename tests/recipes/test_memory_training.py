"""The recipes that train networks to remember: they run, go on, and claim nothing that was not found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from capacities import bounded
from statewise.data import CopyingMemory
from statewise.errors import ArgumentError
from statewise.recipes import (
    Outcome,
    Request,
    find_recipe,
    memory_capacity,
    memory_depth,
    memory_pixels,
    reproduce,
)
from statewise.recipes.lines import Line
from statewise.recipes.results import write_results
from statewise.recipes.studies import Studied
from statewise.report import compare_with_published
from statewise.report.pictures import draw_pictures
from statewise.sweep.network_capacity import NetworkCapacity
from statewise.sweep.pool import Pool
from statewise.sweep.trial import REASONS

FIGURES = [recipe.name for recipe in memory_capacity.RECIPES]


def run(name: str, folder: Path, **asked: Any) -> Outcome:
    return reproduce(find_recipe(name), Request(scale="smoke", **asked), folder)


def made(row: str, size: str = "8192", *, smoke: bool = False, **found: Any) -> Studied:
    return Studied(name=row, line=Line(row=row, size=size), seed=0, found=found, smoke=smoke)


@pytest.mark.parametrize("name", ["depth-memory/reduced", "depth-memory/figure3.1-bits", "depth-memory/tableC1"])
def test_a_smoke_run_has_every_row_a_picture_and_is_found_again(name: str, tmp_path: Path) -> None:
    outcome = run(name, tmp_path)
    assert {one.line.row for one in outcome.measured} == set(find_recipe(name).usual_rows)
    text = compare_with_published(outcome).markdown()
    assert "SMOKE RUN" in text
    assert "holds" not in text.lower().replace("does not hold", "")
    (picture,) = draw_pictures(outcome, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = run(name, tmp_path)
    assert [one.found for one in again.measured] == [one.found for one in outcome.measured]
    assert [one.seconds for one in again.measured] == [one.seconds for one in outcome.measured], "not made again"


@pytest.mark.parametrize("name", FIGURES)
def test_figures_search_the_values_of_the_thesis_for_the_widths_of_their_budgets(name: str) -> None:
    recipe = find_recipe(name)
    assert isinstance(recipe, memory_capacity.CapacityFigure)
    widths = {
        (size, row): recipe.settings(Line(row=row, size=size), smoke=False).network(recipe.task).width
        for size in recipe.sizes
        for row in recipe.rows
    }
    if "3.1" in name:
        assert [widths["8192", row] for row in recipe.rows] == [76, 48, 39]
        assert [widths["65536", row] for row in recipe.rows] == [299, 164, 127]
    else:
        hard = recipe.task.harder(90)  # with a blank symbol
        settings = recipe.settings(Line(row="depth3", size="131072"), smoke=False)
        assert settings.network(hard).width == 188
    search = recipe.settings(Line(row="depth2", size=recipe.sizes[0]), smoke=False).search(recipe.task, recipe.values)
    assert search.values == recipe.values
    assert len(search.trials(search.networks[0], recipe.values[-1])) == 6
    assert (recipe.values[0], recipe.values[-1]) in {(0, 1500), (150, 1000), (60, 1500)}


def test_seeds_are_runs_of_a_network_and_not_lines_of_their_own(tmp_path: Path) -> None:
    outcome = run("depth-memory/reduced", tmp_path, rows=("depth2",), seeds=3)
    (one,) = outcome.measured
    assert isinstance(one, Studied)
    assert len(one.found["accuracies"]) == 3
    assert "0 to 2, side by side" in compare_with_published(outcome).markdown()
    assert len(list((tmp_path / "1024-depth2-seed0" / "runs").iterdir())) == 3


def test_settings_can_be_others_and_mistakes_are_told(tmp_path: Path) -> None:
    outcome = run("depth-memory/reduced", tmp_path, rows=("depth1",), overrides=(("iterations", 4), ("goal", 0.5)))
    assert isinstance(outcome.measured[0], Studied)
    assert outcome.measured[0].found["iterations"] == [4]
    with pytest.raises(ArgumentError, match="--set of depth-memory/reduced"):
        run("depth-memory/reduced", tmp_path / "x", overrides=(("learning", 4),))
    for told in ("depth", "seeds"):  # what the row says, or --seeds: the table would tell something else
        with pytest.raises(ArgumentError, match=f"--set of depth-memory/reduced: got {told}"):
            run("depth-memory/reduced", tmp_path / "x", overrides=((told, 2),))


def test_a_figure_whose_value_could_not_be_run_tells_why_and_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*told: Any, **others: Any) -> None:
        raise MemoryError("no room")

    asked: dict[str, Any] = {"rows": ("depth1",), "seeds": 1}
    with monkeypatch.context() as patch:
        patch.setattr(Pool, "advance", fails)
        outcome = run(FIGURES[0], tmp_path, **asked)
    assert "could not be run: MemoryError: no room" in compare_with_published(outcome).markdown()
    again = run(FIGURES[0], tmp_path, **asked)
    assert "could not be run" not in compare_with_published(again).markdown()
    assert isinstance(again.measured[0], Studied)
    assert again.measured[0].found["tries"]
    found = run(FIGURES[0], tmp_path, **asked)
    assert found.measured[0].seconds == again.measured[0].seconds, "not made again"
    more = run(FIGURES[0], tmp_path, rows=("depth1",), seeds=2)
    assert isinstance(more.measured[0], Studied)
    assert len(more.measured[0].found["tries"][0]["runs"]) == 4  # two rates


def test_pixels_in_another_precision_are_other_runs(tmp_path: Path) -> None:
    for precision, count in (("tf32", 1), ("single", 2)):
        outcome = run("depth-memory/tableC1", tmp_path, rows=("1x256",), precision=precision)
        assert f"Products in {precision}" in compare_with_published(outcome).markdown()
        assert len(list((tmp_path / "mnist-1x256-seed0" / "runs").glob("*/result.json"))) == count
    with pytest.raises(ArgumentError, match=r"Trial\.precision: got bf16, wanted one of single, tf32"):
        run("depth-memory/tableC1", tmp_path, rows=("1x256",), precision="bf16")


@pytest.mark.parametrize(
    ("name", "settings"), [(FIGURES[0], ("budget", "depth")), ("depth-memory/figure1.2", ("update", "dtype"))]
)
def test_what_a_line_is_called_by_cannot_be_set(name: str, settings: tuple[str, ...], tmp_path: Path) -> None:
    for setting in settings:
        with pytest.raises(ArgumentError, match=f"got {setting}"):
            run(name, tmp_path, overrides=((setting, 2),))


def searched(network: NetworkCapacity, size: str) -> Studied:
    found = network.describe()
    own = {"budget": int(size), "search_seconds": found["seconds"]}
    del found["size"]  # a line has a size of its own
    return made(f"depth{network.depth}", size, **found, **own)


def test_the_reduced_study_is_the_known_one() -> None:
    settings = memory_depth.DepthSettings()
    assert [replace(settings, depth=depth).width for depth in (1, 2, 3)] == [28, 17, 14]
    trial = settings.trials()[4]
    assert trial.task == CopyingMemory(m=20, n=8, delay=0)
    assert (trial.seed, trial.iterations, trial.check_every, trial.goal) == (4, 6000, 500, 0.995)
    assert (trial.lr, trial.recurrent_rate, trial.batch, trial.validate) == (1e-3, 1e-4, 128, 1000)


def test_claims_of_depths_hold_and_fail_by_their_medians() -> None:
    rows = [made("depth1", median=0.7, accuracies=[0.7] * 5), made("depth2", median=0.94, accuracies=[0.94] * 5)]
    assert [holds for _, holds in memory_depth.claims(rows)] == [True, False]
    assert [holds for _, holds in memory_depth.claims([made("depth1", median=0.9, accuracies=[0.9])])] == [False]
    assert memory_depth.claims([made("depth1", smoke=True, median=0.1, accuracies=[0.1])]) == []


def test_the_order_of_depths_is_judged_size_by_size() -> None:
    def three(size: str, *capacities: int | None) -> list[Studied]:
        networks = [bounded(n, each) for n, each in enumerate(capacities, start=1)]
        return [searched(network, size) for network in networks]

    figure = find_recipe(FIGURES[0])
    told = figure.notes([*three("8192", None, 0, 50), *three("16384", 50, 0, 100)])[1:]
    assert told == [
        "8192 parameters: depth 3 (50) >= depth 2 (0) >= depth 1 (none): holds.",
        "16384 parameters: depth 3 (100) >= depth 2 (0) >= depth 1 (50): DOES NOT HOLD.",
    ]
    assert figure.notes([replace(one, smoke=True) for one in three("8192", None, 0, 50)])[1:] == []


def test_accuracies_of_pixels_are_held_against_the_printed_ones() -> None:
    rows = [made("2x128", "mnist", accuracy=0.9580), made("1x256", "mnist", accuracy=0.9559)]
    assert [holds for _, holds in memory_pixels.claims(rows)] == [True, False]
    assert memory_pixels.claims([made("1x256", "mnist", smoke=True, accuracy=0.99)]) == []


def test_the_run_with_the_least_loss_is_reported_not_the_best_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from statewise.recipes.replica_studies import Place
    from statewise.sweep import Outcome as Ended

    told: dict[str, Any] = {"best_iteration": 1, "iterations": 2, "reason": "iterations", "seconds": 1.0}
    outcomes = [
        Ended(accuracy=0.97, loss=0.2, orthogonality=1e-7, **told),
        Ended(accuracy=0.96, loss=0.1, orthogonality=1e-7, **told),
    ]
    monkeypatch.setattr(Place, "train", lambda *_, **__: outcomes)
    outcome = run("depth-memory/tableC1", tmp_path, rows=("1x256",))
    assert isinstance(outcome.measured[0], Studied)
    assert outcome.measured[0].found["accuracy"] == 0.96
    assert outcome.measured[0].found["best"] == 0.97


def test_the_file_of_the_results_keeps_the_size_of_a_line(tmp_path: Path) -> None:
    outcome = run("depth-memory/figure3.1-delay", tmp_path, rows=("depth1",))
    write_results(outcome, tmp_path, device=torch.device("cpu"), command="statewise")
    (kept,) = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["runs"]
    assert kept["size"] == "8192"
    assert kept["budget"] == 600  # of a smoke run
    assert 0 < kept["search_seconds"] <= kept["seconds"], "a search that went on would have more"


def test_pixels_end_by_the_clock_and_say_so(tmp_path: Path) -> None:
    # A billion iterations, of which the clock allows those until the first look.
    overrides = (("iterations", 10**9), ("network_seconds", 1e-6))
    outcome = run("depth-memory/tableC1", tmp_path, rows=("1x256",), overrides=overrides)
    assert outcome.measured[0].found["reasons"] == ["stopped"]
    ours = compare_with_published(outcome).rows[0]
    assert "out of time" in ours
    assert set(memory_pixels.ENDED) == set(REASONS)


def test_costs_follow_rows_and_sizes() -> None:
    pixels, conjecture = find_recipe("depth-memory/tableC1"), find_recipe("depth-memory/conjecture")
    assert set(memory_pixels.PACES) == set(memory_pixels.PUBLISHED)
    few, many = (pixels.cost(Request(rows=rows)) for rows in (("2x128",), ("2x128", "3x256")))
    assert 0 < few.gpu < few.cpu
    assert many.runs == 2
    assert many.gpu == pytest.approx(few.gpu + memory_pixels.PACES["3x256"].gpu / 3600)
    small, large = (conjecture.cost(Request(sizes=(size,))) for size in ("small", "large"))
    assert small.cpu < large.cpu / 10
    delay = find_recipe("depth-memory/figure3.1-delay").cost(Request())
    assert delay.gpu == pytest.approx(3 * memory_capacity.CapacitySettings().network_seconds / 3600)


def test_pixels_that_the_clock_has_ended_go_on_with_more_time(tmp_path: Path) -> None:
    found = []
    for seconds in (1e-6, 0.0):
        overrides = (("iterations", 6), ("network_seconds", seconds))
        (one,) = run("depth-memory/tableC1", tmp_path, rows=("1x256",), overrides=overrides).measured
        assert isinstance(one, Studied)
        found.append((one.found["reasons"], one.found["iterations"]))
    assert found == [(["stopped"], [0]), (["iterations"], [6])]
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match=r"PixelSettings\.network_seconds: got"):
            memory_pixels.PixelSettings(network_seconds=wrong)


def test_a_line_made_before_searches_had_seconds_of_their_own_is_still_read() -> None:
    found = {**bounded(1, 50).describe(), "budget": 8192}
    assert memory_capacity.network_of(Studied(name="x", line=Line(row="depth1"), seed=0, found=found)).seconds == 1.0
