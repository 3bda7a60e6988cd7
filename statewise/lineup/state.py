"""Where a comparison is: one file that says what was asked, what is done and what came of it; always whole."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statewise.errors import ArgumentError, RunFolderError
from statewise.files import write_atomically
from statewise.lineup.adaptor import Told
from statewise.lineup.candidates import Candidate
from statewise.train.metrics import strict
from statewise.train.run import lock_folder, read_config, system_errors
from statewise.train.settings import check_number, check_seed

STATE = "lineup.json"
VERSION = 1
EPOCHS = 20
_PIECE = 2**20


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a person wants to know.

    Args:
        data: a file, a folder, or the name of a sample.
        kind: what it is.
        files: its parts; nothing for a sample.
        told: what was said of data, model and training.
        lineup: names of families; nothing for all.
        seeds: how often each candidate is trained.
        epochs: of a run that is never dropped; None with ``minutes``.
        minutes: that training may take; None with ``epochs``.

    >>> Asked(data="sample", kind="lm", epochs=4).seeds
    3
    """

    data: str
    kind: str
    files: Mapping[str, str] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    lineup: tuple[str, ...] = ()
    seeds: int = 3
    epochs: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.minutes is None):
            got = f"--epochs {self.epochs} and --minutes {self.minutes}"
            raise ArgumentError(where="--epochs", got=got, wanted="one of the two")
        check_number("--seeds", self.seeds, whole=True)
        if self.epochs is not None:
            check_number("--epochs", self.epochs, whole=True)
        if self.minutes is not None:
            check_number("--minutes", self.minutes)
        check_seed("--seed", self.told.seed)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """Of the runs of a candidate."""
        return tuple(range(self.told.seed, self.told.seed + self.seeds))

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        names = ("data", "kind", "seeds", "epochs", "minutes")
        own = {name: getattr(self, name) for name in names}
        return {**own, "files": dict(self.files), "lineup": list(self.lineup), "told": self.told.document()}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Asked:
        """What :meth:`document` gave.

        Args:
            document: of a file.
        """
        parts = {"told": Told(**document["told"]), "lineup": tuple(document["lineup"])}
        return cls(**{**document, **parts})


class State:
    """The file ``lineup.json`` of a comparison, and the folder that it lies in.

    Args:
        folder: of the comparison.
        document: what the file holds.
    """

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self.folder, self.document = folder, document
        self.asked = Asked.of(document["asked"])

    @classmethod
    def begin(cls, folder: Path, asked: Asked, why: str) -> State:
        """A new comparison, in a new or empty folder.

        Args:
            folder: where.
            asked: what is wanted.
            why: by what the data was recognised.
        """
        with system_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        if others:
            there = STATE in others
            raise RunFolderError(
                where=str(folder),
                got="a folder with a comparison" if there else f"a folder with other files: {', '.join(others[:5])}",
                wanted="a new or empty one",
                remedy=f"Go on (statewise compare --resume --out {folder}), or name another folder (--out)."
                if there
                else "Name another folder (--out).",
            )
        document = {"task": "line-up", "version": VERSION, "asked": asked.document(), "why": why}
        document |= {"inputs": {}, "prepared": None, "candidates": [], "unavailable": {}, "runs": {}, "rungs": []}
        state = cls(folder, {**document, "no_time": [], "spent": 0.0, "result": None})
        state.save()
        return state

    @classmethod
    def found(cls, folder: Path) -> State:
        """The comparison that a folder holds.

        Args:
            folder: of the comparison.
        """
        path = folder / STATE
        if not path.exists():
            raise RunFolderError(
                where=str(folder),
                got=f"no {STATE}",
                wanted="the folder of a comparison",
                remedy="statewise compare DATA --out FOLDER begins one.",
            )
        document = read_config(path)
        if document.get("task") != "line-up" or document.get("version") != VERSION:
            got = f"task {document.get('task')!r}, version {document.get('version')!r}"
            raise RunFolderError(where=str(path), got=got, wanted=f"a line-up of version {VERSION}")
        return cls(folder, document)

    @property
    def data(self) -> Path:
        """Where the parts of the data are."""
        return self.folder / "data"

    @property
    def candidates(self) -> dict[str, Candidate]:
        """All that take part, by name."""
        return {each["name"]: Candidate.of(each) for each in self.document["candidates"]}

    @property
    def left(self) -> list[str]:
        """The names of those that have not been dropped."""
        rungs = self.document["rungs"]
        known = rungs[-1]["kept"] if rungs else [each["name"] for each in self.document["candidates"]]
        return [name for name in known if name not in self.document["no_time"]]

    def run(self, name: str) -> Path:
        """The folder of a run.

        Args:
            name: of the run.
        """
        return self.folder / "runs" / name

    def scores(self, name: str) -> Path:
        """Where it is kept what a run did on the test set.

        Args:
            name: of the run.
        """
        return self.folder / "scores" / f"{name}.json"

    def save(self) -> None:
        """Write the file, at once or not at all."""
        text = json.dumps(strict(self.document, STATE), indent=1, ensure_ascii=False, allow_nan=False)
        with system_errors(self.folder):
            write_atomically(self.folder / STATE, text + "\n")

    def check_inputs(self) -> None:
        """Refuse to go on with data that has changed since, whether the person's or its parts."""
        parts = self.document["prepared"]["checksums"] if self.document["prepared"] else {}
        known = {**self.document["inputs"], **{str(self.data / name): checksum for name, checksum in parts.items()}}
        for name, checksum in known.items():
            path = Path(name)
            now = checksum_of(path) if path.is_file() else None
            if now != checksum:
                raise RunFolderError(
                    where=name,
                    got="no such file any more" if now is None else "another content than when the comparison began",
                    wanted="the same data for all candidates",
                    remedy="Put it back, or begin anew in another folder (--out).",
                )

    def abandon(self) -> None:
        """Take away what :meth:`begin` and a division of the data that failed have left; others' files stay."""
        shutil.rmtree(self.data, ignore_errors=True)
        for name in (STATE, ".lock"):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # it was there before, and has files of another
            self.folder.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A region in which no other process works on the comparison."""
        with system_errors(self.folder):
            handle = lock_folder(self.folder)
        try:
            yield
        finally:
            os.close(handle)


def checksum_of(path: Path) -> str:
    """The SHA-256 of a file.

    Args:
        path: of the file.
    """
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
