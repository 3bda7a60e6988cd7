from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.sweep import work
from statewise.sweep.folders import error_file
from statewise.sweep.trial import Outcome, Trial
from statewise.sweep.work import Unit, by_shape, perform
from statewise.train.run import RunFolder
from sweep import standin


def unit(folder: Path, **changes: Any) -> Unit:
    return replace(Unit(trials=(standin.like(),), folders=(folder,)), **changes)


def done(asked: Unit, train: Any = standin.train) -> work.Report:
    return perform(asked, train=train, device=standin.CPU, replicas=3)


def test_a_run_that_another_still_holds_is_waited_for(tmp_path: Path) -> None:
    """As a worker whose master was killed does, for a moment."""
    folder = tmp_path / "run"
    holder = RunFolder.create(folder, standin.like().describe())
    threading.Timer(0.3, holder.close).start()
    report = done(unit(folder))
    assert report.outcomes is not None
    assert report.seconds > 0.25


def test_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_PATIENCE", 0.2)
    with RunFolder.create(tmp_path / "run", standin.like().describe()):
        report = done(unit(tmp_path / "run"))
    assert report.outcomes is None
    assert report.error.startswith("RunInUseError: ")


def test_an_error_is_told_on_one_line_and_kept_in_full(tmp_path: Path) -> None:
    def train(*told: Any, **more: Any) -> list[Outcome]:
        raise ValueError("one\n  two")

    report = done(unit(tmp_path / "run"), train)
    assert (report.outcomes, report.error) == (None, "ValueError: one two")
    assert "in train" in error_file(tmp_path / "run").read_text()
    assert done(unit(tmp_path / "run")).error == ""
    assert not error_file(tmp_path / "run").exists()


def test_a_trainer_that_loses_trials_is_an_error(tmp_path: Path) -> None:
    report = done(unit(tmp_path / "run"), lambda *told, **more: [])
    assert "got 0 outcomes, wanted 1" in report.error


def test_the_earlier_of_two_limits_counts(tmp_path: Path) -> None:
    seen: list[float] = []

    def train(trials: Sequence[Trial], folders: Sequence[Path], **told: Any) -> list[Outcome]:
        seen.append(told["until"] - time.monotonic())
        return standin.train(trials, folders, **told)

    done(unit(tmp_path / "a", seconds=100.0, deadline=time.time() + 50), train)
    done(unit(tmp_path / "b", seconds=20.0, deadline=time.time() + 50), train)
    assert seen == pytest.approx([50, 20], abs=5)


def test_trials_tried_alone_share_what_time_is_left() -> None:
    trials = tuple(standin.like(seed=seed) for seed in range(4))
    both = Unit(trials=trials, folders=tuple(Path(str(seed)) for seed in range(4)), seconds=100.0)
    alone = both.alone(20.0)
    assert [each.trials for each in alone] == [(trial,) for trial in trials]
    assert {(each.seconds, each.before, each.attempt) for each in alone} == {(20.0, 5.0, 2)}


def test_groups_have_similar_sizes() -> None:
    trials = [standin.like(seed=seed) for seed in range(10)]
    assert [len(group) for group in by_shape(trials, at_most=4)] == [3, 3, 4]
    assert [trial for group in by_shape(trials, at_most=4) for trial in group] == trials
    with pytest.raises(ArgumentError, match="at_most"):
        list(by_shape(trials, at_most=0))
