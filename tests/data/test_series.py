"""Numeric sequences: the set itself, every form of file, and files that are refused with the place of the fault."""

from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import Series, read_series, sample_bursts, sample_seasons, write_series
from statewise.errors import ArgumentError, DataError, LengthError, NonFiniteError, ShapeError

THREE = Series.from_arrays([[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]], labels=["up", "flat", "up"], names=["a", "b", "c"])


class TestTheSet:
    def test_it_knows_its_lengths_classes_and_sequences(self) -> None:
        assert THREE.lengths.tolist() == [3, 1, 2]
        assert THREE.counts.tolist() == [1, 2]
        assert THREE.sequence(-1).tolist() == [[5.0], [6.0]]
        assert THREE.select([2, 0]).names == ("c", "a")
        assert THREE.select(THREE.lengths > 1).labels.tolist() == [1, 1]  # type: ignore[union-attr]
        assert THREE.name(1) == "b"
        assert THREE.unlabelled().counts.tolist() == []

    def test_nobody_can_change_it(self) -> None:
        given = np.ones((2, 1), dtype=np.float32)
        series = Series(values=given, starts=np.array([0, 2]), features=("x",))
        given[0] = 7
        assert series.values[0, 0] == 1
        for each in (series, copy.deepcopy(series), pickle.loads(pickle.dumps(series))):
            assert each == series
            assert hash(each) == hash(series)
            with pytest.raises(ValueError, match="read-only"):
                each.values[0] = 5

    def test_a_split_depends_on_its_seed_alone_and_keeps_the_shares_of_the_classes(self) -> None:
        whole = sample_bursts(90)
        first, second = whole.split(2 / 3, seed=1)
        assert first.counts.tolist() == [20, 20, 20]
        assert second.counts.tolist() == [10, 10, 10]
        assert whole.split(2 / 3, seed=1)[0] == first
        assert whole.split(2 / 3, seed=2)[0] != first
        assert len(whole.unlabelled().split(0.5, seed=0)[0]) == 45

    @given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(2, 15))
    def test_every_step_but_the_first_is_a_target_of_exactly_one_window(self, lengths: list[int], steps: int) -> None:
        numbers = np.arange(sum(lengths), dtype=np.float32)
        series = Series.from_arrays(np.split(numbers, np.cumsum(lengths)[:-1]))
        windows = series.windows(steps)
        targets = [windows.sequence(at)[1:, 0].tolist() for at in range(len(windows))]
        firsts = set(series.values[series.starts[:-1], 0].tolist())
        assert sorted(chain.from_iterable(targets)) == [number for number in numbers.tolist() if number not in firsts]
        assert windows.lengths.max() <= steps

    def test_the_scale_is_that_of_numpy_and_a_constant_has_deviation_one(self) -> None:
        values = np.random.default_rng(0).normal(5, 3, size=(50, 2)).astype(np.float32)
        values[:, 1] = 1234.5
        scale = Series.from_arrays([values]).scale()
        assert scale.mean == pytest.approx(values.astype(float).mean(0))
        assert scale.deviation == pytest.approx((values[:, 0].astype(float).std(), 1.0))

    def test_what_makes_no_set_is_refused(self) -> None:
        ones = np.ones((2, 1))
        whole: dict[str, Any] = {"values": ones, "starts": np.array([0, 2]), "features": ("x",)}
        for error, change in (
            (ShapeError, {"values": np.ones(2)}),
            (ShapeError, {"features": ("x", "y")}),
            (ArgumentError, {"values": np.ones((2, 2)), "features": ("x", "x")}),
            (ArgumentError, {"starts": np.array([0, 3])}),
            (ArgumentError, {"starts": np.array([0, 2, 1, 2])}),
            (ArgumentError, {"values": np.array([["a"], ["b"]])}),
            (ArgumentError, {"classes": ("a",)}),
            (ArgumentError, {"labels": np.array([1]), "classes": ("a",)}),
            (LengthError, {"labels": np.array([0, 0]), "classes": ("a",)}),
            (LengthError, {"names": ("a", "b")}),
            (NonFiniteError, {"values": np.array([[1.0], [np.nan]])}),
            (NonFiniteError, {"values": np.array([[1.0], [1e300]])}),
        ):
            with pytest.raises(error):
                Series(**{**whole, **change})
        with pytest.raises(NonFiniteError, match="sequence 0, step 1, feature 'x'"):
            Series(**{**whole, "values": np.array([[1.0], [np.inf]])})
        with pytest.raises(DataError, match="no labels"):
            THREE.unlabelled().check_classes()
        with pytest.raises(DataError, match="2 of 'up'"):
            THREE.select([0, 2]).check_classes(where="here")
        with pytest.raises(LengthError):
            Series.from_arrays([])

    def test_samples_are_the_same_for_a_seed_and_have_what_they_promise(self) -> None:
        assert sample_bursts(12, seed=3) == sample_bursts(12, seed=3)
        assert sample_bursts(12, seed=3) != sample_bursts(12, seed=4)
        assert len(set(sample_bursts(30).lengths.tolist())) > 5
        chaos = sample_seasons(1, steps=30).sequence(0)[:, 1].astype(float)
        assert chaos[1:] == pytest.approx(3.9 * chaos[:-1] * (1 - chaos[:-1]), rel=1e-4)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestTables:
    def test_a_long_table_has_a_row_a_step_and_sequences_may_stand_mixed(self, tmp_path: Path) -> None:
        text = "time,id,label,x,y\n0,a,up,1,5\n0,b,flat,7,6\n1,a,up,2,5\n1,b,flat,7,6\n2,a,up,3,5\n"
        series = read_series(put(tmp_path, "long.csv", text))
        assert series.names == ("a", "b")
        assert series.features == ("x", "y")
        assert series.sequence(0).tolist() == [[1, 5], [2, 5], [3, 5]]
        assert [series.classes[label] for label in series.labels] == ["up", "flat"]  # type: ignore[union-attr]

    def test_columns_can_be_named_or_counted(self, tmp_path: Path) -> None:
        path = put(tmp_path, "odd.tsv", "who\tkind\tvolts\tamps\tnote\na\t1\t2\t3\tx\na\t1\t4\t5\ty\nb\t2\t6\t7\tz\n")
        for options in ({"sequence": "who", "label": "kind"}, {"sequence": 0, "label": 1, "header": True}):
            series = read_series(path, features=("amps", "volts"), form="long", **options)
            assert series.sequence(0).tolist() == [[3, 2], [5, 4]]
            assert series.classes == ("1", "2")

    def test_a_table_without_names_of_sequences_is_one_sequence(self, tmp_path: Path) -> None:
        assert read_series(put(tmp_path, "one.csv", "temperature\n20\n21.5\n")).sequence(0).tolist() == [[20], [21.5]]
        bare = read_series(put(tmp_path, "bare.csv", "1.5,2.5\n3.5,4.5\n"))
        assert bare.features == ("x1", "x2")
        assert bare.lengths.tolist() == [2]
        dated = read_series(put(tmp_path, "dated.csv", "date,sales\n2024-01-01,3\n2024-01-02,4\n"))
        assert dated.features == ("sales",)

    def test_a_column_without_a_name_is_left_out(self, tmp_path: Path) -> None:
        assert read_series(put(tmp_path, "frame.csv", ",x\n0,5\n1,6\n")).features == ("x",)

    def test_a_wide_table_has_a_row_a_sequence_as_the_ucr_archive(self, tmp_path: Path) -> None:
        ucr = read_series(put(tmp_path, "ucr.tsv", "1\t0.5\t-0.5\t0.25\n-1\t1.5\t2.5\t3.5\n1\t1\t2\t3\n"))
        assert ucr.classes == ("-1", "1")
        assert ucr.sequence(0).flatten().tolist() == [0.5, -0.5, 0.25]
        old = read_series(put(tmp_path, "old.csv", "  1.0000000e+00,1,2\n2.0000000e+00,3,4\n1.0000000e+00,3,4\n"))
        assert old.classes == ("1", "2")
        named = read_series(put(tmp_path, "named.csv", "v1,v2,v3,class\n1,2,3,walk\n4,5,,run\n7,8,9,run\n"))
        assert named.lengths.tolist() == [3, 2, 3]
        assert named.classes == ("run", "walk")
        both = read_series(put(tmp_path, "both.csv", "id,label,0,1,2\np,a,1,2,3\nq,b,4,5,6\nr,b,4,5,6\n"))
        assert both.names == ("p", "q", "r")
        assert both.lengths.tolist() == [3, 3, 3]

    def test_the_form_can_be_said(self, tmp_path: Path) -> None:
        path = put(tmp_path, "counts.csv", "3,5,7\n3,6,8\n4,6,8\n")
        assert read_series(path).lengths.tolist() == [2, 2, 2]
        assert read_series(path, form="long").sequence(0).shape == (3, 3)
        assert read_series(path, form="wide", label=False).lengths.tolist() == [3, 3, 3]
        assert read_series(path, labels=False).labels is None

    def test_labels_are_left_out_where_nobody_wants_them(self, tmp_path: Path) -> None:
        path = put(tmp_path, "long.csv", "id,label,x\na,up,1\na,down,2\nb,up,3\n")
        series = read_series(path, labels=False)
        assert series.labels is None
        assert series.features == ("x",)


