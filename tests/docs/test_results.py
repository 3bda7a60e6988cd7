"""What the pages of results say is what the files of the runs say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FIELDS = ("valid_perplexity", "test_perplexity", "best_epoch", "epochs", "seconds")


def runs(recipe: str) -> list[dict[str, Any]]:
    kept = json.loads((RESULTS / "noisin.json").read_text())["results"]
    return [run for result in kept if result["recipe"] == recipe for run in result["runs"]]


def rows(heading: str) -> list[list[str]]:
    """The table that follows a heading."""
    page = (RESULTS / "noisin.md").read_text()
    section = page.partition(f"## {heading}")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(("heading", "recipe"), [("Table 3", "noisin/table3"), ("Table 4", "noisin/table4")])
def test_every_row_of_the_noisin_page_is_a_run_and_every_run_has_a_row(heading: str, recipe: str) -> None:
    shown = {(row[0], row[1].replace("-", "")): row for row in rows(heading)}
    measured = {(run["row"], run["placement"]): run for run in runs(recipe)}
    assert shown.keys() == measured.keys()
    for key, run in measured.items():
        row = shown[key]
        valid, test, best, epochs, seconds = (run[name] for name in FIELDS)
        published = run["published"]
        assert float(row[3]) == published["valid"]
        assert row[4] == f"{valid:.1f}"
        assert float(row[5]) == published["test"]
        assert row[6] == f"{test:.1f}"
        assert row[7] == f"{100 * (test / published['test'] - 1):+.1f} %"
        assert row[8:] == [str(best), str(epochs), f"{seconds:.0f}"]


def test_the_time_of_an_epoch_is_that_of_the_benchmark() -> None:
    row = json.loads((RESULTS / "lm_epoch.json").read_text())["rows"][0]
    page = (RESULTS / "noisin.md").read_text()
    ours, eager, captured = row["seconds"].values()
    for said in (f"takes {ours:.2f} s", f"takes {eager:.2f} s", f"{captured:.2f} s as a CUDA graph"):
        assert said in " ".join(page.split()), said
