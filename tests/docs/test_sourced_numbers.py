"""A number that a page takes from another page stands there: in tables with a source, and in the words of links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
TABLED = ["choose-a-regularizer.md", "not-promised.md"]
LINKED = [*TABLED, "extending.md", "adding-a-bound.md", "results/index.md"]
LINKED += sorted(page.relative_to(DOCS).as_posix() for page in (DOCS / "papers").glob("*.md"))
NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w-]|\.\d)")
LINK = re.compile(r"\[([^]]*)\]\(([^)#]+\.md)(?:#[^)]*)?\)")


def missing(words: str, source: Path) -> list[str]:
    """The numbers among the words that do not stand in the source."""
    there = set(NUMBER.findall(source.read_text(encoding="utf-8")))
    return [number for number in NUMBER.findall(words) if number not in there]


def sourced_rows(page: str) -> list[tuple[str, Path]]:
    """The second column of every table whose last column is its source, and the page that it names."""
    found, inside = [], False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif inside and not set(line) <= set("|- "):
            link = LINK.search(cells[-1])
            if link:
                found.append((cells[1], DOCS / link[2]))
        elif cells[-1] == "source" and cells[1] != "start":  # a start is advice, and no measurement
            inside = True
    return found


@pytest.mark.parametrize("page", TABLED)
def test_the_numbers_of_tables_with_a_source_stand_in_it(page: str) -> None:
    rows = sourced_rows(page)
    assert len(rows) > 7
    for numbers, source in rows:
        assert NUMBER.findall(numbers), numbers
        assert not missing(numbers, source), (numbers, source.name)


@pytest.mark.parametrize("page", LINKED)
def test_the_numbers_in_the_words_of_a_link_stand_on_the_page_that_it_leads_to(page: str) -> None:
    path = DOCS / page
    for words, target in LINK.findall(path.read_text(encoding="utf-8")):
        assert not missing(words.replace("Table", "").replace("Figure", ""), path.parent / target), words


def test_the_numbers_of_the_table_without_the_kernel_stand_in_the_file_of_their_run() -> None:
    section = (DOCS / "performance.md").read_text(encoding="utf-8").split("### Without the kernel")[1].split("###")[0]
    rows = [line for line in section.splitlines() if line.startswith(("| LSTM", "| GRU"))]
    assert len(rows) == 6
    assert not missing("\n".join(rows), DOCS / "results" / "fallback_cpu.json")


def test_a_number_that_is_not_there_is_found() -> None:
    page = DOCS / "results" / "noisin.md"
    assert missing("71.6 and 70.9, 81.37 or 1.6", page) == ["81.37", "1.6"]
