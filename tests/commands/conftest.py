"""A trained run, and a way to type a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from commands.typing_commands import SMALL, Typed
from statewise.cli import main


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Networks of a few units gain nothing from threads, and on a busy machine lose much."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Run a command in this process, in an empty folder; gives what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> str:
        capsys.readouterr()
        main(arguments)
        return capsys.readouterr().out

    return call


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Run a command that must fail; gives what it said."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said

    return call


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with noise."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    arguments = [*SMALL, "--noise", "gaussian", "--gamma", "0.3", "--epochs", "2", "--quiet", "--out", str(folder)]
    main(["train", "lm", *arguments])
    return folder
