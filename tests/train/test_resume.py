"""A run that is killed goes on, and ends with the same bits as one that was not."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from statewise.train import RunFolder

SCRIPT = Path(__file__).with_name("killable.py")
ROOT = SCRIPT.parents[2]


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), *options], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def finish(folder: Path, *options: str) -> int:
    with start(folder, *options) as process:
        return process.wait()


def outcome(folder: Path) -> tuple[bytes, bytes, list[dict[str, Any]]]:
    """The bits of the best and the last model with all that belongs to it, and the metrics without their times."""
    run = RunFolder(folder)
    found = run.load_resume()
    assert found is not None
    tensors, document = found
    model, about = run.load_model()
    document.pop("seconds")
    document["about the model"] = about
    metrics = [{name: value for name, value in record.items() if name != "seconds"} for record in run.metrics()]
    return _bits(model), _bits(tensors) + json.dumps(document, sort_keys=True).encode(), metrics


def _bits(tensors: dict[str, Tensor]) -> bytes:
    return b"".join(name.encode() + tensors[name].numpy().tobytes() for name in sorted(tensors))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert finish(folder, "--every", "1000000") == 0
    return outcome(folder)


def test_a_run_that_writes_often_is_the_run_that_writes_never(
    undisturbed: tuple[bytes, bytes, list[dict[str, Any]]], tmp_path: Path
) -> None:
    assert finish(tmp_path / "run") == 0
    assert outcome(tmp_path / "run") == undisturbed


@pytest.mark.parametrize("kill", [3, 7, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4, 5, 6, 12, 25))])
def test_killed_in_the_middle_of_a_write_it_ends_with_the_same_bits(
    undisturbed: tuple[bytes, bytes, list[dict[str, Any]]], tmp_path: Path, kill: int
) -> None:
    """The files of a run are written in turn, so these numbers hit the config, vocabulary, model and resume point."""
    assert finish(tmp_path / "run", "--die-at", str(kill)) == -signal.SIGKILL
    assert finish(tmp_path / "run") == 0
    assert outcome(tmp_path / "run") == undisturbed


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_same_bits(
    undisturbed: tuple[bytes, bytes, list[dict[str, Any]]], tmp_path: Path, kills: int
) -> None:
    moments = random.Random(4)
    for _ in range(kills):
        with start(tmp_path / "run") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(moments.uniform(0.0, 0.5))
            process.kill()
            process.wait()
    assert finish(tmp_path / "run") == 0
    assert outcome(tmp_path / "run") == undisturbed
