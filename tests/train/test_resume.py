"""A run that is killed goes on, and ends with the same bits as one that was not."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from statewise.train import RunFolder
from train.forks import Forks
from train.killed import Outcome, outcome, undisturbed_outcomes

KINDS = ("averaged", "switching", "patient")


@pytest.fixture(scope="module")
def undisturbed(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return undisturbed_outcomes(forks, tmp_path_factory.mktemp("undisturbed"), KINDS)


def complete(folder: Path) -> bool:
    """Whether the run in the folder, if there is one, was tested."""
    there = (folder / "config.json").exists()
    return there and any("test_perplexity" in record for record in RunFolder(folder).metrics())


def averages(folder: Path) -> bool:
    """Whether the run in the folder takes the mean of its iterates."""
    found = RunFolder(folder).load_resume()
    return found is not None and int(found[0]["average.count"]) >= 0


def test_the_rules_act_in_these_runs(undisturbed: dict[str, Outcome]) -> None:
    """Otherwise the tests below would not see what a rule forgets."""
    averaged = [record["averaged"] for record in undisturbed["switching"][2][:-1]]
    rates = [record["lr"] for record in undisturbed["switching"][2][:-1]]
    assert averaged == sorted(averaged)
    assert set(averaged) == {False, True}
    assert rates[-1] < rates[0]
    epochs, last = len(undisturbed["patient"][2]) - 1, undisturbed["patient"][2][-1]
    assert epochs == last["best_epoch"] + 2 < 30


@pytest.mark.parametrize("kind", ["averaged", *(pytest.param(each, marks=pytest.mark.slow) for each in KINDS[1:])])
def test_a_run_that_writes_often_is_the_run_that_writes_never(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path, kind: str
) -> None:
    assert forks.run(str(tmp_path / "run"), "--kind", kind) == 0
    assert outcome(tmp_path / "run") == undisturbed[kind]


@pytest.mark.parametrize(
    ("kind", "kill"),
    [
        pytest.param(kind, kill, marks=() if (kind, kill) == ("averaged", 3) else pytest.mark.slow)
        for kind in KINDS
        for kill in (*range(1, 8), 12, 25)
    ],
)
def test_killed_in_the_middle_of_a_write_it_ends_with_the_same_bits(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path, kind: str, kill: int
) -> None:
    """The files of a run are written in turn, so these numbers hit the config, vocabulary, model and resume point."""
    assert forks.run(str(tmp_path / "run"), "--kind", kind, "--die-at", str(kill)) == -signal.SIGKILL
    assert forks.run(str(tmp_path / "run"), "--kind", kind) == 0
    assert outcome(tmp_path / "run") == undisturbed[kind]


@pytest.mark.parametrize(
    ("kind", "kill"),
    [("mixed text", 5), *(pytest.param("mixed words", kill, marks=pytest.mark.slow) for kill in (4, 9))],
)
def test_killed_among_segments_of_mixed_texts_it_goes_on_with_the_same_pairs(
    forks: Forks, tmp_path: Path, kind: str, kill: int
) -> None:
    """The chain of coefficients goes on too: partners alone would not do where ``mixup_rho`` lets them move."""
    assert forks.run(str(tmp_path / "whole"), "--kind", kind, "--every", "1000000") == 0
    assert forks.run(str(tmp_path / "run"), "--kind", kind, "--die-at", str(kill)) == -signal.SIGKILL
    tensors, _ = RunFolder(tmp_path / "run").load_resume() or ({}, {})
    assert "rank0.pairs.last" in tensors, "it was killed within an epoch"
    assert forks.run(str(tmp_path / "run"), "--kind", kind) == 0
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_killed_before_and_after_averaging_began_it_ends_with_the_same_bits(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    for epoch, switched in ((2, False), (7, True)):
        assert forks.run(run, "--kind", "switching", "--die-after", str(epoch)) == -signal.SIGKILL
        assert averages(tmp_path / "run") == switched
    assert forks.run(run, "--kind", "switching") == 0
    assert outcome(tmp_path / "run") == undisturbed["switching"]


def test_killed_while_patience_runs_out_it_stops_at_the_same_epoch(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path
) -> None:
    run, epochs = str(tmp_path / "run"), len(undisturbed["patient"][2]) - 1
    assert forks.run(run, "--kind", "patient", "--die-after", str(epochs)) == -signal.SIGKILL
    assert forks.run(run, "--kind", "patient") == 0
    assert outcome(tmp_path / "run") == undisturbed["patient"]


@pytest.mark.parametrize(
    ("kind", "kills"), [("switching", 3), *(pytest.param(kind, 20, marks=pytest.mark.slow) for kind in KINDS)]
)
def test_killed_at_random_moments_it_ends_with_the_same_bits(
    forks: Forks, undisturbed: dict[str, Outcome], tmp_path: Path, kind: str, kills: int
) -> None:
    """A kill counts if it hits a run that is not complete; a run that completes is looked at, and another begun."""
    moments, runs, hits = random.Random(4), [tmp_path / "0"], 0
    while hits < kills:
        child = forks.start(str(runs[-1]), "--kind", kind)
        time.sleep(moments.uniform(0.0, 0.4))
        os.kill(child, signal.SIGKILL)
        assert forks.wait(child) in (0, -signal.SIGKILL)
        if complete(runs[-1]):
            runs.append(tmp_path / str(len(runs)))
        else:
            hits += 1
    for run in runs:
        assert forks.run(str(run), "--kind", kind) == 0
        assert outcome(run) == undisturbed[kind]
