"""What the page of the results of bounds says is what the files of the runs say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from statewise.recipes import Request, find_recipe
from statewise.recipes.lines import Line
from statewise.recipes.studies import Studied

RESULTS = Path(__file__).parents[2] / "docs" / "results"
KEPT: list[dict[str, Any]] = json.loads((RESULTS / "generalization-bounds.json").read_text(encoding="utf-8"))["results"]
PAGE = (RESULTS / "generalization-bounds.md").read_text(encoding="utf-8")
MADE = {result["recipe"]: result for result in KEPT}


def finished(result: dict[str, Any]) -> list[Studied]:
    return [
        Studied(
            name=run["name"],
            line=Line(row=run["row"], size=run["size"]),
            seed=run["seed"],
            seconds=run["seconds"],
            parameters=run["parameters"],
            found=run,
        )
        for run in result["runs"]
    ]


def section(recipe: str) -> str:
    title = find_recipe(recipe).title
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("recipe", MADE)
def test_tables_are_those_of_the_runs(recipe: str) -> None:
    lines = [line for line in section(recipe).splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    request = Request(rows=tuple(MADE[recipe]["request"]["rows"]), sizes=tuple(MADE[recipe]["request"]["sizes"]))
    sheet = find_recipe(recipe).sheet(finished(MADE[recipe]), request)
    assert rows[0] == sheet.columns
    assert rows[2:] == sheet.rows


@pytest.mark.parametrize("recipe", MADE)
def test_notes_and_claims_are_those_of_the_runs(recipe: str) -> None:
    said = section(recipe)
    for note in find_recipe(recipe).notes(finished(MADE[recipe])):
        assert note in said


@pytest.mark.parametrize("recipe", MADE)
def test_every_table_has_its_command_time_and_machine(recipe: str) -> None:
    said, result = section(recipe), MADE[recipe]
    for each in (result["command"], result["time"], result["device"], result["versions"]["torch"]):
        assert each in said
    assert result["request"]["scale"] == "full"
    assert result["failed"] == {}


def test_all_studies_are_there_and_no_path_of_a_machine() -> None:
    assert set(MADE) == {
        f"generalization-bounds/{name}"
        for name in ("table1", "scaling", "vacuous", "trained", "row-mnist", "coverage", "automata")
    }
    assert not re.search(r"/(tmp|home|root|work)\b", json.dumps(KEPT) + PAGE)


def test_pictures_that_are_shown_exist() -> None:
    for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", PAGE):
        assert (RESULTS / name).exists()


def test_what_was_asked_was_reached() -> None:
    trained: dict[str, list[dict[str, Any]]] = {}
    for run in MADE["generalization-bounds/trained"]["runs"]:
        trained.setdefault(run["row"], []).append(run)
    assert max(run["certificate"] for run in trained["dh4-m100000"]) <= 0.006
    assert max(run["certificate"] for run in trained["dh8-m100000"]) <= 0.02
    assert min(run["certificate"] for run in trained["random-labels"]) >= 0.5
    rows = MADE["generalization-bounds/row-mnist"]["runs"]
    assert any(run["certificate"] <= 0.30 and run["test_error"] <= 0.08 for run in rows)
    for run in MADE["generalization-bounds/coverage"]["runs"]:
        for delta in ("0.05", "0.5"):
            assert run[delta]["fails"] <= float(delta)
    assert all(run["true_error"] <= run["certificate"] < 0.5 for run in MADE["generalization-bounds/automata"]["runs"])
