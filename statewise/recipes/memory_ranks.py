"""What the studies of separation ranks share: batches of shapes, computed once, on several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.errors import ArgumentError
from statewise.memory.rank_table import rank_table
from statewise.memory.rank_table_cases import BATCHES, Shape
from statewise.memory.rank_table_rows import RankRow, RankTable
from statewise.recipes.lines import Line
from statewise.recipes.published_memory import Known, Triple
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, StudyMaker

RANKS = "ranks.jsonl"
#: Of a smoke run.
_FEW: Mapping[str, tuple[Shape, ...]] = {
    name: tuple(shape for shape in shapes if shape.words <= 16)[::7] or shapes[14:15]
    for name, shapes in BATCHES.items()
    if name != "medium"
} | {"medium": (Shape(7, 6, 6),), "large": (Shape(20, 19, 4),)}


@dataclass(frozen=True, kw_only=True)
class RankSettings:
    """A batch of shapes at a depth.

    Args:
        depth: L.
        batch: of :data:`~statewise.memory.rank_table_cases.BATCHES`.
        few: only some of them, to try it out.
        runs: of each shape at most.
        start: "ones" or "drawn".
        seed: of the first run of each.
    """

    depth: int = 3
    batch: str = "small"
    few: bool = False
    runs: int = 2
    start: str = "ones"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batch not in BATCHES:
            raise ArgumentError(where="RankSettings.batch", got=self.batch, wanted=f"one of {', '.join(BATCHES)}")
        if self.depth < 1 or self.runs < 1:
            got = f"{self.depth} layers, {self.runs} runs"
            raise ArgumentError(where="RankSettings", got=got, wanted="at least one of each")

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Which they are."""
        return (_FEW if self.few else BATCHES)[self.batch]


class RankStudy(Study):
    """A study whose cases are batches of shapes at a depth; rows are depths such as ``L3``."""

    options = {"processes": 2}  # noqa: RUF012

    def made_with(self, request: Request, seeds: Sequence[int]) -> str:
        return f"Seeds: {', '.join(map(str, seeds)) or 'none'}. Arithmetic is exact, modulo primes."

    def settings(self, line: Line, *, smoke: bool) -> RankSettings:
        return RankSettings(depth=int(line.row[1:]), batch=line.size, few=smoke)

    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> StudyMaker:
        made = super().maker(request, folder, data=data, device=device, console=console)
        made.data = {"folder": folder, "processes": 1 if request.smoke else self.option(request, "processes")}
        return made

    def compute(self, case: StudyCase, data: Any) -> Computed:
        settings: RankSettings = case.settings
        # The table has a file of its own, so that a study that is killed goes on in the middle of a batch.
        path = Path(data["folder"]) / case.name / RANKS
        table = rank_table(
            settings.shapes,
            depth=settings.depth,
            path=path,
            jobs=data["processes"],
            runs=settings.runs,
            seed=settings.seed,
            start=settings.start,
        )
        return Computed(found=found_of(table))


def found_of(table: RankTable) -> dict[str, Any]:
    """A table as a file holds it.

    Args:
        table: finished.
    """
    return {
        "depth": table.depth,
        "shapes": len(table.rows),
        **table.verdicts,
        "repaired_violated": sum(not row.repaired_holds for row in table.rows),
        "reached": len(table.rows) - len(table.short),
        "rank_seconds": round(sum(row.seconds for row in table.rows), 3),
        "columns": [field.name for field in fields(RankRow)],
        "rows": [[getattr(row, field.name) for field in fields(RankRow)] for row in table.rows],
    }


def table_of(measured: Sequence[Studied]) -> RankTable:
    """The rows of finished batches of one depth as one table.

    Args:
        measured: at least one.
    """
    rows = [row for one in measured for row in rows_of(one.found)]
    return RankTable(depth=int(measured[0].found["depth"]), rows=tuple(rows))


def rows_of(found: Mapping[str, Any]) -> tuple[RankRow, ...]:
    """The rows that :func:`found_of` gave.

    Args:
        found: the numbers of a case.
    """
    rows = []
    for values in found["rows"]:
        held: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else one
            for name, one in zip(found["columns"], values, strict=True)
        }
        rows.append(RankRow(**held))
    return tuple(rows)


def agreeing(table: RankTable, known: Mapping[Triple, Known]) -> tuple[int, int]:
    """How many ranks equal the known ones, and of how many something is known.

    Args:
        table: finished.
        known: by shape.
    """
    pairs = [(row.rank, known[row.shape].rank) for row in table.rows if row.shape in known]
    return sum(ours == theirs for ours, theirs in pairs), len(pairs)
