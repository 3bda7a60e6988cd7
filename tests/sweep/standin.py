"""What stands in for training where a test is about failures: outcomes by a formula, the same files, and accidents.

The rate of a trial says what happens to it, so that one worker can live through all of it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console

from statewise.data.copying_memory import CopyingMemory
from statewise.sweep.seat import read_outcome
from statewise.sweep.trial import Outcome, Trial
from statewise.train.run import RunFolder

CPU = torch.device("cpu")
GOOD, BETTER = 1e-3, 3e-3
FAILS, FAILS_ONCE, DIES, DIES_ONCE, SLOW = 0.5, 0.25, 0.125, 0.0625, 0.03125
#: What a width of 1 can remember at a depth of 1.
DELAY = 10


def like(**changes: object) -> Trial:
    """A trial of the smallest sizes."""
    settings: dict[str, object] = {"depth": 1, "width": 2, "iterations": 20, "check_every": 10, "lr": GOOD}
    return Trial(task=CopyingMemory(m=2, n=2, delay=3), **{**settings, **changes})  # type: ignore[arg-type]


def truth(trial: Trial) -> float:
    """The accuracy that a trial comes to: above 0.99 up to a delay that grows with depth and width."""
    assert isinstance(trial.task, CopyingMemory)
    solved = trial.task.delay <= DELAY * trial.depth * trial.width
    return (0.992 if solved else 0.6) + 1e-4 * (trial.seed % 10)


def attempts(folder: Path) -> int:
    """How often the trial of a folder was begun."""
    log = folder.with_name(f"{folder.name}.attempts")
    return len(log.read_text()) if log.exists() else 0


def train(
    trials: Sequence[Trial],
    folders: Sequence[Path],
    *,
    device: torch.device,
    replicas: int = 16,
    enough: int | None = None,
    above: float = 0.99,
    until: float | None = None,
    console: Console | None = None,
) -> list[Outcome]:
    """As `train_replicas`, of which it has the arguments."""
    assert len({trial.shape for trial in trials}) == 1
    outcomes: list[Outcome] = []
    for trial, folder in zip(trials, folders, strict=True):
        solved = sum(outcome.accuracy > above for outcome in outcomes)
        stopped = (until is not None and time.monotonic() >= until) or (enough is not None and solved >= enough)
        outcomes.append(read_outcome(folder) or _train(trial, folder, stopped=stopped, until=until))
    return outcomes


def _train(trial: Trial, folder: Path, *, stopped: bool, until: float | None) -> Outcome:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.attempts").open("a") as log:
        log.write("x")
    with RunFolder.create(folder, trial.describe(), resume=True) as run:
        _accident(trial, attempts(folder))
        found = run.load_resume()
        step = found[1]["step"] if found else 0
        while trial.lr == SLOW and step < trial.iterations and not stopped:
            time.sleep(0.02)
            step += 1
            run.append_metrics({"step": step})
            run.save_resume({"step": torch.tensor(step)}, {"step": step})
            stopped = until is not None and time.monotonic() >= until
        reason = "stopped" if stopped else "converged"
        outcome = Outcome(
            accuracy=0.0 if stopped else truth(trial),
            loss=_loss(trial),
            best_iteration=step,
            iterations=trial.iterations,
            reason=reason,
            seconds=0.1,
            orthogonality=0.0,
        )
        # Not flushed to the disk, for which tests would wait; what tests kill is a slow run that has not come here.
        (folder / "result.json").write_text(json.dumps(outcome.describe()))
    return outcome


def _loss(trial: Trial) -> float:
    """Least at rates of 2e-3 and 1e-4, and less the longer the training."""
    away = torch.tensor([trial.lr / 2e-3, trial.recurrent_rate / 1e-4]).log10()
    return float(away.square().sum()) + 1.0 / trial.iterations


def _accident(trial: Trial, attempt: int) -> None:
    if trial.lr == FAILS or (trial.lr == FAILS_ONCE and attempt == 1):
        raise ValueError(f"an accident of seed {trial.seed}")
    if trial.lr == DIES or (trial.lr == DIES_ONCE and attempt == 1):
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10)
