"""What Ctrl-C leaves of a run, and how it goes on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from statewise.train.telling import say


@contextmanager
def way_on(command: str, folder: Path, console: Console, *, compared: str | None = None) -> Iterator[None]:
    """A region in which Ctrl-C says what is kept, and what to type to go on.

    Args:
        command: that trains, such as "statewise train tag".
        folder: of the run, or of several of them.
        console: where to say it.
        compared: the file that says what was asked of several runs; None if there is one run.
    """
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / (compared or "config.json")).exists():
            say(console, f"Stopped before the run began: there is nothing in {folder}.")
            raise
        begun = any(folder.glob("resume.safetensors")) or any(folder.glob("*/resume.safetensors"))
        early = "Stopped before the first epoch ended: only the settings are kept. Begin again"
        several = " --compare" if compared else ""
        said = "Stopped. Go on" if begun else early
        say(console, f"{said}:\n  {command}{several} --resume --out {shlex.quote(str(folder))}")
        raise
