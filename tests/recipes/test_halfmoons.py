"""The small recipes of mixup: half moons and the hidden Markov tagger, from the settings to the pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from statewise.errors import ArgumentError, RunFolderError
from statewise.mixup import PreOutputMixup, ThroughTimeMixup
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes import mixup_halfmoons as moons
from statewise.recipes import mixup_surrogate as surrogate
from statewise.recipes.lines import Line
from statewise.recipes.mixing import TRAININGS, MixingCase, Trained, load_network
from statewise.recipes.results import write_results
from statewise.report import compare_with_published
from statewise.report.pictures import draw_pictures

CPU = torch.device("cpu")
HALFMOONS, SURROGATE = "sequence-mixup/halfmoons", "sequence-mixup/surrogate"
PNG = b"\x89PNG\r\n\x1a\n"


def smoke(folder: Path, name: str, **asked: Any) -> Outcome:
    return reproduce(find_recipe(name), Request(scale="smoke", **asked), folder)


def test_half_moons_are_two_half_circles_that_reach_into_each_other() -> None:
    points, labels = moons.half_moons(301, 0.0, seed=3)
    upper, lower = points[labels == 0], points[labels == 1]
    assert (len(upper), len(lower)) == (150, 151)
    np.testing.assert_allclose(np.hypot(*upper.T), 1)
    np.testing.assert_allclose(np.hypot(*(lower - [1, 0.5]).T), 1)
    assert upper[:, 1].min() > -1e-9
    assert lower[:, 1].max() < 0.5 + 1e-9
    noisy, same = (moons.half_moons(300, 0.3, seed=3)[0] for _ in range(2))
    np.testing.assert_array_equal(noisy, same)
    apart = noisy - moons.half_moons(300, 0.0, seed=3)[0]
    assert apart.std() == pytest.approx(0.3, rel=0.1)
    assert not np.allclose(noisy, moons.half_moons(300, 0.3, seed=4)[0])


def test_a_point_is_read_coordinate_by_coordinate() -> None:
    sequences = moons.as_sequences(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert sequences.tolist() == [[[1.0], [3.0]], [[2.0], [4.0]]]


def test_the_settings_are_those_of_the_experiment() -> None:
    recipe = find_recipe(HALFMOONS)
    cases = recipe.planned(recipe.complete(Request()))
    assert len(cases) == len(TRAININGS) * 2 * 5
    case = next(one for one in cases if one.name == "noisy-pre-output-seed4")
    assert isinstance(case, MixingCase)
    told = case.recorded["settings"]
    wanted = {"training": "pre-output", "hidden": 32, "lr": 0.01, "steps": 2000, "alpha": 1.0, "rho": 0.0, "seed": 4}
    assert told == wanted | {"noise": 0.3, "points": 300, "test_points": 10_000}
    assert case.mixup == PreOutputMixup(alpha=1.0)
    assert moons.probability_map(moons.new_network(case).eval()).shape == (141, 201)


def test_the_smoke_of_half_moons_runs_is_drawn_and_is_found_again(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, HALFMOONS)
    assert [(one.line.size, one.line.row) for one in outcome.measured] == [
        (size, row) for size in ("clean", "noisy") for row in TRAININGS
    ]
    table = compare_with_published(outcome)
    assert "SMOKE RUN" in table.notes[0]
    assert "HOLD" not in table.markdown()
    assert [row[2] for row in table.rows[:2]] == ["ours", "reference (not comparable)"]
    assert table.rows[1][3] == "1.0000"
    for place in draw_pictures(outcome, tmp_path):
        assert place.read_bytes().startswith(PNG)
    found = json.loads(write_results(outcome, tmp_path, device=CPU).read_text())
    assert found["runs"][0]["settings"]["training"] == "standard"
    assert 0 <= found["runs"][0]["band"] <= 1
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")}
    assert smoke(tmp_path, HALFMOONS).measured == outcome.measured
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")} == before
    other = smoke(tmp_path, HALFMOONS, rows=("standard",), sizes=("clean",), overrides=(("steps", 2),))
    assert other.measured[0].found != outcome.measured[0].found, "other settings are another run"


def test_a_run_can_be_loaded_and_repeated_to_the_last_bit(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"rows": ("through-time",), "sizes": ("noisy",)}
    (one,), (again,) = (smoke(tmp_path / name, HALFMOONS, **asked).measured for name in ("one", "two"))
    assert one.found == again.found
    recipe = find_recipe(HALFMOONS)
    case = recipe.planned(recipe.complete(Request(scale="smoke", **asked)))[0]
    assert isinstance(case, MixingCase)
    assert isinstance(case.mixup, ThroughTimeMixup)
    network = moons.trained_network(case, tmp_path / "one")
    assert not network.training
    assert moons.measure_moons(case, network) == one.found
    with pytest.raises(RunFolderError, match="Reproduce it first"):
        load_network(network, case, tmp_path / "nowhere")


def test_weights_of_a_seed_are_the_same_for_every_training() -> None:
    recipe = find_recipe(HALFMOONS)
    cases = recipe.planned(recipe.complete(Request(seeds=2)))
    first, second, other = (moons.new_network(cases[at]).state_dict() for at in (0, 2, 1))  # type: ignore[arg-type]
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_a_run_whose_loss_is_no_number_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moons, "as_sequences", lambda points: torch.full((2, len(points), 1), torch.nan))
    outcome = smoke(tmp_path, HALFMOONS, rows=("standard",), sizes=("clean",))
    assert not outcome.measured
    assert "a finite loss" in outcome.failed["clean-standard-seed0"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(("steps", 0), "steps"), (("lr", 0.0), "lr"), (("alpha", -1.0), "alpha"), (("points", 1), "points")],
)
def test_a_slip_is_told_before_anything_is_made(wrong: tuple[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        find_recipe(HALFMOONS).complete(Request(overrides=(wrong,)))


def test_claims_speak_of_what_was_made_only() -> None:
    def one(size: str, row: str, **found: float) -> Trained:
        return Trained(name=f"{size}-{row}", line=Line(row=row, size=size), seed=0, found=found)

    good = [
        one("clean", "pre-output", nll=0.029, confidence=0.9714, band=0.1),
        one("noisy", "standard", nll=0.55, confidence=0.96, band=0.07),
        one("noisy", "pre-output", nll=0.25, confidence=0.9, band=0.2),
    ]
    assert [holds for _, holds in moons.claims(good)] == [True, True, True]
    assert moons.claims(good[1:2]) == []
    worse = one("noisy", "pre-output", nll=0.40, confidence=0.9, band=0.1)
    assert [holds for _, holds in moons.claims([good[1], worse])] == [False, False]


def test_the_smoke_of_the_tagger_measures_states_and_is_drawn(tmp_path: Path) -> None:
    outcome = smoke(tmp_path, SURROGATE)
    assert [one.line.row for one in outcome.measured] == list(outcome.recipe.rows)
    for one in outcome.measured:
        assert one.found["sigma_1"] > one.found["sigma_5"] > one.found["sigma_20"] > 0
        assert 0 < one.found["leakage"] < 1
        assert 1 <= one.found["stable_rank"] <= one.found["effective_rank"] <= 24
    for place in draw_pictures(outcome, tmp_path):
        assert place.read_bytes().startswith(PNG)
    assert "σ 20" in compare_with_published(outcome).markdown()
    assert "HOLD" not in compare_with_published(outcome).markdown()
    found = json.loads(write_results(outcome, tmp_path, device=CPU).read_text())
    assert 0.7 < found["data"]["best_accuracy"] < 0.9
    assert smoke(tmp_path, SURROGATE).measured == outcome.measured


def test_the_settings_of_the_tagger_are_those_of_the_experiment() -> None:
    recipe = find_recipe(SURROGATE)
    cases = recipe.planned(recipe.complete(Request()))
    assert [case.name for case in cases[:4]] == [
        *(f"hmm-standard-seed{seed}" for seed in range(3)),
        "hmm-pre-output-seed0",
    ]
    wanted = {"training": "standard", "hidden": 32, "lr": 0.01, "steps": 400, "alpha": 1.0, "rho": 0.0, "seed": 0}
    assert cases[0].recorded["settings"] == wanted | {"sequences": 100, "test_sequences": 2000}
    inputs, labels = surrogate.tagged(100, seed=0)
    assert (tuple(inputs.shape), tuple(labels.shape)) == ((12, 100, 8), (12, 100))
    stays = (labels[1:] == labels[:-1]).double().mean()
    assert float(stays) == pytest.approx(0.8 + 0.2 / 5, abs=0.03)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_have_it")  # thousands of steps
def test_half_moons_in_full_have_the_known_numbers(tmp_path: Path) -> None:
    """Pre-output mixing meets its theoretical floor on clean moons, and halves the NLL on noisy ones (Figure 1)."""
    recipe = find_recipe(HALFMOONS)
    asked = (Request(rows=("pre-output",)), Request(rows=("standard",), sizes=("noisy",)))
    checked = moons.claims([one for request in asked for one in reproduce(recipe, request, tmp_path).measured])
    assert len(checked) == 3
    assert all(holds for _, holds in checked), checked


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_have_it")  # thousands of steps
def test_the_tagger_in_full_has_the_known_numbers(tmp_path: Path) -> None:
    """Mixing lowers the NLL by 30 % and more, and pre-output mixing hides a class's variation from the read-out."""
    outcome = reproduce(find_recipe(SURROGATE), Request(), tmp_path)
    checked = surrogate.claims(outcome.measured)
    assert len(checked) == 6
    assert all(holds for _, holds in checked), checked
