"""The best model as the folder of an ordinary run, which all commands understand."""

from __future__ import annotations

import shutil
from pathlib import Path

from statewise.train.run import system_errors

BEST = "best"


def copy_run(run: Path, to: Path) -> None:
    """Copy the folder of a run; a kill at any moment leaves the old copy, none, or the new one, but never half of one.

    Args:
        run: what is copied.
        to: where; a copy that is there is replaced.
    """
    fresh, old = to.with_name(f".{to.name}.partial"), to.with_name(f".{to.name}.old")
    with system_errors(to):
        for left_over in (fresh, old):
            shutil.rmtree(left_over, ignore_errors=True)
        try:
            shutil.copytree(run, fresh, ignore=shutil.ignore_patterns(".*"))
        except shutil.Error as error:  # of which every entry is (source, target, what the system said)
            shutil.rmtree(fresh, ignore_errors=True)
            raise OSError(0, str(error.args[0][0][2])) from error
        if to.exists():
            to.rename(old)
        fresh.rename(to)
        shutil.rmtree(old, ignore_errors=True)
