"""A real Ray of two workers on this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.executors import ExecutorContract, outcome_of
from statewise.errors import ArgumentError, MissingExtraError
from statewise.sweep.executors import Executor, ReplicaExecutor
from statewise.sweep.folders import folder_name
from statewise.sweep.ray_cluster import RayExecutor
from statewise.sweep.seat import read_outcome
from statewise.sweep.trial import Failure, Outcome
from statewise.train.run import RunFolder
from sweep import standin

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # The workers must find the stand-in, as machines of a cluster must find what they are to call.
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        yield
        ray.shutdown()


def test_two_workers_train_and_the_death_of_one_takes_no_other_along(tmp_path: Path) -> None:
    """The quick part of what the contract says at length."""
    good, bad = [standin.like(seed=seed) for seed in range(4)], standin.like(lr=standin.DIES)
    with RayExecutor(tmp_path, replicas=2, train=standin.train) as place:
        found = dict(place.run([*good, bad]))
    assert {trial: found[trial] for trial in good} == {trial: outcome_of(trial) for trial in good}
    failed = found[bad]
    assert isinstance(failed, Failure)
    assert "died" in failed.error
    assert standin.attempts(tmp_path / folder_name(bad)) == 2
    holders = {int(lock.read_text().split()[1]) for lock in tmp_path.glob("*/.lock")}
    assert os.getpid() not in holders
    assert len(holders) > 1
    assert ray.is_initialized()  # it was there before


@pytest.mark.slow
class TestRayExecutor(ExecutorContract):
    @classmethod
    def make(cls, folder: Path) -> Executor:
        return RayExecutor(folder, replicas=3, train=standin.train)


def test_an_accelerator_is_asked_for_in_parts_or_whole(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"RayExecutor\.gpus: got 0\.0, wanted a number above 0, such as 0\.25"):
        RayExecutor(tmp_path, device="cuda", gpus=0.0)
    with pytest.raises(ArgumentError, match=r"RayExecutor\.gpus: got 1\.5, wanted at most 1, or a whole number"):
        RayExecutor(tmp_path, gpus=1.5)
    with pytest.raises(ArgumentError, match=r"RayExecutor\.cpus: got -1\.0"):
        RayExecutor(tmp_path, cpus=-1.0)
    with pytest.warns(UserWarning, match="The Ray cluster has 0 GPU, and a task wants 0.25 GPU, 1 CPU"):
        RayExecutor(tmp_path, device="cuda", gpus=0.25)


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"statewise\[sweep\]"):
        RayExecutor(tmp_path)


@pytest.mark.slow
def test_closing_ends_the_tasks_and_leaves_runs_to_go_on_from(tmp_path: Path) -> None:
    trial = standin.like(lr=standin.SLOW, iterations=10_000)
    place = RayExecutor(tmp_path, train=standin.train)
    sign = tmp_path / folder_name(trial) / "resume.json"
    with place:
        place.submit([trial])
        threading.Thread(target=interrupt_when_there, args=(sign,)).start()
        with pytest.raises(KeyboardInterrupt):
            list(place.results())
    assert read_outcome(sign.parent) is None
    steps = RunFolder(sign.parent).metrics()
    time.sleep(0.3)
    assert RunFolder(sign.parent).metrics() == steps  # nobody goes on


def interrupt_when_there(sign: Path) -> None:
    while not sign.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
def test_networks_are_trained_there_as_here(tmp_path: Path) -> None:
    trials = [standin.like(width=6, seed=seed, validate=32, test=32, batch=8) for seed in range(2)]
    with RayExecutor(tmp_path / "there", replicas=1) as place:
        there = dict(place.run(trials))
    here = dict(ReplicaExecutor(tmp_path / "here").run(trials))
    for trial in trials:
        one, other = there[trial], here[trial]
        assert isinstance(one, Outcome)
        assert isinstance(other, Outcome)
        assert one.reason == other.reason == "iterations"
        assert one.loss == pytest.approx(other.loss, rel=1e-4)
