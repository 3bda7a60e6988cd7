"""A recipe whose runs end as they are told: ``python jobs.py FOLDER`` makes them two at a time."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from statewise.errors import DataError, DivergedError
from statewise.recipes.lines import Line
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.recipes.together import make_together
from statewise.train.interruption import Interruption


@dataclass(frozen=True)
class Job:
    """A run that ends in some way."""

    name: str
    after: None = None
    line: Line = field(default_factory=lambda: Line(row=""))
    recorded: Any = None
    settable: frozenset[str] = frozenset()

    def as_made(self, made: Any) -> Job:
        return self

    def overridden(self, values: Any) -> Job:
        return self


@dataclass(frozen=True)
class Jobs:
    """A maker that writes down what it begins and what it ends.

    A run called ``slow`` waits for Ctrl-C as a training does, and writes where it is.
    """

    folder: Path
    data: None = None

    def make(self, step: Job, number: str) -> tuple[str, bool]:
        self.note("begun", step)
        kind = step.name.partition("-")[0]
        if kind == "wrong":
            raise DataError(where="a file", got="nothing", wanted="rows")
        if kind == "diverged":
            raise DivergedError(where="epoch 1", got="a loss of nan", wanted="a finite one")
        if kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "slow":
            with Interruption() as interruption:
                for _ in range(600):
                    time.sleep(0.05)
                    if interruption.asked:
                        self.note("checkpoint", step)
                    interruption.obey()
        self.note("done", step)
        return f"made {step.name}", False

    def note(self, what: str, step: Job) -> None:
        (self.folder / f"{step.name}.{what}.{os.getpid()}").touch()


class JobRecipe(Recipe):
    """A recipe of such runs."""

    name = "jobs"
    epochs = 0
    sizes = ("",)

    def __init__(self, *names: str) -> None:
        self.rows = self.usual_rows = names

    def steps(self, request: Request) -> list[Any]:
        return [Job(name) for name in self.rows]

    def maker(self, request: Request, folder: Path, **options: Any) -> Any:
        return Jobs(folder)

    def describe(self, data: Any) -> dict[str, Any]:
        return {}


def main(folder: Path, *names: str) -> None:
    """Make the runs of these names, two at a time; exit code 130 for Ctrl-C."""
    try:
        make_together(JobRecipe(*names), Request(), folder, jobs=2, console=Console())
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
