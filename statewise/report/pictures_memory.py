"""The pictures of the studies of separation ranks, drawn from their finished cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from statewise.recipes import Outcome
from statewise.recipes.memory_conjecture import by_depth
from statewise.recipes.memory_ranks import table_of
from statewise.recipes.memory_theorem1 import expected
from statewise.recipes.studies import Studied
from statewise.report.figures_memory import plot_against_conjecture, plot_deficits, plot_rank_growth

#: M and R of the panels, if they were made.
_SHOWN = ((2, 2), (3, 3), (4, 4))


def _growth(outcome: Outcome, folder: Path) -> list[Path]:
    ranks: dict[str, dict[str, dict[int, int]]] = {}
    bounds: dict[str, dict[str, dict[int, int]]] = {}
    for one in cast("list[Studied]", outcome.measured):
        for row in table_of([one]).rows:
            if (row.inputs, row.width) in _SHOWN:
                title, name = f"M = {row.inputs}, R = {row.width}", f"L = {row.depth}"
                ranks.setdefault(title, {}).setdefault(name, {})[row.steps] = row.rank
                bounds.setdefault(title, {}).setdefault(name, {})[row.steps] = expected(row)
    if not ranks:
        return []
    plot_rank_growth(ranks, folder / "theorem1.png", bounds=bounds)
    return [folder / "theorem1.png"]


def _conjecture(outcome: Outcome, folder: Path) -> list[Path]:
    batches = by_depth(cast("list[Studied]", outcome.measured))
    tables = {f"L = {row[1:]}": table_of(cases).rows for row, cases in batches.items()}
    plot_against_conjecture(tables, folder / "conjecture.png")
    rows = [row for table in tables.values() for row in table]
    if not any(row.deficit for row in rows):
        return [folder / "conjecture.png"]
    plot_deficits(rows, folder / "deficits.png")
    return [folder / "conjecture.png", folder / "deficits.png"]


#: What is drawn, by the name of the recipe.
PICTURES: Mapping[str, Callable[[Outcome, Path], list[Path]]] = {
    "depth-memory/theorem1": _growth,
    "depth-memory/conjecture": _conjecture,
}
