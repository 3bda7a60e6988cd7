"""Pictures of bounds show what they are given, are the same bytes twice, and refuse what cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.report.figures_bounds import (
    plot_against_truth,
    plot_certificates,
    plot_gaps,
    plot_growth,
    plot_margins,
    plot_penalties,
    plot_powers,
)

DRAWN: dict[str, Callable[[Any], Any]] = {
    "powers": lambda path: plot_powers({"β < 1": {"Theorem 2": {"printed": 0.0, "tanh": 0.02}}}, path),
    "growth": lambda path: plot_growth({"β = 1": {"kl": [-3.0, -2.0]}}, [1, 10], path),
    "penalties": lambda path: plot_penalties({"toy": {"kl": -2.7, "(4)": 140.0}}, path),
    "certificates": lambda path: plot_certificates({"net": {"kl": 0.004, "dudley": 1.0}}, path, errors={"net": 0.01}),
    "gaps": lambda path: plot_gaps({"law": {"paid": [0.1, 0.2], "unpaid": [-0.1, 0.1]}}, path),
    "margins": lambda path: plot_margins({"net": {"counts": [1, 3], "edges": [-0.5, 0.0, 0.5]}}, path),
    "truth": lambda path: plot_against_truth({"1": [(0.03, 0.0)], "2": [(0.05, 0.01)]}, path, reference={"1": 0.03}),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_numbers_are_the_same_bytes(tmp_path: Path, name: str) -> None:
    for file in ("one.png", "two.png"):
        DRAWN[name](tmp_path / file)
    one = (tmp_path / "one.png").read_bytes()
    assert one.startswith(b"\x89PNG")
    assert one == (tmp_path / "two.png").read_bytes()


def test_bars_are_as_high_as_their_numbers() -> None:
    figure = plot_powers({"one": {"a": {"x": 1.0, "y": 2.0}, "b": {"y": 3.0}}, "two": {"a": {"x": 4.0}}})
    first, second = figure.axes
    assert sorted(bar.get_height() for bar in first.patches) == [1.0, 2.0, 3.0]
    assert [bar.get_height() for bar in second.patches] == [4.0]
    assert [text.get_text() for text in first.get_xticklabels()] == ["a", "b"]
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["x", "y"]


def test_bars_beyond_the_picture_are_cut_and_told() -> None:
    (axes,) = plot_penalties({"net": {"(3a)": 142.4, "kl": -2.0}}, highest=6).axes
    tops = sorted(bar.get_y() + bar.get_height() for bar in axes.patches)
    assert tops == pytest.approx([-2.0, 6.0])
    assert "142" in axes.texts[0].get_text()
    assert len(axes.texts) == 1


def test_curves_end_at_the_top_and_the_line_of_one_is_there() -> None:
    (axes,) = plot_growth({"β = 1.5": {"kl": [-4.0, 2.0], "(4)": [1.0, 400.0]}}, [1, 100], highest=50).axes
    assert axes.get_ylim() == (-5.0, 50.0)
    assert axes.get_xscale() == "log"
    assert [line.get_label() for line in axes.lines[:2]] == ["kl", "(4)"]
    assert list(axes.lines[2].get_ydata()) == [0, 0]
    with pytest.raises(ArgumentError, match="one for each t"):
        plot_growth({"β": {"kl": [1.0]}}, [1, 2])


def test_certificates_stand_beside_the_error() -> None:
    figure = plot_certificates({"net": {"kl": 0.25, "dudley": 1.0}, "other": {"kl": 0.5}}, errors={"net": 0.1})
    first, second = figure.axes
    assert [bar.get_width() for bar in first.patches] == [0.25, 1.0]
    assert first.lines[0].get_xdata()[0] == 0.1
    assert not second.lines, "no error, no line"
    assert "test error 0.1" in first.get_title()


def test_the_share_that_fails_is_told() -> None:
    (axes,) = plot_gaps({"law": {"paid": [0.1, 0.2, 0.3, 0.4], "unpaid": [-0.1, -0.2, -0.1, 0.1]}}).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["paid: 0.0% fail", "unpaid: 75.0% fail"]
    assert sum(bar.get_height() for bar in axes.patches) == 8


def test_a_true_error_of_zero_is_at_the_bottom() -> None:
    (axes,) = plot_against_truth({"1": [(0.04, 0.0), (0.05, 0.01)]}).axes
    certificates, errors = (list(line.get_ydata()) for line in axes.lines)
    assert certificates == [0.04, 0.05]
    assert errors == [0.01 / 4, 0.01]


@pytest.mark.parametrize("plot", [plot_powers, plot_penalties, plot_certificates, plot_gaps, plot_against_truth])
def test_nothing_cannot_be_drawn(plot: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        plot({})
    with pytest.raises(ArgumentError, match="at least one"):
        plot_growth({}, [1])


def test_histograms_are_densities() -> None:
    (axes,) = plot_margins({"net": {"counts": [1, 3], "edges": [-0.5, 0.0, 0.5]}}).axes
    (steps,) = axes.patches
    values, edges, _ = steps.get_data()
    assert list(values) == pytest.approx([0.5, 1.5])
    assert list(edges) == [-0.5, 0.0, 0.5]
