"""Where the runs of a search are: a folder for each trial, named by what it is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from statewise.data.memory_task import MemoryTask
from statewise.sweep.seat import RESULT, read_outcome
from statewise.sweep.trial import Trial

_DIGITS = 10


def folder_name(trial: Trial) -> str:
    """The name of the folder of a trial: what a person looks for, and a checksum of all that it depends on.

    The same trial has the same name in every search, on every machine; other trials have other names.

    Args:
        trial: the run.

    >>> from statewise.data.copying_memory import CopyingMemory
    >>> folder_name(Trial(task=CopyingMemory(m=5, n=8, delay=10), depth=2, width=32, lr=3e-4, seed=1))
    'copying-memory-10-L2-R32-lr0.0003-s1-...'
    """
    whole = json.dumps(trial.describe(), sort_keys=True, separators=(",", ":"), allow_nan=False)
    checksum = hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]
    task = trial.task
    which = f"{task.kind}-{task.hardness}" if isinstance(task, MemoryTask) else task.kind
    return f"{which}-L{trial.depth}-R{trial.width}-lr{trial.lr:g}-s{trial.seed}-{checksum}"


def reopen(folder: Path) -> bool:
    """Let a run that was stopped from outside go on when it is trained again; says whether it was such a run.

    Args:
        folder: of the run; its resume point stays.
    """
    outcome = read_outcome(folder)
    if outcome is None or outcome.reason != "stopped":
        return False
    (folder / RESULT).unlink()
    return True


def error_file(folder: Path) -> Path:
    """Where the traceback of a run that failed is: beside its folder, which belongs to the run.

    Args:
        folder: of the run.

    >>> error_file(Path("runs/one")).name
    'one.error.txt'
    """
    return folder.with_name(f"{folder.name}.error.txt")
