"""Labelled text from TSV, CSV and JSONL files."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
from pathlib import Path

import pytest

from statewise.data import LabelledFile, find_data_set, imdb_sets, read_labelled, split_words
from statewise.errors import ArgumentError, DataError

ROWS = [("1", "A joy, truly."), ("0", 'A "bore"'), ("1", "joy joy\u0085joy")]


def write(path: Path, content: str) -> Path:
    raw = content.encode()
    if path.suffix == ".gz":
        raw = gzip.compress(raw)
    elif path.suffix == ".xz":
        raw = lzma.compress(raw)
    path.write_bytes(raw)
    return path


def tsv(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{label}\t{text}\n" for label, text in rows)


class TestWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("It's GREAT!", ["it's", "great", "!"]),
            ("one<br /><br />two<BR>three", ["one", "two", "three"]),
            ("(10/10)", ["(", "10", "/", "10", ")"]),
            ("Éclair…", ["éclair", "…"]),
            ("", []),
        ],
    )
    def test_words_are_lower_case_and_other_signs_stand_alone(self, text: str, words: list[str]) -> None:
        assert split_words(text) == words


class TestFiles:
    @pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
    def test_all_formats_give_the_same_rows(self, tmp_path: Path, ending: str) -> None:
        quoted = "".join(f'{label},"{text.replace(chr(34), chr(34) * 2)}"\n' for label, text in ROWS)
        lines = "".join(json.dumps({"text": text, "label": int(label)}) + "\n" for label, text in ROWS)
        contents = {"a.tsv": tsv(ROWS), "b.csv": quoted, "c.jsonl": lines, "d.tsv": "label\ttext\n" + tsv(ROWS)}
        for name, content in contents.items():
            found = LabelledFile(path=write(tmp_path / (name + ending), content)).rows()
            assert [(row.label, row.text) for row in found] == ROWS, name

    def test_columns_are_chosen_by_name_or_place(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", "id,review,sentiment\n7,good film,pos\n8,bad,neg\n")
        named = [row[:2] for row in LabelledFile(path=path, label="sentiment", text="review").rows()]
        assert named == [("pos", "good film"), ("neg", "bad")]
        placed = [row[:2] for row in LabelledFile(path=path, label=2, text=1, header=True).rows()]
        assert placed == named
        assert [row.line for row in LabelledFile(path=path, label="sentiment", text="review").rows()] == [2, 3]

    @pytest.mark.parametrize(
        ("name", "head", "row"),
        [
            ("a.csv", "review,sentiment", "A joy.,pos"),
            ("a.tsv", "sentence\tlabel", "A joy.\tpos"),
            ("a.tsv", "Label\tText", "pos\tA joy."),
            ("a.tsv", " LABEL\tcomment", "pos\tA joy."),
            ("a.csv", "comment,Class", "A joy.,pos"),
            ("a.csv", "id,comment,target", "7,A joy.,pos"),
            ("a.csv", "stars,Review", "pos,A joy."),
            ("a.csv", "y,text", "pos,A joy."),
        ],
    )
    def test_a_header_is_known_by_one_of_the_usual_names_in_any_case(
        self, tmp_path: Path, name: str, head: str, row: str
    ) -> None:
        path = write(tmp_path / name, f"{head}\n{row}\n")
        assert list(LabelledFile(path=path).rows()) == [("pos", "A joy.", 2)]

    def test_an_answer_y_is_no_header(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.tsv", "y\tab\nn\tb\n")
        assert [row.label for row in LabelledFile(path=path).rows()] == ["y", "n"]

    def test_the_column_that_is_not_named_is_the_other_one(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.tsv", "a joy\t1\na bore\t0\n")
        for file in (LabelledFile(path=path, label=1), LabelledFile(path=path, text=0)):
            assert [row[:2] for row in file.rows()] == [("1", "a joy"), ("0", "a bore")]
        with pytest.raises(DataError, match="column 1 for both"):
            list(LabelledFile(path=path, label=1, text=1).rows())

    def test_entries_of_objects_are_known_by_the_usual_names_too(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", '{"id": 3, "Review": "A joy.", "sentiment": "pos"}\n')
        assert list(LabelledFile(path=path).rows()) == [("pos", "A joy.", 1)]

    def test_blank_lines_are_no_rows(self, tmp_path: Path) -> None:
        contents = {
            "a.tsv": "1\tx\n\n  \n0\ty\n\n",
            "a.csv": "1,x\n\n\n0,y\n\n",
            "a.jsonl": '{"label": 1, "text": "x"}\n\n  \n{"label": 0, "text": "y"}\n\n',
        }
        for name, content in contents.items():
            rows = list(LabelledFile(path=write(tmp_path / name, content)).rows())
            assert rows == [("1", "x", 1), ("0", "y", 4)], name

    def test_a_text_too_long_for_csv_is_sent_elsewhere(self, tmp_path: Path) -> None:
        text = "ab " * 60_000
        limit = csv.field_size_limit()
        with pytest.raises(DataError, match=r"a\.csv, line 2: .*field limit.*as JSONL or TSV"):
            list(LabelledFile(path=write(tmp_path / "a.csv", f"1,x\n0,{text}\n")).rows())
        assert csv.field_size_limit() == limit
        assert [row.text for row in LabelledFile(path=write(tmp_path / "a.tsv", f"0\t{text}\n")).rows()] == [text]

    def test_a_quoted_text_may_run_over_lines(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", '1,"two\nlines"\n0,one\n')
        assert list(LabelledFile(path=path).rows()) == [("1", "two\nlines", 1), ("0", "one", 3)]

    def test_tabs_of_the_last_column_stay_where_the_number_of_columns_is_told(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", "1\tone\ttwo\n0\tthree\n")
        assert [row.text for row in LabelledFile(path=path, columns=2).rows()] == ["one\ttwo", "three"]
        with pytest.raises(DataError, match=r"t\.tsv, line 2: got 2 fields, wanted 3.*columns="):
            list(LabelledFile(path=path).rows())

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("a.tsv", "1\tx\n\ty\n", r"a\.tsv, line 2, field 0: got nothing, wanted a label"),
            ("a.tsv", "1\tx\nno tabs\n", "line 2: got 1 fields, wanted 2"),
            ("a.tsv", "only one\n", "line 1: got 1 field, wanted two or more"),
            ("a.csv", '1,x\n0,"y\n', "line 2: got unexpected end of data"),
            ("a.jsonl", '{"label": 1, "text": "x"}\n{"label": 1}\n', "line 2, field 'text': got only 'label'"),
            ("a.jsonl", '{"label": 1, "text": 3}\n', "line 1, field 'text': got a int"),
            ("a.jsonl", '{"label": null, "text": "x"}\n', "line 1, field 'label': got None"),
            ("a.jsonl", "[1]\n", "line 1: got a list"),
            ("a.jsonl", "{\n", "line 1: got Expecting"),
            ("a.jsonl", "[" * 100_000 + "\n", "line 1: got lists or objects nested too deep"),
            ("a.tsv", "", "an empty file"),
            ("a.txt", "1\tx\n", "another name"),
        ],
    )
    def test_a_bad_row_names_file_line_and_field(self, tmp_path: Path, name: str, content: str, said: str) -> None:
        with pytest.raises(DataError, match=said):
            list(LabelledFile(path=write(tmp_path / name, content)).rows())

    def test_a_column_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", "label\ttext\n1\tx\n")
        with pytest.raises(DataError, match="wanted a column 'review'"):
            list(LabelledFile(path=path, text="review").rows())
        with pytest.raises(DataError, match="a column 5, counted from 0"):
            list(LabelledFile(path=path, text=5).rows())
        with pytest.raises(ArgumentError, match="a header"):
            list(LabelledFile(path=path, text="text", header=False).rows())


class TestSequences:
    @pytest.fixture
    def files(self, tmp_path: Path) -> dict[str, Path]:
        train = [("neg", "bad bad film"), ("pos", "good film ."), ("pos", "rare good")]
        return {
            "train": write(tmp_path / "train.tsv", tsv(train)),
            "test": write(tmp_path / "test.tsv.gz", tsv([("pos", "new good film")])),
        }

    def test_words_are_those_of_train_by_frequency_and_others_are_unknown(self, files: dict[str, Path]) -> None:
        read = read_labelled(files, min_count=2)
        assert read.vocabulary.words == ("<unk>", "<eos>", "bad", "film", "good")
        assert read.parts["train"].symbols == read.parts["test"].symbols == read.vocabulary.words
        assert read.parts["train"].texts() == ["bad bad film", "good film <unk>", "<unk> good"]
        assert read.parts["test"].texts() == ["<unk> good film"]
        assert read.parts["train"].classes == ("neg", "pos")
        assert read.parts["train"].labels.tolist() == [0, 1, 1]

    def test_the_limit_holds_with_the_two_marks(self, files: dict[str, Path]) -> None:
        assert len(read_labelled(files, limit=3).vocabulary) == 3

    def test_a_text_is_cut_at_either_end(self, files: dict[str, Path]) -> None:
        assert read_labelled(files, truncate=("first", 1)).parts["train"].texts() == ["bad", "good", "rare"]
        last = read_labelled(files, truncate=("last", 2)).parts
        assert last["train"].texts() == ["bad film", "film .", "rare good"]
        with pytest.raises(ArgumentError, match="truncate"):
            read_labelled(files, truncate=("first", 0))

    def test_numbers_are_sorted_as_numbers(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", tsv([("10", "a"), ("9", "b"), ("-1", "c"), ("9", "d")]))
        assert read_labelled({"train": path}).parts["train"].classes == ("-1", "9", "10")

    @pytest.mark.parametrize(
        ("labels", "classes"),
        [
            (["accept", "reject", "accept"], ("reject", "accept")),
            (["Accept", "Reject", "Accept"], ("Reject", "Accept")),
            (["yes", "no", "no"], ("no", "yes")),
            (["accept", "other", "reject", "other"], ("accept", "other", "reject")),
        ],
    )
    def test_the_second_of_two_classes_is_the_one_that_accepts(
        self, tmp_path: Path, labels: list[str], classes: tuple[str, ...]
    ) -> None:
        path = write(tmp_path / "t.tsv", tsv([(label, "a b") for label in labels]))
        found = read_labelled({"train": path}).parts["train"]
        assert found.classes == classes
        assert [found.classes[label] for label in found.labels] == labels

    def test_another_label_in_each_row_means_another_column(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.csv", "a joy,5\na bore,1\nfine,5\n")
        with pytest.raises(
            DataError, match=r"t\.csv: got another label in each of 3 rows, such as 'a joy'.*label=\.\.\."
        ):
            read_labelled({"train": path})
        assert read_labelled({"train": LabelledFile(path=path, label=1)}).parts["train"].classes == ("1", "5")

    def test_a_label_that_train_has_not_names_its_line(self, files: dict[str, Path], tmp_path: Path) -> None:
        files["valid"] = write(tmp_path / "valid.tsv", tsv([("pos", "a"), ("neutral", "b")]))
        with pytest.raises(
            DataError, match=r"valid\.tsv, line 2, field 'label': got 'neutral', wanted one of neg, pos"
        ):
            read_labelled(files)

    def test_a_text_without_words_is_an_empty_sequence(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", tsv([("1", "<br />"), ("0", "x")]))
        assert read_labelled({"train": path}).parts["train"].lengths.tolist() == [0, 1]

    def test_train_must_be_among_the_files(self, files: dict[str, Path]) -> None:
        with pytest.raises(ArgumentError, match="'train'"):
            read_labelled({"test": files["test"]})


class TestImdb:
    def test_its_files_are_read_with_tabs_and_odd_line_ends(self, tmp_path: Path) -> None:
        rows = "".join(f"{n % 2}\t{n % 10}\t{n}\tword{n} good\tfilm\u0085end\n" for n in range(20))
        for part in ("train", "test"):
            write(tmp_path / f"imdb.{part}.tsv.xz", rows)
        tests = {"short": ("first", 1), "whole": None}
        sets = imdb_sets(data=tmp_path, truncate=("last", 2), test_truncate=tests, valid=0.2, seed=1)  # type: ignore[arg-type]
        assert sets.valid is not None
        assert (sets.train.counts.tolist(), sets.valid.counts.tolist()) == ([8, 8], [2, 2])
        assert sets.train.text(0) == "film end"
        assert sets.tests["short"].text(3) == "word3"
        assert sets.tests["whole"].text(3) == "word3 good film end"
        assert sets.train.classes == ("negative", "positive")

    def test_its_files_may_lie_in_a_folder_raw(self, tmp_path: Path) -> None:
        (tmp_path / "imdb" / "raw").mkdir(parents=True)
        for part in ("train", "test"):
            write(tmp_path / "imdb" / "raw" / f"imdb.{part}.tsv.gz", "1\t9\t1\tgood\n0\t1\t2\tbad\n")
        sets = imdb_sets(data=tmp_path, valid=0)
        assert sets.train.texts() == sets.tests["test"].texts() == ["good", "bad"]

    def test_its_origin_is_told_where_it_is_not(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="Maas"):
            find_data_set("imdb", data=tmp_path)

    @pytest.mark.data
    @pytest.mark.slow
    def test_the_real_reviews_have_the_published_counts(self) -> None:
        try:
            sets = imdb_sets(truncate=None, valid=0)
        except DataError:
            pytest.skip("imdb is not here")
        assert sets.train.counts.tolist() == sets.tests["test"].counts.tolist() == [12500, 12500]
        # Table 10: 11 and 8 words at least.
        assert (int(sets.train.lengths.min()), int(sets.tests["test"].lengths.min())) == (11, 8)
        assert len(sets.train.symbols) == 30_000
