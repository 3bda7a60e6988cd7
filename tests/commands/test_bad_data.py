"""Every command on bad data: a message that helps and exit code 2, nothing lost, nothing left lying about."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commands.typing_commands import Typed
from statewise.cli import main
from support import made_once

_TEXT = "the cat sleeps .\na dog runs .\n" * 12
_WORDS = "yes\tab\nno\tba\nyes\taab\n" * 12
_NAMES = "Ada B-PER\nwrote O\n\nParis B-LOC\nsleeps O\n\n" * 12
_QUICK = ["--epochs", "1", "--device", "cpu", "--quiet"]
_KINDS: dict[str, tuple[str, str, list[str]]] = {
    "lm": ("text.txt", _TEXT, ["--hidden", "3", "--batch", "2", "--bptt", "4", *_QUICK]),
    "classify": ("words.tsv", _WORDS, ["--hidden", "3", "--batch", "8", *_QUICK]),
    "tag": ("names.conll", _NAMES, ["--hidden", "3", "--characters", "0", "--words", "3", *_QUICK]),
}
#: What may stand in a file instead of data, and what is said of it.
_BAD: dict[str, tuple[bytes, str]] = {
    "latin-1": ("l\xe9tat\tc'est moi .\n".encode("latin-1") * 30, "UTF-8"),
    "utf-16": (_WORDS.encode("utf-16"), "UTF-16"),
    "empty": (b"", "an empty file"),
    "binary": (bytes(range(256)) * 8, "NUL"),
    "an archive": (gzip.compress(_WORDS.encode()), "gzip"),
    "a long line": (b"x" * 10_000_000, "a longer word"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind."""
    place = made_once(tmp_path_factory, "kinds", train_kinds)
    return {kind: place / kind for kind in _KINDS}


def train_kinds(place: Path) -> None:
    for kind, (name, text, options) in _KINDS.items():
        (place / name).write_text(text)
        main(["train", kind, "--data", str(place / name), "--out", str(place / kind), *options])


