from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from statewise.commands import memory_capacity
from statewise.commands.capacity_asked import search_of
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
    return as_typed(f"statewise memory capacity {words} --out {shlex.quote(str(folder))}")


def as_typed(command: str) -> str:
    """What a command prints, which is given whole, as a shell takes it."""
    page = Console(file=io.StringIO(), width=200)
    program, *words = shlex.split(command)
    assert [program, *words[:2]] == ["statewise", "memory", "capacity"]
    memory_capacity.run(memory_capacity.parser().parse_args(words[2:]), page)
    assert isinstance(page.file, io.StringIO)
    return page.file.getvalue()


def table_and_after(said: str) -> list[str]:
    lines = said.splitlines()
    return lines[max(place for place, line in enumerate(lines) if line.endswith(" s")) + 1 :]


def asked(words: str = "") -> CapacitySearch:
    return search_of(memory_capacity.parser().parse_args(words.split()))


def test_it_prints_a_table_and_writes_a_result_and_a_picture(tmp_path: Path) -> None:
    folder = tmp_path / "a search"
    said = typed(SMALL, folder)
    assert "copying-delay, 2 networks, 3 values, 1 run at each value that is tried" in said
    assert "capped" in said
    assert "Budget: 1 rate x 1 seed, at most 20 iterations." in said
    assert not re.search(r"\b1 (run|network|value|rate|seed)s\b", said)
    result = CapacityResult.of(json.loads((folder / "result.json").read_text()))
    assert [(each.depth, each.width, each.capacity) for each in result.networks] == [(1, 6, None), (2, 6, None)]
    assert (folder / "capacity.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(RunFolderError, match="--resume") as caught:
        typed(SMALL, folder)
    _, _, command = str(caught.value).partition("Go on (")
    # What the error says can be typed as it is.
    again = as_typed(command.partition("), or name")[0])
    assert f"Going on with {folder}: copying-delay, 2 networks, 3 values" in again
    assert again.splitlines()[1:] == table_and_after(said)
    assert "2 networks" not in as_typed(f"statewise memory capacity --resume --quiet --out '{folder}'")


def test_a_value_is_told_when_it_is_begun_and_when_it_is_known(tmp_path: Path) -> None:
    lines = typed(SMALL.replace("--depths 1 2", "--depths 1"), tmp_path / "s").splitlines()
    told = [line for line in lines if line.startswith("depth 1 ")]
    begun, known = told[0], told[1]
    assert begun == "depth 1     6 channels       2  begun           1 run"
    assert known.startswith("depth 1     6 channels       2  capped     0 of 1 run  best 0.")
    assert [line.split()[4:6] for line in told[:2]] == [["2", "begun"], ["2", "capped"]]
    between = lines[lines.index(begun) + 1 : lines.index(known)]
    assert len(between) == 1  # the run itself
    assert between[0].startswith("copying-memory-2-L1-R6-lr0.001-s0-")


def test_what_a_budget_has_ended_says_how_to_get_more(tmp_path: Path) -> None:
    said = typed(f"{SMALL} --network-seconds 1e-6 --replicas 2", tmp_path / "s")
    (line,) = (line for line in said.splitlines() if line.startswith("With more time: "))
    command, _, seconds = line.removeprefix("With more time: ").rpartition(" ")
    assert command.endswith(f"--resume --out {tmp_path / 's'} --replicas 2 --device cpu --network-seconds")
    assert int(seconds) >= 1
    more = as_typed(f"{command} 60")
    assert "60 s a network" in more
    assert "With more time" not in more


def test_it_tunes_first(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    words = SMALL.replace("--depths 1 2", "--depths 1").replace("--rates 1e-3", "--tune 2 --tune-iterations 10")
    said = typed(words, tmp_path / "s")
    assert "Rates for depth 1, 6 channels:" in said
    assert "tuned rates x 1 seed," in said
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
    for wrong in ("--replicas 0", "--executor processes --workers 0", "--ray local --cpus-per-task -1"):
        words = wrong.split()
        with pytest.raises(ArgumentError, match=rf"^{words[-2]}: got {words[-1]}, wanted .*Leave it out for "):
            typed(f"{SMALL} {wrong}", tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_whoever_stops_it_is_told_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = io.StringIO()
    folder = tmp_path / "a search"
    words = [*SMALL.split(), "--executor", "processes", "--workers", "1", "--out", str(folder)]

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def stop(when: str) -> str:
        monkeypatch.setattr(when, stopped)
        with pytest.raises(KeyboardInterrupt):
            memory_capacity.run(memory_capacity.parser().parse_args(words), Console(file=page, width=200))
        monkeypatch.undo()
        return page.getvalue()

    assert "Stopped before the search began." in stop("statewise.sweep.capacity.RunFolder.create")
    said = stop("statewise.sweep.capacity._Search.work")
    _, _, command = said.rpartition("Stopped. Go on: ")
    there = f"--resume --out '{folder}' --executor processes --workers 1 --device cpu"
    assert command.strip() == f"statewise memory capacity {there}"
    whole = as_typed(command.replace("--executor processes --workers 1", ""))
    assert "2 networks, 3 values" in whole
    assert (folder / "result.json").exists()
