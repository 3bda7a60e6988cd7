"""Files that are either whole or not there: written under a temporary name, flushed to the disk, then renamed.

A process killed at any moment leaves the old file or the new one, never half of one. Readers need no lock.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

from statewise.errors import ArgumentError, RunFolderError, StatewiseError
from statewise.files.strict_json import read_json

_MODES = ("w", "wb")


def write_atomically(path: Path, content: str | bytes) -> None:
    r"""Put the content into the file at once: another process sees what was there before, or all of it.

    Args:
        path: the file to make or to replace; its folder exists.
        content: text, written as UTF-8 with its line ends as they are, or bytes.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "words.txt", "état\n")
    ...     (Path(folder) / "words.txt").read_bytes()
    b'\xc3\xa9tat\n'
    """
    data = content.encode() if isinstance(content, str) else content
    with atomic_file(path) as file:
        file.write(data)


@contextlib.contextmanager
def atomic_file(path: Path, mode: Literal["w", "wb"] = "wb") -> Iterator[IO[Any]]:
    """Open a file that takes its name only when the block ends without an error; after an error it is gone.

    Args:
        path: the file to make or to replace; its folder exists.
        mode: ``"wb"`` for bytes, ``"w"`` for UTF-8 text with its line ends as they are.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "log.txt", "w") as file:
    ...         _ = file.write("one line")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['log.txt']
    """
    if mode not in _MODES:
        raise ArgumentError(where="atomic_file.mode", got=mode, wanted="'w' or 'wb'")
    path = Path(path)
    # The same folder, because a rename between file systems is a copy. The dot keeps it out of patterns like *.txt.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    try:
        text = {} if mode == "wb" else {"encoding": "utf-8", "newline": ""}
        with os.fdopen(handle, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            _take_usual_permissions(file.fileno(), path)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def read_object(
    path: Path, *, wanted: str, remedy: str = "", error: type[StatewiseError] = RunFolderError
) -> dict[str, Any]:
    """The object of a JSON file, whatever the file holds.

    Args:
        path: of the file.
        wanted: what should be there, for the error.
        remedy: what to do if it is not.
        error: its type.

    >>> read_object(Path("nowhere.json"), wanted="settings as JSON")
    Traceback (most recent call last):
    statewise.errors.RunFolderError: nowhere.json: got No such file or directory, wanted settings as JSON.
    """
    if path.exists() and not path.is_file() and not path.is_dir():  # a pipe would be waited for
        raise error(where=str(path), got="no plain file", wanted=wanted, remedy=remedy)
    try:
        found = read_json(path.read_text(encoding="utf-8"))
    except OSError as fault:
        got = fault.strerror or type(fault).__name__
        raise error(where=str(path), got=got, wanted=wanted, remedy=remedy) from fault
    except ValueError as fault:  # no UTF-8, no JSON, too deep, a name twice, NaN, or a number of thousands of digits
        raise error(where=str(path), got=str(fault), wanted=wanted, remedy=remedy) from fault
    if not isinstance(found, dict):
        raise error(where=str(path), got=f"a {type(found).__name__}", wanted=wanted, remedy=remedy)
    return found


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time into the block; the others wait.

    The system drops the lock when its process ends in whatever way, so a crash cannot block the next one. Where there
    are no locks, as on some network file systems, all may enter: what they write must be atomic too.

    Args:
        path: the file that stands for the lock; it is made, and stays.
    """
    with path.open("ab") as handle:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _take_usual_permissions(handle: int, path: Path) -> None:
    # mkstemp lets only the owner read; a result should be as readable as the file it replaces, or as any new one.
    if not hasattr(os, "fchmod"):
        return
    try:
        mode = path.stat().st_mode & 0o7777
    except OSError:
        mode = 0o666 & ~_umask()
    # A file system without permissions may refuse.
    with contextlib.suppress(OSError):
        os.fchmod(handle, mode)


def _umask() -> int:
    # /proc tells it without changing it: os.umask() would change it for all threads for a moment.
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    current = os.umask(0o077)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    # The rename itself must reach the disk. Windows and some network file systems cannot sync a folder.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
