"""How data is divided, who takes part, and who does the jobs."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError, DataError, RunFolderError
from statewise.lineup import Candidate, Told, line_up, registry
from statewise.lineup.adaptor import Trained
from statewise.lineup.crew import Crew
from statewise.lineup.jobs import Job, Report, adaptor_of
from statewise.lineup.recognise import KINDS
from statewise.lineup.splits import LEAST, SHARES, grouped_split
from statewise.models import ClassifierConfig, LanguageModelConfig, TaggerConfig
from statewise.train import ClassifierSettings, TaggerSettings, TrainingSettings


@given(sizes=st.lists(st.integers(1, 6), min_size=40, max_size=80), classes=st.integers(1, 3), seed=st.integers(0, 99))
def test_a_group_is_never_in_two_parts_and_every_example_is_in_one(sizes: list[int], classes: int, seed: int) -> None:
    groups = [number for number, size in enumerate(sizes) for _ in range(size)]
    labels = [str(group % classes) for group in groups]
    needs = [frozenset((label,)) for label in labels]
    split = grouped_split(groups, labels, needs, parts=tuple(SHARES), seed=seed, where="data")
    assert sorted(np.concatenate(list(split.values())).tolist()) == list(range(len(groups)))
    owners = {part: {groups[place] for place in places} for part, places in split.items()}
    assert not owners["train"] & owners["valid"]
    assert not owners["train"] & owners["test"]
    assert not owners["valid"] & owners["test"]
    seen = {labels[place] for place in split["train"]}
    assert all(labels[place] in seen for places in split.values() for place in places)
    again = grouped_split(groups, labels, needs, parts=tuple(SHARES), seed=seed, where="data")
    assert all(np.array_equal(split[part], again[part]) for part in split)


def test_what_only_one_example_has_is_trained_on() -> None:
    needs = [frozenset(("rare",)) if place == 7 else frozenset[str]() for place in range(60)]
    for seed in range(20):
        split = grouped_split(range(60), [""] * 60, needs, parts=tuple(SHARES), seed=seed, where="data")
        assert 7 in split["train"]


def test_too_few_examples_are_refused_with_the_number_that_would_do() -> None:
    nothing = [frozenset[str]()] * 10
    with pytest.raises(DataError, match=f"at least {-(-LEAST * 100 // 15)} to be split into train, valid, test"):
        grouped_split(range(10), [""] * 10, nothing, parts=tuple(SHARES), seed=0, where="data")
    with pytest.raises(DataError, match="in 5 groups that must not be divided"):
        grouped_split([0, 1, 2, 3, 4] * 2, [""] * 10, nothing, parts=tuple(SHARES), seed=0, where="data")
    with pytest.raises(ArgumentError):
        grouped_split(range(10), [""] * 10, nothing, parts=("valid",), seed=0, where="data")


PLAIN = {
    "lm": (LanguageModelConfig(hidden=(8,)), TrainingSettings()),
    "tag": (TaggerConfig(hidden=8, dropout=0.0), TaggerSettings()),
    "classify": (ClassifierConfig(hidden=8), ClassifierSettings()),
}


@pytest.mark.parametrize("kind", list(PLAIN))
def test_every_family_takes_part_or_says_why_not(kind: str) -> None:
    found = line_up(kind, (), *PLAIN[kind])
    assert found.candidates[0].name == "none"
    present = {each.family for each in found.candidates}
    assert present | set(found.unavailable) == set(registry(kind))
    assert not present & set(found.unavailable)
    assert {"none", "centroids"} <= present | set(found.unavailable)
    for family in present - {"none"}:
        assert sum(each.family == family for each in found.candidates) in (2, 3), "strengths to choose from"
    for reason in found.unavailable.values():
        assert "has no" in reason
    assert len({each.name for each in found.candidates}) == len(found.candidates)


@pytest.mark.parametrize("kind", KINDS)
def test_combinations_have_what_their_parts_have(kind: str) -> None:
    known = registry(kind)
    model, _ = known["dropout+noise"]["0.2-0.3"]
    assert {**known["dropout"]["0.2"][0], **known["noise"]["0.3"][0]} == model
    _, training = known["dropout+mixup-input"]["0.2-0.1"]
    assert training == {"mixup": "input", "mixup_alpha" if kind == "lm" else "alpha": 0.1}
    assert "variational+weight-drop+zoneout" in known


def test_a_line_up_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ArgumentError, match="dropuot"):
        line_up("lm", ("none", "dropuot"), *PLAIN["lm"])
    with pytest.raises(ArgumentError, match="something to compare"):
        line_up("lm", ("dropout",), *PLAIN["lm"])
    with pytest.raises(ArgumentError, match="one of lm, tag"):
        adaptor_of("pictures")


def test_a_candidate_crosses_files_and_processes() -> None:
    one = Candidate(name="centroids-10", family="centroids", model={"centroids": (10,)}, training={"lr": 0.1})
    assert Candidate.of(one.document()) == one
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(TypeError):
        one.model["centroids"] = ()  # type: ignore[index]


@pytest.mark.parametrize("kind", list(PLAIN))
def test_rates_stay_the_same_so_that_runs_can_be_prolonged(kind: str) -> None:
    told = Told(model={"hidden": 8, "layers": 2}, training={"lr": 0.1})
    config, settings = adaptor_of(kind).configured(Candidate(name="none", family="none"), told, seed=3, epochs=7)
    assert (settings.seed, settings.epochs, settings.lr, settings.patience) == (3, 7, 0.1, None)
    assert not getattr(settings, "plans_ahead", False)
    assert getattr(settings, "divide", None) is None or settings.schedule == "constant"
    assert config.hidden in (8, (8, 8))


@dataclass(frozen=True)
class _Fake:
    """Numbers that a job gives instead of training; some kill the process that does them."""

    marks: Path

    def __call__(self, job: Job, device: torch.device) -> Report:
        if job.candidate.family == "deadly":
            mark = self.marks / f"{job.run}.died"
            if not mark.exists() or job.candidate.name == "deadly-always":
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        if job.candidate.family == "wrong":
            raise DataError(where="file", got="nonsense", wanted="sense")
        return Report(Trained(float(job.seed), 0.0, job.epochs, 0.1))


def job(name: str = "none", family: str = "none", seed: int = 0) -> Job:
    told = Told(seed=0)
    return Job(
        kind="lm", data=Path(), candidate=Candidate(name=name, family=family), told=told, seed=seed, epochs=1,
        folder=Path(),
    )  # fmt: skip


def test_a_crew_of_processes_does_what_one_process_does_and_replaces_the_dead(tmp_path: Path) -> None:
    jobs = [job(seed=seed) for seed in range(4)]
    with Crew(workers=1, work=_Fake(tmp_path)) as alone:
        serial = {each.run: report for each, report in alone.do(jobs)}
    with Crew(workers=2, work=_Fake(tmp_path)) as crew:
        assert {each.run: report for each, report in crew.do([*jobs, job("deadly", "deadly")])} == {
            **serial,
            "deadly-s0": Report(Trained(0.0, 0.0, 1, 0.1)),
        }
        with pytest.raises(DataError, match="nonsense"):
            list(crew.do([job("wrong", "wrong"), job()]))


@pytest.mark.slow
def test_a_job_that_always_kills_ends_the_crew_and_says_how_to_go_on(tmp_path: Path) -> None:
    with (
        Crew(workers=2, work=_Fake(tmp_path)) as crew,
        pytest.raises(RunFolderError, match="SIGKILL") as dead,
    ):
        list(crew.do([job("deadly-always", "deadly"), job(seed=1)]))
    assert "--resume goes on" in str(dead.value)


def test_a_crew_needs_someone() -> None:
    with pytest.raises(ArgumentError):
        Crew(workers=0)
