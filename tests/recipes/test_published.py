"""The numbers that the paper prints, typed as it prints them."""

from __future__ import annotations

import pytest

from statewise.errors import ArgumentError
from statewise.recipes.published import MOS_STAGES, SIZES, TABLE3, TABLE4, TABLE5, Tables, published, rows
from statewise.transforms.laws import LAWS


@pytest.mark.parametrize("table", [TABLE3, TABLE4], ids=["table3", "table4"])
def test_a_table_has_every_law_with_and_without_dropout_at_both_sizes(table: Tables) -> None:
    wanted = {"none", "dropout", *LAWS, *(f"dropout+{law}" for law in LAWS)}
    assert set(rows(table)) == wanted
    assert set(table) == {(size, row) for size in SIZES for row in wanted}


@pytest.mark.parametrize(
    ("table", "size", "row", "gamma", "valid", "test"),
    [
        (TABLE3, "medium", "none", None, 115, 109),
        (TABLE3, "medium", "gaussian", 1.10, 76.2, 71.8),
        (TABLE3, "medium", "bernoulli", 0.41, 75.7, 71.4),
        (TABLE3, "medium", "chi-square", 1.50, 84.5, 80.7),
        (TABLE3, "medium", "dropout", None, 80.2, 77.0),
        (TABLE3, "medium", "dropout+gaussian", 0.53, 73.4, 70.4),
        (TABLE3, "medium", "dropout+beta", 0.20, 73.0, 69.2),
        (TABLE3, "large", "gaussian", 1.37, 73.2, 69.1),
        (TABLE3, "large", "dropout+gumbel", 0.92, 70.2, 67.1),
        (TABLE4, "medium", "gaussian", 1.00, 92.7, 87.8),
        (TABLE4, "medium", "dropout", None, 88.7, 84.8),
        (TABLE4, "large", "dropout+bernoulli", 0.64, 80.8, 76.8),
        (TABLE4, "large", "chi-square", 1.50, 99.0, 92.9),
    ],
)
def test_a_cell_holds_what_the_paper_prints(
    table: Tables, size: str, row: str, gamma: float | None, valid: float, test: float
) -> None:
    found = published(table, size, row)
    assert (found.gamma, found.valid, found.test) == (gamma, valid, test)


def test_the_gains_that_the_paper_quotes_follow_from_the_cells() -> None:
    def gain(table: Tables, before: tuple[str, str], after: tuple[str, str]) -> float:
        first, then = table[before].test, table[after].test
        assert first is not None
        assert then is not None
        return round(100 * (1 - then / first), 1)

    assert gain(TABLE3, ("medium", "none"), ("large", "bernoulli")) == 37.3
    assert gain(TABLE4, ("medium", "none"), ("large", "beta")) == 39.0
    assert gain(TABLE3, ("large", "dropout"), ("large", "dropout+gaussian")) == 12.2
    assert gain(TABLE4, ("medium", "dropout"), ("large", "dropout+bernoulli")) == 9.4
    assert gain(TABLE4, ("medium", "dropout"), ("medium", "dropout+laplace")) == 3.2
    assert gain(TABLE4, ("large", "dropout"), ("large", "dropout+bernoulli")) == 15.6


@pytest.mark.parametrize(
    ("table", "row", "levels"),
    [
        (TABLE3, "bernoulli", (1.200, 1.425, 0.500, 1.000)),
        (TABLE3, "beta", (1.034, 1.225, 0.447, 0.837)),
        (TABLE3, "chi-square", (1.225, 1.095, 0.539, 0.906)),
        (TABLE4, "bernoulli", (0.923, 1.200, 1.000, 0.750)),
        (TABLE4, "beta", (0.894, 1.225, 0.316, 0.775)),
        (TABLE4, "chi-square", (0.447, 1.225, 0.447, 0.539)),
    ],
)
def test_the_levels_are_those_standard_deviations(table: Tables, row: str, levels: tuple[float, ...]) -> None:
    cells = [("medium", row), ("large", row), ("medium", f"dropout+{row}"), ("large", f"dropout+{row}")]
    found = []
    for cell in cells:
        gamma = table[cell].gamma
        assert gamma is not None
        found.append(round(LAWS[row].std(gamma), 3))
    assert tuple(found) == levels


def test_the_suspicious_cells_are_marked() -> None:
    marked = [(size, row) for (size, row), cell in (*TABLE3.items(), *TABLE4.items()) if cell.doubtful]
    assert marked == [("large", "none")] * 2


def test_table_5_ends_with_the_paper_and_what_it_builds_on() -> None:
    found = [(cell.valid, cell.test) for _, cell in TABLE5.values()]
    assert len(found) == 11
    assert found[-2:] == [(48.3, 47.7), (48.4, 47.6)]
    assert (MOS_STAGES["trained"].test, MOS_STAGES["dynamic evaluation"].valid) == (56.18, 49.03)


@pytest.mark.parametrize(("size", "row", "wanted"), [("huge", "none", "medium, large"), ("large", "cauchy", "gumbel")])
def test_an_unknown_size_or_row_lists_the_known(size: str, row: str, wanted: str) -> None:
    with pytest.raises(ArgumentError, match=wanted):
        published(TABLE3, size, row)
