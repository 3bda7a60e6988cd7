"""Every shell block of the guides to the commands runs, in order, as a reader would type it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from statewise.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    *("automata.md", "capacity.md", "classification.md", "language-models.md", "memory.md", "memory-conjecture.md"),
    *("reproduce.md", "tagging.md"),
]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_in_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    typed = 0
    for token in MarkdownIt().parse((DOCS / page).read_text(encoding="utf-8")):
        info = token.info.strip() if token.type == "fence" else ""
        if info == "python" and "write_text" in token.content:
            exec(token.content, namespace)  # a block that makes a file for the commands
        for line in token.content.splitlines() if info == "bash" else ():
            program, *arguments = shlex.split(line)
            assert program == "statewise", line
            capsys.readouterr()
            main(arguments)
            assert capsys.readouterr().out, line
            typed += 1
    assert typed > 1
