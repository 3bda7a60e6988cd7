"""The studies of separation ranks: their tables, what they claim, and their pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.memory.counts import conjecture, theorem1
from statewise.memory.rank_table import rank_table
from statewise.memory.rank_table_cases import BATCHES
from statewise.recipes import Outcome, Request, find_recipe, reproduce
from statewise.recipes import memory_conjecture as conjectured
from statewise.recipes import memory_theorem1 as proved
from statewise.recipes.lines import Line
from statewise.recipes.memory_ranks import RANKS, RankSettings, found_of, table_of
from statewise.recipes.published_memory import CONJECTURE, THEOREM1, VERDICTS, VIOLATIONS
from statewise.recipes.studies import Studied
from statewise.report import compare_with_published
from statewise.report.pictures_memory import PICTURES

DRAWN = {"theorem1": {"theorem1.png"}, "conjecture": {"conjecture.png"}}


def run(folder: Path, name: str, **asked: Any) -> Outcome:
    return reproduce(find_recipe(f"depth-memory/{name}"), Request(**asked), folder)


def studied(row: str, batch: str, shapes: list[tuple[int, int, int]]) -> Studied:
    """A case that was made, of few shapes."""
    found = found_of(rank_table(shapes, depth=int(row[1:])))
    return Studied(name=f"{batch}-{row}", line=Line(row=row, size=batch), seed=0, found=found)


@pytest.mark.parametrize("name", DRAWN)
def test_the_smoke_run_is_drawn_and_claims_nothing(tmp_path: Path, name: str) -> None:
    sizes = ("small", "medium") if name == "conjecture" else ()
    outcome = run(tmp_path, name, scale="smoke", sizes=sizes)
    table = compare_with_published(outcome)
    assert "SMOKE RUN" in table.notes[0]
    assert "HOLD" not in table.markdown()
    assert "holds." not in table.markdown()
    assert "not comparable" in table.markdown()
    drawn = PICTURES[f"depth-memory/{name}"](outcome, tmp_path)
    assert {place.name for place in drawn} == DRAWN[name]
    assert all(place.read_bytes().startswith(b"\x89PNG") for place in drawn)
    assert run(tmp_path, name, scale="smoke", sizes=sizes).measured == outcome.measured


def test_a_batch_that_was_killed_goes_on_in_the_middle(tmp_path: Path) -> None:
    outcome = run(tmp_path, "theorem1", scale="smoke", rows=("L2",))
    (place,) = tmp_path.glob("*/" + RANKS)
    lines = place.read_text(encoding="utf-8").splitlines(keepends=True)
    (place.parent / "result.json").unlink()
    place.write_text("".join(lines[:3]), encoding="utf-8")
    (again,) = run(tmp_path, "theorem1", scale="smoke", rows=("L2",)).measured
    assert isinstance(again, Studied)
    assert place.read_text(encoding="utf-8").splitlines(keepends=True)[:3] == lines[:3]
    one = outcome.measured[0]
    assert isinstance(one, Studied)
    assert [row.rank for row in table_of([again]).rows] == [row.rank for row in table_of([one]).rows]


def test_known_bounds_are_those_of_the_formulas() -> None:
    """The numbers to hold against were typed by hand; the bounds beside them were not."""
    for (inputs, width, steps), known in THEOREM1.items():
        assert known.bound == theorem1(M=inputs, R=width, T=steps, L=2)
    for (inputs, width, steps), known in {**CONJECTURE, **VIOLATIONS}.items():
        assert known.bound == conjecture(M=inputs, R=width, T=steps, L=3)
    violated = {shape for shape, known in CONJECTURE.items() if known.rank < known.bound}
    assert violated == {shape for shape in VIOLATIONS if shape in CONJECTURE}
    assert all(CONJECTURE[shape] == VIOLATIONS[shape] for shape in violated)
    for (_, batch), counts in VERDICTS.items():
        assert sum(counts) == len(BATCHES[batch])


def test_a_study_says_what_holds_and_what_does_not() -> None:
    three = studied("L3", "small", [(6, 5, 4), (2, 2, 6), (3, 3, 4)])
    answers = conjectured.claims([three])
    assert len(answers) == 4
    assert all(holds for _, holds in answers)
    wrong = dict(three.found)
    column = wrong["columns"].index("rank")
    wrong["rows"] = [[*row[:column], row[column] - 5, *row[column + 1 :]] for row in wrong["rows"]]
    assert not any(holds for _, holds in conjectured.claims([replace(three, found=wrong)]))
    four = studied("L4", "small", [(4, 3, 4), (2, 2, 6)])
    told = dict(conjectured.claims([four]))
    assert told["L = 4: (M, R, T) = (4, 3, 4) has rank 12, not 15"]
    assert not told["L = 4: there are more than the 133 shapes known before"]


def test_the_theorem_says_more_of_one_layer_than_the_conjecture(tmp_path: Path) -> None:
    one = studied("L1", "shallow", [(2, 5, 4), (3, 2, 4)])
    table = table_of([one])
    assert table.verdicts["larger"] == 1
    assert proved.against_theorem(table) == (2, 0, 0)


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in ({"batch": "huge"}, {"depth": 0}, {"runs": 0}):
        with pytest.raises(ArgumentError, match="RankSettings"):
            RankSettings(**wrong)


@pytest.mark.slow
def test_what_is_known_of_one_and_two_layers_holds(tmp_path: Path) -> None:
    checked = proved.claims(run(tmp_path, "theorem1", overrides=(("processes", 1),)).measured)
    assert len(checked) == 6
    assert all(holds for _, holds in checked), checked


@pytest.mark.slow
def test_what_is_known_of_three_layers_holds(tmp_path: Path) -> None:
    """All 248 shapes: minutes."""
    outcome = run(tmp_path, "conjecture", rows=("L3",), sizes=("small", "medium", "large"))
    checked = conjectured.claims(outcome.measured)
    assert len(checked) == 9
    assert all(holds for _, holds in checked), checked


def test_it_does_not_speak_of_rounded_products(tmp_path: Path) -> None:
    outcome = reproduce(find_recipe("depth-memory/theorem1"), Request(scale="smoke"), tmp_path)
    text = compare_with_published(outcome).markdown()
    assert "Arithmetic is exact, modulo primes." in text
    assert "tf32" not in text
