"""Charts: where values stand, what is said of them in words, and that nothing leaves its drawing."""

from __future__ import annotations

import math
import re

import pytest

from report.html.gallery import curves
from report.html.reading import Node, read
from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.report.html import (
    Bar,
    Figure,
    Points,
    Series,
    bar_chart,
    heat_map,
    line_chart,
    reliability_chart,
    scatter_chart,
    sparkline,
)
from statewise.report.html.axes import Axis, covering


def tree(figure: Figure, *, narrow: bool = False) -> Node:
    drawing = figure.narrow if narrow else figure.svg
    assert drawing is not None
    return read(drawing.content)


@pytest.mark.parametrize("low", [0.0, -3.2, 17.0, 1e-6, 123456.0])
@pytest.mark.parametrize("width", [1e-3, 0.7, 12.0, 1e5])
def test_ticks_are_round_rising_and_within_the_axis(low: float, width: float) -> None:
    axis = covering([low, low + width], start=0, end=500)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 10
    assert ticks == sorted(set(ticks))
    assert all(axis.low <= tick <= axis.high for tick in ticks)
    assert axis.low <= low
    assert low + width <= axis.high + 1e-9 * width


def test_ticks_of_a_logarithmic_axis_are_powers() -> None:
    assert Axis(low=0.9, high=2000, start=0, end=1, log=True).ticks() == [1, 3, 10, 30, 100, 300, 1000]
    with pytest.raises(ArgumentError, match="above 0"):
        Axis(low=0, high=1, start=0, end=1, log=True)


def test_places_that_are_counted_get_no_broken_ticks() -> None:
    assert covering([1, 2], start=0, end=9, tight=True).ticks() == [1, 2]
    assert covering([3], start=0, end=9, tight=True).ticks() == [3]


def test_a_line_is_broken_where_a_value_is_not_finite() -> None:
    y = [1.0, 2.0, math.nan, 3.0, 4.0, math.inf, 5.0]
    figure = line_chart([Series(name="a", x=range(7), y=y)], title="T", x="x", y="y")
    (path,) = [node for node in tree(figure).all("path") if "line" in (node.attributes["class"] or "")]
    assert (path.attributes["d"] or "").count("M") == 2  # the last point stands alone: it has a mark only
    assert len(tree(figure).all("circle")) == 5
    assert figure.table is not None
    assert [row[1] for row in figure.table.rows][2:6:3] == ["not a number", "∞"]


def test_series_differ_by_dash_and_mark_too() -> None:
    lines = tree(line_chart(curves(6), title="T", x="x", y="y")).all("path", "line")
    drawn = {
        (node.attributes["class"], node.attributes.get("stroke-dasharray"))
        for node in lines
        if (node.attributes["class"] or "").startswith("line")
    }
    assert len({dash for _, dash in drawn}) == 6
    assert len({colour for colour, _ in drawn}) == 6


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [1e-12, 1e12], [-2.0, 3.0]])
def test_everything_is_inside_its_drawing(values: list[float], narrow: bool) -> None:
    figures = [
        line_chart([Series(name="a", x=range(len(values)), y=values)], title="T", x="x", y="y"),
        scatter_chart([Points(name="a", x=values, y=values)], title="T", x="x", y="y", diagonal=True),
    ]
    if values:
        figures.append(
            bar_chart([Bar(label="b", value=v, low=v - 1, high=v + 1) for v in values], title="T", value="v")
        )
    for figure in figures:
        drawing = figure.narrow if narrow else figure.svg
        assert drawing is not None
        for node in read(drawing.content).all():
            for key, limit in (
                ("x", drawing.width),
                ("cx", drawing.width),
                ("y", drawing.height),
                ("y2", drawing.height),
            ):
                if key in node.attributes and "transform" not in node.attributes:
                    assert -1 <= float(node.attributes[key] or 0) <= limit
        assert not re.search(r'"[^"]*(nan|inf)[^"]*"', drawing.content)


def test_a_bar_with_its_interval_is_said_in_words_and_numbers() -> None:
    figure = bar_chart([Bar(label="a", value=0.5, low=0.4, high=0.7)], title="T", value="accuracy")
    assert figure.alt == "Bar chart of accuracy. a: 0.5."
    assert figure.table is not None
    assert figure.table.rows == [("a", "0.5", "0.4 to 0.7")]


def test_bars_below_zero_go_to_the_left() -> None:
    figure = bar_chart([Bar(label="a", value=-1.0), Bar(label="b", value=1.0)], title="T", value="v")
    below, above = [node for node in tree(figure).all("rect") if "bar" in (node.attributes["class"] or "")]
    edge = float(below.attributes["x"] or 0) + float(below.attributes["width"] or 0)
    assert edge == pytest.approx(float(above.attributes["x"] or 0), abs=0.1)


def test_the_cells_of_a_small_map_hold_their_numbers_and_a_large_one_only_colours() -> None:
    small = heat_map([[0.0, 1.0]], rows=["r"], columns=["a", "b"], title="T", what="share")
    assert {"0", "1.00"} <= {node.text for node in tree(small).all("text")}
    names = [str(number) for number in range(40)]
    large = heat_map([[0.25] * 40], rows=["r"], columns=names, title="T", what="share", low=0, high=1)
    assert not any(node.text == "0.25" for node in tree(large).all("text"))
    assert large.table is not None
    assert large.table.rows[0][1] == "0.25"


def test_a_missing_value_of_a_map_has_no_colour() -> None:
    figure = heat_map([[math.nan, 1.0]], rows=["r"], columns=["a", "b"], title="T", what="share")
    assert len([node for node in tree(figure).all("rect") if node.attributes["class"] == "cell absent"]) == 1


def test_empty_bins_are_left_out_of_a_reliability_diagram() -> None:
    figure = reliability_chart([0.5, 0.9], [0.4, math.nan], [10, 0], title="T")
    assert len(tree(figure).all("circle")) == 1
    assert "10 predictions in 1 bins" in figure.alt


def test_a_sparkline_leaves_out_what_is_not_finite() -> None:
    (line,) = read(sparkline([1.0, math.nan, 2.0]).content).all("polyline")
    assert len(re.findall(r",", line.attributes["points"] or "")) == 2
    assert not read(sparkline([math.nan]).content).all()


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(LengthError, match="one for each x"):
        Series(name="a", x=[1, 2], y=[1])
    with pytest.raises(ArgumentError, match="low and high"):
        Series(name="a", x=[1], y=[1], low=[0])
    with pytest.raises(ShapeError, match="as there are names"):
        heat_map([[1.0]], rows=["r"], columns=["a", "b"], title="T", what="w")
    with pytest.raises(ArgumentError, match="one line or more"):
        line_chart([], title="T", x="x", y="y")
