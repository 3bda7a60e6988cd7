from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statewise.data.copying_memory import CopyingMemory
from statewise.data.similarity import StartEndSimilarity
from statewise.sweep.folders import folder_name, reopen
from statewise.sweep.seat import read_outcome
from statewise.sweep.trial import Trial
from sweep import standin

CHANGES: list[dict[str, Any]] = [
    {"task": CopyingMemory(m=2, n=2, delay=4)},
    {"task": CopyingMemory(m=2, n=4, delay=3)},
    {"task": StartEndSimilarity(length=4, m=2, n=2)},
    {"depth": 2},
    {"width": 3},
    {"lr": 1.0000001e-3},
    {"lr_recurrent": 1e-4},
    {"seed": 1},
    {"batch": 64},
    {"iterations": 30},
    {"check_every": 5},
    {"patience": 3},
    {"validate": 10},
    {"test": 10},
    {"goal": 0.995},
    {"update": "full-capacity"},
    {"precision": "tf32"},
]


def test_whatever_is_another_has_another_folder() -> None:
    names = {folder_name(standin.like())} | {folder_name(replace(standin.like(), **change)) for change in CHANGES}
    assert len(names) == 1 + len(CHANGES)
    assert {name for change in CHANGES for name in change} >= set(Trial.__dataclass_fields__)


def test_a_name_is_that_of_the_trial_that_was_described() -> None:
    trial = standin.like(seed=5, width=30)
    assert folder_name(Trial.of(trial.describe())) == folder_name(trial)
    assert folder_name(trial).startswith("copying-memory-3-L1-R30-lr0.001-s5-")


@pytest.mark.parametrize(("until", "again"), [(0.0, True), (None, False)])
def test_only_what_was_stopped_is_opened_again(tmp_path: Path, until: float | None, again: bool) -> None:
    folder, device = tmp_path / "run", standin.CPU
    standin.train([standin.like()], [folder], device=device, until=until)
    assert reopen(folder) is again
    assert (read_outcome(folder) is None) is again
    assert not reopen(tmp_path / "nothing")
