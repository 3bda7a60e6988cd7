"""The studies of bounds that are computed from norms: orders, growth and vacuity, with the numbers that are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes import bounds_scaling as scaling
from statewise.recipes import bounds_table1 as table1
from statewise.recipes import bounds_vacuous as vacuous
from statewise.recipes.bounds_networks import elman_numbers, named_network
from statewise.recipes.bounds_subjects import TITLES
from statewise.recipes.lines import Line
from statewise.recipes.published_bounds import GATED, PENALTIES, SLOPES, VACUOUS
from statewise.recipes.studies import Studied
from statewise.report import compare_with_published
from statewise.report.pictures import draw_pictures

PNG = b"\x89PNG\r\n\x1a\n"
PICTURES = {
    "table1": {"powers.png"},
    "scaling": {"growth-tanh.png", "growth-identity.png"},
    "vacuous": {"vacuous.png"},
}


def run(folder: Path, name: str, **asked: Any) -> Outcome:
    return reproduce(find_recipe(f"generalization-bounds/{name}"), Request(**asked), folder)


@pytest.mark.parametrize("name", PICTURES)
def test_the_smoke_runs_is_drawn_and_claims_nothing(tmp_path: Path, name: str) -> None:
    rows = {"scaling": ("1",), "vacuous": ("toy-1", "pixel-mnist-1.5", "mgu16-typical")}.get(name, ())
    outcome = run(tmp_path, name, scale="smoke", rows=rows)
    table = compare_with_published(outcome)
    assert "SMOKE RUN" in table.notes[0]
    assert "HOLD" not in table.markdown()
    assert "holds" not in table.markdown()
    assert all(len(row) == len(table.columns) for row in table.rows)
    drawn = draw_pictures(outcome, tmp_path)
    assert {place.name for place in drawn} == PICTURES[name]
    assert all(place.read_bytes().startswith(PNG) for place in drawn)
    assert run(tmp_path, name, scale="smoke", rows=rows).measured == outcome.measured


@pytest.mark.parametrize(
    ("name", "claims", "count"),
    [("table1", table1.claims, 15), ("vacuous", vacuous.claims, 7)],
)
def test_what_is_known_holds(tmp_path: Path, name: str, claims: Callable[..., Any], count: int) -> None:
    checked = claims(run(tmp_path, name).measured)
    assert len(checked) == count
    assert all(holds for _, holds in checked), checked


@pytest.mark.slow
def test_what_is_known_of_the_growth_holds(tmp_path: Path) -> None:
    checked = scaling.claims(run(tmp_path, "scaling").measured)
    assert len(checked) == 6
    assert all(holds for _, holds in checked), checked


@pytest.mark.parametrize(("activation", "beta"), SLOPES)
def test_theorem_2_grows_as_known(activation: str, beta: str) -> None:
    settings = scaling.ScalingSettings(beta=float(beta), activation=activation)
    first, last = (settings.log_penalty("thm2", steps) for steps in sorted(settings.ends))
    assert (last - first) / math.log(10) == pytest.approx(SLOPES[activation, beta], abs=5e-4)


@pytest.mark.parametrize("bound", ["thm3_l1", "bartlett_unrolled", "pac_bayes"])
def test_other_bounds_grow_with_every_step(bound: str) -> None:
    settings = scaling.ScalingSettings(beta=1.5)
    added = settings.log_penalty(bound, 400) - settings.log_penalty(bound, 399)
    assert added == pytest.approx(math.log(1.5), abs=1e-6)


def changed(one: Studied, **numbers: Any) -> Studied:
    return replace(one, found={**one.found, **numbers})


def test_other_numbers_would_be_noticed(tmp_path: Path) -> None:
    known = {"slope_thm2": 0.0283, **{f"penalty_{steps}": value for steps, value in PENALTIES.items()}}
    one = Studied(name="1", line=Line(row="1", size="tanh"), seed=0, found=known)
    assert [holds for _, holds in scaling.claims([one])] == [True, True]
    assert [holds for _, holds in scaling.claims([changed(one, slope_thm2=0.0295)])] == [False, True]
    assert [holds for _, holds in scaling.claims([changed(one, penalty_8=174.7)])] == [True, False]
    (toy,) = run(tmp_path / "vacuous", "vacuous", rows=("toy-1",)).measured
    assert [holds for _, holds in vacuous.claims([toy])] == [True, True, True, True]
    wrong = changed(toy, log10_dudley=toy.found["log10_dudley"] + 0.06)
    assert [holds for _, holds in vacuous.claims([wrong])] == [False, True, True, True]
    assert [holds for _, holds in vacuous.claims([changed(toy, kl_0=0.003)])] == [True, True, True, False]
    (order,) = run(tmp_path / "table1", "table1", rows=("equal",)).measured
    assert all(holds for _, holds in table1.claims([order]))
    printed = changed(order, crossing_d=1.0)  # as the paper has it
    assert [holds for _, holds in table1.claims([printed])].count(False) == 1


def test_references_stand_below_ours(tmp_path: Path) -> None:
    table = compare_with_published(run(tmp_path, "vacuous", rows=("toy-0.9", "lstm16-typical")))
    assert [row[:2] for row in table.rows] == [
        [name, whose] for name in ("toy-0.9", "lstm16-typical") for whose in ("ours", "reference")
    ]
    ours, reference = table.rows[:2]
    shown = dict(zip(table.columns, zip(ours, reference, strict=True), strict=True))
    assert shown["Theorem 2"] == ("61.3", "61.3")
    assert shown["kl, risk .05"] == ("0.0649", "0.0649")
    assert table.rows[2][table.columns.index("Theorem 2")] == "-", "Theorem 2 is of Elman networks"


def test_the_networks_are_those_of_the_table() -> None:
    assert named_network("pixel-mnist-1.5").steps == 784
    assert named_network("mgu128-normalised").hidden == 128
    for row, known in {**VACUOUS, **GATED}.items():
        settings = named_network(row)
        if "parameters" in known and settings.cell == "rnn":
            assert settings.elman.parameters == known["parameters"]
    speech: Mapping[str, float] = elman_numbers(named_network("speech-1"))
    assert speech["log10_thm2"] == pytest.approx(math.log10(1.23e4), abs=2e-3)


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("scaling", ("longest", 5), "longest"),
        ("scaling", ("activation", "relu"), "activation"),
        ("table1", ("widest", 1), "widest"),
        ("vacuous", ("hidden", 0), "hidden"),
        ("vacuous", ("cell", "gru"), "cell"),
        ("vacuous", ("layers", 2), "layers"),
    ],
)
def test_a_slip_is_told_before_anything_is_made(name: str, wrong: tuple[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        find_recipe(f"generalization-bounds/{name}").complete(Request(overrides=(wrong,)))


def test_curves_have_a_point_for_every_look() -> None:
    settings = scaling.ScalingSettings(longest=100)
    found = scaling.growth(settings)
    assert {1, 2, 4, 8, 10, 16, 100} <= set(found["steps"])
    assert found["log_penalties"].keys() == TITLES.keys()
    assert all(len(curve) == len(found["steps"]) for curve in found["log_penalties"].values())
    assert found["log_penalties"]["thm2"] == sorted(found["log_penalties"]["thm2"])
