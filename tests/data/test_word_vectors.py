"""Word vectors from text and from arrays, and how words are looked up."""

from __future__ import annotations

import gzip
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import WordVectors, read_tagged, read_vectors
from statewise.errors import ArgumentError, DataError, LengthError
from statewise.models.lexicon import spellings
from support import shared_data

GLOVE = "the 0.5 -1\n. . 2 3e-1\ncat\u0085s 1 1\nthe 9 9\nat name@ 4 5\n"


def text(path: Path, content: str) -> Path:
    raw = content.encode()
    path.write_bytes({".gz": gzip.compress(raw), ".xz": lzma.compress(raw)}.get(path.suffix, raw))
    return path


class TestText:
    @pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
    @pytest.mark.parametrize("head", ["", "5 2\n"])
    def test_words_may_have_blanks_and_the_first_of_two_wins(self, tmp_path: Path, ending: str, head: str) -> None:
        vectors = read_vectors(text(tmp_path / f"glove.txt{ending}", head + GLOVE))
        assert vectors.words == ("the", ". .", "cat\u0085s", "at name@")
        assert vectors.vectors.tolist() == [[0.5, -1], [2, pytest.approx(0.3)], [1, 1], [4, 5]]
        assert (vectors.vectors.dtype.name, vectors.name, vectors.width) == ("float32", "glove.txt", 2)

    def test_blanks_at_the_end_and_line_ends_of_windows(self, tmp_path: Path) -> None:
        vectors = read_vectors(text(tmp_path / "w2v.txt", "2 2\r\na 1 2 \r\nb 3 4 \r\n"))
        assert (vectors.words, vectors.vectors.tolist()) == (("a", "b"), [[1, 2], [3, 4]])

    def test_only_what_is_wanted_is_kept(self, tmp_path: Path) -> None:
        path = text(tmp_path / "g.txt", "the 1\nThe 2\n00 3\ncat 4\nmay0 5\n")
        assert read_vectors(path, vocabulary=["The", "42", "MAY7"]).words == ("the", "The", "00", "may0")
        with pytest.raises(DataError, match="no words that are wanted"):
            read_vectors(path, vocabulary=["dog"])

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ("a 1 2\nb 1\n", r"g.txt, line 2: got 2 fields, wanted a word and 2 numbers"),
            ("a 1 2\nb 1 x\n", "line 2: got 'x', wanted 2 numbers behind 'b'"),
            ("a 1 2\nb 1 nan\n", "line 2: got a number that is not finite"),
            ("a 1 2\nb 1 1e99\n", "line 2: got a number that is not finite"),
            ("a\n", "line 1: got 1 fields"),
            ("3 2\na 1 2\n", "got 1 words, wanted 3, as its first line says"),
            ("a 1 2\nb 1 2 3\n", "line 2: got more than 2 numbers, wanted 2, as the first line says or has"),
            ("a 1\nb 1 2\nc 3 4\n", "line 2: got more than 1 numbers.*Look at this line and at the first one"),
            ("1 2\nb 1 2 3\n", "line 2: got more than 2 numbers"),
            ("1 2\na 1\n", "line 2: got 2 fields, wanted a word and 2 numbers"),
        ],
    )
    def test_faults_are_named_with_their_line(self, tmp_path: Path, content: str, error: str) -> None:
        with pytest.raises(DataError, match=error):
            read_vectors(text(tmp_path / "g.txt", content))


