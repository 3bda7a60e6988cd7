"""What every place that trains trials promises: all of them, once, whatever happens to some."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from statewise.sweep.executors import Executor
from statewise.sweep.folders import error_file, folder_name
from statewise.sweep.trial import Failure, Outcome, Trial
from sweep import standin


class ExecutorContract:
    """Inherit it, and say how to make one; tests share it, and tell their trials apart by the width."""

    #: Whether a worker can die without this process.
    elsewhere: ClassVar[bool] = True

    @classmethod
    def make(cls, folder: Path) -> Executor:
        """An executor that trains by `sweep.standin.train`, three at a time."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def place(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
        with cls.make(tmp_path_factory.mktemp("runs")) as made:
            yield made

    def test_every_trial_has_its_outcome_and_its_folder(self, place: Executor) -> None:
        like = standin.like(width=2)
        trials = [replace(like, seed=seed, depth=1 + seed % 2) for seed in range(9)]
        found = dict(place.run(trials))
        assert set(found) == set(trials)
        for trial, outcome in found.items():
            assert isinstance(outcome, Outcome)
            assert outcome.accuracy == standin.truth(trial)
            kept = json.loads((place.folder / folder_name(trial) / "result.json").read_text())
            assert kept == outcome.describe()

    def test_what_is_finished_is_read(self, place: Executor) -> None:
        trials = [standin.like(width=3, seed=seed) for seed in range(3)]
        first = dict(place.run(trials))
        assert dict(place.run(trials)) == first
        assert [standin.attempts(place.folder / folder_name(trial)) for trial in trials] == [1, 1, 1]

    def test_a_trial_that_fails_is_tried_twice_and_takes_no_other_along(self, place: Executor) -> None:
        good = [standin.like(width=4, seed=seed) for seed in range(2)]
        bad = standin.like(width=4, seed=7, lr=standin.FAILS)
        found = dict(place.run([good[0], bad, good[1]]))
        assert found[bad] == Failure(error="ValueError: an accident of seed 7")
        assert [found[trial] for trial in good] == [outcome_of(trial) for trial in good]
        folder = place.folder / folder_name(bad)
        assert standin.attempts(folder) == 2
        assert "Traceback" in error_file(folder).read_text()
        assert not error_file(place.folder / folder_name(good[0])).exists()

    def test_a_trial_that_fails_once_is_made(self, place: Executor) -> None:
        trials = [standin.like(width=5, lr=lr) for lr in (standin.GOOD, standin.FAILS_ONCE)]
        assert dict(place.run(trials)) == {trial: outcome_of(trial) for trial in trials}
        assert not error_file(place.folder / folder_name(trials[0])).exists()

    def test_a_worker_that_dies_takes_no_other_along(self, place: Executor) -> None:
        if not self.elsewhere:
            pytest.skip("the worker is this process")
        good, bad = standin.like(width=6), standin.like(width=6, lr=standin.DIES)
        found = dict(place.run([good, bad], enough=2))  # so that they stay together
        assert found[good] == outcome_of(good)
        failed = found[bad]
        assert isinstance(failed, Failure)
        assert "died" in failed.error.lower()
        assert standin.attempts(place.folder / folder_name(bad)) == 2

    @pytest.mark.slow
    def test_a_trial_whose_worker_dies_once_is_made(self, place: Executor) -> None:
        if not self.elsewhere:
            pytest.skip("the worker is this process")
        trials = [standin.like(width=13, lr=lr) for lr in (standin.GOOD, standin.DIES_ONCE)]
        assert dict(place.run(trials)) == {trial: outcome_of(trial) for trial in trials}

    def test_results_come_before_all_have_ended_and_more_may_be_asked_for(self, place: Executor) -> None:
        first, second = standin.like(width=7), standin.like(width=8)
        place.submit([first])
        found = []
        for result in place.results():
            found.append(result.trial)
            assert result.seconds >= 0
            if result.trial == first:
                place.submit([second])
        assert found == [first, second]

    def test_what_is_asked_for_twice_is_made_once(self, place: Executor) -> None:
        trial = standin.like(width=9)
        place.submit([trial, trial])
        place.submit([trial])
        assert [result.trial for result in place.results()] == [trial]
        assert list(place.run([])) == []

    def test_who_stops_listening_loses_nothing(self, place: Executor) -> None:
        first = [standin.like(width=14, seed=seed) for seed in range(5)]
        place.submit(first)
        heard = next(place.results())
        later = standin.like(width=15)
        place.submit([later])
        others = [result.trial for result in place.results()]
        assert sorted([heard.trial.seed, *(trial.seed for trial in others if trial != later)]) == [0, 1, 2, 3, 4]
        assert later in others

    def test_enough_ends_the_others(self, place: Executor) -> None:
        trials = [standin.like(width=10, seed=seed) for seed in range(8)]
        found = dict(place.run(trials, enough=2))
        reasons = [outcome.reason for outcome in found.values() if isinstance(outcome, Outcome)]
        assert sorted(reasons) == ["converged"] * 2 + ["stopped"] * 6

    @pytest.mark.parametrize("how", ["seconds", "deadline"])
    def test_time_that_is_up_ends_all(self, place: Executor, how: str) -> None:
        begun = standin.like(width=11 if how == "seconds" else 12, lr=standin.SLOW, iterations=1000)
        trials = [begun, replace(begun, seed=1)]
        if how == "seconds":
            place.submit(trials, seconds=0.3)
        else:
            place.submit(trials, deadline=time.time() + 0.3)
        for result in place.results():
            assert isinstance(result.outcome, Outcome)
            assert result.outcome.reason == "stopped"


def outcome_of(trial: Trial) -> Outcome:
    """What the stand-in comes to without accidents."""
    folderless = replace(trial, lr=standin.GOOD)
    return Outcome(
        accuracy=standin.truth(folderless),
        loss=standin._loss(trial),
        best_iteration=0,
        iterations=trial.iterations,
        reason="converged",
        seconds=0.1,
        orthogonality=0.0,
    )
