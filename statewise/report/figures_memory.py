"""Pictures of separation ranks: how they grow with time and depth, and where the conjecture fails.

================================== =============================
picture                            function
================================== =============================
ranks against the number of steps  :func:`plot_rank_growth`
ranks against what was conjectured :func:`plot_against_conjecture`
what ranks lack of their bound     :func:`plot_deficits`
================================== =============================

Each gives a matplotlib figure, which belongs to nobody and opens no window, and writes it if a path is given. The same
numbers give the same bytes of a PNG file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statewise.errors import ArgumentError
from statewise.memory.rank_table_rows import VERDICTS, RankRow
from statewise.report.pages import new_page, saved

_LOOKS = {"equal": ("o", "C7"), "larger": ("^", "C0"), "violated": ("v", "C3")}


def plot_rank_growth(
    panels: Mapping[str, Mapping[str, Mapping[int, int]]],
    path: Path | str | None = None,
    *,
    bounds: Mapping[str, Mapping[str, Mapping[int, int]]] | None = None,
) -> Any:
    """Ranks against the number of steps on a logarithmic scale, a curve for each depth; bounds are dashed.

    Args:
        panels: by title, by the curve's name: the rank for each number of steps.
        path: a file to write.
        bounds: the same of what is proved or conjectured from below; a bound has the colour of its curve.
    """
    if not panels or not all(panels.values()):
        raise ArgumentError(where="plot_rank_growth.panels", got="nothing", wanted="at least one curve in each")
    figure = new_page(3.6 * len(panels) + 1.4, 3.8)
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (title, curves) in zip(grid, panels.items(), strict=True):
        for number, (name, curve) in enumerate(curves.items()):
            steps = sorted(curve)
            axes.plot(steps, [curve[step] for step in steps], "o-", color=f"C{number % 10}", markersize=4, label=name)
            below = (bounds or {}).get(title, {}).get(name)
            if below:
                steps = sorted(below)
                axes.plot(steps, [below[step] for step in steps], "--", color=f"C{number % 10}", linewidth=1)
        axes.set(title=title, xlabel="steps T", yscale="log")
        axes.grid(visible=True, alpha=0.3)
    grid[0].set_ylabel("separation rank (dashed: bound)")
    grid[-1].legend(fontsize="small")
    return saved(figure, path)


def plot_against_conjecture(panels: Mapping[str, Sequence[RankRow]], path: Path | str | None = None) -> Any:
    """Each shape as a point: its rank over what the conjecture asks for, printed above and repaired below.

    On the line both are equal. Under it the conjecture fails.

    Args:
        panels: by title, the rows of a table.
        path: a file to write.
    """
    if not panels or not all(panels.values()):
        raise ArgumentError(where="plot_against_conjecture.panels", got="nothing", wanted="at least one row in each")
    figure = new_page(4.0 * len(panels) + 0.4, 7.4)
    grid = figure.subplots(2, len(panels), squeeze=False, sharex="col", sharey="row")
    for column, (title, rows) in enumerate(panels.items()):
        upper, lower = grid[0][column], grid[1][column]
        most = max(max(row.conjecture, row.rank) for row in rows)
        for axes in (upper, lower):
            axes.plot([1, most], [1, 1], color="black", linewidth=1)
            axes.grid(visible=True, alpha=0.3)
            axes.set(xscale="log", yscale="log")
        for verdict in VERDICTS:
            shown = [row for row in rows if row.verdict == verdict]
            marker, colour = _LOOKS[verdict]
            for axes, asked in ((upper, "conjecture"), (lower, "repaired")):
                across = [getattr(row, asked) for row in shown]
                up = [row.rank / getattr(row, asked) for row in shown]
                label = f"{verdict}: {len(shown)}"
                axes.plot(across, up, marker, color=colour, markersize=4, alpha=0.7, linestyle="none", label=label)
        upper.set_title(title)
        upper.legend(fontsize="small")
        lower.set_xlabel("what is asked for")
    grid[0][0].set_ylabel("rank / printed conjecture")
    grid[1][0].set_ylabel("rank / repaired conjecture")
    return saved(figure, path)


def plot_deficits(rows: Sequence[RankRow], path: Path | str | None = None) -> Any:
    """By how much each rank that meets no upper bound falls short of the least one, against the number of steps.

    Args:
        rows: of tables; those that meet it are left out.
        path: a file to write.
    """
    short = [row for row in rows if row.deficit]
    if not short:
        raise ArgumentError(where="plot_deficits.rows", got="none below its bounds", wanted="at least one")
    figure = new_page(5.6, 3.6)
    axes = figure.subplots()
    for number, key in enumerate(sorted({(row.depth, row.width) for row in short})):
        own = [row for row in short if (row.depth, row.width) == key]
        label = f"L = {key[0]}, R = {key[1]} ({len(own)} shapes)"
        axes.plot(
            [row.steps for row in own],
            [row.deficit for row in own],
            "o",
            color=f"C{number % 10}",
            alpha=0.6,
            label=label,
        )
    axes.set_xticks(sorted({row.steps for row in short}))
    axes.set(xlabel="steps T", ylabel="min{U1, U2} - rank", ylim=(0, 1.25 * max(row.deficit for row in short)))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")
    return saved(figure, path)
