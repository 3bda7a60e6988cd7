"""Theorem 1 of Ziv 2019, measured: the exact ranks of almost all circuits of one and of two layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from statewise.memory.counts import theorem1
from statewise.memory.rank_table_rows import VERDICTS as BOUND
from statewise.memory.rank_table_rows import RankRow, RankTable
from statewise.recipes.lines import Sheet, group
from statewise.recipes.memory_ranks import RankStudy, agreeing, rows_of, table_of
from statewise.recipes.published_memory import SHORT2, THEOREM1, VERDICTS
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, StudyCase, verdicts


class Theorem1(RankStudy):
    """For one and two layers: how many shapes meet and exceed the bound of the theorem, beside what is known."""

    name = "depth-memory/theorem1"
    title = "Separation ranks of one and two layers (Theorem 1)"
    rows = ("L1", "L2")
    usual_rows = rows
    sizes = ("shallow",)
    seconds = 5.0

    def compute(self, case: StudyCase, data: Any) -> Computed:
        made = super().compute(case, data)
        # The theorem says more of one layer than the conjecture does.
        table = RankTable(depth=case.settings.depth, rows=rows_of(made.found))
        return replace(made, found={**made.found, **dict(zip(BOUND, against_theorem(table), strict=True))})

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = [
            "L",
            "whose",
            "shapes",
            "equal",
            "larger",
            "violated",
            "rank = min{U1, U2}",
            "cells equal",
            "seconds",
        ]
        rows = []
        for line, runs in group(measured).items():
            table = table_of(runs[:1])
            same, known = agreeing(table, THEOREM1) if table.depth == 2 else (0, 0)
            told = [len(table.rows), *against_theorem(table), runs[0].found["reached"]]
            cells = f"{same} of {known}" if known else "-"
            rows.append([line.row[1:], "ours", *map(str, told), cells, f"{runs[0].found['rank_seconds']:.1f}"])
            counts = VERDICTS[table.depth, line.size]
            whose = "reference (not comparable)" if request.smoke else "reference"
            reached = sum(counts) - (len(SHORT2) if table.depth == 2 else 0)
            rows.append([line.row[1:], whose, str(sum(counts)), *map(str, counts), str(reached), "-", "-"])
        return Sheet(columns, rows, 2)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "All shapes with M up to 5, R up to 6, T up to 10 and halves of at most 260 words; one-hot inputs. Ranks "
            "are exact, over finite fields, of random weights: what is found is a proved lower bound for almost all "
            "real weights. Equal, larger, violated: against min{R, M^(T/2)} for one layer and ms(min{M, R}, T/2) for "
            "two. The thesis computes no ranks: the reference is an earlier implementation. The seconds are those of "
            "computing, on all processes together.",
            *verdicts(claims(measured)),
        ]


def expected(row: RankRow) -> int:
    """What the theorem says of a shape.

    Args:
        row: of one or two layers.
    """
    return theorem1(M=row.inputs, R=row.width, T=row.steps, L=row.depth)


def against_theorem(table: RankTable) -> tuple[int, int, int]:
    """How many shapes meet, exceed and violate the theorem.

    Args:
        table: of one or two layers.
    """
    gaps = [row.rank - expected(row) for row in table.rows]
    return sum(gap == 0 for gap in gaps), sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What is known, and whether it is so; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    tables = {one.line.row: table_of([one]) for one in measured if not one.smoke}
    answers = []
    if (table := tables.get("L1")) is not None:
        counts = against_theorem(table)
        text = f"L = 1: the rank is min{{R, M^(T/2)}} in all {len(table.rows)} shapes, as proved"
        answers.append((text, counts == VERDICTS[1, "shallow"]))
    if (table := tables.get("L2")) is not None:
        counts = against_theorem(table)
        text = f"L = 2: no shape is below ms(min{{M, R}}, T/2), as proved ({counts[0]} equal, {counts[1]} larger)"
        answers.append((text, counts == VERDICTS[2, "shallow"]))
        trivial = all(
            (row.rank == expected(row)) == (row.inputs == 1 or row.width == 1 or row.steps == 2) for row in table.rows
        )
        answers.append(("L = 2: the bound is met with equality only if M = 1, R = 1 or T = 2", trivial))
        short = {row.shape: (row.rank, row.upper) for row in table.short}
        answers.append(
            ("L = 2: the rank is min{U1, U2} but for (M, R, T) = (3, 4, 10), 220 and not 224", short == SHORT2)
        )
        proved = all(row.proved for row in table.rows)
        answers.append(("L = 2: every rank, that one too, meets the sharper upper bound: all are proved", proved))
        same, known = agreeing(table, THEOREM1)
        answers.append((f"L = 2: {same} of {known} known ranks are found again", same == known))
    return answers


RECIPES = (Theorem1(),)