@pytest.fixture
def copied(runs: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a run, to be damaged."""
    return lambda kind: Path(shutil.copytree(runs[kind], tmp_path / kind))


def reading(command: str, runs: dict[str, Path], file: str) -> list[str]:
    """A command that reads a file."""
    return {
        "train lm": ["train", "lm", "--data", file, "--out", "new"],
        "train classify": ["train", "classify", "--data", file, "--out", "new"],
        "train tag": ["train", "tag", "--data", file, "--out", "new"],
        "evaluate": ["evaluate", str(runs["lm"]), "--data", file],
        "evaluate --text": ["evaluate", str(runs["lm"]), "--text", file],
        "evaluate a tagger": ["evaluate", str(runs["tag"]), "--data", file],
        "predict classes": ["predict", str(runs["classify"]), file, "--out", "said.txt"],
        "predict tags": ["predict", str(runs["tag"]), file, "--out", "said.txt"],
        "extract": ["extract", str(runs["classify"]), "--words", file, "--out", "machine.json"],
        "certify": ["certify", str(runs["classify"]), "--data", file, "--iid"],
    }[command]


_ENDINGS = {
    "train classify": "bad.tsv",
    "certify": "bad.tsv",
    "train tag": "bad.conll",
    "evaluate a tagger": "bad.conll",
}
_READING = [
    *("train lm", "train classify", "train tag", "evaluate", "evaluate --text", "evaluate a tagger"),
    *("predict classes", "predict tags", "extract", "certify"),
]


def strays(folder: Path) -> list[str]:
    """What a command that failed must not leave behind."""
    return [path.name for path in folder.rglob("*") if path.name.endswith((".partial", ".tmp"))]


@pytest.mark.parametrize("command", _READING)
@pytest.mark.parametrize("fault", _BAD)
def test_a_bad_file_is_named_with_what_is_wrong(
    refused: Typed, runs: dict[str, Path], tmp_path: Path, command: str, fault: str
) -> None:
    content, told = _BAD[fault]
    file = tmp_path / _ENDINGS.get(command, "bad.txt")
    file.write_bytes(content)
    said = refused(*reading(command, runs, str(file)))
    assert file.name in said
    assert told in said or (fault == "a long line" and "bad" in said)
    assert len(said) < 4000
    assert file.read_bytes() == content
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "said.txt").exists()
    assert strays(tmp_path) == []


@pytest.mark.parametrize("command", _READING)
def test_a_folder_or_nothing_in_place_of_a_file_is_named(
    refused: Typed, runs: dict[str, Path], tmp_path: Path, command: str
) -> None:
    (tmp_path / "folder.tsv").mkdir()
    for name in ("folder.tsv", "nowhere.tsv"):
        assert name in refused(*reading(command, runs, str(tmp_path / name)))
    assert strays(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "name", "text", "told"),
    [
        ("classify", "head.csv", "label,text\n", "no texts"),
        ("classify", "one.tsv", "yes\tab\nyes\tba\n" * 9, "two classes or more"),
        ("classify", "column.csv", "label,text\nyes,ab\nno,ba\n", "'verdict'"),
        ("classify", "ragged.csv", "label,text\nyes,ab\nno\n", "line 3"),
        ("tag", "head.csv", "sentence,token,tag\n", "no sentences"),
        ("tag", "column.csv", "sentence,token,pos\n1,Ada,NN\n", "a column of tags"),
        ("tag", "scheme.conll", "Ada B-PER\nwrote I-LOC\n" * 9, "line 2"),
        ("tag", "ragged.conll", "Ada NN B-PER\nwrote O\n", "line 2"),
        ("lm", "few.txt", "one line\n", "20 lines"),
        ("lm", "blank.txt", "\n" * 40, "words"),
    ],
)
def test_what_cannot_be_learnt_from_is_told_before_a_run_begins(
    refused: Typed, tmp_path: Path, kind: str, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    asked = ["--label", "verdict"] if told == "'verdict'" else []
    said = refused("train", kind, "--data", name, "--out", "new", *asked)
    assert told in said
    assert name in said
    assert not (tmp_path / "new").exists()


_FILES = {
    "lm": ("config.json", "model.safetensors", "vocabulary.txt"),
    "classify": ("config.json", "model.safetensors", "examples.json"),
    "tag": ("config.json", "model.safetensors", "lexicon.json"),
}


@pytest.mark.parametrize(("kind", "file"), [(kind, file) for kind, files in _FILES.items() for file in files])
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe\0", b"[" * 100_000])
def test_a_damaged_run_is_told_by_every_command_that_reads_it(
    refused: Typed, copied: Callable[[str], Path], tmp_path: Path, kind: str, file: str, damage: bytes
) -> None:
    run = copied(kind)
    (run / file).write_bytes(damage)
    data = tmp_path / _KINDS[kind][0]
    data.write_text(_KINDS[kind][1])
    commands = {
        "lm": [["evaluate", str(run), "--data", str(data)], ["generate", str(run)]],
        "classify": [
            ["predict", str(run), str(data)],
            ["extract", str(run)],
            ["certify", str(run), "--data", str(data)],
        ],
        "tag": [["evaluate", str(run), "--data", str(data)], ["predict", str(run), str(data)]],
    }[kind]
    for command in commands:
        assert file in refused(*command)
    assert (run / file).read_bytes() == damage


@pytest.mark.parametrize("kind", _KINDS)
def test_a_run_is_not_begun_where_nothing_can_be_written(refused: Typed, tmp_path: Path, kind: str) -> None:
    name, text, options = _KINDS[kind]
    (tmp_path / name).write_text(text)
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/run", "/proc/nothing/run"):
        said = refused("train", kind, "--data", name, "--out", out, *options)
        assert out.split("/")[0] in said or "/proc" in said
    assert (tmp_path / "file").read_text() == "mine"
    assert strays(tmp_path) == []


def test_results_are_not_written_under_a_file_or_over_what_is_read(
    refused: Typed, runs: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("ab\n")
    for out in ("file/said.txt", "file", "/proc/said.txt"):
        refused("predict", str(runs["classify"]), "file", "--out", out)
    assert (tmp_path / "file").read_text() == "ab\n"
    refused("extract", str(runs["classify"]), "--out", "file/machine.json")
    refused("memory", "rank", "--inputs", "2", "--width", "2", "--steps", "2,4", "--depth", "1", "--out", "file")
    refused("memory", "rank", "--inputs", "2", "--width", "2", "--steps", "2,4", "--depth", "1", "--out", "file/t")
    refused("reproduce", "noisin/table3", "--scale", "smoke", "--out", "file", "--device", "cpu")
    assert (tmp_path / "file").read_text() == "ab\n"
    assert strays(tmp_path) == []


# What needs a process of its own: a full disk, a reader that has gone, standard input that is closed, another user.


def program(*arguments: str, before: str = "", cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a program, after some lines of Python."""
    code = f"import sys\n{before}\nfrom statewise.cli import main\nmain(sys.argv[1:])\n"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of a few kilobytes at a folder; skips where it cannot be had."""
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("needs the right to mount a file system")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lm", "classify"])
def test_a_run_that_met_a_full_disk_goes_on_and_ends_the_same(tmp_path: Path, kind: str) -> None:
    name, text, options = _KINDS[kind]
    (tmp_path / name).write_text(text)
    options = [*options, "--epochs", "3"]
    whole = program("train", kind, "--data", name, "--out", "whole", *options, cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    with small_disk(tmp_path / "disk", "64k"):
        (tmp_path / "disk" / "filler").write_bytes(bytes(44 * 1024))
        cut = program("train", kind, "--data", name, "--out", "disk/run", *options, cwd=tmp_path)
        assert cut.returncode == 2, cut.stderr
        assert "No space left" in cut.stderr
        assert "Traceback" not in cut.stderr
        assert strays(tmp_path / "disk") == []
        (tmp_path / "disk" / "filler").unlink()
        again = program("train", kind, "--resume", "--data", name, "--out", "disk/run", *options, cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        same = (tmp_path / "disk/run/model.safetensors").read_bytes()
        assert same == (tmp_path / "whole/model.safetensors").read_bytes()


def test_a_full_disk_leaves_the_old_result_whole(runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("ab\nba\n" * 5000)
    with small_disk(tmp_path / "disk", "16k"):
        (tmp_path / "disk" / "said.txt").write_text("old")
        cut = program("predict", str(runs["classify"]), "words.txt", "--out", "disk/said.txt", cwd=tmp_path)
        assert cut.returncode == 2, cut.stderr
        assert "No space left" in cut.stderr
        assert "Traceback" not in cut.stderr
        assert (tmp_path / "disk" / "said.txt").read_text() == "old"
        assert [path.name for path in (tmp_path / "disk").iterdir()] == ["said.txt"]


@pytest.mark.slow
def test_a_file_larger_than_is_allowed_is_told(runs: dict[str, Path], tmp_path: Path) -> None:
    """As on a full disk, without the right to mount one."""
    (tmp_path / "words.txt").write_text("ab\nba\n" * 5000)
    limit = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    cut = program("predict", str(runs["classify"]), "words.txt", "--out", "said.txt", before=limit, cwd=tmp_path)
    assert cut.returncode == 2, cut.stderr
    assert "too large" in cut.stderr
    assert "Traceback" not in cut.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["words.txt"]


def test_a_full_standard_output_is_told(runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("ab\nba\n" * 5000)
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    code = "import sys\nfrom statewise.cli import main\nmain(sys.argv[1:])\n"
    with Path("/dev/full").open("w") as full:
        cut = subprocess.run(
            [sys.executable, "-c", code, "predict", str(runs["classify"]), "words.txt"],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
    assert cut.returncode == 2, cut.stderr
    assert "No space left" in cut.stderr
    assert "Traceback" not in cut.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "doctor", "memory"])
def test_who_stops_reading_the_output_stops_the_command_quietly(
    runs: dict[str, Path], tmp_path: Path, command: str
) -> None:
    (tmp_path / "words.txt").write_text("ab\nba\n" * 5000)
    options = {
        "predict": ["predict", str(runs["classify"]), "words.txt"],
        "doctor": ["doctor"],
        "memory": ["memory", "advise", "--budget", "1000", "--steps", "8", "--inputs", "3"],
    }[command]
    code = "import sys\nfrom statewise.cli import main\nmain(sys.argv[1:])\n"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        ended = subprocess.run(
            [sys.executable, "-c", code, *options],
            stdout=gone, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
    assert ended.returncode in (0, 1, 2), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "BrokenPipeError" not in ended.stderr


def test_standard_input_that_is_closed_or_empty_is_told(runs: dict[str, Path], tmp_path: Path) -> None:
    code = "import sys\nfrom statewise.cli import main\nmain(sys.argv[1:])\n"
    typed = [sys.executable, "-c", code, "predict", str(runs["classify"]), "-"]
    empty = subprocess.run(typed, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, check=False)
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *typed], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    for ended in (empty, closed):
        assert ended.returncode == 2, ended.stderr
        assert "standard input" in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.fixture
def open_to_others() -> Iterator[Path]:
    """A folder that other users may look into, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made).resolve()
        place.chmod(0o755)
        for above in place.parents:
            if above.stat().st_mode & 0o001 == 0:
                pytest.skip("the folder of temporary files is closed to others")
        yield place


