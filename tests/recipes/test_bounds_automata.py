"""Certificates of learnt automata: what is kept, what is claimed, and that they are proofs at the paper's sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statewise.automata import load_machine
from statewise.bounds import bound_automaton, disagreement
from statewise.data import tomita
from statewise.errors import ArgumentError
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes import bounds_automata as study
from statewise.recipes.lines import Line
from statewise.recipes.published_bounds import TOMITA_BOUNDS, TOMITA_WORDS
from statewise.recipes.studies import Studied
from statewise.report import compare_with_published
from statewise.report.pictures import draw_pictures

NAME = "generalization-bounds/automata"


def run(folder: Path, **asked: Any) -> Outcome:
    return reproduce(find_recipe(NAME), Request(**asked), folder)


@pytest.mark.parametrize("row", TOMITA_WORDS)
def test_the_reference_is_the_bound_of_the_true_machine(row: str) -> None:
    truth = tomita(int(row)).minimal
    assert truth is not None
    assert bound_automaton(truth, sequences=TOMITA_WORDS[row]).value == pytest.approx(TOMITA_BOUNDS[row], abs=5e-6)


def test_the_smoke_runs_is_drawn_and_keeps_the_machine(tmp_path: Path) -> None:
    outcome = run(tmp_path, scale="smoke", rows=("4",))
    assert "HOLD" not in compare_with_published(outcome).markdown()
    assert [place.name for place in draw_pictures(outcome, tmp_path)] == ["automata.png"]
    (one,) = outcome.measured
    folder = tmp_path / one.name
    machine, truth = load_machine(folder / study.MACHINE), tomita(4).minimal
    assert truth is not None
    assert disagreement(machine, truth, lengths=range(9)) == one.found["true_error"]
    kept = json.loads((folder / study.CERTIFICATE).read_text())
    assert kept["value"] == one.found["certificate"] < one.found["by_certify"], "certify shares delta"
    assert kept["sequences"] == 60
    assert (folder / study.PICTURE).read_text().startswith("<svg")
    assert run(tmp_path, scale="smoke", rows=("4",)).measured == outcome.measured


def test_claims_can_fail() -> None:
    def one(**numbers: Any) -> Studied:
        found = {"certificate": TOMITA_BOUNDS["1"], "true_error": 0.0, "vacuous": False, **numbers}
        return Studied(name="1", line=Line(row="1"), seed=0, found=found)

    def verdicts(*measured: Studied) -> list[bool]:
        return [holds for _, holds in study.claims(measured)]

    assert verdicts(one()) == [True, True, True]
    assert verdicts(one(certificate=0.6, vacuous=True, true_error=0.1)) == [False, True]
    assert verdicts(one(true_error=0.04)) == [True, False]
    assert verdicts(one(certificate=0.033)) == [True, True, False]
    assert verdicts() == []


def test_words_are_as_many_as_in_the_paper() -> None:
    recipe = find_recipe(NAME)
    cases: list[Any] = recipe.planned(recipe.complete(Request(seeds=1)))
    assert [case.settings.words for case in cases] == [265, 257, 2141, 2571, 1651, 2523, 1561]
    assert [case.settings.grammar for case in cases] == [1, 2, 3, 4, 5, 6, 7]
    assert {case.settings.longest for case in cases} == {22}


@pytest.mark.parametrize("wrong", [("words", 1), ("restarts", 0), ("delta", 1.0)])
def test_a_slip_is_told_before_anything_is_made(wrong: tuple[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=wrong[0]):
        find_recipe(NAME).complete(Request(overrides=(wrong,)))


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_have_it")  # hundreds of steps each
def test_every_grammar_is_certified_at_the_papers_sample_size(tmp_path: Path) -> None:
    checked = study.claims(run(tmp_path, seeds=1).measured)
    assert len(checked) == 3
    assert all(holds for _, holds in checked), checked
