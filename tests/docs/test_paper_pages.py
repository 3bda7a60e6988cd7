"""What the pages of the papers, and the page of all results, say is what the files of the runs say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from contracts.headlines import Headline, costs
from contracts.paper_headlines import PAPERS
from statewise.citations import entries_by_key
from statewise.commands.reproduce import parser
from statewise.recipes import find_recipe

DOCS = Path(__file__).resolve().parents[2] / "docs"
ENTRIES = {
    "noisin": "dieng2018noisin",
    "sequence-mixup": "karamzade2020regularizing",
    "state-regularized": "wang2019state",
    "generalization-bounds": "chen2019generalization",
    "depth-memory": "ziv2019depth",
}
every_paper = pytest.mark.parametrize("paper", PAPERS)


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The rows of the one table under a heading, its head left out."""
    section = text(page).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert lines, (page, heading)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def of(paper: str) -> list[Headline]:
    return list(PAPERS[paper][1]())


@every_paper
def test_the_table_of_a_page_is_made_of_the_runs(paper: str) -> None:
    assert rows(f"papers/{paper}.md", "Published and ours") == [headline.cells for headline in of(paper)]


@every_paper
def test_runs_seconds_and_machines_are_those_of_the_runs(paper: str) -> None:
    assert rows(f"papers/{paper}.md", "How to make the tables again") == costs(paper)


@every_paper
def test_the_commands_of_a_page_are_understood_and_name_recipes_and_rows(paper: str) -> None:
    blocks = [token.content for token in MarkdownIt().parse(text(f"papers/{paper}.md")) if token.info == "console"]
    commands = [line for block in blocks for line in block.splitlines()]
    assert {shlex.split(line)[2] for line in commands} == {cells[0].strip("`") for cells in costs(paper)}
    for line in commands:
        program, command, *arguments = shlex.split(line)
        assert (program, command) == ("statewise", "reproduce")
        asked = parser().parse_args(arguments)
        recipe = find_recipe(arguments[0])
        assert set((asked.rows or "").split(",")) - {"", "all"} <= set(recipe.rows), line
        assert set((asked.size or "").split(",")) - {"", "all"} <= set(recipe.sizes), line


@every_paper
def test_the_entry_of_a_page_is_that_of_the_bibliography(paper: str) -> None:
    (printed,) = (token.content for token in MarkdownIt().parse(text(f"papers/{paper}.md")) if token.info == "bibtex")
    assert printed.strip() == entries_by_key()[ENTRIES[paper]].strip()


@every_paper
def test_a_miss_is_told_as_a_miss(paper: str) -> None:
    """A verdict is made of the numbers beside it: where the paper's is the better one, it says by how much."""
    for headline in of(paper):
        if not re.fullmatch(r"[+-]?[\d.]+", headline.published) or not re.fullmatch(r"[+-]?[\d.]+", headline.ours):
            continue
        if headline.verdict.startswith(("not comparable", "holds", "does not hold")):
            continue
        published, ours = float(headline.published), float(headline.ours)
        large = headline.measure in {"F1 %", "gain of F1", "accuracy %", "test accuracy %"}
        assert headline.verdict.startswith("missed") is (ours < published if large else ours > published), headline


def test_the_page_of_all_results_has_the_first_rows_of_every_paper() -> None:
    expected = [
        [f"[{title}](../papers/{paper}.md)", *headline.cells]
        for paper, (title, made) in PAPERS.items()
        for headline in made()
        if headline.first
    ]
    assert rows("results/index.md", "Published and ours") == expected


def test_the_page_of_all_results_counts_all_rows() -> None:
    told = " ".join(text("results/index.md").split())
    verdicts = [headline.verdict for paper in PAPERS for headline in of(paper)]
    reached, missed = (sum(verdict.startswith(word) for verdict in verdicts) for word in ("reached", "missed"))
    assert f"{reached} of {reached + missed} numbers and orders are reached, {missed} are missed" in told
