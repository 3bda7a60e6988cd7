"""A folder from anywhere either loads or gives a named error: no other exception, no hang, no unbounded memory."""

from __future__ import annotations

import collections
import resource
import shutil
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import statewise
from models.damaging import damage
from statewise.errors import StatewiseError
from statewise.models import ClassifierConfig, LanguageModelConfig, Lexicon, OrthogonalConfig, StepConfig, TaggerConfig

SECONDS, MEGABYTES = 20.0, 600  # for one folder of some kilobytes, on a machine that does other things too
_LEXICON = Lexicon.of([["Anna", "saw"]], tags=("O", "B-PER", "I-PER"), scheme="iob2")
MODELS: dict[str, Any] = {
    "language": lambda: LanguageModelConfig(hidden=(4, 4), weight_drop=0.5, centroids=2).build(5),
    "mixture": lambda: LanguageModelConfig(hidden=(4, 3), head="mixture", experts=2, tied=False).build(5),
    "classifier": lambda: ClassifierConfig(hidden=4, centroids=(2,)).build(tokens=2, classes=2, symbols="01"),
    "steps": lambda: StepConfig(hidden=4, cell="peephole").build(features=2, classes=2),
    "tagger": lambda: TaggerConfig(hidden=3, words=4, characters=2, character_hidden=2, constrained=True).build(
        _LEXICON
    ),
    "orthogonal": lambda: OrthogonalConfig(inputs=2, classes=2, hidden=4).build(),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kept")
    for name, build in MODELS.items():
        model = build()
        if name == "classifier":
            model.reading = statewise.models.Reading(unit="characters", symbols=("0", "1"), classes=("no", "yes"))
        model.save(place / name)
    return place


def assert_readable(said: str) -> None:
    assert len(said) < 20_000, "an error that nobody can read"


def tried(kept: Path, seed: int) -> tuple[str, str]:
    """Damage a copy of one of the folders and load it; gives how, and what came of it."""
    draw = Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        shutil.copytree(kept / draw.choice(sorted(MODELS)), folder)
        how = damage(folder, draw)
        begin = time.monotonic()
        try:
            statewise.load(folder)
            came = "loads"
        except StatewiseError as error:
            came, said = type(error).__name__, str(error)
            assert_readable(said)
        assert time.monotonic() - begin < SECONDS, f"seed {seed}, {how}: a hang"
    return how, came


def most_memory() -> float:
    """The most megabytes that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**64 - 1))
def test_a_damaged_folder_loads_or_gives_a_named_error(kept: Path, seed: int) -> None:
    before = most_memory()
    tried(kept, seed)
    assert most_memory() - before < MEGABYTES, f"seed {seed} took memory"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_hundred_thousand_damaged_folders(kept: Path, part: int) -> None:
    """Ten parts of 10,000; nearly all are refused, and those that load are of harmless changes."""
    torch.set_num_threads(1)
    before, found = most_memory(), collections.Counter[str]()
    for seed in range(10_000 * part, 10_000 * (part + 1)):
        found[tried(kept, seed)[1]] += 1
    assert sum(found.values()) == 10_000
    assert found["ModelFolderError"] > 7_000
    assert most_memory() - before < MEGABYTES
