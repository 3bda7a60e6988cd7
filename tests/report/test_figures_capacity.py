from __future__ import annotations

from pathlib import Path

import pytest

from statewise.report.figures_capacity import plot_capacity
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.network_capacity import NetworkCapacity
from statewise.sweep.trial import Outcome
from statewise.sweep.tries import Run, Try

pytest.importorskip("matplotlib")


def tried(value: int, accuracy: float) -> Try:
    outcome = Outcome(
        accuracy=accuracy,
        loss=0.1,
        best_iteration=1,
        iterations=1,
        reason="converged",
        seconds=1.0,
        orthogonality=0.0,
    )
    return Try(value=value, runs=(Run(lr=1e-3, lr_recurrent=1e-4, seed=0, folder="run", outcome=outcome),))


def network(depth: int, width: int, *solved: bool) -> NetworkCapacity:
    return NetworkCapacity(
        depth=depth,
        width=width,
        size=None,
        parameters=100 * depth * width,
        thesis_parameters=90 * depth * width,
        values=(5, 10, 20)[: len(solved)],
        tries=tuple(tried(value, 1.0 if each else 0.5) for value, each in zip((5, 10, 20), solved, strict=False)),
        seconds=1.0,
    )


def test_both_panels_have_a_line_for_each_depth_and_marks_for_what_is_open(tmp_path: Path) -> None:
    networks = (network(1, 8, False, False), network(1, 4, True, False), network(2, 8, True, True, True))
    figure = plot_capacity(CapacityResult(search={}, networks=networks), tmp_path / "plot.png", hardness="delay")
    assert (tmp_path / "plot.png").stat().st_size > 1000
    left, right = figure.axes
    assert (left.get_xlabel(), right.get_xlabel(), left.get_ylabel()) == ("parameters", "channels of a layer", "delay")
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["depth 1", "depth 2"]
    for axes, places in ((left, (400, 800, 1600)), (right, (4, 8, 8))):
        drawn = {
            (line.get_color(), line.get_marker()): list(zip(*line.get_data(), strict=True)) for line in axes.get_lines()
        }
        assert drawn[("C0", "o")] == [(places[0], 5)]
        assert drawn[("C0", "x")] == [(places[1], 5)]  # at the bottom
        assert drawn[("C1", "o")] == drawn[("C1", "^")] == [(places[2], 20)]
        assert not drawn.get(("C0", "^"))
        assert ("C1", "x") not in drawn
