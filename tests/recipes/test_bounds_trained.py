"""Certificates of trained networks: the task, what is kept, what is claimed, and the numbers of the full study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.errors import ArgumentError, DivergedError
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes import bounds_task as task
from statewise.recipes import bounds_trained as trained
from statewise.recipes.lines import Line
from statewise.recipes.studies import MODEL, Studied
from statewise.report import compare_with_published
from statewise.report.pictures import draw_pictures
from statewise.train.tensor_file import read_tensors

NAME = "generalization-bounds/trained"
TINY = task.TaskSettings(sequences=60, length=5, steps=20, test_sequences=100)


def run(folder: Path, **asked: Any) -> Outcome:
    return reproduce(find_recipe(NAME), Request(**asked), folder)


def test_the_class_is_the_sign_of_the_first_input_and_inputs_are_bounded() -> None:
    inputs, labels = task.draw(500, 20, seed=3)
    assert torch.equal(inputs[:, 0, 0], torch.where(labels == 1, 0.9, -0.9))
    assert inputs[:, 1:].abs().max() <= 0.3
    assert inputs.norm(dim=2).max() < task.INPUT_BOUND
    assert 200 < int(labels.sum()) < 300
    same, other = task.draw(500, 20, seed=3)[0], task.draw(500, 20, seed=4)[0]
    assert torch.equal(inputs, same)
    assert not torch.equal(inputs, other)
    drawn, random = task.draw(500, 20, seed=3, random_labels=True)
    assert torch.equal(drawn, inputs)
    assert 150 < int((random == labels).sum()) < 350


def test_the_network_is_the_papers_and_begins_where_it_should() -> None:
    network = task.PlainClassifier(4, seed=0)
    assert {name: tuple(each.shape) for name, each in network.named_parameters()} == {
        "layer.weight_ih_l0": (4, 2),
        "layer.weight_hh_l0": (4, 4),
        "head.weight": (2, 4),
    }
    assert (network.layer.get_parameter("weight_hh_l0") - 0.9 * torch.eye(4)).abs().max() < 0.25
    x = torch.rand(3, 6, 2)
    state = torch.zeros(3, 4)
    for step in x.unbind(1):
        w, u = (network.layer.get_parameter(name) for name in ("weight_ih_l0", "weight_hh_l0"))
        state = torch.tanh(state @ u.T + step @ w.T)
    torch.testing.assert_close(network(x), state @ network.head.weight.T)


def test_settings_are_those_of_the_study() -> None:
    recipe = find_recipe(NAME)
    cases: list[Any] = recipe.planned(recipe.complete(Request()))
    assert len(cases) == 4 * 8
    by_name = {case.name: case.settings for case in cases}
    assert by_name["memory-dh8-m100000-seed7"] == task.TaskSettings(hidden=8, seed=7)
    assert by_name["memory-random-labels-seed2"] == task.TaskSettings(sequences=300, random_labels=True, seed=2)
    known = by_name["memory-dh4-m10000-seed0"]
    assert (known.hidden, known.sequences, known.steps, known.batch, known.lr) == (4, 10_000, 1500, 512, 0.01)


def test_the_smoke_runs_is_drawn_and_keeps_network_and_certificate(tmp_path: Path) -> None:
    outcome = run(tmp_path, scale="smoke", rows=("dh4-m10000",))
    table = compare_with_published(outcome)
    assert "HOLD" not in table.markdown()
    assert [row[1] for row in table.rows] == ["ours", "reference (not comparable)"]
    assert [path.name for path in draw_pictures(outcome, tmp_path)] == ["certificates.png"]
    one = outcome.measured[0]
    kept = json.loads((tmp_path / one.name / trained.CERTIFICATE).read_text())
    assert kept["value"] == one.found["certificate"]
    assert kept["sequences"] == 400
    settings: Any = outcome.steps[one.name]
    network = task.PlainClassifier(4, seed=9).eval()
    network.load_state_dict(read_tensors(tmp_path / one.name / MODEL)[0])
    assert trained.certified(network, settings.settings).value == one.found["certificate"]
    assert one.found["error"] <= one.found["certificate"] <= 1
    assert one.found["thm2"] > 1
    assert run(tmp_path, scale="smoke", rows=("dh4-m10000",)).measured == outcome.measured


def test_a_tie_is_an_error_of_the_test() -> None:
    network = task.PlainClassifier(2, seed=0)
    with torch.no_grad():
        network.head.weight.zero_()
    assert task.fresh_error(network, TINY) == 1.0


def test_training_that_diverges_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        task, "training_data", lambda settings: (torch.full((60, 5, 2), torch.nan), torch.ones(60).long())
    )
    with pytest.raises(DivergedError, match="finite loss"):
        task.train_plain(TINY)


@pytest.mark.parametrize("wrong", [("hidden", 0), ("sequences", 1), ("steps", 0), ("lr", 0.0)])
def test_a_slip_is_told_before_anything_is_made(wrong: tuple[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=wrong[0]):
        find_recipe(NAME).complete(Request(overrides=(wrong,)))


def test_claims_speak_of_what_was_made_and_can_fail() -> None:
    good = {"certificate": 0.0045, "error": 0.0, "test_error": 0.0, "thm2": 1.06, "dudley": 1.04}

    def one(row: str, **numbers: Any) -> Studied:
        return Studied(name=row, line=Line(row=row), seed=0, found={**good, **numbers})

    def verdicts(*measured: Studied) -> list[bool]:
        return [holds for _, holds in trained.claims(measured)]

    learnt, lost = one("dh4-m100000"), one("random-labels", certificate=0.97, error=0.4, test_error=0.5)
    assert verdicts(learnt, lost) == [True] * 5
    assert verdicts(lost) == [True]
    assert verdicts(one("dh4-m100000", certificate=0.0061)) == [False, True, True, True]
    assert verdicts(one("dh8-m100000", certificate=0.0061, test_error=1e-5)) == [True, False, True, True]
    assert verdicts(one("dh4-m10000", test_error=0.0046)) == [False, False, True]
    assert verdicts(one("dh4-m10000", dudley=0.99)) == [True, True, False]
    assert verdicts(replace(lost, found={**lost.found, "certificate": 0.49})) == [False]
    assert trained.claims([replace(learnt, smoke=True)]) == []


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_have_it")  # thousands of steps
def test_the_study_in_full_has_the_known_numbers(tmp_path: Path) -> None:
    """Certificates of at most 0.006 and 0.02 where nothing goes wrong; none below 0.5 where nothing can be learnt."""
    measured = [
        *run(tmp_path, rows=("dh4-m100000", "dh8-m100000", "dh4-m10000"), seeds=1).measured,
        *run(tmp_path, rows=("random-labels",)).measured,
    ]
    checked = trained.claims(measured)
    assert len(checked) == 8
    assert all(holds for _, holds in checked), checked
