from __future__ import annotations

from pathlib import Path

import pytest
import torch

from contracts.executors import ExecutorContract
from statewise.errors import ArgumentError
from statewise.sweep.executors import Executor, ReplicaExecutor
from statewise.sweep.trial import Outcome
from sweep import standin


class TestReplicaExecutor(ExecutorContract):
    elsewhere = False

    @classmethod
    def make(cls, folder: Path) -> Executor:
        return ReplicaExecutor(folder, replicas=3, train=standin.train)


def test_trials_of_a_shape_are_handed_over_together(tmp_path: Path) -> None:
    """So that the next takes the place of one that ends, whatever the number of replicas."""
    seen: list[int] = []

    def train(trials, folders, **options):  # type: ignore[no-untyped-def]
        seen.append(len(trials))
        assert options["replicas"] == 2
        assert options["device"] == torch.device("cpu")
        return standin.train(trials, folders, **options)

    with ReplicaExecutor(tmp_path, replicas=2, train=train) as place:
        assert len(list(place.run([standin.like(width=1 + seed // 5, seed=seed) for seed in range(8)]))) == 8
    assert seen == [5, 3]


def test_an_interruption_passes_and_leaves_the_trials_asked_for(tmp_path: Path) -> None:
    calls: list[int] = []

    def train(trials, folders, **options):  # type: ignore[no-untyped-def]
        calls.append(len(trials))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return standin.train(trials, folders, **options)

    place = ReplicaExecutor(tmp_path, train=train)
    place.submit([standin.like()])
    with pytest.raises(KeyboardInterrupt):
        next(place.results())
    assert [result.trial for result in place.results()] == [standin.like()]


def test_a_wrong_number_of_replicas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"ReplicaExecutor\.replicas: got 0"):
        ReplicaExecutor(tmp_path, replicas=0)


def test_networks_are_trained(tmp_path: Path) -> None:
    """The same outcomes side by side and one by one, up to rounding."""
    trials = [standin.like(width=6, seed=seed, validate=32, test=32, batch=8) for seed in range(3)]
    together = dict(ReplicaExecutor(tmp_path / "together").run(trials))
    alone = dict(ReplicaExecutor(tmp_path / "alone", replicas=1).run(trials))
    for trial in trials:
        one, other = together[trial], alone[trial]
        assert isinstance(one, Outcome)
        assert isinstance(other, Outcome)
        assert one.reason == "iterations"
        assert one.iterations == 20
        assert one.loss == pytest.approx(other.loss, rel=1e-4)
