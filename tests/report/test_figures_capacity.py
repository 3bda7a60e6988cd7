from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capacities import tried
from statewise.report.figures_capacity import plot_capacity
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.network_capacity import NetworkCapacity

pytest.importorskip("matplotlib")


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


def test_one_budget_has_labels_on_its_axis_and_its_networks_lie_close(tmp_path: Path) -> None:
    networks = tuple(replace(network(depth, 8, True, False), parameters=16000 + 100 * depth) for depth in (1, 2, 3))
    left, _ = plot_capacity(CapacityResult(search={}, networks=networks)).axes
    least, most = left.get_xlim()
    assert any(least <= tick <= most for tick in left.get_xticks())
    assert 200 < (most - least) / 50
    assert left.get_xscale() == "linear"
    wide = (network(1, 8, True), network(1, 80, True))
    assert plot_capacity(CapacityResult(search={}, networks=wide)).axes[0].get_xscale() == "log"
