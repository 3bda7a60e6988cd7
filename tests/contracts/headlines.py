"""The rows 'published | ours' of the pages of the papers, made of the files of the runs and of nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from contracts.study_pages import RESULTS

ABSENT = "-"
Run = dict[str, Any]


@dataclass(frozen=True)
class Headline:
    """A row of a page: what was measured, what the paper has, what we have, and how the two compare.

    Args:
        what: the network and the data.
        measure: what is counted.
        published: the paper's number, or that there is none.
        ours: the number of our runs.
        verdict: "reached", "missed by ...", or in words.
        first: whether it is on the page of all papers, too.
    """

    what: str
    measure: str
    published: str
    ours: str
    verdict: str
    first: bool = False

    @property
    def cells(self) -> list[str]:
        return [self.what, self.measure, self.published, self.ours, self.verdict]


@cache
def kept(page: str) -> list[dict[str, Any]]:
    """The results that a page of results is made of."""
    found: list[dict[str, Any]] = json.loads((RESULTS / f"{page}.json").read_text(encoding="utf-8"))["results"]
    return found


def runs(page: str, recipe: str, **wanted: str) -> list[Run]:
    """The runs of a recipe whose fields are those that are wanted, made with the settings of the recipe's own page."""
    found = [run for result in kept(page) if result["recipe"] == f"{page}/{recipe}" for run in result["runs"]]
    return [run for run in found if all(run[name] == value for name, value in wanted.items())]


def below(published: float, ours: float, digits: int) -> str:
    """The verdict of a number that should be small, as a share: perplexities."""
    missed = round(ours, digits) > published
    return f"missed by {100 * (ours / published - 1):.1f} %" if missed else "reached"


def points(published: float, ours: float, digits: int, *, low: bool = False) -> str:
    """The verdict of a number in points, which should be large unless it is said to be low."""
    short = round(ours, digits) - published if low else published - round(ours, digits)
    return f"missed by {short:.{digits}f}" if round(short, digits) > 0 else "reached"


def costs(page: str) -> list[list[str]]:
    """For each recipe: how many runs are kept, their seconds, and on what they were made."""
    rows: dict[str, tuple[int, float, dict[str, None]]] = {}
    for result in kept(page):
        count, seconds, machines = rows.get(result["recipe"], (0, 0.0, {}))
        count, seconds = count + len(result["runs"]), seconds + sum(run["seconds"] for run in result["runs"])
        rows[result["recipe"]] = count, seconds, {**machines, result["device"]: None}
    return [
        [f"`{name}`", str(count), f"{seconds:,.0f}", "; ".join(machines)]
        for name, (count, seconds, machines) in rows.items()
    ]
