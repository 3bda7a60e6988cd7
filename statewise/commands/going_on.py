"""Going on with a run of ``statewise train classify``: whether its folder is one that can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from statewise.commands.shared import check_new
from statewise.errors import RunFolderError
from statewise.train import ClassifierSettings, RunFolder
from statewise.train.tasks import CLASSES

ANOTHER = "Name another folder (--out)."


def told_before(folder: Path) -> dict[str, Any]:
    """What the run that goes on was told; nothing if there is none yet.

    Args:
        folder: of the run.
    """
    if not (folder / "config.json").exists():
        return {}
    told = RunFolder(folder).config()
    why = why_not(told)
    if why:
        wanted = "a run of statewise train classify, trained by epochs"
        raise RunFolderError(where=str(folder), got=why, wanted=wanted, remedy=f"It cannot go on here. {ANOTHER}")
    return told


def refuse_taken(folder: Path, *, resume: bool) -> None:
    """Refuse a folder with a run that nobody wants to go on with; says so only of one that can.

    Args:
        folder: that was named.
        resume: whether a run in it goes on.
    """
    if not resume and (folder / "config.json").exists():
        why = why_not(RunFolder(folder).config())
        if why:
            raise RunFolderError(where=str(folder), got=why, wanted="a new or empty folder", remedy=ANOTHER)
    check_new(folder, resume)


def why_not(told: Mapping[str, Any]) -> str:
    """Why a run cannot go on as a classifier; empty if it can.

    Args:
        told: what it was told.

    >>> why_not({"task": "language model"})
    "a run of the task 'language model'"
    """
    if told.get("task") != CLASSES.name:
        return f"a run of the task {told.get('task')!r}"
    known = {entry.name for entry in fields(ClassifierSettings)}
    return "" if told.get("training", {}).keys() <= known else "the run of an automaton (--automaton)"