class TestOtherFiles:
    def test_jsonl_has_an_object_a_sequence(self, tmp_path: Path) -> None:
        path = put(
            tmp_path, "a.jsonl", '{"id": 7, "values": [1, 2.5], "label": "x"}\n{"id": 8, "values": [3], "label": 2}\n'
        )
        series = read_series(path)
        assert series.names == ("7", "8")
        assert series.classes == ("2", "x")
        path = put(tmp_path, "b.jsonl", '{"values": [[1, 2], [3, 4]]}\n\n{"values": [[5, 6]]}\n')
        assert read_series(path).lengths.tolist() == [2, 1]
        assert read_series(path, features=("p", "q")).features == ("p", "q")

    def test_npz_has_padded_arrays(self, tmp_path: Path) -> None:
        values = np.arange(12.0).reshape(2, 3, 2)
        np.savez(tmp_path / "a.npz", values=values, lengths=np.array([3, 1]), labels=np.array([5, 4]))
        series = read_series(tmp_path / "a.npz")
        assert series.lengths.tolist() == [3, 1]
        assert series.classes == ("4", "5")
        values[1, 2] = np.nan  # beyond the end
        np.savez(tmp_path / "b.npz", values=values, lengths=np.array([3, 1]))
        assert read_series(tmp_path / "b.npz").values.tolist() == series.values.tolist()
        np.savez(tmp_path / "c.npz", values=np.ones((4, 3)))
        assert read_series(tmp_path / "c.npz").features == ("value",)

    def test_a_compressed_file_is_read_as_the_plain_one(self, tmp_path: Path) -> None:
        text = "id,x\na,1\na,2\n"
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
        assert read_series(tmp_path / "a.csv.gz") == read_series(put(tmp_path, "a.csv", text))


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
words = st.text("abcdefghij ", min_size=1, max_size=6).map(str.strip).filter(bool)


