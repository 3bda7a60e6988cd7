"""The course of a comparison with runs that are only pretended: who fails, who is out of time, who is chosen."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from statewise.errors import ArgumentError, DivergedError
from statewise.lineup import Asked, Comparison, Told, Trained, adaptor, compare_on, comparison, course, go_on
from statewise.lineup.crew import Crew
from statewise.lineup.jobs import Job, Report
from statewise.lineup.state import STATE

#: The mean negative log-likelihoods that candidates come to; noise diverges, but for its weakest strength.
LOSSES = {"none": 3.0, "dropout-0.2": 2.9, "dropout-0.4": 2.5, "dropout-0.6": 2.8, "noise-0.3": 3.5}


def pretend(job: Job, device: torch.device, *, failing: str = "noise", seconds: float = 0.001) -> Report:
    """Numbers that depend on candidate and seed only."""
    if job.test:
        draw = np.random.default_rng(job.seed)
        nll = LOSSES[job.candidate.name] + 0.05 * draw.normal() + 0.1 * np.random.default_rng(9).normal(size=50)
        return Report(adaptor.Tested(np.stack([10 * nll, np.full(50, 10.0)], axis=1), 100))
    if job.candidate.family == failing and job.candidate.name not in LOSSES:
        return Report(None, "its loss is NaN")
    if job.candidate.name == failing:
        return Report(None, "its loss is NaN")
    job.folder.mkdir(parents=True, exist_ok=True)
    (job.folder / "config.json").write_text("{}", encoding="utf-8")
    return Report(Trained(LOSSES[job.candidate.name] + 0.01 * job.seed, 0.0, job.epochs, seconds))


class Clock:
    """What tells the time instead of the system: it goes on while someone works, and then at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def working(self, job: Job, device: torch.device, *, seconds: float) -> Report:
        self.now += 0.0 if job.test else seconds
        return pretend(job, device, failing="", seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(course, "time", made)
    return made


def asked(**changes: object) -> Asked:
    usual: dict[str, object] = {"lineup": ("none", "dropout", "noise"), "epochs": 8}
    return Asked(data="sample", kind="lm", told=Told(model={"hidden": 4}), **{**usual, **changes})  # type: ignore[arg-type]


def test_the_best_by_validation_is_chosen_and_failures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "Crew", partial(Crew, work=pretend))
    found = compare_on(asked(), tmp_path / "out", workers=1)
    assert [line.name for line in found.lines] == ["dropout-0.4", "none", "noise-0.3"]
    assert found.best_run == "dropout-0.4-s0"
    assert found.failed == {"noise-0.6": "its loss is NaN", "noise-1": "its loss is NaN"}
    assert set(found.dropped) == {"dropout-0.2", "dropout-0.6"}
    assert [line.says for line in found.lines] == ["helps", None, "harms"]
    assert found.says[0].startswith("dropout-0.4, the best by validation, helps: perplexity")
    assert "Worse than none: noise-0.3." in found.says
    best = found.lines[0]
    assert best.differences["perplexity"].value == pytest.approx(100 * np.expm1(-0.5))
    assert best.scores["perplexity"].value == pytest.approx(np.exp(np.log(np.array(best.seeds)).mean()))
    (tmp_path / "out" / STATE).write_text((tmp_path / "out" / STATE).read_text(encoding="utf-8"), encoding="utf-8")
    again: Comparison = go_on(tmp_path / "out")
    assert again.document() == found.document()


def test_without_a_plain_network_there_is_nothing_to_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "Crew", partial(Crew, work=partial(pretend, failing="none")))
    with pytest.raises(DivergedError, match="smaller --lr"):
        compare_on(asked(lineup=("none", "dropout")), tmp_path / "out", workers=1)


def test_too_little_time_leaves_strengths_out_or_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """An epoch of the plain network is said to take 2 s for each of 3 seeds: 42 s for all seven candidates."""
    slow = partial(clock.working, seconds=2.0)
    monkeypatch.setattr(comparison, "Crew", partial(Crew, work=slow))
    small = asked(epochs=None, minutes=0.5, lineup=("none", "dropout"))
    found = compare_on(small, tmp_path / "some", workers=1)
    assert found.no_time == ("dropout-0.2", "dropout-0.6")
    assert [line.name for line in found.lines] == ["dropout-0.4", "none"]
    document = json.loads((tmp_path / "some" / STATE).read_text(encoding="utf-8"))
    assert all(rung["epochs"] >= 1 for rung in document["rungs"])
    with pytest.raises(ArgumentError, match=r"one epoch of 6 runs takes 0\.2 minutes"):
        compare_on(asked(epochs=None, minutes=0.1, lineup=("none", "dropout")), tmp_path / "none", workers=1)


def test_the_plain_network_may_be_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, "none", 1.0)
    monkeypatch.setattr(comparison, "Crew", partial(Crew, work=pretend))
    found = compare_on(asked(), tmp_path / "out", workers=1)
    assert found.best == "none"
    assert found.says[0] == "Nothing was shown to help here; keep none."


def test_when_all_others_came_to_nothing_that_is_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from statewise.commands.compare_data import PICTURE, TABLE, _keep

    for strength in ("0.2", "0.4", "0.6"):
        monkeypatch.delitem(LOSSES, f"dropout-{strength}")
    monkeypatch.setattr(comparison, "Crew", partial(Crew, work=partial(pretend, failing="dropout")))
    found = compare_on(asked(lineup=("none", "dropout")), tmp_path / "out", workers=1)
    assert [line.name for line in found.lines] == ["none"]
    assert found.says[0].startswith("Nothing is left to be compared with none")
    _keep(found)
    assert (tmp_path / "out" / TABLE).exists()
    assert not (tmp_path / "out" / PICTURE).exists(), "there is nothing to draw"


class Killed(BaseException):
    """What stands for a kill: nobody catches it."""


def test_a_kill_by_minutes_leaves_nobody_with_more_epochs_than_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """After the first run of a step the process dies; afterwards time seems to be scarcer than it was."""
    trained: list[int] = []

    def dying(job: Job, device: torch.device) -> Report:
        if max(trained, default=0) > 1:
            raise Killed
        trained.append(job.epochs)
        return clock.working(job, device, seconds=0.5)

    monkeypatch.setattr(comparison, "Crew", partial(Crew, work=dying))
    with pytest.raises(Killed):
        compare_on(asked(epochs=None, minutes=2.0, lineup=("none", "dropout"), seeds=1), tmp_path / "out", workers=1)
    reached, path = max(trained), tmp_path / "out" / STATE
    assert reached > 2
    document = json.loads(path.read_text(encoding="utf-8"))
    document["spent"] = 35.0  # of the 40 seconds after which strengths are dropped
    path.write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.setattr(comparison, "Crew", partial(Crew, work=partial(clock.working, seconds=9.0)))
    go_on(tmp_path / "out", workers=1)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [rung["epochs"] for rung in document["rungs"]][:2] == [1, reached]
    assert {run["epochs"] for run in document["runs"].values()} >= {reached}
    assert all(run["epochs"] >= reached for run in document["runs"].values())
