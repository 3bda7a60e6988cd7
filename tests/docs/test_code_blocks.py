"""Every Python block of the README and of the documentation runs, page by page, from top to bottom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")] if page.exists())
SPELLINGS = {"py", "python", "python3", "pycon", "code-block", "code", "code-cell", "sourcecode"}


@dataclass(frozen=True)
class Fence:
    """A fenced block: what stands after the backticks, its text, and the line its text starts on."""

    info: str
    text: str
    line: int


def fences(page: Path) -> list[Fence]:
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [Fence(t.info.strip(), t.content, t.map[0] + 2) for t in tokens if t.type == "fence" and t.map]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_python_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks share one namespace, as a reader would type them; files they write go to a temporary folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for fence in fences(page):
        if fence.info == "python":
            # The blank lines make a traceback name the line of the page.
            source = "\n" * (fence.line - 1) + fence.text
            exec(compile(source, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_python_block_escapes_by_another_spelling(page: Path) -> None:
    """Only ``python`` marks a block that runs, so nothing else may mark Python that does not."""
    escaped = [
        f"line {fence.line}: {fence.info}"
        for fence in fences(page)
        if fence.info != "python" and fence.info.split(" ")[0].strip("{}") in SPELLINGS
    ]
    assert not escaped, f"{name_of(page)}: mark these as plain ```python: {escaped}"