@st.composite
def sets(draw: st.DrawFn) -> dict[str, Any]:
    """What sets of a few sequences are made of; some labels occur twice, since others tell of no class."""
    width = draw(st.integers(1, 3))
    count = draw(st.integers(2, 4))
    lengths = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count).filter(lambda found: max(found) > 1))
    rows = [draw(st.lists(st.lists(finite, min_size=width, max_size=width), min_size=n, max_size=n)) for n in lengths]
    names = draw(st.lists(words, min_size=count, max_size=count, unique=True))
    labels = draw(st.none() | st.lists(words, min_size=2, max_size=2, unique=True))
    features = [f"f {number}" for number in range(width)]
    chosen = None if labels is None else [labels[at % 2] for at in range(count)]
    return {"sequences": rows, "labels": chosen, "features": features, "names": names}


@given(parts=sets(), name=st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.npz", "a.csv.gz", "a.jsonl.gz"]))
def test_what_is_written_is_read_again(parts: dict[str, Any], name: str) -> None:
    made = Series.from_arrays(**parts)
    with tempfile.TemporaryDirectory() as folder:
        write_series(Path(folder, name), made)
        found = read_series(Path(folder, name), features=made.features)
    assert found.unlabelled() == made.unlabelled()
    if made.labels is not None:
        assert found.labels is not None
        assert [found.classes[label] for label in found.labels] == [made.classes[label] for label in made.labels]


LONG = "id,label,x,y\na,up,1,5\na,up,2,5\nb,flat,7,6\nb,flat,7,8\n"
BAD: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "a word for a number": ("a.csv", LONG.replace("2,5", "two,5"), {}, "a.csv, line 3, field 'x': got 'two'"),
    "nothing for a number": ("a.csv", LONG.replace("2,5", "2,"), {}, "line 3, field 'y': got nothing"),
    "not a number": ("a.csv", LONG.replace("7,8", "nan,8"), {}, "line 5, field 'x': got nan"),
    "infinity": ("a.csv", LONG.replace("7,8", "7,-inf"), {}, "line 5, field 'y': got -inf"),
    "too large": ("a.csv", LONG.replace("7,8", "7,1e39"), {}, "line 5, field 'y': got 1e\\+39"),
    "an underscore": ("a.csv", LONG.replace("7,8", "7,1_0"), {}, "line 5, field 'y': got '1_0'"),
    "a row too short": ("a.csv", LONG.replace("2,5", "2"), {}, "line 3: got 3 fields, wanted 4"),
    "a row too long": ("a.csv", LONG.replace("7,8", "7,8,9"), {}, "line 5: got 5 fields"),
    "two labels": ("a.csv", LONG.replace("up,2", "down,2"), {}, "line 3, field 'label': got 'down', wanted 'up'"),
    "no label": ("a.csv", LONG.replace("up,2", ",2"), {}, "line 3, field 'label': got nothing"),
    "no name": ("a.csv", LONG.replace("b,flat,7,8", ",flat,7,8"), {}, "line 5, field 'id': got nothing"),
    "a column twice": ("a.csv", LONG.replace("x,y", "x,x"), {}, "line 1, field 'x': got two columns called 'x'"),
    "an unknown column": ("a.csv", LONG, {"sequence": "who"}, "line 1: .* wanted a column 'who'"),
    "a column too far": ("a.csv", LONG, {"label": 9}, "line 1: got 4 fields, wanted a column 9"),
    "an unknown feature": ("a.csv", LONG, {"features": ("z",)}, "line 1: .* wanted a column 'z'"),
    "a header alone": ("a.csv", "id,label,x,y\n", {}, "a.csv: got a header and no rows"),
    "nothing but columns of words": ("a.csv", "id,label\na,up\na,up\n", {}, "line 1: .* wanted a column of numbers"),
    "names of rows": ("a.csv", "id,x\n1,5\n2,6\n3,7\n", {}, "line 2, field 'id': got another name in each of 3 rows"),
    "times that fall": ("a.csv", "time,x\n2,1\n1,2\n", {}, "line 3, field 'time': got 1, wanted a time"),
    "a strange time": ("a.csv", "time,x\nnoon,1\n", {}, "line 2, field 'time': got 'noon'"),
    "times of two kinds": ("a.csv", "time,x\n3,1\n2024-01-01,2\n", {}, "line 3, field 'time'"),
    "an empty file": ("a.csv", "", {}, "a.csv, line 1: got an empty file"),
    "blank lines": ("a.csv", "\n\n", {}, "a.csv: got no rows"),
    "another ending": ("a.dat", LONG, {}, "a.dat: got another name"),
    "an open quote": ("a.csv", 'id,x\n"a,1\n', {}, "line 2: got unexpected end of data"),
    "a gap in a wide row": ("a.csv", "label,1,2,3\na,1,,3\nb,1,2,3\nb,1,2,3\n", {}, "line 2, field '2': got nothing"),
    "an empty wide row": ("a.csv", "label,1,2,3\na,,,\nb,1,2,3\n", {}, "line 2, field '1': got no values"),
    "a wide row without a label": ("a.csv", "label,1,2\n,1,2\nb,1,2\n", {}, "line 2, field 'label': got nothing"),
    "a label a row": ("a.tsv", "1\t5\t6\n2\t5\t6\n3\t5\t6\n", {}, "field 0: got another label in each of 3 rows"),
    "a strange class": ("a.csv", LONG, {"classes": ("up",)}, "line 4, field 'label': got 'flat', wanted one of up"),
    "no json": ("a.jsonl", '{"values": [1}\n', {}, "a.jsonl, line 1"),
    "no object": ("a.jsonl", "[1]\n", {}, "line 1: got a list"),
    "no values": ("a.jsonl", '{"value": [1]}\n', {}, "line 1, field 'values': got only 'value'"),
    "no list": ("a.jsonl", '{"values": 3}\n', {}, "line 1, field 'values': got a int"),
    "an empty list": ("a.jsonl", '{"values": []}\n', {}, "line 1, field 'values': got an empty list"),
    "an empty step": ("a.jsonl", '{"values": [[]]}\n', {}, r"line 1, field 'values\[0\]'"),
    "ragged steps": ("a.jsonl", '{"values": [[1, 2], [3]]}\n', {}, r"line 1, field 'values\[1\]': got 1 numbers"),
    "a list among numbers": ("a.jsonl", '{"values": [1, [3]]}\n', {}, r"field 'values\[1\]'"),
    "a word in a list": ("a.jsonl", '{"values": [1, "2"]}\n', {}, r"line 1, field 'values\[1\]': got '2'"),
    "a truth value": ("a.jsonl", '{"values": [true]}\n', {}, r"field 'values\[0\]': got True"),
    "null": ("a.jsonl", '{"values": [[1, null]]}\n', {}, r"field 'values\[0\]\[1\]': got nothing"),
    "NaN of JSON": ("a.jsonl", '{"values": [NaN]}\n', {}, r"field 'values\[0\]': got nan"),
    "a giant": ("a.jsonl", f'{{"values": [1{"0" * 400}]}}\n', {}, r"field 'values\[0\]'"),
    "changed columns": ("a.jsonl", '{"values": [[1, 2]]}\n{"values": [[1]]}\n', {}, "line 2, field 'values': got 1"),
    "a label once": ("a.jsonl", '{"values": [1], "label": 1}\n{"values": [1]}\n', {}, "line 2, field 'label': got no"),
    "a label later": ("a.jsonl", '{"values": [1]}\n{"values": [1], "label": 1}\n', {}, "line 2, field 'label': got a"),
    "a strange label": ("a.jsonl", '{"values": [1], "label": [1]}\n', {}, r"line 1, field 'label': got \[1\]"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_data_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    name, text, options, message = BAD[case]
    with pytest.raises(DataError, match=message) as raised:
        read_series(put(tmp_path, name, text), **options)
    assert str(tmp_path / name) in str(raised.value)


def archive(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def single(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "a.npz"),
        (b"", "a.npz"),
        (single(np.ones((2, 3))), "wanted an .npz archive of arrays"),
        (archive(values=np.ones((2, 3)))[:40], "a.npz"),
        (archive(value=np.ones((2, 3))), "field 'values': got only 'value'"),
        (archive(values=np.ones(3)), r"field 'values': got float64 of shape \(3,\)"),
        (archive(values=np.array([["a"]])), "field 'values'"),
        (archive(values=np.array([[None]])), "allow_pickle"),
        (archive(values=np.ones((0, 3))), "field 'values': got the shape"),
        (archive(values=np.array([[1.0, np.nan]])), r"field 'values\[0, 1, 0\]': got nan"),
        (archive(values=np.array([[1.0, 1e39]])), r"field 'values\[0, 1, 0\]': got 1e\+39"),
        (archive(values=np.ones((2, 3)), lengths=np.array([3, 4])), "field 'lengths'"),
        (archive(values=np.ones((2, 3)), lengths=np.array([3, 0])), "field 'lengths'"),
        (archive(values=np.ones((2, 3)), lengths=np.array([3])), "field 'lengths'"),
        (archive(values=np.ones((2, 3)), labels=np.array([1])), "field 'labels': got 1 of them"),
        (archive(values=np.ones((2, 3)), labels=np.array([0.5, 1])), "field 'labels': got float64"),
        (archive(values=np.ones((2, 3)), features=np.array(["a", "b"])), "field 'features'"),
    ],
)
def test_a_bad_archive_is_refused_with_the_array(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_series(tmp_path / "a.npz")


def test_a_file_that_is_not_there_and_options_that_are_none_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "a.jsonl", "a.npz"):
        with pytest.raises(DataError, match="no such file"):
            read_series(tmp_path / name)
    for options in ({"form": "square"}, {"kind": "xls"}):
        with pytest.raises(ArgumentError):
            read_series(tmp_path / "a.csv", **options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a header, for a column by its name"):
        read_series(put(tmp_path, "b.csv", "1,2\n3,4\n"), sequence="id", header=False)
    with pytest.raises(ArgumentError, match=r"wanted a name that ends in \.csv"):
        write_series(tmp_path / "a.xls", THREE)


def test_a_written_object_is_what_other_programs_read(tmp_path: Path) -> None:
    write_series(tmp_path / "a.jsonl", THREE)
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert first == {"id": "a", "label": "up", "values": [1.0, 2.0, 3.0]}
