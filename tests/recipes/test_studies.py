"""What small studies share: every case is computed once, and what has a result is whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn

from statewise.recipes import Request, reproduce
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.results import write_results
from statewise.recipes.studies import MODEL, RESULT, Computed, Studied, Study, StudyCase, means, verdicts
from statewise.report import compare_with_published
from statewise.train.tensor_file import read_tensors


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Settings of the study below."""

    factor: float = 2.0
    seed: int = 0


class Doubling(Study):
    """Multiplies, and keeps a network and a text."""

    name = "doubling"
    title = "Doubling"
    rows = ("plain", "kept", "broken")
    usual_rows = ("plain", "kept")
    sizes = ("small", "large")
    seconds = 1.0

    def __init__(self) -> None:
        self.asked: list[str] = []

    def settings(self, line: Line, *, smoke: bool) -> Numbers:
        return Numbers(factor=(2.0 if line.size == "small" else 20.0) * (0.5 if smoke else 1.0))

    def load(self, request: Request, *, data: Path | str | None, device: torch.device) -> Any:
        return {"ten": 10.0, "device": str(device)}

    def compute(self, case: StudyCase, data: Any) -> Computed:
        self.asked.append(case.name)
        if case.line.row == "broken":
            raise RuntimeError("broken")
        value = case.settings.factor * (data["ten"] + case.settings.seed)
        kept = case.line.row == "kept"
        return Computed(
            found={"value": value, "words": ["a"], "nested": {"infinite": float("inf")}},
            network=nn.Linear(2, 3) if kept else None,
            files={"note.txt": "kept\n"} if kept else {},
        )

    def describe(self, data: Any) -> dict[str, Any]:
        return {"name": self.data, **data}

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        rows = [[one.line.row, one.line.size, str(one.found["value"]), "1", "0"] for one in measured]
        return Sheet(["row", "size", "value", "runs", "seconds"], rows, 2)


def test_every_case_is_computed_once_and_found_again(tmp_path: Path) -> None:
    recipe = Doubling()
    first = reproduce(recipe, Request(seeds=2, sizes=("all",)), tmp_path)
    assert [one.found["value"] for one in first.measured] == [20.0, 22.0, 20.0, 22.0, 200.0, 220.0, 200.0, 220.0]
    assert recipe.asked == [one.name for one in first.measured]
    assert reproduce(recipe, Request(seeds=2, sizes=("all",)), tmp_path).measured == first.measured
    assert len(recipe.asked) == 8, "nothing was computed again"
    other = reproduce(recipe, Request(overrides=(("factor", 3.0),)), tmp_path)
    assert [one.found["value"] for one in other.measured] == [30.0, 30.0], "other settings are another case"


def test_network_and_files_are_kept_and_the_result_comes_last(tmp_path: Path) -> None:
    outcome = reproduce(Doubling(), Request(), tmp_path)
    assert {path.name for path in (tmp_path / "small-plain-seed0").iterdir()} == {RESULT}
    folder = tmp_path / "small-kept-seed0"
    assert {path.name for path in folder.iterdir()} == {RESULT, MODEL, "note.txt"}
    assert folder.joinpath(RESULT).stat().st_mtime_ns >= folder.joinpath(MODEL).stat().st_mtime_ns
    tensors, told = read_tensors(folder / MODEL)
    assert tensors["weight"].shape == (3, 2)
    assert told["settings"]["seed"] == 0
    assert [one.parameters for one in outcome.measured] == [0, 9]
    document = json.loads(write_results(outcome, tmp_path, device=torch.device("cpu")).read_text())
    assert document["data"] == {"name": "generated", "ten": 10.0, "device": "cpu"}
    assert document["runs"][0]["nested"] == {"infinite": "inf"}


def test_a_case_that_breaks_leaves_no_result(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        reproduce(Doubling(), Request(rows=("broken",)), tmp_path)
    assert not list(tmp_path.rglob(RESULT))


def test_what_is_told_along_the_way(tmp_path: Path) -> None:
    console = Console(record=True, width=100)
    outcome = reproduce(Doubling(), Request(rows=("plain",)), tmp_path, console=console)
    assert "small-plain-seed0: value 20, " in console.export_text()
    assert "Seeds: 0." in compare_with_published(outcome).markdown()


def test_only_numbers_have_means_and_a_smoke_run_says_so(tmp_path: Path) -> None:
    measured = reproduce(Doubling(), Request(seeds=2), tmp_path).measured
    found = means(measured)["small", "plain"]
    assert found.keys() == {"value"}
    assert (found["value"].value, found["value"].count) == (21.0, 2)
    assert not any(one.smoke for one in measured)
    tried = reproduce(Doubling(), Request(scale="smoke"), tmp_path / "smoke").measured
    assert tried[0].found["value"] == 10.0
    assert all(one.smoke for one in tried)
    assert verdicts([("one", True)]) == ["one: holds."]
