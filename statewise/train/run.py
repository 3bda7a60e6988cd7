"""The folder of a run: what it was told, what it measured, what it learnt, and where to go on."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from statewise.errors import ArgumentError, RunFolderError, RunInUseError
from statewise.files import read_object, write_atomically
from statewise.train.metrics import MetricsFile, strict
from statewise.train.tensor_file import read_document, read_tensors, write_tensors

_METRICS_COUNT = "metrics_count"
_PARTS = ("model", "training", "source")  # of a config; whoever has such parts has settings in them
_ABSENT = "nothing"
# What is written under a temporary name; a vocabulary, or what examples are made of, lies beside the others.
_ATOMIC = ("config.json", "model.safetensors", "resume.safetensors", "resume.json", "vocabulary.txt", "examples.json")

_FULL = "Free some space, then go on with the run: what was written before is whole."
_CLOSED = "Use a folder in a place where you may write."
_NO_FOLDER = "A file has the name of the folder or of one above it: use another folder."
_NO_LOCKS = "The file system has no locks: use a folder on another one."
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _CLOSED),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), _NO_FOLDER),
    **dict.fromkeys((errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP), _NO_LOCKS),
}
_OTHERWISE = "See to the disk, then go on with the run, or use another folder."


class RunFolder:
    """A run as a folder, which a kill at any moment leaves whole.

    ============================  =============================================================
    ``config.json``               what the run was told
    ``metrics.jsonl``             what it measured, one record a line
    ``model.safetensors``         the best model so far
    ``resume.safetensors``        where to go on: all tensors, and in its metadata a document
    ``resume.json``               the same document for a reader; nothing reads it back
    ============================  =============================================================

    The resume point is one file that takes its name when it is whole, so it is always the old one or the new one.
    ``RunFolder(path)`` reads; :meth:`create` makes a folder or goes on with one, and locks it against other writers.

    Args:
        path: a folder with a run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with RunFolder.create(Path(place) / "run", {"lr": 30.0}) as run:
    ...         run.append_metrics({"epoch": 1, "loss": 4.5})
    ...         run.save_resume({"weight": torch.ones(2)}, {"epoch": 1})
    ...         run.append_metrics({"epoch": 2, "loss": 4.1})
    ...     with RunFolder.create(Path(place) / "run", {"lr": 30.0}, resume=True) as run:
    ...         tensors, document = run.load_resume()
    ...         document["epoch"], tensors["weight"].tolist(), run.metrics()
    (1, [1.0, 1.0], [{'epoch': 1, 'loss': 4.5}])
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        with system_errors(self.path):
            if not self.config_path.exists():
                raise RunFolderError(
                    where=str(self.path),
                    got="no config.json",
                    wanted="the folder of a run",
                    remedy="RunFolder.create makes one.",
                )
            self._metrics = MetricsFile(self.path / "metrics.jsonl")
        self._lock: int | None = None

    @classmethod
    def create(
        cls,
        path: Path | str,
        config: Mapping[str, Any],
        *,
        resume: bool = False,
        may_differ: Collection[str] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> RunFolder:
        """Begin a run in a new or empty folder, or go on with the run that is there.

        Going on, the metrics are cut back to those that the resume point knows of.

        Args:
            path: the folder; its parents are made.
            config: what the run is told, as JSON can hold it.
            resume: go on with a run that is there; without one, begin.
            may_differ: fields of the config, e.g. ``("training.epochs",)``, that a run that goes on may change, and
                all that is in them.
            defaults: parts of a config as they are by default: what a run that goes on was not told is meant so.

        Raises:
            RunFolderError: a run is there and ``resume`` is False, or it has another config, or no run but other files,
                or the system refuses to write there.
            RunInUseError: another process has the run.
        """
        path = Path(path)
        config = strict(config, "config")
        with system_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            # Before anything is written, so that a folder of something else stays as it is.
            _refuse_strangers(path)
            lock = lock_folder(path)
            try:
                _check_run(path, config, resume=resume, may_differ=may_differ, defaults=defaults or {})
                _remove_torn_files(path)
                text = _readable(config)
                if not (path / "config.json").exists() or (path / "config.json").read_text(encoding="utf-8") != text:
                    write_atomically(path / "config.json", text)
                run = cls(path)
                run._lock = lock
                run.rewind()
            except BaseException:
                os.close(lock)
                raise
        return run

    @property
    def config_path(self) -> Path:
        """Where the config is."""
        return self.path / "config.json"

    @property
    def model_path(self) -> Path:
        """Where the best model is, if there is one."""
        return self.path / "model.safetensors"

    @property
    def resume_path(self) -> Path:
        """Where the resume point is, if there is one."""
        return self.path / "resume.safetensors"

    def config(self) -> dict[str, Any]:
        """What the run was told."""
        with system_errors(self.path):
            return read_config(self.config_path)

    def metrics(self) -> list[dict[str, Any]]:
        """All records; NaN is None in them and infinity ``"inf"``."""
        with system_errors(self.path):
            return self._metrics.read()

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add a record.

        Args:
            record: numbers and texts by name; NaN is written as null, infinity as ``"inf"``.
        """
        self._writable()
        with system_errors(self.path):
            self._metrics.append(record)

    def save_resume(self, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
        """Replace the resume point, at once.

        Args:
            tensors: of model, optimiser, averages and generators, by name; any dtype, on any device.
            document: all else, as JSON can hold it. The count of metrics is added to it.
        """
        self._writable()
        if _METRICS_COUNT in document:
            raise ArgumentError(where="save_resume.document", got=_METRICS_COUNT, wanted="another name")
        whole = {**document, _METRICS_COUNT: self._metrics.count}
        with system_errors(self.path):
            # The resume point must never know of records that a power cut could still take away.
            self._metrics.sync()
            write_tensors(self.resume_path, tensors, whole)
            write_atomically(self.path / "resume.json", _readable(strict(whole, "document")))

    def load_resume(self, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and document of the resume point; None if there is none.

        Args:
            device: where the tensors go. The state of a generator is wanted on the CPU whatever its device.
        """
        with system_errors(self.path):
            if not self.resume_path.exists():
                return None
            tensors, document = read_tensors(self.resume_path, device)
        document.pop(_METRICS_COUNT, None)
        return tensors, document

    def save_model(self, state_dict: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None) -> None:
        """Replace the model, at once.

        Args:
            state_dict: of the model; tied weights are stored once.
            metadata: what a reader of the file should know, as JSON can hold it.
        """
        self._writable()
        with system_errors(self.path):
            write_tensors(self.model_path, state_dict, metadata or {})

    def load_model(self, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
        """State dict and metadata of the model.

        Args:
            device: where the tensors go.
        """
        with system_errors(self.path):
            if not self.model_path.exists():
                begun = (self.path / "config.json").exists()
                remedy = "Go on with the run, which has not ended an epoch: --resume." if begun else "Train it first."
                raise RunFolderError(where=str(self.path), got="no model.safetensors", wanted="a model", remedy=remedy)
            return read_tensors(self.model_path, device)

    def rewind(self) -> None:
        """Cut the metrics back to those that the resume point knows of; without one, to none."""
        self._writable()
        with system_errors(self.path):
            document = read_document(self.resume_path) if self.resume_path.exists() else {_METRICS_COUNT: 0}
            count = document.get(_METRICS_COUNT)
            if type(count) is not int or count < 0:
                raise RunFolderError(
                    where=f"{self.resume_path}, {_METRICS_COUNT}",
                    got=count,
                    wanted="how many records there are",
                    remedy="Put the file back from a copy, or begin a new run in another folder.",
                )
            self._metrics.cut(count)

    def close(self) -> None:
        """Let other processes write; the folder can still be read."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _writable(self) -> None:
        if self._lock is None:
            raise RunFolderError(
                where=str(self.path),
                got="a run that is open for reading",
                wanted="one that is locked for writing",
                remedy="Open it with RunFolder.create(path, config, resume=True).",
            )


@contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """A region in which what the system refuses becomes an error of the run's folder, with what to do about it.

    Args:
        path: the folder.

    >>> with system_errors(Path("run")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    statewise.errors.RunFolderError: run: got "No space left on device", wanted a folder that can be read and written.
    Free some space, then go on with the run: what was written before is whole.
    """
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            where=str(path),
            got=f'"{error.strerror or error}"',
            wanted="a folder that can be read and written",
            remedy=_REMEDIES.get(error.errno or 0, _OTHERWISE),
        ) from error


def lock_folder(path: Path) -> int:
    """Hold a folder until the handle is closed or the process ends, however it ends.

    Args:
        path: the folder.

    Raises:
        RunInUseError: another process has it.
    """
    handle = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock_handle(handle)
    except OSError as error:
        holder = os.pread(handle, 200, 0).decode(errors="replace").strip() if hasattr(os, "pread") else ""
        os.close(handle)
        if not isinstance(error, BlockingIOError | PermissionError):  # nobody holds it: there are no locks here
            raise
        raise RunInUseError(
            where=str(path),
            got=f"a run that {holder or 'another process'} is writing",
            wanted="a run of its own for each process",
            remedy="Wait until it ends, or use another folder.",
        ) from error
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return handle


def _lock_handle(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has a lock of its own
        import msvcrt

        # One byte far behind the text, so that others can read who holds it.
        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_torn_files(path: Path) -> None:
    """What killed writers of a run left under temporary names; the lock says that none is at work."""
    for name in _ATOMIC:
        for torn in path.glob(f".{name}.*.partial"):
            torn.unlink(missing_ok=True)


def _refuse_strangers(path: Path) -> None:
    """Refuse a folder that has files and no run; hidden files do not count."""
    others = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
    # Looked for after the listing: a run's config is its first file, and another process may just have begun.
    if others and not (path / "config.json").exists():
        raise RunFolderError(
            where=str(path),
            got=f"a folder with other files: {', '.join(others[:5])}",
            wanted="a new or empty one",
            remedy="Use another folder.",
        )


def _check_run(
    path: Path,
    config: Mapping[str, Any],
    *,
    resume: bool,
    may_differ: Collection[str],
    defaults: Mapping[str, Any],
) -> None:
    """Refuse a run that is there, if it is not to go on or is another one."""
    if not (path / "config.json").exists():
        return
    if not resume:
        raise RunFolderError(
            where=str(path),
            got="a folder with a run",
            wanted="a new or empty one",
            remedy="Use resume=True to go on with that run, or another folder.",
        )
    changes = differences(read_config(path / "config.json"), config, may_differ, defaults)
    if changes:
        raise RunFolderError(
            where=str(path / "config.json"),
            got=f"other settings than those of the run: {'; '.join(changes)}",
            wanted="the same settings",
            remedy="Use the settings of the run, or begin a new run in another folder.",
        )


def differences(
    there: Mapping[str, Any],
    now: Mapping[str, Any],
    may_differ: Collection[str],
    defaults: Mapping[str, Any],
) -> list[str]:
    """What is not the same in two configs, each in words.

    Args:
        there: what a run was told.
        now: what it is told now.
        may_differ: fields that do not count, and all that is in them.
        defaults: parts of a config as they are by default, for fields that are younger than the run.

    >>> differences({"lr": 30, "epochs": 1}, {"lr": 20, "epochs": 2}, ("epochs",), {})
    ['lr was 30 and is now 20']
    >>> differences({"model": {"hidden": 5}}, {"model": {"hidden": 5, "dropout": 0.0}}, (), {"model": {"dropout": 0.0}})
    []
    """
    free = tuple(f"{name}." for name in may_differ)
    known = {part: {**own, **there[part]} for part, own in defaults.items() if isinstance(there.get(part), Mapping)}
    return [text for field, text in _differences({**there, **known}, now) if not f"{field}.".startswith(free)]


def _differences(there: object, now: object, name: str = "") -> Iterator[tuple[str, str]]:
    """The fields that differ, each with a text that says how."""
    if isinstance(there, Mapping) and isinstance(now, Mapping):
        for key in {**there, **now}:
            yield from _differences(there.get(key, _ABSENT), now.get(key, _ABSENT), f"{name}.{key}" if name else key)
    elif there != now or isinstance(there, bool) != isinstance(now, bool):
        yield name, f"{name} was {there} and is now {now}"


def read_config(path: Path) -> dict[str, Any]:
    """Settings by name, from a file.

    Args:
        path: the file, as JSON.
    """
    remedy = "Remove it, and name all settings again."
    config = read_object(path, wanted="settings by name, as JSON", remedy=remedy)
    for part in _PARTS:
        if not isinstance(config.get(part, {}), dict):
            got = f"a {type(config[part]).__name__}"
            raise RunFolderError(where=f"{path}, field {part!r}", got=got, wanted="settings by name", remedy=remedy)
    return config


def _readable(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
