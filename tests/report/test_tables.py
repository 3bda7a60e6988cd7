"""Tables and pictures of what was measured."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from statewise.errors import ArgumentError, MissingExtraError, ShapeError
from statewise.report import Table, plot_curves
from statewise.report.comparison import difference

TABLE = Table(columns=("row", "test"), rows=[("none", "109.0"), ("a|b", "71.8")], title="PTB", notes=("One run.",))


def printed(table: Table, width: int) -> str:
    page = io.StringIO()
    table.print(Console(file=page, width=width))
    return page.getvalue()


def test_markdown_has_title_columns_rows_and_notes() -> None:
    assert TABLE.markdown().splitlines() == [
        "# PTB",
        "",
        "| row | test |",
        "| :--- | ---: |",
        "| none | 109.0 |",
        "| a\\|b | 71.8 |",
        "",
        "One run.",
    ]


def test_a_terminal_gets_every_cell_however_narrow_it_is() -> None:
    for width in (80, 12):
        said = printed(TABLE, width)
        assert "109.0" in said
        assert "One run." in said.replace("\n", " ")


def test_square_brackets_are_no_commands_to_the_terminal() -> None:
    assert "[bold]" in printed(Table(columns=("row",), rows=[("[bold]",)]), 40)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ShapeError, match="1 cells"):
        Table(columns=("a", "b"), rows=[("1",)])


def test_a_difference_is_above_or_below() -> None:
    assert difference(80.0, 100.0) == "-20.0 %"
    assert difference(101.0, 100) == "+1.0 %"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_curves_are_drawn_into_a_file(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    curves = {"none": [120.0, 110.0], "gaussian": [100.0]}
    path = plot_curves(curves, tmp_path / f"curves.{ending}", dashed={"none": [90.0, 60.0]})
    assert path.stat().st_size > 1000


def test_a_format_that_matplotlib_does_not_have_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ArgumentError, match="png"):
        plot_curves({"none": [1.0]}, tmp_path / "curves.doc")


def test_no_points_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        plot_curves({"none": []}, tmp_path / "curves.png")


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"statewise\[report\]"):
        plot_curves({"none": [1.0]}, tmp_path / "curves.png")
    assert not (tmp_path / "curves.png").exists()
