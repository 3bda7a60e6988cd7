"""The command line as a user meets it: real processes, their output and their exit codes."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import statewise
from statewise.cli import main

ROOT = Path(__file__).resolve().parents[1]


def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m statewise`` in a process without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "statewise", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_the_demo_trains_prints_a_table_and_reads_it() -> None:
    done = call("demo", "--seed", "1", "--steps", "5", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^network +train NLL +test NLL +the way +accuracy +seconds *$", done.stdout, flags=re.MULTILINE)
    assert re.search(r"^Engine: ", done.stdout, flags=re.MULTILINE)
    for network in ("LSTM", "LSTM + noise", "LSTM + zoneout", "LSTM + noise + centroids", "best possible"):
        assert re.search(rf"^{re.escape(network)} +\d.*%", done.stdout, flags=re.MULTILINE), network
    assert re.search(r"^LSTM +[▁▂▃▄▅▆▇█]{5}$", done.stdout, flags=re.MULTILINE)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


def test_an_output_without_unicode_gets_plain_characters_and_a_missing_kernel_is_explained() -> None:
    done = call("demo", "--steps", "2", PYTHONIOENCODING="ascii", STATEWISE_NATIVE="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "cpu (python)" in done.stdout
    assert "switched off by STATEWISE_NATIVE=0" in done.stdout


def test_the_doctor_tells_versions_engine_and_kernel() -> None:
    done = call("doctor", STATEWISE_NATIVE="0")
    assert done.returncode == 0, done.stderr
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in done.stdout.splitlines())
    assert facts["statewise"] == statewise.__version__
    assert facts["C++ kernel"].startswith("not available: switched off by STATEWISE_NATIVE=0")
    assert facts["an LSTM runs on"].startswith("cpu (python); not faster because: native:")
    assert {"Python", "PyTorch", "machine", "cache"} <= facts.keys()


def test_a_bad_argument_ends_a_process_with_code_2_and_a_message_without_a_traceback() -> None:
    done = call("demo", "--steps", "0")
    assert done.returncode == 2
    assert "demo.steps: got 0, wanted a whole number from 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], 'expected "command" to be one of {demo,doctor,train,evaluate,generate, ...}'),
        (["dmeo"], "invalid choice: 'dmeo'"),
        (["demo", "--steps", "many"], "steps"),
        (["demo", "--seed", "1.5"], "seed"),
        (["demo", "--seed", "-1"], "demo.seed: got -1, wanted a whole number from 0"),
        (["demo", "--step", "3"], "--step"),
        (["doctor", "--seed", "1"], "--seed"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.strip() == f"statewise {statewise.__version__}"


def test_help_names_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, wanted in (
        (["--help"], ("demo", "doctor", "train", "evaluate", "generate", "reproduce")),
        (["demo", "--help"], ("--seed", "--steps")),
        (["train", "lm", "--help"], ("--data", "--noise", "--epochs", "--resume")),
        (["reproduce", "--help"], ("--rows", "--list")),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        printed = capsys.readouterr().out
        assert all(word in printed for word in wanted)


def test_an_interrupted_command_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("statewise.demo.run", interrupt)
    with pytest.raises(SystemExit) as stopped:
        main(["demo"])
    assert stopped.value.code == 130


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "runs/a/model.safetensors"), "--resume goes on"),
        (PermissionError(errno.EACCES, "Permission denied", "/etc/runs"), "a place that you may use"),
        (OSError("the disk is gone"), "the disk is gone."),
    ],
    ids=["a full disk", "a forbidden place", "without a number"],
)
def test_what_the_system_refuses_is_told_with_the_path_and_a_remedy(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr("statewise.demo.run", fail)
    with pytest.raises(SystemExit) as stopped:
        main(["demo"])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert error.filename is None or error.filename in told
