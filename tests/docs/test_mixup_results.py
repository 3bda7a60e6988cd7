"""What the page of the Sequence Mixup results says is what the files of the runs say."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from statewise.recipes import find_recipe

RESULTS = Path(__file__).parents[2] / "docs" / "results"
KEPT: list[dict[str, Any]] = json.loads((RESULTS / "sequence-mixup.json").read_text())["results"]
PAGE = (RESULTS / "sequence-mixup.md").read_text()


def tables() -> dict[str, list[list[str]]]:
    """The rows of the table under each heading that has one."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        heading = section.partition("\n")[0].strip()
        lines = [line for line in section.splitlines() if line.startswith("|")]
        found[heading] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


def of(recipe: str, *, changed: bool = False) -> list[dict[str, Any]]:
    """The runs of a recipe: those with its own settings, or those where something was set otherwise."""
    results = [result for result in KEPT if result["recipe"] == f"sequence-mixup/{recipe}"]
    return [run for result in results if bool(result["request"]["overrides"]) == changed for run in result["runs"]]


def text(values: list[float], digits: int) -> str:
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"


def numbers(runs: list[dict[str, Any]], name: str, factor: float = 1.0) -> list[float]:
    return [factor * run["tests"]["test"][name] for run in runs]


@pytest.mark.parametrize(
    ("heading", "recipe"),
    [("Table 1: three cells, mixed in three places", "table1"), ("Table 2: a bidirectional LSTM with a CRF", "table2")],
)
def test_every_row_is_what_its_runs_came_to(heading: str, recipe: str) -> None:
    runs, rows = of(recipe), tables()[heading]
    assert {(row[0], row[1]) for row in rows} == {(run["size"], run["row"]) for run in runs}
    beside = find_recipe(f"sequence-mixup/{recipe}").beside  # type: ignore[attr-defined]
    for size, name, published, f1, gain, _, loss, share, ece, count in rows:
        own = [run for run in runs if (run["size"], run["row"]) == (size, name)]
        assert count == str(len(own))
        assert published == f"{beside(size, name)[0]:.2f}"
        assert f1 == text(numbers(own, "f1", 100), 2)
        assert loss == text(numbers(own, "loss"), 3)
        assert ece == text(numbers(own, "ece", 100), 2)
        if name == "standard":
            continue
        standard = {run["seed"]: run for run in runs if (run["size"], run["row"]) == (size, "standard")}
        others = [standard[run["seed"]] for run in own]
        differences = [a - b for a, b in zip(numbers(own, "f1", 100), numbers(others, "f1", 100), strict=True)]
        assert gain == f"{statistics.fmean(differences):+.2f}"
        assert share == f"{statistics.fmean(numbers(own, 'loss')) / statistics.fmean(numbers(others, 'loss')):.3f}"


def test_the_half_moons_are_what_their_runs_came_to() -> None:
    runs, rows = of("halfmoons"), tables()["Figure 1: half moons"]
    assert len(rows) == 8
    for noise, name, *cells in rows:
        own = [run for run in runs if (run["size"], run["row"]) == (noise, name)]
        assert len(own) == 5
        columns = (("accuracy", 4), ("nll", 4), ("confidence", 4), ("band", 3))
        for (column, digits), cell in zip(columns, cells, strict=True):
            assert cell == text([run[column] for run in own], digits), (noise, name, column)


def test_mixing_halves_the_loss_on_noisy_half_moons() -> None:
    losses = {name: [run["nll"] for run in of("halfmoons") if (run["size"], run["row"]) == ("noisy", name)]
              for name in ("standard", "pre-output", "through-time")}  # fmt: skip
    standard = statistics.fmean(losses["standard"])
    assert all(statistics.fmean(losses[name]) <= 0.5 * standard for name in ("pre-output", "through-time"))


def test_no_file_names_a_place_of_the_machine() -> None:
    assert all(word not in json.dumps(KEPT) for word in ("/work", "scratch", "/tmp"))


def test_the_readme_says_of_the_lstm_what_its_runs_say() -> None:
    readme = " ".join((RESULTS.parents[1] / "README.md").read_text().split())
    runs = {row: [run for run in of("table1") if (run["size"], run["row"]) == ("lstm", row)]
            for row in ("standard", "input-0.5")}  # fmt: skip
    before, after = (statistics.fmean(numbers(some, "f1", 100)) for some in runs.values())
    losses = [statistics.fmean(numbers(some, "loss")) for some in runs.values()]
    assert f"from {before:.1f} to {after:.1f} F1" in readme
    assert f"its loss to {losses[1] / losses[0]:.2f}" in readme
