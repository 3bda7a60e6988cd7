"""Figure 1.2: matrices that stay orthogonal, and one that does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.errors import ArgumentError
from statewise.recipes import Outcome, Request, reproduce
from statewise.recipes import memory_drift as drift
from statewise.recipes import memory_figure1_2 as study
from statewise.recipes.lines import Line
from statewise.recipes.studies import Studied
from statewise.report import compare_with_published
from statewise.report.figures_orthogonality import PICTURES, plot_deviation
from statewise.weights import haar_orthogonal_, orthogonality_error, stiefel_step
from support import weight

(RECIPE,) = study.RECIPES


def run(folder: Path, **asked: Any) -> Outcome:
    return reproduce(RECIPE, Request(**asked), folder)


def last(settings: drift.DriftSettings) -> float:
    for matrix in settings.matrices():
        found = matrix
    return float(orthogonality_error(found))


def test_a_smoke_run_has_every_line_and_a_picture(tmp_path: Path) -> None:
    outcome = run(tmp_path, scale="smoke")
    assert {(one.line.size, one.line.row) for one in outcome.measured} == {
        (size, row) for size in ("float32", "float64") for row in study.TITLES
    }
    table = compare_with_published(outcome)
    assert len(table.rows) == 12 + len(study.REFERENCE)
    assert study.claims(outcome.measured) == [], "nothing is claimed of it"
    (picture,) = PICTURES[RECIPE.name](outcome, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    for one in outcome.measured:
        assert one.found["deviation"][-1] == one.found["end"] < (1e-4 if one.line.size == "float32" else 1e-12)
    again = run(tmp_path, scale="smoke")
    assert [one.found for one in again.measured] == [one.found for one in outcome.measured], "found, not made again"
    trained = json.loads((tmp_path / "float32-scornn-trained-seed0" / "result.json").read_text())
    assert trained["parameters"] == 8 * 7 // 2 + 8 * 10 + 8 + 10 * 8 + 10


def test_the_plain_update_is_the_one_of_the_optimiser_but_for_rounding() -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = haar_orthogonal_(torch.empty(6, 6, dtype=torch.float64), generator=generator)
    gradient = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(
        drift.plain_step(matrix, gradient, lr=0.1), stiefel_step(matrix, gradient, lr=0.1), rtol=0, atol=1e-14
    )


def test_in_float32_only_the_plain_update_drifts() -> None:
    """A tenth of the channels and a hundredth of the steps of the study; the same order."""
    short = drift.DriftSettings(channels=24, steps=150, reorthogonalize_every=50)
    plain, careful, projected, scornn = (last(replace(short, update=update)) for update in drift.UPDATES)
    assert plain > 3 * careful > 3 * projected
    assert projected < 3e-7, "the last step was a projection"
    assert scornn < 3e-7


def test_a_projected_matrix_is_told_by_its_worst_moment() -> None:
    settings = drift.DriftSettings(update="reorthogonalised", channels=24, steps=20, reorthogonalize_every=10)
    every = [float(orthogonality_error(matrix)) for matrix in settings.matrices()]
    assert every[19] < every[9] * 2 < every[18]
    assert list(drift.deviations(settings, {10, 20})) == [max(every[:10]), max(every[10:])]
    plain = replace(settings, update="plain")
    assert list(drift.deviations(plain, {20})) == [last(plain)]


def test_training_moves_the_matrix_and_logs_its_deviation() -> None:
    settings = drift.TrainedSettings(update="full-capacity", steps=12, channels=6, batch=3, lr_recurrent=1e-2)
    made = drift.trained(settings)
    assert made.found["iterations"] == [1, 2, 3, 4, 6, 7, 10, 12]
    assert made.found["largest_entry"] == 0
    assert made.network is not None
    start = settings.network(torch.Generator().manual_seed(0))
    moved, began = (weight(net.get_submodule("rnn"), "weight_hh_l0") for net in (made.network, start))
    assert (moved - began).abs().max() > 1e-3


def verdicts(row: str, found: dict[str, Any], size: str = "float32", *, smoke: bool = False) -> list[bool]:
    one = Studied(name=row, line=Line(row=row, size=size), seed=0, found=found, smoke=smoke)
    return [holds for _, holds in study.claims([one])]


def test_claims_can_fail() -> None:
    good = {"at_1": 7e-6, "at_1000": 4e-4, "end": 4e-3, "iterations": [1, 10_000], "deviation": [7e-6, 4e-3]}
    assert verdicts("plain", good) == [True, True]
    assert verdicts("plain", {**good, "end": 5e-4}) == [True, False]
    short = {"at_1": 7e-6, "end": 1e-5, "iterations": [1, 10], "deviation": [7e-6, 1e-5]}
    assert verdicts("plain", short) == [True], "of ten steps nothing is said of growth"
    assert verdicts("plain", {**good, "at_1000": 1e-3, "end": 1e-2}) == [False, True]
    assert verdicts("full-capacity", {**good, "end": 2e-4}) == [False]
    assert verdicts("reorthogonalised", {**good, "at_100": 4e-6, "end": 9e-6}) == [True, False]
    trained = {"end": 1e-12, "iterations": [1, 5], "deviation": [1e-13, 1e-12], "data_accuracy": 0.9}
    assert verdicts("scornn-trained", trained, "float64") == [True, False, False]
    assert verdicts("plain", good, smoke=True) == []


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (drift.DriftSettings, {"update": "cayley"}),
        (drift.DriftSettings, {"dtype": "bf16"}),
        (drift.DriftSettings, {"steps": 0}),
        (drift.TrainedSettings, {"dtype": "bf16"}),
        (drift.TrainedSettings, {"update": "plain"}),
        (drift.TrainedSettings, {"batch": 0}),
        (drift.TrainedSettings, {"m": 0}),
    ],
)
def test_senseless_settings_are_refused(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=rf"\.{next(iter(options))}: got"):
        kind(**options)


def test_the_picture_shows_each_curve_and_leaves_out_zeros() -> None:
    (axes,) = plot_deviation({"float32": {"a": ([1, 10, 100], [0.0, 1e-6, 1e-5]), "b": ([1], [1e-7])}}).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[10, 100], [1]]
    assert [list(line.get_ydata()) for line in axes.lines] == [[1e-6, 1e-5], [1e-7]]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    with pytest.raises(ArgumentError, match="at least one in each panel"):
        plot_deviation({"float32": {}})
    with pytest.raises(ArgumentError, match="at least one in each panel"):
        plot_deviation({})
    with pytest.raises(ArgumentError, match="1 deviations, wanted 2, one for each"):
        plot_deviation({"x": {"a": ([1, 2], [1.0])}})


@pytest.mark.slow
def test_after_ten_thousand_steps_all_but_the_plain_update_are_orthogonal(tmp_path: Path) -> None:
    """Under 1e-4 in float32 and 1e-11 in float64, as the full study has it; and the printed growth of the plain one."""
    outcome = run(tmp_path, rows=("plain", "full-capacity", "scornn"))
    checked = study.claims(outcome.measured)
    assert len(checked) == 9
    assert all(holds for _, holds in checked), checked
