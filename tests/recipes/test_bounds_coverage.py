"""Coverage: the laws know their errors exactly, certificates fail as rarely as they must, unpaid ones do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from statewise.errors import ArgumentError
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes import bounds_coverage as study
from statewise.recipes.bounds_laws import KINDS, TIE, Law, LawSettings
from statewise.recipes.lines import Line
from statewise.recipes.studies import Studied
from statewise.report import compare_with_published
from statewise.report.pictures import draw_pictures

NAME = "generalization-bounds/coverage"
QUICK = ("machines-0.5", "drawn-0.5")  # nothing is trained


def run(folder: Path, **asked: Any) -> Outcome:
    return reproduce(find_recipe(NAME), Request(**asked), folder)


def test_a_law_knows_the_error_that_many_draws_have() -> None:
    law = Law(shares=np.array([0.5, 0.3, 0.2]), truth=np.array([0, 1, 1]), noise=0.2)
    answers = np.array([0, 0, TIE])
    assert law.error(answers) == pytest.approx(0.5 * 0.2 + 0.3 * 0.8 + 0.2)
    at, labels = law.sample(200_000, np.random.default_rng(0))
    assert np.mean(answers[at] != labels) == pytest.approx(float(law.error(answers)), abs=0.004)


def test_nothing_can_be_learnt_from_labels_that_are_all_noise() -> None:
    law = Law(shares=np.array([0.5, 0.5]), truth=np.array([0, 1]), noise=0.5)
    assert law.error(np.array([[0, 1], [1, 0], [1, 1]])).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_gives_what_was_asked(kind: str) -> None:
    settings = LawSettings(kind=kind, repetitions=2, sequences=20, steps=2, noise=0.1)
    trials = list(KINDS[kind](settings, (0.05, 0.5)))
    assert len(trials) == 2
    for trial in trials:
        assert 0 <= trial.rate <= trial.bounds[0.5] <= trial.bounds[0.05] <= 1
        assert trial.error >= 0.1 - 1e-12, "no answer is better than the truth"
    again, other = (next(KINDS[kind](replace(settings, seed=seed), (0.05,))) for seed in (0, 1))
    assert (again.rate, again.bounds[0.05]) == (trials[0].rate, trials[0].bounds[0.05]), (
        "the same seed, the same sample"
    )
    assert other != again


def test_certificates_fail_rarely_enough_and_unpaid_ones_too_often(tmp_path: Path) -> None:
    outcome = run(tmp_path, rows=QUICK)
    checked = study.claims(outcome.measured)
    assert len(checked) == 6
    assert all(holds for _, holds in checked), checked
    by_row = {one.line.row: one.found for one in outcome.measured}
    assert by_row["drawn-0.5"]["0.05"]["fails_unpaid"] > 0.5, "the test can fail"
    assert 0 < by_row["machines-0.5"]["0.5"]["fails"] <= 0.5, "the certificate is not so loose that it never fails"
    table = compare_with_published(outcome)
    assert len(table.rows) == 2 * len(QUICK)
    assert {row[table.columns.index("may fail")] for row in table.rows} == {"0.05", "0.5"}


def test_a_certificate_that_fails_too_often_is_told() -> None:
    known = {str(delta): {"fails": delta, "fails_unpaid": 1.0} for delta in study.DELTAS}
    row = "machines-0.5"
    one = Studied(name=row, line=Line(row=row), seed=0, found={"noise": 0.5, **known})
    assert all(holds for _, holds in study.claims([one]))
    for delta in study.DELTAS:
        wrong = {**one.found[str(delta)], "fails": delta + 0.01}
        assert [
            text for text, holds in study.claims([replace(one, found={**one.found, str(delta): wrong})]) if not holds
        ]
    assert study.claims([replace(one, smoke=True)]) == []


def test_the_smoke_runs_and_is_drawn(tmp_path: Path) -> None:
    outcome = run(tmp_path, scale="smoke", rows=("machines-0.5", "trained-0.1"))
    assert "HOLD" not in compare_with_published(outcome).markdown()
    assert [place.name for place in draw_pictures(outcome, tmp_path)] == ["coverage-0.05.png", "coverage-0.5.png"]
    assert run(tmp_path, scale="smoke", rows=("machines-0.5", "trained-0.1")).measured == outcome.measured


@pytest.mark.parametrize("wrong", [("kind", "guess"), ("noise", 0.6), ("sequences", 1), ("repetitions", 0)])
def test_a_slip_is_told_before_anything_is_made(wrong: tuple[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=wrong[0]):
        find_recipe(NAME).complete(Request(overrides=(wrong,)))


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_have_it")  # thousands of steps
def test_the_study_in_full_fails_rarely_enough(tmp_path: Path) -> None:
    checked = study.claims(run(tmp_path).measured)
    assert len(checked) == 6
    assert all(holds for _, holds in checked), checked
