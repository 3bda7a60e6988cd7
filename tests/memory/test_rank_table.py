"""Tables of ranks: the known numbers, files that go on, and processes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statewise.errors import ArgumentError, DataError, RunFolderError
from statewise.memory.rank_table import rank_table, read_rank_table
from statewise.memory.rank_table_cases import BATCHES, LARGE, MEDIUM, SHALLOW, SMALL, WIDE, Shape, shapes_of
from statewise.memory.rank_table_rows import RankRow, RankTable, rank_row
from statewise.recipes.published_memory import CONJECTURE, VIOLATIONS

MODULE = sys.modules["statewise.memory.rank_table"]  # the package has a function of this name
FEW = [(6, 5, 4), (7, 5, 4), (2, 2, 6), (3, 3, 4)]


class TestShapes:
    def test_the_batches_have_the_known_numbers_of_shapes(self) -> None:
        sizes = {name: len(shapes) for name, shapes in BATCHES.items()}
        assert sizes == {"shallow": 132, "small": 175, "medium": 45, "large": 28, "wide": 210}
        every = SMALL + MEDIUM + LARGE + WIDE
        assert len(set(every)) == len(every)

    def test_all_that_is_known_is_among_them(self) -> None:
        known = set(SMALL + MEDIUM + LARGE)
        assert set(CONJECTURE) | set(VIOLATIONS) <= known
        assert max(shape.words for shape in known) == 4096
        assert sum(shape.inputs <= shape.width for shape in known) == 116
        assert sum(1 in shape[:2] for shape in SHALLOW) == 47

    def test_an_alphabet_of_one_needs_a_length(self) -> None:
        with pytest.raises(ArgumentError, match="longest"):
            shapes_of(inputs=[1], widths=[2], most=4)
        assert shapes_of(inputs=[1], widths=[2], most=4, longest=4) == ((1, 2, 2), (1, 2, 4))

    def test_no_symbols_and_no_channels_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"shapes_of\.inputs: got 0"):
            shapes_of(inputs=[0], widths=[2], most=4)
        with pytest.raises(ArgumentError, match=r"shapes_of\.widths: got 0"):
            shapes_of(inputs=[2], widths=[0], most=4)


class TestRows:
    def test_a_violation_is_certain_where_the_upper_bound_says_so(self) -> None:
        row = rank_row(Shape(6, 5, 4), depth=3)
        assert (row.rank, row.verdict, row.certain, row.repaired_holds, row.deficit) == (30, "violated", True, True, 0)
        lost = replace(row, rank=29, end_cap=40)
        assert (lost.verdict, lost.certain, lost.repaired_holds, lost.deficit) == ("violated", False, False, 11)

    def test_an_equal_rank_is_certain_if_it_is_proved(self) -> None:
        row = rank_row(Shape(3, 3, 4), depth=3)
        assert (row.verdict, row.certain) == ("equal", True)
        assert not replace(row, end_cap=10).certain
        assert replace(row, rank=10, end_cap=12).certain  # larger: the certificate is enough

    def test_what_falls_short_of_the_state_bound_is_proved_by_the_sharper_one(self) -> None:
        row = rank_row(Shape(4, 2, 8), depth=3)
        assert (row.rank, row.upper, row.sharper, row.deficit, row.proved) == (106, 110, 106, 4, True)

    def test_a_table_tells_its_verdicts(self) -> None:
        table = rank_table(FEW, depth=3)
        assert table.verdicts == {"equal": 2, "larger": 1, "violated": 1}
        assert [row.shape for row in table.violations] == [(6, 5, 4)]
        assert not table.short
        assert table.sentence.endswith("0 violated. The rank is min{U1, U2} in 4. Proved: 4.")
        lacking = RankTable(depth=3, rows=(replace(table.rows[0], rank=26),))
        assert lacking.sentence.endswith(
            "1 violated. The rank is min{U1, U2} in 0; 1 falls short of it by 4. Proved: 0."
        )
        assert lacking.sentence.startswith("L = 3, 1 shape, against")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Shape]:
    """Which shapes are computed."""
    seen: list[Shape] = []

    def note(shape: Shape, **options: Any) -> RankRow:
        seen.append(shape)
        return rank_row(shape, **options)

    monkeypatch.setattr(MODULE, "rank_row", note)
    return seen


class TestFiles:
    def test_large_shapes_come_first_and_rows_as_they_were_asked(self, counted: list[Shape]) -> None:
        told: list[tuple[int, int]] = []
        table = rank_table(FEW, depth=3, on_row=lambda row, made, whole: told.append((made, whole)))
        assert [shape.words for shape in counted] == [49, 36, 9, 8]
        assert [row.shape for row in table.rows] == FEW
        assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def test_what_was_killed_goes_on(self, tmp_path: Path, counted: list[Shape]) -> None:
        path = tmp_path / "deep" / "ranks.jsonl"

        def stop(row: RankRow, made: int, whole: int) -> None:
            if made == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            rank_table(FEW, depth=3, path=path, on_row=stop)
        assert len(read_rank_table(path).rows) == 2
        before = len(counted)
        table = rank_table(FEW, depth=3, path=path)
        assert len(counted) == before + 2
        assert table == rank_table(FEW, depth=3, path=path)
        assert len(counted) == before + 2
        fresh = rank_table(FEW, depth=3)
        assert [replace(row, seconds=0.0) for row in table.rows] == [replace(row, seconds=0.0) for row in fresh.rows]

    def test_rows_are_there_before_the_next_is_begun(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("statewise.memory.rank_table_book._PAUSE", -1.0)
        path = tmp_path / "ranks.jsonl"
        lengths: list[int] = []
        rank_table(FEW, depth=3, path=path, on_row=lambda *_: lengths.append(len(read_rank_table(path).rows)))
        assert lengths == [1, 2, 3, 4]

    def test_other_shapes_are_added_to_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "ranks.jsonl"
        rank_table(FEW[:2], depth=3, path=path)
        table = rank_table(FEW[2:], depth=3, path=path)
        assert len(table.rows) == 2
        assert [row.shape for row in read_rank_table(path).rows] == sorted(FEW)
        assert all(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())

    @pytest.mark.parametrize("other", [{"depth": 2}, {"seed": 1}, {"start": "drawn"}, {"runs": 3}])
    def test_another_table_has_another_file(self, tmp_path: Path, other: dict[str, Any]) -> None:
        rank_table(FEW[:1], depth=3, path=tmp_path / "ranks.jsonl")
        with pytest.raises(RunFolderError, match="another file"):
            rank_table(FEW[:1], **{"depth": 3, "path": tmp_path / "ranks.jsonl", **other})

    @pytest.mark.parametrize("text", ["no json", '{"kind": "other"}', "[]"])
    def test_a_file_of_something_else_is_refused_and_left_alone(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "notes.txt"
        path.write_text(text + "\n", encoding="utf-8")
        with pytest.raises(DataError, match="line 1"):
            rank_table(FEW, depth=3, path=path)
        assert path.read_text(encoding="utf-8") == text + "\n"

    def test_a_damaged_row_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "ranks.jsonl"
        rank_table(FEW[:2], depth=3, path=path)
        path.write_text(path.read_text(encoding="utf-8") + '{"inputs": 3}\n', encoding="utf-8")
        with pytest.raises(DataError, match="line 4"):
            read_rank_table(path)

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [
            ('"rank": 30', '"rank": "many"', r"ranks\.jsonl, line 2: got rank = 'many', wanted a whole number"),
            ('"found": [30]', '"found": 30', r"line 2: got found = 30, wanted a list of whole numbers"),
            ('"seconds": ', '"seconds": null, "was": ', r"line 2: got \{.*, wanted a row with"),
            ('"steps": 4, "depth": 3', '"steps": 4, "depth": 2', r"line 2: got depth = 2, wanted depth = 3"),
            ('"depth": 3, "runs"', '"runs"', r"line 1: got \{.*, wanted the first line of a table of ranks, with"),
            ('"rank": 30, ', '"rank": 30, \n', r"line 2: got \{.*, wanted a line of JSON"),
            ('"rank": 30', '"rank": ' + "9" * 5000, r"line 2: got \{.*, wanted a line of JSON"),
        ],
    )
    def test_a_wrong_line_is_named_with_its_file(self, tmp_path: Path, old: str, new: str, told: str) -> None:
        path = tmp_path / "ranks.jsonl"
        rank_table(FEW[:1], depth=3, path=path)
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(DataError, match=told):
            read_rank_table(path)

    def test_a_file_that_is_none_is_named_with_what_makes_one(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"none\.jsonl: got no such file.*rank_table\(.*--out FILE"):
            read_rank_table(tmp_path / "none.jsonl")
        with pytest.raises(DataError, match="got a folder, wanted a file"):
            read_rank_table(tmp_path)
        for content, told in ((b"", "an empty file"), (b"\x99\xff", "no text")):
            path = tmp_path / "ranks.jsonl"
            path.write_bytes(content)
            with pytest.raises(DataError, match=told):
                read_rank_table(path)
        path.write_bytes(b"")
        assert len(rank_table(FEW[:1], depth=3, path=path).rows) == 1  # which may be filled

    @pytest.mark.parametrize("wrong", [{"depth": 0}, {"runs": 0}, {"seed": -1}, {"start": "x"}, {"backend": "x"}])
    def test_wrong_options_are_told_before_a_file_is_written(self, tmp_path: Path, wrong: dict[str, Any]) -> None:
        path, name = tmp_path / "ranks.jsonl", next(iter(wrong))
        with pytest.raises(ArgumentError, match=rf"rank_table\.{name}"):
            rank_table(FEW[:1], **{"depth": 3, "path": path, **wrong})
        assert not path.exists()


class TestArguments:
    @pytest.mark.parametrize("shapes", [[], [(2, 2, 5)], [(0, 2, 4)], [(2, 0, 4)]])
    def test_shapes_without_two_halves_are_refused(self, shapes: list[tuple[int, int, int]]) -> None:
        with pytest.raises(ArgumentError, match="shapes"):
            rank_table(shapes, depth=2)

    def test_a_shape_too_large_is_refused_before_anything_is_computed(self, counted: list[Shape]) -> None:
        with pytest.raises(ArgumentError, match="at most 8192"):
            rank_table([*FEW, (2, 2, 40)], depth=2)
        assert not counted

    def test_there_is_at_least_one_process(self) -> None:
        with pytest.raises(ArgumentError, match="jobs"):
            rank_table(FEW, depth=2, jobs=0)

    def test_a_shape_named_twice_is_one_row(self) -> None:
        assert len(rank_table([FEW[0], FEW[0]], depth=3).rows) == 1


@pytest.mark.slow
def test_processes_find_the_same(tmp_path: Path) -> None:
    before = dict(os.environ)
    together = rank_table(FEW, depth=3, jobs=2, path=tmp_path / "ranks.jsonl")
    assert dict(os.environ) == before
    alone = rank_table(FEW, depth=3)
    assert [replace(row, seconds=0.0) for row in together.rows] == [replace(row, seconds=0.0) for row in alone.rows]


@pytest.mark.slow
def test_an_error_of_a_process_is_told_when_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "check_sizes", lambda *_, **__: None)
    path = tmp_path / "ranks.jsonl"
    with pytest.raises(ArgumentError, match="at most 8192"):
        rank_table([*FEW, (2, 2, 40)], depth=3, jobs=2, path=path)
    assert [row.shape for row in read_rank_table(path).rows] == sorted(FEW)


def test_bounds_that_no_file_can_hold_are_refused_before_anything_is_computed(tmp_path: Path) -> None:
    """Python reads and writes no whole number of more than 4,300 digits; a row of them would end the whole table."""
    with pytest.raises(ArgumentError, match=r"\(1, 200, 40\) at depth 14, .* ask for it alone"):
        rank_table([(2, 2, 4), (1, 200, 40)], depth=14, path=tmp_path / "table.jsonl")
    assert not list(tmp_path.iterdir())
