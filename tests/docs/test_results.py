"""What the pages of results say is what the files of the runs say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FIELDS = ("valid_perplexity", "test_perplexity", "best_epoch", "epochs", "seconds")


def runs(recipe: str, size: str) -> list[dict[str, Any]]:
    kept = json.loads((RESULTS / "noisin.json").read_text())["results"]
    return [run for result in kept if result["recipe"] == recipe for run in result["runs"] if run["size"] == size]


def rows(heading: str) -> list[list[str]]:
    """The table that follows a heading."""
    page = (RESULTS / "noisin.md").read_text()
    section = page.partition(f"## {heading}")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(
    ("heading", "recipe", "size"),
    [
        ("Table 3: Penn Treebank, medium", "noisin/table3", "medium"),
        ("Table 3: Penn Treebank, large", "noisin/table3", "large"),
        ("Table 4: WikiText-2, medium", "noisin/table4", "medium"),
    ],
)
def test_every_row_of_the_noisin_page_is_a_run_and_every_run_has_a_row(heading: str, recipe: str, size: str) -> None:
    shown = {(row[0], row[1].replace("-", "")): row for row in rows(heading)}
    measured = {(run["row"], run["placement"]): run for run in runs(recipe, size)}
    assert shown.keys() == measured.keys()
    for key, run in measured.items():
        row = shown[key]
        valid, test, best, epochs, seconds = (run[name] for name in FIELDS)
        published = run["published"]
        assert row[2] == ("-" if run["gamma"] is None else f"{run['gamma']:g}")
        assert float(row[3]) == published["valid"]
        assert row[4] == f"{valid:.1f}"
        assert float(row[5]) == published["test"]
        assert row[6] == f"{test:.1f}"
        assert row[7] == f"{100 * (test / published['test'] - 1):+.1f} %"
        assert row[8:] == [str(best), str(epochs), f"{seconds:.0f}"]


def test_the_row_and_the_curve_of_table_5_are_those_of_its_run() -> None:
    run, *others = runs("noisin/table5", "22M")
    assert not others
    # The heads of the table and of the curve count as rows of the second table.
    row, epochs, _, curve = rows("Table 5")
    valid, test, *counts = (run[name] for name in FIELDS)
    told = [f"{run['gamma']:g}", run["stage"], f"{valid:.1f}", f"{test:.1f}", *(f"{count:.0f}" for count in counts)]
    assert row == [run["row"], run["placement"], *told]
    perplexities = [record["valid_perplexity"] for record in run["curve"]]
    assert curve[1:] == [f"{perplexities[int(epoch) - 1]:.1f}" for epoch in epochs[1:]]
    assert perplexities == sorted(perplexities, reverse=True)
    assert run["parameters"] == 21_500_620


def test_the_time_of_an_epoch_is_that_of_the_benchmark() -> None:
    half, single = json.loads((RESULTS / "lm_epoch.json").read_text())["rows"]
    page = " ".join((RESULTS / "noisin.md").read_text().split())
    ours, eager, captured = half["seconds"].values()
    for said in (f"takes {ours:.2f} s", f"takes {eager:.2f} s", f"{captured:.2f} s as a CUDA graph"):
        assert said in page, said
    for said in (f"{half['ratio to eager']:.1f} times as long", f"{half['ratio to captured']:.1f} times as long"):
        assert said in page, said
    ours, eager, captured = single["seconds"].values()
    assert f"ours takes {ours:.2f} s, the hand-written loop {eager:.2f} s" in page
    assert f"{single['ratio to eager']:.1f} times as long" in page
    assert f"its graph {captured:.2f} s" in page
    readme = " ".join((RESULTS.parents[1] / "README.md").read_text().split())
    ours, eager, captured = half["seconds"].values()
    assert f"takes {ours:.2f} s there" in readme
    assert f"{eager:.2f} s in a loop written by hand, and {captured:.2f} s as a graph" in readme
