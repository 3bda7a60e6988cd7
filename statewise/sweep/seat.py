"""One trial while it is trained: its folder, its patience, and the best weights so far."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

from statewise.errors import RunFolderError
from statewise.files import read_object, write_atomically
from statewise.sweep.networks import State, fresh_state
from statewise.sweep.trial import Outcome, Trial
from statewise.train.metrics import strict
from statewise.train.run import RunFolder
from statewise.train.two_phase import TwoPhase

RESULT = "result.json"
_SAVE_AFTER = 20.0  # seconds: what a kill may cost at most, beside the iterations since the last look


class Seat:
    """The place of a trial among those that are trained side by side; it goes on where an earlier one was killed.

    Args:
        trial: what is trained.
        path: the folder of its run.
    """

    def __init__(self, trial: Trial, path: Path) -> None:
        self.trial = trial
        self.folder = RunFolder.create(path, trial.describe(), resume=True)
        self.rule = TwoPhase(patience=trial.patience, min_delta=trial.task.min_delta)
        self.state: State = fresh_state(trial.shape, seed=trial.seed)
        self.iterations = self.best_iteration = 0
        self.best: State | None = None
        self.reason: str | None = None
        self._seconds, self._began, self._saved = 0.0, time.monotonic(), time.monotonic()
        found = self.folder.load_resume()
        if found is not None:
            tensors, document = found
            self.state = {name.removeprefix("now."): tensor for name, tensor in tensors.items() if name[:4] == "now."}
            best = {name.removeprefix("best."): tensor for name, tensor in tensors.items() if name[:5] == "best."}
            self.best = best or None
            self.rule = TwoPhase(**document["rule"])
            self.iterations, self.best_iteration = document["iterations"], document["best_iteration"]
            self._seconds = document["seconds"]

    @property
    def rates(self) -> tuple[float, float]:
        """The rates of now: of all weights, and of the recurrent matrices."""
        factor = 0.1 if self.rule.slower else 1.0
        return self.trial.lr * factor, self.trial.recurrent_rate * factor

    @property
    def seconds(self) -> float:
        """Since it was seated, those before a kill included."""
        return self._seconds + time.monotonic() - self._began

    @property
    def due(self) -> int:
        """Iterations until somebody must look."""
        return min(
            self.trial.check_every - self.iterations % self.trial.check_every,
            self.trial.iterations - self.iterations,
        )

    def observe(self, loss: float, accuracy: float, orthogonality: float, state: State) -> None:
        """Take in what a look has found; ``reason`` says whether the run is over.

        Args:
            loss: on held-out examples.
            accuracy: on the same.
            orthogonality: the largest deviation of any layer's matrix.
            state: weights and squares of now.
        """
        lr, _ = self.rates
        verdict = self.rule.observe(loss)
        if verdict == "improved":
            self.best, self.best_iteration = _weights(state), self.iterations
        self.folder.append_metrics(
            {
                "iteration": self.iterations,
                "loss": loss,
                "accuracy": accuracy,
                "orthogonality": orthogonality,
                "lr": lr,
                "verdict": verdict,
                "seconds": round(self.seconds, 3),
            }
        )
        goal = self.trial.goal
        if verdict == "diverged":
            self.reason = "diverged"
        elif goal is not None and accuracy > goal:
            # The loss need not have fallen by much, but these are the weights that reached the goal.
            self.best, self.best_iteration, self.rule.best = _weights(state), self.iterations, loss
            self.reason = "solved"
        elif verdict == "stop":
            self.reason = "converged"
        elif self.iterations >= self.trial.iterations:
            self.reason = "iterations"
        if self.reason is None and time.monotonic() - self._saved > _SAVE_AFTER:
            self.save(state)

    def save(self, state: State) -> None:
        """Write where to go on.

        Args:
            state: weights and squares of now.
        """
        tensors = {f"now.{name}": tensor for name, tensor in state.items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (self.best or {}).items()}
        document = {
            "iterations": self.iterations,
            "best_iteration": self.best_iteration,
            "rule": self.rule.describe(),
            "seconds": self.seconds,
        }
        self.folder.save_resume(tensors, document)
        self._saved = time.monotonic()

    def finish(self, accuracy: float, orthogonality: float, largest_entry: float) -> Outcome:
        """Write model and result, and leave the folder.

        Args:
            accuracy: of the best weights on the test examples.
            orthogonality: of these weights.
            largest_entry: of these weights.
        """
        assert self.reason is not None
        outcome = Outcome(
            accuracy=accuracy,
            loss=math.inf if self.rule.best is None else self.rule.best,
            best_iteration=self.best_iteration,
            iterations=self.iterations,
            reason=self.reason,
            seconds=round(self.seconds, 3),
            orthogonality=orthogonality,
            largest_entry=largest_entry,
        )
        if self.best is not None:
            self.folder.save_model(self.best, {"trial": self.trial.describe()})
        # Last, so that what has a result is whole.
        text = json.dumps(strict(outcome.describe(), RESULT), indent=2, allow_nan=False) + "\n"
        write_atomically(self.folder.path / RESULT, text)
        self.folder.close()
        return outcome

    def leave(self) -> None:
        """Leave the folder to whoever goes on."""
        self.folder.close()


def read_outcome(path: Path) -> Outcome | None:
    """What became of the run in a folder; None while it is unfinished or not begun.

    Args:
        path: the folder.
    """
    if not (path / RESULT).exists():
        return None
    wanted = "what this version has written"
    remedy = "Remove the file: the run goes on from its last resume point."
    document = read_object(path / RESULT, wanted=wanted, remedy=remedy)
    try:
        # Infinite numbers are words in JSON.
        numbers = ("loss", "orthogonality", "largest_entry")
        return Outcome(**{**document, **{name: float(document[name]) for name in numbers if name in document}})
    except (ValueError, TypeError, OverflowError) as error:
        got = f"no result of a run ({error})"
        raise RunFolderError(where=str(path / RESULT), got=got, wanted=wanted, remedy=remedy) from error


def _weights(state: State) -> State:
    return {name: tensor for name, tensor in state.items() if not name.startswith("squares.")}
