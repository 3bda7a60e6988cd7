"""Published numbers beside ours."""

from __future__ import annotations

from typing import Any

from statewise.data import sample_corpus
from statewise.recipes import Measured, Outcome, Request, find_recipe
from statewise.recipes.cases import Case
from statewise.report import compare_with_published
from statewise.report.comparison import curves


def outcome_of(tests: list[float], **asked: Any) -> Outcome:
    """What it would be if the runs came to these numbers."""
    recipe = find_recipe("noisin/table3")
    request = recipe.complete(Request(**asked))
    measured = []
    for step, test in zip(recipe.steps(request), tests, strict=True):
        assert isinstance(step, Case)
        curve = [{"valid_perplexity": test + 30}, {"valid_perplexity": test + 4}]
        seed = step.settings.seed
        measured.append(
            Measured(name=step.name, line=step.line, seed=seed, valid=test + 4, test=test, epochs=2, curve=curve)
        )
    return Outcome(recipe, request, sample_corpus(), measured)


def test_a_row_has_published_ours_and_the_difference_for_valid_and_test() -> None:
    table = compare_with_published(outcome_of([73.0], rows=("gaussian",)))
    assert list(table.rows[0]) == [
        *("gaussian", "medium", "recurrent", "1.1"),
        *("76.2", "77.0", "+1.0 %"),
        *("71.8", "73.0", "+1.7 %"),
        *("1", "2", "0"),
    ]
    assert not any("SMOKE" in note for note in table.notes)


def test_several_seeds_become_a_mean_and_a_standard_deviation() -> None:
    table = compare_with_published(outcome_of([70.0, 72.0, 74.0], rows=("gaussian",), seeds=3))
    (row,) = table.rows
    assert list(row[7:10]) == ["71.8", "72.0 ± 2.0", "+0.3 %"]
    assert any("1111, 1112, 1113" in note for note in table.notes)


def test_a_smoke_run_claims_no_difference() -> None:
    table = compare_with_published(outcome_of([73.0], rows=("gaussian",), scale="smoke"))
    assert table.rows[0][6] == table.rows[0][9] == "-"
    assert "valid published (not comparable)" in table.columns
    assert "SMOKE RUN" in table.notes[0]


def test_a_doubtful_published_number_is_said_to_be_so() -> None:
    notes = compare_with_published(outcome_of([120.0], rows=("none",), sizes=("large",))).notes
    assert any("doubtful" in note for note in notes)


def test_curves_are_told_at_some_epochs() -> None:
    table = curves(outcome_of([70.0, 72.0], rows=("gaussian",), seeds=2))
    assert list(table.columns[1:]) == ["1", "2"]
    assert list(table.rows[0][1:]) == ["101.0", "75.0"]
