"""Plain text in pieces, and every way it can be malformed."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import Text, text
from statewise.errors import ArgumentError, DataError

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "a.txt": bytes,
    "a.tokens": bytes,
    "a": bytes,
    "a.txt.gz": gzip.compress,
    "a.txt.xz": lzma.compress,
    "a.tokens.bz2": bz2.compress,
}
CONTENT = "the cat\n\n état 日本\r\nno end".encode()


def written(folder: Path, content: bytes, name: str = "a.txt") -> Text:
    (folder / name).write_bytes(content)
    return Text(path=folder / name)


@pytest.fixture
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_PIECE", 3)


@pytest.mark.parametrize("name", COMPRESS)
def test_a_file_is_read_as_its_name_says_it_is_compressed(tmp_path: Path, name: str) -> None:
    found = written(tmp_path, COMPRESS[name](CONTENT), name)
    assert list(found.lines()) == ["the cat", "", " état 日本", "no end"]
    assert found.count_lines() == 4


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    lines = ["a\x85b", "c\u2028d", "e\x0bf\x0cg\x1ch", "i\rj"]
    assert list(written(tmp_path, "\n".join(lines).encode()).lines()) == lines


@pytest.mark.parametrize("line", ["the cat", "the", "x" * 100_000], ids=["words", "a word", "a long word"])
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, line: str) -> None:
    assert list(written(tmp_path, b"\xef\xbb\xbf" + line.encode()).lines()) == [line]


def test_letters_are_made_lower_case_on_demand(tmp_path: Path) -> None:
    written(tmp_path, "ÉTAT Cat\n".encode())
    assert list(Text(path=tmp_path / "a.txt", lower=True).lines()) == ["état cat"]


@given(
    # The letters have one to four bytes, so that pieces would break inside them if they could.
    content=st.text("aé日𝄞 \n\t\r\u3000", min_size=1, max_size=60),
    piece=st.integers(1, 9),
    start=st.integers(0, 6),
    more=st.none() | st.integers(0, 6),
)
def test_pieces_of_any_size_make_up_the_lines_that_were_asked_for(
    tmp_path_factory: pytest.TempPathFactory, content: str, piece: int, start: int, more: int | None
) -> None:
    folder = tmp_path_factory.mktemp("text")
    whole = content if content.endswith("\n") else content + "\n"
    stop = None if more is None else start + more
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_PIECE", piece)
        written(folder, content.encode())
        found = Text(path=folder / "a.txt", start=start, stop=stop)
        lines = [line + "\n" for line in whole.split("\n")[:-1]][start:stop]
        pieces = list(found.pieces())
        assert "".join(pieces) == "".join(lines)
        assert [word for part in pieces for word in part.split()] == "".join(lines).split()
        assert list(found.lines()) == [line.removesuffix("\n").removesuffix("\r") for line in lines]


def test_lines_out_of_order_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="start <= stop"):
        Text(path=tmp_path, start=3, stop=2)
    with pytest.raises(ArgumentError, match="start <= stop"):
        Text(path=tmp_path, start=-1)


def message(found: Text) -> str:
    with pytest.raises(DataError) as caught:
        list(found.pieces())
    return str(caught.value)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    absent = Text(path=tmp_path / "absent.txt")
    assert "absent.txt: got no such file" in message(absent)
    with pytest.raises(DataError, match=r"absent\.txt"):
        absent.fingerprint()


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    assert "a directory" in message(Text(path=tmp_path))


@pytest.mark.parametrize("name", COMPRESS)
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    assert "an empty file, wanted some text" in message(written(tmp_path, COMPRESS[name](b""), name))


def test_bytes_that_are_no_utf_8_are_named_with_line_and_byte(tmp_path: Path) -> None:
    latin = written(tmp_path, "one\ntwo\nthe état\n".encode("latin1"))
    said = message(latin)
    assert "a.txt, line 3, byte 5: got the bytes e9 (invalid continuation byte), wanted text in UTF-8" in said
    assert "iconv" in said


def test_the_place_is_right_whatever_the_pieces_are(tmp_path: Path, tiny_pieces: None) -> None:
    assert "line 3, byte 5" in message(written(tmp_path, "one\ntwo\nthe état\n".encode("latin1")))
    assert "line 2, byte 13" in message(written(tmp_path, b"one\nthe old cat \0\n"))


def test_the_line_is_that_of_the_file_when_reading_begins_later(tmp_path: Path) -> None:
    written(tmp_path, b"one\ntwo\nthree \xff\n")
    assert "line 3, byte 7" in message(Text(path=tmp_path / "a.txt", start=1))
    assert list(Text(path=tmp_path / "a.txt", stop=2).lines()) == ["one", "two"]


def test_a_letter_cut_off_at_the_end_is_named(tmp_path: Path) -> None:
    assert "line 1, byte 4: got the bytes e6 97 (unexpected end of data)" in message(written(tmp_path, b"the\xe6\x97"))


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    assert "line 2, byte 2: got a NUL byte" in message(written(tmp_path, b"one\nt\0wo"))


def test_utf_16_is_recognized(tmp_path: Path) -> None:
    assert "It looks like UTF-16: convert it" in message(written(tmp_path, "\ufeffthe cat\n".encode("utf-16-le")))


@pytest.mark.parametrize(("compress", "said"), [(gzip.compress, ".gz"), (lzma.compress, ".xz"), (bz2.compress, ".bz2")])
def test_an_archive_under_another_name_is_recognized(
    tmp_path: Path, compress: Callable[[bytes], bytes], said: str
) -> None:
    content = compress(b"the cat sat on the mat\n" * 50)
    assert f"let its name end in {said}" in message(written(tmp_path, content))


@pytest.mark.parametrize("name", ["a.gz", "a.xz", "a.bz2"])
@pytest.mark.parametrize("how", ["cut off", "damaged", "no archive"])
def test_a_damaged_archive_is_refused(tmp_path: Path, name: str, how: str) -> None:
    whole = COMPRESS[{"a.gz": "a.txt.gz", "a.xz": "a.txt.xz", "a.bz2": "a.tokens.bz2"}[name]](CONTENT * 100)
    middle = len(whole) // 2
    content = {
        "cut off": whole[:middle],
        "damaged": whole[:middle] + bytes(byte ^ 0xFF for byte in whole[middle : middle + 8]) + whole[middle + 8 :],
        "no archive": CONTENT,
    }[how]
    said = message(written(tmp_path, content, name))
    assert f"{name}: got " in said
    assert "wanted a whole ." in said
    assert "get it again" in said


def test_a_word_without_an_end_is_refused(tmp_path: Path) -> None:
    assert "line 2: got a longer word" in message(written(tmp_path, b"one\n" + b"x" * (2**19 + 2**17)))


def test_a_line_of_many_words_may_be_of_any_length(tmp_path: Path) -> None:
    words = [piece.split() for piece in written(tmp_path, b"word " * 400_000).pieces()]
    assert sum(map(len, words)) == 400_000
    assert max(map(len, words)) < 20_000


def test_a_fingerprint_follows_every_change(tmp_path: Path) -> None:
    first = written(tmp_path, b"one")
    seen = {first.fingerprint(), Text(path=first.path, stop=1).fingerprint()}
    seen.add(Text(path=first.path, lower=True).fingerprint())
    assert first.fingerprint() == Text(path=first.path).fingerprint()
    seen.add(written(tmp_path, b"four").fingerprint())
    seen.add(written(tmp_path, b"four", "b.txt").fingerprint())
    assert len(seen) == 5
