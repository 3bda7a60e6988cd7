from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import ArgumentError, MissingExtraError, RunFolderError
from statewise.sweep.executors import ReplicaExecutor
from statewise.sweep.trial import Outcome, Trial
from statewise.sweep.tuning import NoRatesError, RateSpace, Tuned, tune_rate
from sweep import standin

pytest.importorskip("optuna")
HERE = partial(ReplicaExecutor, train=standin.train)


def tuned(folder: Path, **changes: Any) -> Tuned:
    usual: dict[str, Any] = {"executor": HERE, "trials": 32, "at_once": 4}
    return tune_rate(standin.like(iterations=1000, check_every=100), folder, **{**usual, **changes})


def test_rates_come_near_the_best_ones(tmp_path: Path) -> None:
    """The stand-in's loss is least at 2e-3 and 1e-4; even chance would be within half a decade of both in 1 of 9."""
    found = tuned(tmp_path / "t")
    assert 2e-3 / 3 < found.lr < 2e-3 * 3
    assert 1e-4 / 3 < found.lr_recurrent < 1e-4 * 3
    assert found.made + found.given_up == 32
    assert found.given_up > 8  # the median of all is bad once some are good
    assert found.loss < 0.3


def test_short_runs_come_first_and_the_hopeless_are_given_up(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        seen.append((trials[0].iterations, len(trials)))
        return standin.train(trials, folders, **told)

    tuned(tmp_path / "t", trials=8, executor=partial(ReplicaExecutor, train=train))
    assert {iterations for iterations, _ in seen} == {200, 1000}  # a quarter in whole looks, half to even
    assert [count for iterations, count in seen if iterations == 200] == [4, 4]
    assert sum(count for iterations, count in seen if iterations == 1000) < 8
    seen.clear()
    tuned(tmp_path / "all", trials=4, short=1.0, executor=partial(ReplicaExecutor, train=train))
    assert seen == [(1000, 4)]


def test_a_tuning_goes_on_with_more_trials_as_if_it_had_not_ended(tmp_path: Path) -> None:
    tuned(tmp_path / "parts", trials=4)
    with pytest.raises(RunFolderError, match="a folder with a run"):
        tuned(tmp_path / "parts", trials=12)
    log = tmp_path / "parts" / "study.log"
    log.write_bytes(log.read_bytes() + b'{"torn')  # a kill while a line was written, and while the lock was held
    (tmp_path / "parts" / "study.log.lock").symlink_to(log)
    assert tuned(tmp_path / "parts", trials=12, resume=True) == tuned(tmp_path / "whole", trials=12)


def test_a_tuning_that_is_killed_between_any_two_lines_of_its_study_ends_with_the_same_rates(tmp_path: Path) -> None:
    asked = {"trials": 10, "at_once": 5, "seed": 2}  # a seed at which some would be given up by those beside them
    whole = tuned(tmp_path / "t", **asked)
    log = tmp_path / "t" / "study.log"
    lines = log.read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines)):
        log.write_bytes(b"".join(lines[:count]))
        assert tuned(tmp_path / "t", **asked, resume=True) == whole, lines[count - 1]


def test_what_fails_or_diverges_is_passed_over(tmp_path: Path) -> None:
    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        if any(trial.lr > 1e-3 for trial in trials):
            raise ValueError("too fast")
        return standin.train(trials, folders, **told)

    place = partial(ReplicaExecutor, train=train)
    found = tuned(tmp_path / "t", trials=16, executor=place)
    assert found.lr <= 1e-3
    assert found.given_up > 0
    with pytest.raises(ArgumentError, match=r"no run that came to its end \(ValueError: too fast\)"):
        tuned(tmp_path / "none", trials=2, executor=place, space=RateSpace(lr=(2e-3, 1e-2)))


def test_what_could_not_be_run_is_tried_again_when_the_tuning_goes_on(tmp_path: Path) -> None:
    """Every process tells the error that it met; once the cause is mended, the rates are those of a good start."""
    told = {"broken": "no room"}

    def train(trials: Sequence[Trial], folders: Sequence[Path], **options: Any) -> list[Outcome]:
        if told:
            raise MemoryError(told["broken"])
        return standin.train(trials, folders, **options)

    place = partial(ReplicaExecutor, train=train)
    with pytest.raises(NoRatesError, match="no room"):
        tuned(tmp_path / "t", trials=4, executor=place)
    told["broken"] = "still none"
    with pytest.raises(NoRatesError, match="still none"):
        tuned(tmp_path / "t", trials=4, executor=place, resume=True)
    told.clear()
    found = tuned(tmp_path / "t", trials=4, executor=place, resume=True)
    assert found == tuned(tmp_path / "straight", trials=4)


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    for wrong in ({"trials": 0}, {"at_once": 0}, {"short": 0.0}):
        with pytest.raises(ArgumentError, match=f"tune_rate.{next(iter(wrong))}"):
            tuned(tmp_path / "t", **wrong)
    with pytest.raises(ArgumentError, match=r"RateSpace\.lr: got \(0\.1, 0\.01\)"):
        RateSpace(lr=(0.1, 0.01))


def test_without_optuna_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"statewise\[sweep\]"):
        tuned(tmp_path / "t")


SCRIPT = """
import sys
from pathlib import Path
from sweep.test_tuning import slowly
slowly(Path(sys.argv[1]))
"""


def slow_train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
    time.sleep(0.05)
    return standin.train(trials, folders, **told)


def slowly(folder: Path) -> Tuned:
    return tuned(folder, trials=12, executor=partial(ReplicaExecutor, train=slow_train), resume=True)


@pytest.mark.slow
@pytest.mark.parametrize("after", [4, 9])
def test_a_tuning_that_is_killed_ends_with_the_same_rates(tmp_path: Path, after: int) -> None:
    folder, tests = tmp_path / "t", Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
    )
    while len(list(folder.glob("runs/*/result.json"))) < after:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    assert slowly(folder) == slowly(tmp_path / "whole")