_AS_NOBODY = "import os\nos.setgid(65534)\nos.setuid(65534)\n"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to become another user")
def test_a_file_or_a_folder_without_rights_is_named(open_to_others: Path) -> None:
    name, text, options = _KINDS["lm"]
    tmp_path = open_to_others
    (tmp_path / name).write_text(text)
    (tmp_path / "cache").mkdir(mode=0o777)
    (tmp_path / "cache").chmod(0o777)
    (tmp_path / "secret.txt").write_text(text)
    (tmp_path / "secret.txt").chmod(0o600)

    def as_nobody(data: str, out: str, warm: str) -> subprocess.CompletedProcess[str]:
        """The command by another user, who may not be able to read Python itself: all is imported by a run before."""
        first = ["train", "lm", "--data", name, "--out", warm, *options]
        own = f"os.environ['XDG_CACHE_HOME'] = {str(tmp_path / 'cache')!r}\n"
        before = f"from statewise.cli import main\nmain({first!r})\n{_AS_NOBODY}{own}"
        return program("train", "lm", "--data", data, "--out", out, *options, before=before, cwd=tmp_path)

    file, folder = as_nobody("secret.txt", "cache/new", "first"), as_nobody(name, "new", "second")
    for ended, named in ((file, "secret.txt"), (folder, "new")):
        assert ended.returncode == 2, ended.stderr
        assert named in ended.stderr
        assert "ermission denied" in ended.stderr
        assert "Traceback" not in ended.stderr
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "cache" / "new").exists()
