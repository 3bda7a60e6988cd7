"""Files that are whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from statewise.errors import ArgumentError
from statewise.files import atomic_file, locked, write_atomically

ROOT = Path(__file__).resolve().parents[1]


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("content", ["état\r\n\n", b"\x00\xff\n", "", b""])
def test_what_is_written_is_what_is_there(tmp_path: Path, content: str | bytes) -> None:
    write_atomically(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert names(tmp_path) == ["file"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", "old")

    def fail() -> None:
        with atomic_file(tmp_path / "file", "w") as file:
            file.write("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_the_file_takes_its_name_only_at_the_end(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "file") as file:
        file.write(b"half")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"half"


def test_a_process_killed_while_it_writes_leaves_the_old_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", "old")
    program = (
        "import sys\nfrom pathlib import Path\nfrom statewise.files import atomic_file\n"
        "with atomic_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'new'); file.flush(); print('half', flush=True); input()\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"half\n"
    running.kill()
    running.communicate()
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="needs permissions")
def test_a_new_file_may_be_read_by_whom_the_umask_allows_and_a_replaced_one_by_whom_it_was(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_atomically(tmp_path / "new", "")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "new").chmod(0o640)
    write_atomically(tmp_path / "new", "again")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_another_mode_is_refused(tmp_path: Path, as_users_have_it: None) -> None:
    with pytest.raises(ArgumentError, match="'w' or 'wb'"), atomic_file(tmp_path / "file", "a"):  # type: ignore[arg-type]
        pass


def test_a_folder_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        write_atomically(tmp_path / "absent" / "file", "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of the system")
def test_a_lock_lets_one_in_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0
    step = threading.Event()

    def enter() -> None:
        nonlocal inside, most
        with locked(tmp_path / "lock"):
            inside += 1
            most = max(most, inside)
            step.wait(0.02)
            inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
