"""Every example is short, runs on a CPU as a user would run it, and shows a result."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MINUTE = 60
ALONE = "keep_the_norm"  # short, so that a quick run starts it as a user does, too

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def test_there_are_examples() -> None:
    """Without this the tests below would pass if the folder were lost."""
    assert ALONE in {path.stem for path in EXAMPLES}


@every_example
@pytest.mark.usefixtures("as_users_have_it")
def test_an_example_runs_without_a_warning_and_prints_a_table(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, where a warning is an error, too, and in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert_shown(capsys.readouterr().out, tmp_path)


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem != ALONE)) for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_an_example_runs_in_a_process_of_its_own(example: Path, tmp_path: Path) -> None:
    """As a user runs it; nothing is timed, so the limit is there to end a hang."""
    # One thread: a loaded machine must not make the threads of a small example wait for each other.
    environ = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=10 * MINUTE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert_shown(done.stdout, tmp_path)


def assert_shown(printed: str, folder: Path) -> None:
    assert len(printed.splitlines()) >= 4
    assert "nan" not in printed.lower()
    assert not list(folder.iterdir()), "an example leaves no files behind"


@every_example
def test_an_example_is_short(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) < 150
