"""Runs side by side: what one of them comes to, and how all of them end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from recipes.jobs import JobRecipe
from statewise.errors import ArgumentError, DataError, RunFolderError
from statewise.recipes.driving import reproduce
from statewise.recipes.request import Request
from statewise.recipes.together import make_together

SCRIPT = Path(__file__).with_name("jobs.py")
LIMIT = 60.0


def together(folder: Path, *names: str, jobs: int = 1) -> dict[str, str]:
    return make_together(JobRecipe(*names), Request(), folder, jobs=jobs)


def notes(folder: Path, what: str) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in folder.glob(f"*.{what}.*"))


def test_a_run_that_diverged_in_a_process_is_noted_and_not_made_again(tmp_path: Path) -> None:
    outcome = reproduce(JobRecipe("diverged-1", "quick-1"), Request(), tmp_path, jobs=2)
    assert "a loss of nan" in outcome.failed["diverged-1"]
    assert [*outcome.steps] == ["quick-1"]
    assert notes(tmp_path, "begun") == ["diverged-1", "quick-1", "quick-1"], "the table asks for what was made"


def test_an_error_of_one_run_ends_the_others_that_wait(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a file: got nothing"):
        together(tmp_path, "wrong-1", *(f"quick-{number}" for number in range(400)))
    assert len(notes(tmp_path, "begun")) < 400


def test_a_killed_process_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"fewer --jobs.*The same command goes on"):
        together(tmp_path, "killed-1", "quick-1")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_ctrl_c_ends_all_after_their_checkpoints_and_begins_no_other(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), str(tmp_path), *(f"slow-{number}" for number in range(6))]
    place = str(Path(__file__).parent.parent)
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": place},
    )
    try:
        wait_for(lambda: len(notes(tmp_path, "begun")) == 2)
        time.sleep(0.2)  # into the region that hears
        os.killpg(process.pid, signal.SIGINT)
        said, complained = process.communicate(timeout=15)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 130, complained
    assert "The same command goes on" in said
    assert "Traceback" not in complained
    assert notes(tmp_path, "begun") == notes(tmp_path, "checkpoint")
    assert not notes(tmp_path, "done")


def wait_for(ready: Any) -> None:
    end = time.monotonic() + LIMIT
    while not ready():
        assert time.monotonic() < end, "nothing began"
        time.sleep(0.05)


@pytest.mark.parametrize("jobs", [0, -1, True])
def test_a_number_of_jobs_that_is_none_is_refused(tmp_path: Path, jobs: int) -> None:
    with pytest.raises(ArgumentError, match="--jobs"):
        together(tmp_path, "quick-1", jobs=jobs)
