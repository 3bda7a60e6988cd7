"""Every example is short, runs on a CPU as a user would run it, and shows a result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MINUTE = 60

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def test_there_are_examples() -> None:
    """Without this the tests below would pass if the folder were lost."""
    assert EXAMPLES


@every_example
def test_an_example_runs_without_a_warning_and_prints_a_table(example: Path, tmp_path: Path) -> None:
    """In a process and a folder of its own; nothing is timed, so the limit is there to end a hang."""
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
    assert len(done.stdout.splitlines()) >= 4
    assert "nan" not in done.stdout.lower()
    assert not list(tmp_path.iterdir()), "an example leaves no files behind"


@every_example
def test_an_example_is_short(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) < 150
