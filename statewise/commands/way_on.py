"""What Ctrl-C leaves of a run, and how it goes on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from statewise.train.telling import say


@contextmanager
def way_on(command: str, folder: Path, console: Console | None, *, told: str = "config.json") -> Iterator[None]:
    """A region in which Ctrl-C says what is kept, and what to type to go on.

    Args:
        command: that goes on with it, such as "statewise train tag".
        folder: of the run, or of several of them.
        console: where to say it; None for nowhere.
        told: the file that says what was asked for, which is written first.
    """
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / told).exists():
            say(console, f"Stopped before the run began: there is nothing in {folder}.")
            raise
        begun = any(folder.rglob("resume.safetensors"))
        early = "Stopped before the first epoch ended: only the settings are kept. Begin again"
        said = "Stopped. Go on" if begun else early
        say(console, f"{said}:\n  {command} --resume --out {shlex.quote(str(folder))}")
        raise
