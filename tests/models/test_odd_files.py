"""Folders with something else than plain files in them, as an archive may bring them: refused, never waited for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import statewise
from statewise.errors import ModelFolderError, RunFolderError
from statewise.files import read_object
from statewise.models import StepConfig


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """An end for a test that waits for a pipe."""
    import signal

    def end(*_: object) -> None:
        raise AssertionError("a pipe was waited for")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_pipe_in_a_model_s_folder_is_a_named_error(tmp_path: Path, name: str) -> None:
    StepConfig(hidden=4).build(tokens=3, classes=2).save(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(ModelFolderError):
        statewise.load(tmp_path)


def test_a_device_in_place_of_settings_is_a_named_error(tmp_path: Path) -> None:
    StepConfig(hidden=4).build(tokens=3, classes=2).save(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").symlink_to("/dev/zero")
    with pytest.raises(ModelFolderError, match="no plain file"):
        statewise.load(tmp_path)


def test_a_pipe_in_place_of_a_file_of_a_run_is_a_named_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "examples.json")
    with pytest.raises(RunFolderError, match="no plain file"):
        read_object(tmp_path / "examples.json", wanted="classes")


@pytest.mark.parametrize(
    ("text", "told"),
    [('{"a": 1, "a": 2}', "twice"), ('{"a": NaN}', "NaN"), ('{"a": 1e999}', "too large"), ("[" * 10**5, "too deep")],
)
def test_files_of_a_run_are_read_as_strictly_as_those_of_a_model(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RunFolderError, match=told):
        read_object(tmp_path / "x.json", wanted="settings")
