"""``statewise reproduce`` as a user types it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from commands.typing_commands import Typed
from statewise.recipes import RECIPES
from statewise.train.fit import train_language_model

SMOKE = ("--scale", "smoke", "--device", "cpu")
TWO_ROWS = ("reproduce", "noisin/table3", *SMOKE, "--rows", "none,dropout+gaussian")


def results(folder: Path) -> dict[str, Any]:
    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no strict JSON")

    found = json.loads((folder / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def numbers(folder: Path) -> dict[str, tuple[float, float]]:
    return {run["name"]: (run["valid_perplexity"], run["test_perplexity"]) for run in results(folder)["runs"]}


def test_the_list_shows_every_table_and_its_cost(typed: Typed) -> None:
    said = typed("reproduce", "--list")
    for name, recipe in RECIPES.items():
        cost = r"\d+ +\d+ .*(min|h|days) .*(min|h|days)"
        assert re.search(rf"^{name} .* {recipe.data} +{cost} *$", said, re.MULTILINE), name
    assert "dropout+chi-square" in said


def test_a_smoke_run_of_table_3_prints_published_beside_ours(typed: Typed, tmp_path: Path) -> None:
    said = typed(*TWO_ROWS, "--out", "out", "--seeds", "2", "--epochs", "1")
    assert "SMOKE RUN" in said
    assert "(not" in said
    row = r"^dropout\+gaussian +medium +recurrent +0\.53 +73\.4 +[\d.]+ ± [\d.]+ +- +70\.4 "
    assert re.search(row, said, re.MULTILINE), said
    found = results(tmp_path / "out")
    assert found["comparable"] is False
    assert [run["seed"] for run in found["runs"]] == [1111, 1112, 1111, 1112]
    assert found["runs"][2]["model"]["gamma"] == 0.53
    assert found["runs"][2]["settings"]["lr"] == 30.0
    assert {"torch", "statewise"} <= found["versions"].keys()
    assert found["command"].startswith("statewise reproduce noisin/table3")
    assert "| dropout+gaussian |" in (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    ours = f"perplexity {found['runs'][0]['test_perplexity']:.2f}"
    assert ours in typed("evaluate", "out/medium-none-seed1111", "--device", "cpu", "--batch", "5")


def test_finished_runs_are_found_and_more_rows_seeds_and_epochs_go_on(typed: Typed, tmp_path: Path) -> None:
    common = ("reproduce", "noisin/table3", *SMOKE, "--out", "out")
    typed(*common, "--rows", "none", "--epochs", "1")
    model = tmp_path / "out" / "medium-none-seed1111" / "model.safetensors"
    before = model.stat().st_mtime_ns
    said = typed(*common, "--rows", "none,dropout", "--epochs", "1")
    assert "medium-none-seed1111: " in said
    assert re.search(r"medium-none-seed1111: .*\(found\)", said)
    assert re.search(r"medium-dropout-seed1111: .*\(done\)", said)
    assert model.stat().st_mtime_ns == before
    said = typed(*common, "--rows", "none", "--epochs", "2")
    assert "epoch 2/2" in said
    assert "epoch 1/2" not in said
    typed("reproduce", "noisin/table3", *SMOKE, "--out", "whole", "--rows", "none", "--epochs", "2")
    assert numbers(tmp_path / "out") == numbers(tmp_path / "whole")


def test_an_interrupted_command_leaves_a_table_of_what_is_done_and_goes_on(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*TWO_ROWS, "--epochs", "2", "--quiet"]

    def interrupted(config: Any, *given: Any, **options: Any) -> Any:
        if config.noise is None:
            return train_language_model(config, *given, **options)
        return train_language_model(config, *given, **options, on_epoch=lambda _: os.kill(os.getpid(), signal.SIGINT))

    with monkeypatch.context() as patch:
        patch.setattr("statewise.recipes.running.train_language_model", interrupted)
        with pytest.raises(SystemExit, match="130"):
            typed(*arguments, "--out", "stopped")
    assert set(numbers(tmp_path / "stopped")) == {"medium-none-seed1111"}
    typed(*arguments, "--out", "stopped")
    typed(*arguments, "--out", "whole")
    assert numbers(tmp_path / "stopped") == numbers(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_killed_in_the_middle_goes_on_and_ends_as_an_undisturbed_one(typed: Typed, tmp_path: Path) -> None:
    arguments = [*TWO_ROWS, "--epochs", "8"]
    root = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen(
        [sys.executable, "-m", "statewise", *arguments, "--out", "killed"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        second = tmp_path / "killed" / "medium-dropout+gaussian-recurrent-seed1111" / "metrics.jsonl"
        limit = time.monotonic() + 120
        while not (second.exists() and second.read_bytes()) and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert set(numbers(tmp_path / "killed")) == {"medium-none-seed1111"}
    said = typed(*arguments, "--out", "killed")
    assert re.search(r"medium-none-seed1111: .*\(found\)", said)
    typed(*arguments, "--out", "whole", "--quiet")
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")


def test_both_placements_are_runs_of_their_own_but_only_with_noise(typed: Typed, tmp_path: Path) -> None:
    typed("reproduce", "noisin/table3", *SMOKE, "--rows", "none,gaussian", "--placement", "both", "--epochs", "1")
    assert list(numbers(tmp_path / "runs" / "noisin-table3-smoke")) == [
        "medium-none-seed1111",
        "medium-gaussian-recurrent-seed1111",
        "medium-gaussian-outputs-seed1111",
    ]


def test_without_matplotlib_all_else_is_there_and_the_way_to_the_plot_is_told(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = typed("reproduce", "noisin/table3", *SMOKE, "--rows", "none", "--epochs", "1", "--out", "out", "--quiet")
    assert "pip install 'statewise[report]'" in said
    assert results(tmp_path / "out")["runs"]
    assert not (tmp_path / "out" / "curves.png").exists()


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["noisin/tabel3"], "Did you mean noisin/table3?"),
        ([], "--list"),
        (["noisin/table3", "--rows", "gausian"], "dropout+chi-square"),
        (["noisin/table3", "--size", "huge"], "medium, large"),
        (["noisin/table3", "--placement", "above"], "recurrent, outputs, last"),
        (["noisin/table3", "--seeds", "0"], "--seeds"),
        (["noisin/table4", "--data", "nowhere"], "wikitext-2-v1"),
        (["noisin/table5", "--rows", "gaussian"], "mos, mos+gamma"),
        (["state-regularized/table1", "--rows", "gru"], "lstm, lstm-p, sr-lstm, sr-lstm-p"),
        (["state-regularized/table1", "--set", "hidden"], "hidden=64,lr=0.002"),
        (["state-regularized/table1", "--set", "hiden=3"], "hidden"),
        (["state-regularized/table7", "--data", "nowhere"], "train-images-idx3-ubyte"),
        (["state-regularized/tomita", "--count", "0"], "--count"),
    ],
)
def test_a_slip_is_explained(refused: Typed, arguments: list[str], wanted: str) -> None:
    assert wanted in refused("reproduce", *arguments)


def test_several_processes_are_refused(refused: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "without torchrun" in refused(*TWO_ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noisin/table3", "noisin/table4"])
def test_the_whole_smoke_of_a_table_runs(typed: Typed, tmp_path: Path, name: str) -> None:
    typed("reproduce", name, *SMOKE, "--out", "out", "--size", "all")
    recipe = RECIPES[name]
    assert len(numbers(tmp_path / "out")) == 2 * len(recipe.usual_rows)


@pytest.mark.slow
def test_the_smoke_of_table_5_trains_fine_tunes_and_adapts(typed: Typed, tmp_path: Path) -> None:
    said = typed("reproduce", "noisin/table5", *SMOKE, "--rows", "all", "--out", "out")
    stages = [run["stage"] for run in results(tmp_path / "out")["runs"]]
    assert stages == ["trained", "fine-tuned", "dynamic evaluation"] * 2
    assert re.search(r"^mos\+gamma +22M +outputs +dynamic ?(evaluation)? +0\.4 +48\.4", said, re.MULTILINE), said
    again = typed("reproduce", "noisin/table5", *SMOKE, "--rows", "all", "--out", "out")
    assert again.count("(found)") == 6
    assert "(done)" not in again


@pytest.mark.slow
def test_the_smoke_of_figure_1_tells_both_curves(typed: Typed, tmp_path: Path) -> None:
    said = typed("reproduce", "noisin/figure1", *SMOKE, "--out", "out")
    assert re.search(r"256-none-seed1111: best validation perplexity", said)
    assert re.search(r"^256-gaussian-recurrent +[\d.]+ +[\d.]+ +[\d.]+ *$", said, re.MULTILINE), said


def test_settings_that_are_set_are_recorded_and_have_a_folder_of_their_own(typed: Typed, tmp_path: Path) -> None:
    arguments = ("reproduce", "state-regularized/table7", *SMOKE, "--rows", "lstm", "--epochs", "1")
    said = typed(*arguments, "--set", "hidden=5,lr=0.01")
    assert "hidden=5" in said
    found = results(tmp_path / "runs" / "state-regularized-table7-smoke-hidden=5-lr=0.01")
    assert found["request"]["overrides"] == [["hidden", 5], ["lr", 0.01]]
    assert (found["runs"][0]["model"]["hidden"], found["runs"][0]["settings"]["lr"]) == (5, 0.01)
    assert "--set hidden=5,lr=0.01" in found["command"]
    page = (tmp_path / "runs" / "state-regularized-table7-smoke-hidden=5-lr=0.01" / "results.md").read_text()
    assert "| lstm | mnist | test | 97.70 |" in page
    assert "validation error after epoch" in page


def test_automata_are_learnt_by_a_command_and_have_no_curves(typed: Typed, tmp_path: Path) -> None:
    said = typed("reproduce", "state-regularized/tomita", "--scale", "smoke", "--rows", "1", "--out", "out")
    assert re.search(r"^1 +multiplicative +2 +yes +1 of 1 ", said, re.MULTILINE), said
    assert "Plot: none" in said
    assert results(tmp_path / "out")["runs"][0]["recovered"] is True
    assert (tmp_path / "out" / "multiplicative-1-seed0" / "machine.json").exists()
