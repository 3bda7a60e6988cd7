"""What every page of results of studies keeps: it says what the files of the runs say."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from statewise.recipes import Request, find_recipe
from statewise.recipes.lines import Line
from statewise.recipes.studies import Studied

RESULTS = Path(__file__).parents[2] / "docs" / "results"


class StudyPageContract:
    """Inherit it, and name the page and its recipes."""

    page: ClassVar[str]
    recipes: ClassVar[set[str]]

    def text(self) -> str:
        return (RESULTS / f"{self.page}.md").read_text(encoding="utf-8")

    def section(self, result: dict[str, Any]) -> str:
        title = ": ".join(filter(None, (find_recipe(result["recipe"]).title, result.get("part"))))
        found = self.text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert found, title
        return found

    def test_tables_are_those_of_the_runs(self) -> None:
        for result in made(self.page).values():
            lines = [line for line in self.section(result).splitlines() if line.startswith("|")]
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
            sheet = find_recipe(result["recipe"]).sheet(finished(result), request(result))
            assert rows[0] == sheet.columns
            assert rows[2:] == sheet.rows

    def test_notes_and_claims_are_those_of_the_runs(self) -> None:
        for result in made(self.page).values():
            said = self.section(result)
            for note in find_recipe(result["recipe"]).notes(finished(result)):
                assert note in said

    def test_every_table_has_its_command_time_and_machine(self) -> None:
        for result in made(self.page).values():
            said = self.section(result)
            for each in (result["command"], result["time"], result["device"], result["versions"]["torch"]):
                assert each in said
            assert result["request"]["scale"] == "full"
            assert result["failed"] == {}

    def test_all_studies_are_there_and_no_path_of_a_machine(self) -> None:
        assert {result["recipe"] for result in made(self.page).values()} == self.recipes
        assert not re.search(r"/(tmp|home|root|work)\b", json.dumps(made(self.page)) + self.text())

    def test_pictures_that_are_shown_exist(self) -> None:
        for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", self.text()):
            assert (RESULTS / name).exists()


@cache
def made(page: str) -> dict[str, dict[str, Any]]:
    """The results that a page is made of, by recipe; where one was made in parts, by ``recipe: part``."""
    kept = json.loads((RESULTS / f"{page}.json").read_text(encoding="utf-8"))["results"]
    found = {": ".join(filter(None, (result["recipe"], result.get("part")))): result for result in kept}
    assert len(found) == len(kept)
    return found


def request(result: dict[str, Any]) -> Request:
    """What was asked."""
    asked = result["request"]
    return Request(
        rows=tuple(asked["rows"]), sizes=tuple(asked["sizes"]), seeds=asked["seeds"], precision=asked["precision"]
    )


def finished(result: dict[str, Any]) -> list[Studied]:
    """The runs as the recipe gets them."""
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
