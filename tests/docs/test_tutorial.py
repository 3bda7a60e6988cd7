"""What the tutorial lets a newcomer type runs word for word, in an empty folder, and says what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from statewise.commands.catalogue import COMMANDS, chosen

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
#: What installs, which a test cannot do without a network; `make demo` runs `statewise demo`, which has its own tests.
SET_UP = ("make demo", ". .venv/bin/activate", "pip install", "mkdir ")
#: What serves until Ctrl-C; tests/explorer asks it.
SERVES = "statewise explore"
MINUTE = 60


def blocks() -> list[tuple[str, str]]:
    """The language and the text of each block of the page, in order."""
    tokens = MarkdownIt().parse(PAGE.read_text(encoding="utf-8"))
    return [(token.info.strip(), token.content) for token in tokens if token.type == "fence"]


def typed() -> list[str]:
    return [content for info, content in blocks() if info == "bash"]


def bare(text: str) -> str:
    """A text without its numbers, which differ between machines, and without the lines that it was broken into."""
    return " ".join(re.sub(r"[-+]?[\d.,]*\d%?", "#", text).split())


def commands(script: str) -> list[list[str]]:
    """The words after each ``statewise`` at the beginning of a line or behind a pipe."""
    lines = re.findall(r"(?:^|\| )statewise ([^|<>\n]+)", script, flags=re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def test_all_that_the_tutorial_promises_is_typed() -> None:
    names = {chosen(words)[0] for script in typed() for words in commands(script)}
    assert {"train classify", "extract", "certify", "report", "explore", "predict", "compare", "export"} <= names
    assert "memory rank" in names


def test_every_command_has_the_options_that_the_tutorial_gives_it() -> None:
    """Quick, so that an option that is renamed is noticed before the commands themselves are run."""
    for script in typed():
        for words in commands(script):
            name, rest = chosen(words)
            assert name is not None, words
            COMMANDS[name].load().parser().parse_args(rest)


@pytest.mark.slow
def test_every_command_runs_in_order_and_says_what_the_page_shows(tmp_path: Path) -> None:
    """Three dots stand for what the page leaves out."""
    shim = tmp_path / "bin"
    shim.mkdir()
    for name, words in (("statewise", '-m statewise "$@"'), ("python", '"$@"')):
        (shim / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}\n', encoding="utf-8")
        (shim / name).chmod(0o755)
    place = tmp_path / "ten-minutes"
    place.mkdir()
    environ = os.environ | {"PATH": f"{shim}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    said, ran = "", 0
    for info, content in blocks():
        if info == "bash" and not content.startswith((*SET_UP, SERVES)):
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", content],
                cwd=place,
                env=environ,
                capture_output=True,
                text=True,
                timeout=10 * MINUTE,
                check=False,
            )
            assert done.returncode == 0, f"{content}\n{done.stderr}"
            said, ran = bare(done.stdout), ran + 1
        elif info == "bash":
            said = ""
        elif info == "text" and said:
            for piece in re.split(r"\n|\.\.\.", content):
                assert bare(piece) in said, f"{piece}\nis not in\n{said}"
    assert ran >= 9
