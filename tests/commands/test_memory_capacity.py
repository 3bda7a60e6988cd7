from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from statewise.commands import memory_capacity
from statewise.commands.shared import find_device
from statewise.errors import ArgumentError, RunFolderError
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.capacity_search import CapacitySearch
from statewise.sweep.executors import ReplicaExecutor
from statewise.sweep.processes import ProcessExecutor
from statewise.sweep.ray_cluster import RayExecutor

SMALL = "--m 2 --n 2 --depths 1 2 --widths 6 --iterations 20 --check-every 10 --validate 32 --test 32 --batch 8"
SMALL += " --seeds 1 --rates 1e-3 --device cpu --values 0 2 4"


def typed(words: str, folder: Path) -> str:
    page = Console(file=io.StringIO(), width=200)
    chosen = memory_capacity.parser().parse_args([*words.split(), "--out", str(folder)])
    memory_capacity.run(chosen, page)
    assert isinstance(page.file, io.StringIO)
    return page.file.getvalue()


def asked(words: str = "") -> CapacitySearch:
    return memory_capacity.search_of(memory_capacity.parser().parse_args(words.split()))


def test_it_prints_a_table_and_writes_a_result_and_a_picture(tmp_path: Path) -> None:
    said = typed(SMALL, tmp_path / "s")
    assert "2 networks, 3 values, 1 runs at each value that is tried" in said
    assert "capped" in said
    assert "Budget: 1 rates x 1 seeds, at most 20 iterations." in said
    result = CapacityResult.of(json.loads((tmp_path / "s" / "result.json").read_text()))
    assert [(each.depth, each.width, each.capacity) for each in result.networks] == [(1, 6, None), (2, 6, None)]
    assert (tmp_path / "s" / "capacity.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(RunFolderError, match="--resume"):
        typed(SMALL, tmp_path / "s")
    assert "2 networks" not in typed(f"{SMALL} --resume --quiet", tmp_path / "s")


def test_it_tunes_first(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    said = typed(f"{SMALL.replace('--depths 1 2', '--depths 1')} --tune 2 --tune-iterations 10", tmp_path / "s")
    assert "Rates for depth 1, 6 channels:" in said
    assert "tuned rates x 1 seeds" in said
    document = json.loads((tmp_path / "s" / "result.json").read_text())
    ((lr, recurrent),) = document["search"]["networks"][0]["rates"]
    assert {(run["lr"], run["lr_recurrent"]) for each in document["networks"][0]["tries"] for run in each["runs"]} == {
        (lr, recurrent)
    }
    assert (tmp_path / "s" / "tuning" / "L1-R6" / "study.log").exists()
    told = json.loads((tmp_path / "s" / "tuning" / "L1-R6" / "config.json").read_text())["trial"]
    assert (told["iterations"], told["goal"]) == (10, None)  # losses are compared after as many iterations


def test_without_options_it_is_the_search_of_the_thesis() -> None:
    """Ziv 2019, section 3.2: delays 0, 50, ..., 1000, 1100, ..., 1500, networks of 2^13 and 2^14 parameters."""
    search = asked()
    assert search.values[:3] == (0, 50, 100)
    assert search.values[-6:] == (1000, 1100, 1200, 1300, 1400, 1500)
    assert [(each.depth, each.width) for each in search.networks] == [
        *((1, 76), (2, 48), (3, 39)),
        *((1, 124), (2, 74), (3, 59)),
    ]
    trial = search.trials(search.networks[0], 1500)[0]
    assert (trial.iterations, trial.batch, trial.validate, trial.test) == (200_000, 128, 5000, 10_000)
    bits = asked("--task copying-bits")
    assert (bits.values[0], bits.values[-1], bits.hardest.steps) == (150, 1000, 400)
    similarity = asked("--task similarity --sizes 16384")
    assert [each.width for each in similarity.networks] == [148, 81, 63]
    assert asked("--task similarity --sizes 16384 --count thesis").networks[2].width == 73


def test_places(tmp_path: Path) -> None:
    def place(words: str) -> object:
        chosen = memory_capacity.parser().parse_args(words.split())
        return memory_capacity.executor_of(chosen, find_device("cpu"))

    assert place("").func is ReplicaExecutor  # type: ignore[attr-defined]
    assert place("--executor processes --workers 3").func is ProcessExecutor  # type: ignore[attr-defined]
    ray = place("--ray auto --gpus-per-task 0.25")
    assert ray.func is RayExecutor  # type: ignore[attr-defined]
    assert ray.keywords["gpus"] == 0.25  # type: ignore[attr-defined]
    for wrong, said in (("--workers 2", "--executor processes"), ("--gpus-per-task 0.5", "--ray with it")):
        with pytest.raises(ArgumentError, match=said):
            place(wrong)
    with pytest.raises(ArgumentError, match="one of the two"):
        asked("--sizes 8192 --widths 20")


def test_whoever_stops_it_is_told_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(memory_capacity, "search_capacity", stopped)
    page = Console(file=io.StringIO(), width=200)
    chosen = memory_capacity.parser().parse_args([*SMALL.split(), "--out", str(tmp_path / "s")])
    with pytest.raises(KeyboardInterrupt):
        memory_capacity.run(chosen, page)
    assert isinstance(page.file, io.StringIO)
    assert f"The same command with --resume goes on with {tmp_path / 's'}." in page.file.getvalue()
