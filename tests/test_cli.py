"""The command line as a user meets it: real processes, their output and their exit codes."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import statewise
from statewise.cli import main
from statewise.commands.catalogue import COMMANDS, chosen
from statewise.commands.completion import script

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


def test_the_demo_says_where_its_page_is_also_without_unicode_and_without_a_kernel(tmp_path: Path) -> None:
    options = ["--steps", "2", "--epochs", "1", "--out", str(tmp_path / "new" / "page.html")]
    done = call("demo", *options, PYTHONIOENCODING="ascii", STATEWISE_NATIVE="0", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert str(tmp_path / "new" / "page.html") in done.stdout
    assert "switched off by STATEWISE_NATIVE=0" in done.stdout
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_doctor_tells_versions_engine_and_kernel() -> None:
    done = call("doctor", STATEWISE_NATIVE="0")
    assert done.returncode == 0, done.stderr
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in done.stdout.splitlines())
    assert facts["statewise"] == statewise.__version__
    assert facts["CPU kernel"].startswith("not available: switched off by STATEWISE_NATIVE=0")
    assert facts["an LSTM runs on"].startswith("reference (loop); not faster because: cpu: switched off")
    assert {"Python", "PyTorch", "machine", "cache"} <= facts.keys()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("typed", [["--help"], ["--version"]])
def test_what_cannot_be_printed_is_told_once(typed: list[str]) -> None:
    code = "import sys\nfrom statewise.cli import main\nmain(sys.argv[1:])\n"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, *typed], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False
        )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("No space left on device. Make room") == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_help_whose_reader_has_gone_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    code = "import sys\nfrom statewise.cli import main\nmain(sys.argv[1:])\n"
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-c", code, "--help"], stdout=gone, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "")


def test_a_file_that_may_not_grow_is_told_like_a_full_disk() -> None:
    from statewise.cli import _told

    assert "Make room" in _told(OSError(errno.EFBIG, "File too large", "said.txt"))


def test_a_bad_argument_ends_a_process_with_code_2_and_a_message_without_a_traceback() -> None:
    done = call("demo", "--steps", "0")
    assert done.returncode == 2
    assert "demo.steps: got 0, wanted a whole number from 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "statewise: got no command, wanted one of those above. Start with statewise demo."),
        (
            ["dmeo"],
            "dmeo: got no command, wanted one of those that statewise --help lists. Did you mean statewise demo?",
        ),
        (["train"], "train: got no kind, wanted one of those above."),
        (["train", "tga"], "Did you mean statewise train tag?"),
        (["xyzzy", "--help"], "xyzzy: got no command, wanted one of those that statewise --help lists."),
        (["--nonsense"], "--nonsense: got no command"),
        (["demo", "--steps", "many"], "steps"),
        (["demo", "--seed", "1.5"], "seed"),
        (["demo", "--seed", "-1"], "demo.seed: got -1, wanted a whole number from 0"),
        (["demo", "--epochs", "0"], "demo.epochs: got 0, wanted a whole number from 1"),
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


EVERY_COMMAND = pytest.mark.parametrize("name", list(COMMANDS))


def test_help_names_every_command_and_needs_no_torch() -> None:
    program = (
        "import sys; from statewise.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as stopped: code = stopped.code\n"
        "heavy = {'torch', 'numpy', 'rich', 'jsonargparse'} & set(sys.modules)\n"
        "assert code == 0 and not heavy, (code, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.help)}$", done.stdout, flags=re.MULTILINE)
    assert "examples:" in done.stdout
    assert "Exit codes: 0" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 88


@EVERY_COMMAND
def test_the_help_of_a_command_has_its_options_and_examples_that_can_be_typed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*name.split(), "--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: statewise {name}")
    _, _, examples = printed.partition("\nexamples:\n")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert lines, "no examples"
    for line in lines:
        words = shlex.split(re.sub(r'^.*\| |^eval "\$\(|\)"$', "", line))
        assert words.pop(0) == "statewise"
        command, rest = chosen(words)
        assert command == name
        COMMANDS[name].load().parser().parse_args(rest)  # ends the test if it cannot be typed


def test_a_group_of_commands_has_a_help_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["memory", "--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert "memory rank" in printed
    assert "train lm" not in printed


def test_a_result_in_json_is_alone_on_standard_output() -> None:
    done = call("doctor", "--json", STATEWISE_NATIVE="0")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["statewise"] == statewise.__version__


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["d"], {"demo", "doctor"}),
        (["train", ""], {name.split()[1] for name in COMMANDS if name.startswith("train ")}),
        (["train", "lm", "--noise-m"], {"--noise-mode"}),
        (["predict", "--format", ""], {"columns", "jsonl"}),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_commands_options_and_values(words: list[str], wanted: set[str]) -> None:
    program = f'{script("bash")}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _statewise; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", program, "-", "statewise", *words], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_completes_commands_and_options(tmp_path: Path) -> None:
    (tmp_path / "script.fish").write_text(script("fish"), encoding="utf-8")
    program = f"source {tmp_path}/script.fish; complete -C 'statewise train lm --noise-m'; complete -C 'statewise doc'"
    done = subprocess.run(["fish", "-c", program], capture_output=True, text=True, check=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["--noise-mode", "doctor"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_takes_the_script(tmp_path: Path) -> None:
    (tmp_path / "script.zsh").write_text(script("zsh"), encoding="utf-8")
    program = f"source {tmp_path}/script.zsh && whence -w _statewise"
    home = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(["zsh", "-f", "-c", program], capture_output=True, text=True, check=True, env=home)
    assert "_statewise: function" in done.stdout


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