class TestArrays:
    def test_arrays_are_read_in_any_precision_and_the_first_of_two_wins(self, tmp_path: Path) -> None:
        path = tmp_path / "g.npz"
        np.savez(path, words=np.array(["a", "b", "a"]), vectors=np.arange(6, dtype=np.float16).reshape(3, 2))
        vectors = read_vectors(path)
        assert (vectors.words, vectors.vectors.tolist()) == (("a", "b"), [[0, 1], [2, 3]])
        assert vectors.vectors.dtype == np.float32
        assert read_vectors(path, vocabulary=["B"]).vectors.tolist() == [[2, 3]]

    def test_faults_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "g.npz"
        np.savez(path, words=np.array(["a"]))
        with pytest.raises(DataError, match="got no array 'vectors'"):
            read_vectors(path)
        np.savez(path, words=np.array(["a", None], dtype=object), vectors=np.ones((2, 1)))
        with pytest.raises(DataError, match="without pickles"):
            read_vectors(path)
        np.savez(path, words=np.array(["a"]), vectors=np.ones((2, 1)))
        with pytest.raises(DataError, match=r"array 'vectors': got float64 of shape \(2, 1\)"):
            read_vectors(path)
        np.savez(path, words=np.array([1]), vectors=np.ones((1, 1)))
        with pytest.raises(DataError, match="array 'words'"):
            read_vectors(path)
        np.savez(path, words=np.array(["a"]), vectors=np.full((1, 1), np.nan))
        with pytest.raises(DataError, match="row 0: got no finite number"):
            read_vectors(path)
        path.write_bytes(b"PK nonsense")
        with pytest.raises(DataError, match="arrays 'words' and 'vectors'"):
            read_vectors(path)
        with pytest.raises(DataError, match="No such file"):
            read_vectors(tmp_path / "absent.npz")


class TestLookup:
    def test_the_order_of_spellings(self) -> None:
        vectors = WordVectors(("B52", "b52", "B00", "b00"), np.zeros((4, 1), dtype=np.float32))
        assert [vectors.lookup(word) for word in ("B52", "b52", "B53", "b53", "c52")] == [0, 1, 2, 3, -1]
        assert WordVectors(("b52", "B00"), np.zeros((2, 1), dtype=np.float32)).lookup("B52") == 0
        assert ("B52" in vectors, "B53" in vectors, len(vectors)) == (True, False, 4)

    @given(word=st.text())
    def test_a_word_that_is_there_is_found_in_each_of_its_spellings_order(self, word: str) -> None:
        for form in spellings(word):
            assert WordVectors((form,), np.ones((1, 1), dtype=np.float32)).lookup(word) == 0

    def test_rows_are_zero_where_a_word_is_missing(self) -> None:
        vectors = WordVectors(("a", "b"), np.array([[1, 2], [3, 4]], dtype=np.float32))
        rows, found = vectors.matrix(["b", "z", "A"])
        assert (rows.tolist(), found.tolist()) == ([[3, 4], [0, 0], [1, 2]], [True, False, True])
        assert vectors.matrix([])[0].shape == (0, 2)

    def test_what_does_not_fit_is_refused(self) -> None:
        with pytest.raises(LengthError, match="got 2 vectors, wanted 1"):
            WordVectors(("a",), np.zeros((2, 1), dtype=np.float32))
        with pytest.raises(ArgumentError, match="'a' twice"):
            WordVectors(("a", "a"), np.zeros((2, 1), dtype=np.float32))

    @pytest.mark.data
    @pytest.mark.usefixtures("as_users_have_it")
    def test_the_published_coverage_of_conll(self) -> None:
        vectors = read_vectors(shared_data("glove/glove.6B.100d.conll2003.npz"))
        words: Counter[str] = Counter()
        for part in ("train", "testa", "testb"):
            words += read_tagged(shared_data(f"conll2003/eng.{part}.xz"), scheme="iob1").word_counts()
        assert (len(words), words.total(), vectors.width) == (30_289, 301_418, 100)
        _, found = vectors.matrix(words)
        assert int(found.sum()) == 26_475
        assert sum(count for count, there in zip(words.values(), found, strict=True) if there) == 294_611
        by_spelling = Counter(
            next((at for at, form in enumerate(spellings(word)) if form in vectors), None) for word in words
        )
        assert [by_spelling[at] for at in range(4)] == [14_618, 11_722, 119, 16]
