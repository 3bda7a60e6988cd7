"""Streams of ids in memory and in files."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import Text, TokenStream, Vocabulary
from statewise.errors import ArgumentError, DataError, DtypeError

VOCABULARY = Vocabulary(["<unk>", "<eos>", "the", "cat", "état"])


def test_a_sentence_ends_with_the_end_and_an_empty_line_is_nothing_else(tmp_path: Path) -> None:
    made = TokenStream.write(tmp_path / "ids.npy", ["the cat", "", "the dog"], VOCABULARY)
    assert made[:].tolist() == [2, 3, 1, 1, 2, 0, 1]


def test_a_file_of_text_is_encoded_as_its_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("the état\r\n\n the  cat".encode())
    made = TokenStream.write(tmp_path / "ids.npy", Text(path=tmp_path / "a.txt"), VOCABULARY)
    assert made[:].tolist() == [2, 4, 1, 1, 2, 3, 1]


def test_the_file_is_one_that_numpy_reads(tmp_path: Path) -> None:
    TokenStream.write(tmp_path / "ids.npy", ["the cat"], VOCABULARY)
    assert np.load(tmp_path / "ids.npy", allow_pickle=False).tolist() == [2, 3, 1]
    assert np.load(tmp_path / "ids.npy", allow_pickle=False, mmap_mode="r").dtype == np.uint16


@pytest.mark.parametrize(("size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.int32)])
def test_ids_take_two_bytes_where_they_can(tmp_path: Path, size: int, dtype: type) -> None:
    vocabulary = Vocabulary(["<unk>", "<eos>", *(f"w{number}" for number in range(size - 2))])
    made = TokenStream.write(tmp_path / "ids.npy", [f"w{size - 3} w0"], vocabulary)
    assert made[:].tolist() == [size - 1, 2, 1]
    assert np.load(tmp_path / "ids.npy").dtype == dtype


@given(
    st.lists(st.lists(st.sampled_from(["the", "cat", "dog", "état"]), min_size=1, max_size=5), min_size=1, max_size=9)
)
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("stream") / "ids.npy"
    TokenStream.write(path, map(" ".join, sentences), VOCABULARY)
    expected = [number for words in sentences for number in VOCABULARY.encode([*words, "<eos>"])]
    opened = TokenStream.open(path)
    assert len(opened) == len(expected)
    assert opened[:].tolist() == expected


@pytest.fixture(params=["memory", "file"])
def ten(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStream:
    """The ids 2 3 2 3 ... 1 of nine words."""
    if request.param == "memory":
        return TokenStream(np.array([2, 3, 2, 3, 2, 3, 2, 3, 2, 1]))
    return TokenStream.write(tmp_path / "ids.npy", ["the cat the cat the cat the cat the"], VOCABULARY)


@pytest.mark.parametrize("part", [slice(None), slice(2, 5), slice(-3, None), slice(5, 2), slice(8, 99)])
def test_a_slice_is_a_tensor_of_its_own(ten: TokenStream, part: slice) -> None:
    expected = [2, 3, 2, 3, 2, 3, 2, 3, 2, 1][part]
    found = ten[part]
    assert found.dtype == torch.int64
    assert found.tolist() == expected
    found.zero_()
    assert ten[part].tolist() == expected


def test_a_place_is_an_int_and_a_place_outside_an_error(ten: TokenStream) -> None:
    assert (ten[0], ten[-1], type(ten[0])) == (2, 1, int)
    with pytest.raises(IndexError, match="10"):
        ten[10]


def test_a_slice_with_steps_is_refused(ten: TokenStream) -> None:
    with pytest.raises(ArgumentError, match="without a step"):
        ten[::2]


def test_it_crosses_processes(ten: TokenStream) -> None:
    assert pickle.loads(pickle.dumps(ten))[:].equal(ten[:])


def test_a_file_cut_off_under_an_open_stream_is_an_error_and_no_crash(tmp_path: Path) -> None:
    made = TokenStream.write(tmp_path / "ids.npy", ["the cat"] * 10_000, VOCABULARY)
    with (tmp_path / "ids.npy").open("r+b") as file:
        file.truncate(1000)
    assert made[:3].tolist() == [2, 3, 1]
    with pytest.raises(DataError, match=r"ids\.npy: got a file cut off"):
        made[:]


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (3, 2), (8, 11)])
def test_places_outside_cannot_be_read(ten: TokenStream, start: int, stop: int) -> None:
    with pytest.raises(ArgumentError, match="places from 0 to 10"):
        ten.read(start, stop)


def test_a_stream_that_is_gone_leaves_no_file_open(tmp_path: Path) -> None:
    made = TokenStream.write(tmp_path / "ids.npy", ["the cat"], VOCABULARY)
    file = made._source._file  # type: ignore[union-attr]
    del made
    gc.collect()
    assert file.closed


def test_the_stream_outlives_its_file(tmp_path: Path) -> None:
    made = TokenStream.write(tmp_path / "ids.npy", ["the cat"], VOCABULARY)
    (tmp_path / "ids.npy").unlink()
    assert made[:].tolist() == [2, 3, 1]


@pytest.mark.parametrize("lines", [[], ["", " "]])
def test_a_text_without_words_is_refused_and_leaves_no_file(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(DataError, match="without words"):
        TokenStream.write(tmp_path / "ids.npy", lines, VOCABULARY)
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_text_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"the cat\n\xff\n")
    with pytest.raises(DataError, match=r"a\.txt, line 2, byte 1"):
        TokenStream.write(tmp_path / "ids.npy", Text(path=tmp_path / "a.txt"), VOCABULARY)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_every_byte_that_is_changed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "ids.npy"
    TokenStream.write(path, ["the cat"] * 3, VOCABULARY)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DataError, match=r"ids\.npy: got .* Write it again"):
            TokenStream.open(path)


@pytest.mark.parametrize("content", [b"", b"text", b"\x93NUMPY"], ids=["empty", "text", "begun"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ids.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"ids\.npy"):
        TokenStream.open(tmp_path / "ids.npy")


def test_every_shorter_or_longer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ids.npy"
    TokenStream.write(path, ["the cat"] * 3, VOCABULARY)
    whole = path.read_bytes()
    for content in [*(whole[:length] for length in range(len(whole))), whole + b"\n"]:
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"ids\.npy"):
            TokenStream.open(path)


def test_arrays_of_numpy_that_are_no_streams_are_refused(tmp_path: Path) -> None:
    for array in (np.zeros(3, np.uint16), np.zeros((2, 2), np.int32), np.zeros(3), np.array([{}], dtype=object)):
        np.save(tmp_path / "ids.npy", array)
        with pytest.raises(DataError, match=r"ids\.npy"):
            TokenStream.open(tmp_path / "ids.npy")


def test_ids_that_cannot_be_are_refused() -> None:
    with pytest.raises(ArgumentError, match="negative"):
        TokenStream(np.array([1, -1]))
    with pytest.raises(ArgumentError, match="one dimension"):
        TokenStream(np.zeros((2, 2), np.int64))
    with pytest.raises(DtypeError, match="float64"):
        TokenStream(np.zeros(3))
