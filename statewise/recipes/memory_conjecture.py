"""Conjecture 1 of Ziv 2019, tested: exact ranks of deep circuits beside what it asks for, and beside its repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statewise.memory.rank_table_rows import RankTable
from statewise.recipes.lines import Sheet
from statewise.recipes.memory_ranks import RankStudy, agreeing, table_of
from statewise.recipes.published_memory import (
    CONJECTURE,
    DEFICIT,
    FOUR_LAYERS,
    FOUR_LAYERS_VIOLATION,
    NARROW_ALPHABETS,
    REACHED,
    VERDICTS,
    VIOLATIONS,
)
from statewise.recipes.recipe import Pace
from statewise.recipes.request import Request
from statewise.recipes.studies import Studied, StudyCase, verdicts

#: The batches of which something was known.
KNOWN = ("small", "medium", "large")
#: That a batch takes on two cores, roughly.
SECONDS = {"small": 13.0, "medium": 52.0, "large": 135.0, "wide": 20.0}


class Conjecture(RankStudy):
    """For three and more layers: how many shapes meet, exceed and violate the conjecture, printed and repaired."""

    name = "depth-memory/conjecture"
    title = "Separation ranks of deep circuits, and the conjecture (Conjecture 1)"
    rows = ("L3", "L4", "L5")
    usual_rows = ("L3", "L4")
    sizes = (*KNOWN, "wide")

    def pace_of(self, step: StudyCase) -> Pace:
        seconds = SECONDS[step.line.size]
        return Pace(gpu=seconds, cpu=seconds)  # an accelerator is of no use to it

    def complete(self, request: Request) -> Request:
        return super().complete(replace(request, sizes=request.sizes or self.sizes))

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["L", "shapes", "whose", "number", "equal", "larger", "violated", "repaired: violated"]
        columns += ["rank = min{U1, U2}", "cells equal", "seconds"]
        rows = []
        for one in measured:
            rows.append(_ours(one.line.row[1:], one.line.size, [one]))
            counts = VERDICTS.get((one.found["depth"], one.line.size))
            if counts is not None:
                whose = "reference (not comparable)" if request.smoke else "reference"
                rows.append(
                    [one.line.row[1:], one.line.size, whose, str(sum(counts)), *map(str, counts), "0", "-", "-", "-"]
                )
        for row, batches in by_depth(measured).items():
            known = [one for one in batches if one.line.size in KNOWN]
            if len(known) > 1:
                rows.append(_ours(row[1:], "+".join(one.line.size for one in known), known))
            if len(batches) > len(known) > 1:
                rows.append(_ours(row[1:], "all", batches))
        return Sheet(columns, rows, 3)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "One-hot inputs. small: every (M, R, T) with M up to 12, R from 2 to 6 and halves of at most 300 words; "
            "medium: the same with 301 to 1100 words; large: 28 shapes up to 4096 words, mostly with R = M or M - 1, "
            "picked because violations were expected there, so that their share is no rate; wide: R from 7 to 12, "
            "halves of at most 300 words. Equal, larger, violated: against the printed min{ms(min{M, R}, K), M^(T/2)}, "
            "K = ms(T/2, L-1). Repaired: min{ms(min{M, R}, K), U2}. Larger and violated are proved, by a certificate "
            "and by U2. The thesis computes no ranks: the reference is an earlier implementation. The seconds are "
            "those of computing, on all processes together.",
            *verdicts(claims(measured)),
        ]


def by_depth(measured: Sequence[Studied]) -> dict[str, list[Studied]]:
    """The batches of each depth.

    Args:
        measured: finished cases.
    """
    found: dict[str, list[Studied]] = {}
    for one in measured:
        if one.seed == 0:
            found.setdefault(one.line.row, []).append(one)
    return found


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What is known, and whether it is so; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    answers = []
    for row, batches in by_depth([one for one in measured if not one.smoke]).items():
        table = table_of(batches)
        answers += _of_any(table)
        known = [one for one in batches if one.line.size in KNOWN]
        if row == "L3" and len(known) == len(KNOWN):
            answers += _of_three(table_of(known))
        if row == "L4":
            answers += _of_four(table)
    return answers


def _of_any(table: RankTable) -> list[tuple[str, bool]]:
    layers, violated = f"L = {table.depth}", table.violations
    only = all((row.end_cap < row.conjecture) == (row.verdict == "violated") for row in table.rows)
    fails = sum(not row.repaired_holds for row in table.rows)
    return [
        (f"{layers}: no shape of {len(table.rows)} violates the repaired conjecture", fails == 0),
        (
            f"{layers}: {len(violated)} shapes violate the printed conjecture, all with R < M, and all are proved",
            bool(violated) and all(row.width < row.inputs and row.certain for row in violated),
        ),
        (f"{layers}: the printed conjecture fails where U2 is below it, and nowhere else", only),
        (
            f"{layers}: every rank meets the sharper upper bound, so that all are proved for almost all weights",
            all(row.proved for row in table.rows),
        ),
    ]


def _of_three(table: RankTable) -> list[tuple[str, bool]]:
    same, known = agreeing(table, CONJECTURE)
    counts, wanted = (
        tuple(table.verdicts.values()),
        tuple(sum(VERDICTS[3, batch][place] for batch in KNOWN) for place in range(3)),
    )
    violations = {row.shape: (row.rank, row.conjecture) for row in table.violations}
    narrow = [row for row in table.rows if row.inputs <= row.width]
    reached = len(table.rows) - len(table.short)
    deficits = {(row.width, row.deficit) for row in table.short}
    told = " / ".join(map(str, wanted))
    return [
        (f"L = 3: of 248 shapes {told} meet, exceed and violate the printed conjecture", counts == wanted),
        ("L = 3: the violations are the 14 known ones, with their ranks", violations == VIOLATIONS),
        (f"L = 3: {same} of {known} known ranks are found again", same == known),
        (
            f"L = 3: all {len(narrow)} shapes with M <= R satisfy it",
            len(narrow) == NARROW_ALPHABETS and all(row.verdict != "violated" for row in narrow),
        ),
        (
            f"L = 3: the rank is min{{U1, U2}} in {reached} shapes; the others have R = 2 and lack exactly {DEFICIT}",
            reached == REACHED and deficits == {(2, DEFICIT)},
        ),
    ]


def _of_four(table: RankTable) -> list[tuple[str, bool]]:
    shape, known = FOUR_LAYERS_VIOLATION
    found = {tuple(row.shape): (row.rank, row.conjecture) for row in table.violations}
    return [
        (f"L = 4: there are more than the {FOUR_LAYERS} shapes known before", len(table.rows) > FOUR_LAYERS),
        (f"L = 4: (M, R, T) = {shape} has rank {known.rank}, not {known.bound}", found.get(shape) == known),
    ]


def _ours(depth: str, batch: str, measured: Sequence[Studied]) -> list[str]:
    table = table_of(measured)
    same, known = agreeing(table, CONJECTURE) if table.depth == 3 else (0, 0)
    fails = sum(not row.repaired_holds for row in table.rows)
    told = [len(table.rows), *table.verdicts.values(), fails, len(table.rows) - len(table.short)]
    seconds = sum(one.found["rank_seconds"] for one in measured)
    return [depth, batch, "ours", *map(str, told), f"{same} of {known}" if known else "-", f"{seconds:.1f}"]


RECIPES = (Conjecture(),)
