"""The rates of a network by Optuna: many short runs, of which the hopeless are given up early."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from statewise.errors import ArgumentError, MissingExtraError, RunFolderError
from statewise.sweep.executors import Executor, ReplicaExecutor
from statewise.sweep.trial import Failure, Outcome, Trial
from statewise.train.run import RunFolder
from statewise.train.telling import say

STUDY, RUNS = "study.log", "runs"
_NAME, _PROMISING = "rates", "promising"
#: Seeds of samplers of two tunings are this far apart.
_STRIDE = 100_003


class NoRatesError(ArgumentError):
    """No run of a tuning came to its end."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The rates with the least loss.

    Args:
        lr: of all weights but the orthogonal matrices.
        lr_recurrent: of these.
        loss: on held-out examples.
        accuracy: on the test examples.
        made: how many pairs of rates were tried to the end.
        given_up: how many were given up early, or came to nothing.
    """

    lr: float
    lr_recurrent: float
    loss: float
    accuracy: float
    made: int
    given_up: int


@dataclass(frozen=True, kw_only=True)
class RateSpace:
    """Where rates are looked for, evenly on a logarithmic scale.

    Args:
        lr: from, to.
        lr_recurrent: from, to.
    """

    lr: tuple[float, float] = (1e-5, 1e-2)
    lr_recurrent: tuple[float, float] = (1e-6, 1e-3)

    def __post_init__(self) -> None:
        for name in ("lr", "lr_recurrent"):
            low, high = getattr(self, name)
            if not 0 < low < high < math.inf:
                raise ArgumentError(
                    where=f"RateSpace.{name}", got=(low, high), wanted="two numbers above 0, the smaller one first"
                )


def tune_rate(
    trial: Trial,
    folder: Path | str,
    *,
    executor: Callable[[Path], Executor] = ReplicaExecutor,
    trials: int = 32,
    at_once: int = 8,
    short: float = 0.25,
    space: RateSpace | None = None,
    seed: int = 0,
    resume: bool = False,
    console: Console | None = None,
) -> Tuned:
    """Find the rates with which a network has the least loss on held-out examples.

    Optuna's TPE sampler chooses ``at_once`` pairs of rates, which are trained side by side for a part of the
    iterations. Those that are worse than the median of the earlier ones are given up; the others are trained from the
    start for all iterations. What is chosen depends on ``seed`` and on what came before, so that a tuning that was
    killed goes on (``resume``) and ends as it would have; what could not be run is tried again then. The study is
    Optuna's own file, ``study.log``, which its other tools read.

    Args:
        trial: the network, the task and how long to train; its rates do not matter.
        folder: of the study, and under ``runs`` of its runs.
        executor: makes the place that trains, given the folder of the runs.
        trials: how many pairs of rates.
        at_once: how many are chosen and trained at a time.
        short: the part of the iterations after which the hopeless are given up; 1 gives up none.
        space: where to look.
        seed: of the choice.
        resume: go on with the tuning that is there; without one, begin. It may have more trials then.
        console: where to tell of every pair; None for silence.
    """
    for name, value in (("trials", trials), ("at_once", at_once)):
        if value < 1:
            raise ArgumentError(where=f"tune_rate.{name}", got=value, wanted="an integer >= 1")
    if not 0 < short <= 1:
        raise ArgumentError(where="tune_rate.short", got=short, wanted="a part of the iterations: above 0, at most 1")
    optuna, folder, space = _import_optuna(), Path(folder), space or RateSpace()
    told = {
        "trial": replace(trial, lr=1.0, lr_recurrent=1.0).describe(),
        "trials": trials,
        "at_once": at_once,
        "short": short,
        "lr": space.lr,
        "lr_recurrent": space.lr_recurrent,
        "seed": seed,
    }
    with (
        RunFolder.create(folder, told, resume=resume, may_differ=("trials",)),
        _quiet(optuna),
        executor(folder / RUNS) as place,
    ):
        study = _open_study(optuna, folder / STUDY)
        tuning = _Tuning(optuna, study, trial, place, short=short, space=space, seed=seed, console=console)
        for first in range(0, trials, at_once):
            tuning.make(range(first, min(first + at_once, trials)))
        return tuning.found()


class _Tuning:
    """A study under way."""

    def __init__(
        self,
        optuna: Any,
        study: Any,
        trial: Trial,
        place: Executor,
        *,
        short: float,
        space: RateSpace,
        seed: int,
        console: Console | None,
    ) -> None:
        self.optuna, self.study, self.like, self.place = optuna, study, trial, place
        self.space, self.seed, self.console = space, seed, console
        looks = max(1, round(short * trial.iterations / trial.check_every))
        self.early = min(trial.iterations, looks * trial.check_every)
        self.error = ""

    def make(self, numbers: Sequence[int]) -> None:
        """Choose the rates of these numbers, unless that is done, and train those that have not ended."""
        asked = [self._ask(number) for number in numbers]
        left = [each for each in asked if not self.study.trials[each.number].state.is_finished()]
        if self.early < self.like.iterations:
            # Once some of these have ended, the others would be measured by them too: what was decided stays.
            fresh = [each for each in left if _PROMISING not in each.user_attrs]
            outcomes = self._train(fresh, self.early)
            hopeless = [each.number for each in fresh if not self._promising(each, outcomes[each.number])]
            left = [each for each in left if each.number not in hopeless]
        outcomes = self._train(left, self.like.iterations)
        for each in left:
            self._tell(each, outcomes[each.number])

    def found(self) -> Tuned:
        """The best of all that came to their end."""
        state = self.optuna.trial.TrialState
        made = [each for each in self.study.trials if each.state == state.COMPLETE]
        if not made:
            raise NoRatesError(
                where="tune_rate",
                got=f"no run that came to its end ({self.error or 'all diverged'})",
                wanted="at least one",
                remedy="Look for smaller rates, or at the errors beside the folders of the runs.",
            )
        best = min(made, key=lambda each: (each.value, each.number))
        return Tuned(
            lr=best.params["lr"],
            lr_recurrent=best.params["lr_recurrent"],
            loss=best.value,
            accuracy=best.user_attrs["accuracy"],
            made=len(made),
            given_up=len(self.study.trials) - len(made),
        )

    def _ask(self, number: int) -> Any:
        """The pair of rates of a number; one that an earlier process asked for is taken over."""
        there = self.study.trials
        if number < len(there) and there[number].state.is_finished():
            return there[number]
        # A sampler for each number: what it draws does not depend on how often the tuning was interrupted.
        self.study.sampler = sampler = self.optuna.samplers.TPESampler(seed=self.seed * _STRIDE + number)
        floats = self.optuna.distributions.FloatDistribution
        ends = {"lr": self.space.lr, "lr_recurrent": self.space.lr_recurrent}
        ranges = {name: floats(*each, log=True) for name, each in ends.items()}
        if number == len(there):
            return self.study.ask(ranges)
        asked = self.optuna.trial.Trial(self.study, there[number]._trial_id)
        for name, each in ranges.items():  # the kill may have come between the two
            if name in asked.params:
                sampler.sample_independent(self.study, there[number], name, each)  # drawn once more, and left
            else:
                asked.suggest_float(name, *ends[name], log=True)
        return asked

    def _train(self, asked: Sequence[Any], iterations: int) -> dict[int, Outcome | Failure]:
        numbers = {replace(self.like, iterations=iterations, **each.params): each.number for each in asked}
        return {numbers[trial]: outcome for trial, outcome in self.place.run(numbers)}

    def _promising(self, asked: Any, outcome: Outcome | Failure) -> bool:
        if isinstance(outcome, Failure) or not math.isfinite(outcome.loss):
            self._tell(asked, outcome)
            return False
        if self.early not in self.study.trials[asked.number].intermediate_values:
            asked.report(outcome.loss, step=self.early)
        if not asked.should_prune():
            asked.set_user_attr(_PROMISING, True)
            return True
        self.study.tell(asked, state=self.optuna.trial.TrialState.PRUNED)
        self._say(asked, f"given up at loss {outcome.loss:.4g}")
        return False

    def _tell(self, asked: Any, outcome: Outcome | Failure) -> None:
        state = self.optuna.trial.TrialState
        if isinstance(outcome, Failure):
            # Optuna is not told: what has failed there can never be tried again, and the cause may be mended.
            self.error = outcome.error
            self._say(asked, f"could not be run: {outcome.error}")
        elif not math.isfinite(outcome.loss):
            self.study.tell(asked, state=state.PRUNED)
            self._say(asked, "diverged")
        else:
            asked.set_user_attr("accuracy", outcome.accuracy)
            self.study.tell(asked, outcome.loss)
            self._say(asked, f"loss {outcome.loss:.4g}, accuracy {outcome.accuracy:.4f}")

    def _say(self, asked: Any, what: str) -> None:
        rates = f"lr {asked.params['lr']:.2e}, lr_recurrent {asked.params['lr_recurrent']:.2e}"
        say(self.console, f"rates {asked.number + 1}: {rates}: {what}")


def _open_study(optuna: Any, path: Path) -> Any:
    """The study in a file, whatever a killed process has left of its last line; nobody else writes there now."""
    from optuna.storages.journal import JournalFileBackend

    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if path.exists():
        whole = path.read_bytes()
        if not whole.endswith(b"\n"):
            with path.open("r+b") as file:
                file.truncate(whole.rfind(b"\n") + 1)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=4)
    try:
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
        return optuna.create_study(study_name=_NAME, storage=storage, load_if_exists=True, pruner=pruner)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, AssertionError) as error:
        raise RunFolderError(
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            wanted="the journal of a study",
            remedy="Remove it: the rates are then looked for again.",
        ) from error


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """A region in which Optuna tells its own progress to nobody."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError.of("tune_rate", package="optuna", extra="sweep") from error
    return optuna
