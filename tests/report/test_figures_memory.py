"""Pictures of ranks show what they are given, are the same bytes twice, and refuse what cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.memory.rank_table import rank_table
from statewise.memory.rank_table_rows import RankRow
from statewise.report.figures_memory import plot_against_conjecture, plot_deficits, plot_rank_growth


@cache
def rows() -> tuple[RankRow, ...]:
    """One that violates the conjecture, one that meets it, one above it."""
    return rank_table([(6, 5, 4), (3, 3, 4), (2, 2, 6)], depth=3).rows


def short() -> list[RankRow]:
    return [rows()[0], replace(rows()[1], rank=5), replace(rows()[2], rank=4)]


DRAWN: dict[str, Callable[[Any], Any]] = {
    "growth": lambda path: plot_rank_growth({"M = 2": {"L = 2": {4: 4, 6: 8}}}, path),
    "conjecture": lambda path: plot_against_conjecture({"L = 3": rows()}, path),
    "deficits": lambda path: plot_deficits(short(), path),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_numbers_are_the_same_bytes(tmp_path: Path, name: str) -> None:
    for file in ("one.png", "two.png"):
        DRAWN[name](tmp_path / file)
    one = (tmp_path / "one.png").read_bytes()
    assert one.startswith(b"\x89PNG")
    assert one == (tmp_path / "two.png").read_bytes()


def test_curves_are_the_ranks_and_their_bounds_are_dashed() -> None:
    ranks = {"M = 2": {"L = 1": {6: 2, 4: 2}, "L = 2": {4: 4, 6: 8}}, "M = 3": {"L = 1": {4: 3}}}
    figure = plot_rank_growth(ranks, bounds={"M = 2": {"L = 2": {4: 3, 6: 4}}})
    first, second = figure.axes
    assert [line.get_ydata().tolist() for line in first.lines] == [[2, 2], [4, 8], [3, 4]]
    assert [line.get_linestyle() for line in first.lines] == ["-", "-", "--"]
    assert first.lines[1].get_color() == first.lines[2].get_color()
    assert len(second.lines) == 1
    assert first.get_yscale() == "log"


def test_points_below_the_line_are_those_that_violate() -> None:
    upper, lower = plot_against_conjecture({"L = 3": rows()}).axes
    shown = {line.get_label(): line.get_ydata().tolist() for line in upper.lines[1:]}
    assert shown == {"equal: 1": [1.0], "larger: 1": [8 / 7], "violated: 1": [30 / 35]}
    assert min(value for line in lower.lines for value in line.get_ydata()) >= 1.0


def test_deficits_are_grouped_by_width() -> None:
    (axes,) = plot_deficits(short()).axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [[4], [4]]
    assert [line.get_label() for line in axes.lines] == ["L = 3, R = 2 (1 shapes)", "L = 3, R = 3 (1 shapes)"]


def test_nothing_cannot_be_drawn() -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        plot_rank_growth({})
    with pytest.raises(ArgumentError, match="at least one"):
        plot_rank_growth({"M = 2": {}})
    with pytest.raises(ArgumentError, match="at least one"):
        plot_against_conjecture({"L = 3": ()})
    with pytest.raises(ArgumentError, match="none below"):
        plot_deficits(rows())
