"""What the page of the state-regularized results says is what the files of the runs say."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from statewise.recipes import find_recipe

RESULTS = Path(__file__).parents[2] / "docs" / "results"
KEPT: list[dict[str, Any]] = json.loads((RESULTS / "state-regularized.json").read_text())["results"]
PAGE = (RESULTS / "state-regularized.md").read_text()


def tables() -> dict[str, list[list[str]]]:
    """The rows of the table under each heading that has one."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        heading = section.partition("\n")[0].strip()
        lines = [line for line in section.splitlines() if line.startswith("|")]
        found[heading] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


def of(recipe: str, size: str) -> list[dict[str, Any]]:
    kept = [run for result in KEPT if result["recipe"] == f"state-regularized/{recipe}" for run in result["runs"]]
    return [run for run in kept if run["size"] == size]


def told(measured: dict[str, float], key: str) -> float:
    return 1 - measured["error"] if key == "accuracy" else measured[key]


@pytest.mark.parametrize(
    ("heading", "recipe", "size", "key", "factor", "digits"),
    [
        ("Table 1: balanced parentheses, large set", "table1", "large", "error", 1, 3),
        ("Table 1: balanced parentheses, small set", "table1", "small", "error", 1, 3),
        ("Table 2: the number of centroids", "table2", "small", "error", 1, 3),
        ("Table 3: palindromes", "table3", "100", "error", 100, 1),
        ("Table 4: movie reviews, trained on ten words", "table4", "256", "error", 100, 2),
        ("Table 5: movie reviews", "table5", "256", "error", 100, 1),
        ("Figure 8: copying memory, T = 100", "copying", "100", "loss", 1, 5),
        ("Table 7: MNIST, pixel by pixel", "table7", "mnist", "accuracy", 100, 2),
        ("Table 7: permuted pixels", "table7", "permuted", "accuracy", 100, 2),
        ("Table 7: Fashion-MNIST", "table7", "fashion", "accuracy", 100, 2),
    ],
)
def test_every_row_is_what_its_runs_came_to(
    heading: str, recipe: str, size: str, key: str, factor: float, digits: int
) -> None:
    runs, rows = of(recipe, size), tables()[heading]
    assert runs
    assert {(row[0], row[1]) for row in rows} == {(run["row"], test) for run in runs for test in run["tests"]}
    beside = find_recipe(f"state-regularized/{recipe}").beside  # type: ignore[attr-defined]
    for name, test, published, mean, median, chosen, count in rows:
        own = [run for run in runs if run["row"] == name]
        values = [factor * told(run["tests"][test], key) for run in own]
        assert count == str(len(own))
        spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
        assert mean == f"{statistics.fmean(values):.{digits}f}{spread}"
        assert median == f"{statistics.median(values):.{digits}f}"
        best = min(own, key=lambda run: (run["valid"]["loss" if key == "loss" else "error"], run["valid"]["loss"]))
        assert chosen == f"{factor * told(best['tests'][test], key):.{digits}f}"
        if key != "loss":  # copying has no published number, but the loss without a memory
            assert (None if published == "-" else float(published)) == beside(size, name).get(test)


@pytest.mark.parametrize(
    ("heading", "size"),
    [("Tomita's grammars", "multiplicative"), ("Tomita's grammars, by the paper's cell", "gru")],
)
def test_every_grammar_was_recovered_as_often_as_the_page_says(heading: str, size: str) -> None:
    runs, rows = of("tomita", size), tables()[heading]
    assert [row[0] for row in rows[:7]] == list("1234567")
    for row in rows:
        own = [run for run in runs if run["row"] == row[0]]
        right = sum(run["recovered"] for run in own)
        seconds = [run["seconds"] for run in own]
        assert row[2] == f"{right} of {len(own)}"
        assert row[3] == f"{sum(run['exact'] for run in own)} of {len(own)}"
        assert row[-2:] == [f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"]


def test_extraction_is_as_much_faster_than_l_star_as_its_file_says() -> None:
    measured = json.loads((RESULTS / "extraction.json").read_text())["results"]
    rows = tables()["Extraction against L*"]
    assert len(rows) == len(measured)
    for row, one in zip(rows, measured, strict=True):
        assert row[:2] == [str(one["alphabet"]), one["kind"]]
        assert row[4] == f"{one['extract_ms']:.1f}"
        assert row[5].removeprefix("> ") == f"{one['aalpy_ratio']:.0f}"
        assert row[6] == f"{one['batched_ratio']:.0f}"
        assert row[7] == "0"
        assert one["aalpy_ratio"] >= 100


def test_the_readme_says_of_tomitas_languages_what_the_runs_say() -> None:
    readme = " ".join((RESULTS.parents[1] / "README.md").read_text().split())
    runs = [run for run in of("tomita", "multiplicative") if run["row"] != "random"]
    assert len(runs) == 70
    assert all(run["recovered"] for run in runs)
    others = [run["recovered"] for run in of("tomita", "multiplicative") if run["row"] == "random"]
    assert f"{sum(others)} of {len(others)}" in readme
    assert f"in 10 of 10 seeds each, within {math.ceil(max(run['seconds'] for run in runs))} seconds" in readme


def test_no_file_names_a_place_of_the_machine() -> None:
    assert all(word not in json.dumps(KEPT) for word in ("/work", "scratch", "/tmp"))
