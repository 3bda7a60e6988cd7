"""Corpora from folders and single files, and the cache between them and their text."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from statewise.data import Columns, Corpus, Text, TokenStream, Vocabulary, cache, read_corpus
from statewise.errors import ArgumentError, DataError
from support import shared_data

ROOT = Path(__file__).resolve().parents[2]
PARTS = {"train": "the cat sat .\n\nthe dog sat\n", "valid": "the cat\n", "test": "a dog .\n"}


def make(folder: Path, layout: str = "{}.txt", **parts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for split, content in (PARTS | parts).items():
        path = folder / layout.format(split)
        compress: Any = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
        path.write_bytes(compress(content.encode()))
    return folder


def entries(place: Path, pattern: str = "*.npy") -> list[Path]:
    return sorted(place.rglob(pattern))


def words(corpus: Corpus, split: str) -> str:
    return " ".join(corpus.vocabulary.decode(getattr(corpus, split)[:]))


class TestReading:
    @pytest.mark.parametrize(
        "layout", ["ptb.{}.txt", "wiki.{}.tokens", "{}.txt", "{}.tokens", "ptb.{}.txt.gz", "{}.txt.xz"]
    )
    def test_every_layout_gives_the_same_corpus(self, tmp_path: Path, layout: str) -> None:
        corpus = read_corpus(make(tmp_path / "pets", layout), cache=tmp_path / "cache")
        assert corpus.vocabulary.words == ("<unk>", "<eos>", "sat", "the", ".", "cat", "dog")
        assert words(corpus, "train") == "the cat sat . <eos> <eos> the dog sat <eos>"
        assert words(corpus, "valid") == "the cat <eos>"
        assert words(corpus, "test") == "<unk> dog . <eos>"
        assert corpus.name == ("ptb" if layout.startswith("ptb") else "pets")

    def test_an_uncompressed_file_wins(self, tmp_path: Path) -> None:
        make(tmp_path / "pets", "{}.txt.gz", train="other words\n")
        assert "the" in read_corpus(make(tmp_path / "pets"), cache=tmp_path / "cache").vocabulary

    def test_the_vocabulary_follows_its_options(self, tmp_path: Path) -> None:
        folder = make(tmp_path / "pets", train="The the THE cat\n")
        sizes = [
            len(read_corpus(folder, cache=tmp_path / "cache", **options).vocabulary)
            for options in ({}, {"lower": True}, {"limit": 3}, {"lower": True, "min_count": 2})
        ]
        assert sizes == [6, 4, 3, 3]

    def test_lower_case_holds_for_all_parts(self, tmp_path: Path) -> None:
        folder = make(tmp_path / "pets", valid="THE Cat\n")
        assert words(read_corpus(folder, cache=tmp_path / "cache", lower=True), "valid") == "the cat <eos>"

    def test_a_missing_part_is_named_with_what_was_found(self, tmp_path: Path) -> None:
        (make(tmp_path / "pets") / "valid.txt").unlink()
        with pytest.raises(DataError, match=r"pets: got no file for valid among test\.txt, train\.txt, wanted train"):
            read_corpus(tmp_path / "pets", cache=tmp_path / "cache")

    def test_an_empty_folder_and_an_absent_one_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        with pytest.raises(DataError, match="no file for train and valid and test among no files at all"):
            read_corpus(tmp_path / "empty")
        with pytest.raises(DataError, match="absent: got no such file or folder"):
            read_corpus(tmp_path / "absent")

    def test_a_malformed_part_is_named(self, tmp_path: Path) -> None:
        (make(tmp_path / "pets") / "test.txt").write_bytes(b"a\nb \xff\n")
        with pytest.raises(DataError, match=r"test\.txt, line 2, byte 3"):
            read_corpus(tmp_path / "pets", cache=tmp_path / "cache")

    @pytest.mark.parametrize("name", ["story.txt", "story.txt.gz"])
    @pytest.mark.parametrize("lines", [20, 27, 100])
    def test_a_single_file_is_split_by_its_lines(self, tmp_path: Path, name: str, lines: int) -> None:
        content = "".join(f"line {number}\n" for number in range(lines)).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        corpus = read_corpus(tmp_path / name, cache=tmp_path / "cache")
        counts = [len(stream) // 3 for stream in (corpus.train, corpus.valid, corpus.test)]
        assert counts == [lines * 90 // 100, lines * 95 // 100 - lines * 90 // 100, lines - lines * 95 // 100]
        assert words(corpus, "train").startswith("line 0 <eos> line 1 <eos>")
        assert words(corpus, "test").endswith("line <unk> <eos>")
        assert len(corpus.vocabulary) == 3 + counts[0]
        assert corpus.name == "story"

    def test_a_file_of_few_lines_is_not_split(self, tmp_path: Path) -> None:
        (tmp_path / "story.txt").write_text("one\n" * 19)
        with pytest.raises(DataError, match=r"story\.txt: got 19 lines, wanted 20"):
            read_corpus(tmp_path / "story.txt", cache=tmp_path / "cache")


class TestCache:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return make(tmp_path / "pets")

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path / "cache"

    @pytest.fixture
    def writes(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The names of the files that are encoded."""
        done: list[str] = []
        write = TokenStream.write.__func__  # type: ignore[attr-defined]

        def noted(path: Path, text: Text, vocabulary: Vocabulary) -> Any:
            done.append(text.path.name)
            return write(TokenStream, path, text, vocabulary)

        monkeypatch.setattr(TokenStream, "write", noted)
        return done

    def test_what_was_read_once_is_not_read_again(self, folder: Path, place: Path, writes: list[str]) -> None:
        first, second = read_corpus(folder, cache=place), read_corpus(folder, cache=place)
        assert writes == ["train.txt", "valid.txt", "test.txt"]
        assert first.vocabulary == second.vocabulary
        assert first.train[:].equal(second.train[:])

    def test_nothing_is_written_beside_the_text(self, folder: Path, place: Path) -> None:
        read_corpus(folder, cache=place)
        assert len(list(folder.iterdir())) == 3

    def test_a_part_that_changed_is_read_again_and_its_old_entry_goes(
        self, folder: Path, place: Path, writes: list[str]
    ) -> None:
        read_corpus(folder, cache=place)
        (folder / "valid.txt").write_text("dog dog\n")
        assert words(read_corpus(folder, cache=place), "valid") == "dog dog <eos>"
        assert writes[3:] == ["valid.txt"]
        assert len(entries(place)) == 3

    def test_a_change_that_keeps_size_and_date_is_seen(self, folder: Path, place: Path) -> None:
        read_corpus(folder, cache=place)
        path = folder / "valid.txt"
        found = path.stat()
        path.write_text("the dog\n")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (found.st_size, found.st_mtime_ns)
        assert words(read_corpus(folder, cache=place), "valid") == "the dog <eos>"

    def test_another_train_part_gives_another_vocabulary_to_all(self, folder: Path, place: Path) -> None:
        read_corpus(folder, cache=place)
        (folder / "train.txt").write_text("a dog\n")
        assert words(read_corpus(folder, cache=place), "test") == "a dog <unk> <eos>"

    @pytest.mark.parametrize("pattern", ["*.npy", "*.json"])
    @pytest.mark.parametrize("how", ["empty", "cut off", "changed", "another file"])
    def test_a_damaged_entry_is_made_again(
        self, folder: Path, place: Path, pattern: str, how: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        whole = read_corpus(folder, cache=place)
        expected = {split: words(whole, split) for split in PARTS}
        for entry in entries(place, pattern):
            content = entry.read_bytes()
            middle = len(content) - 40
            changed = content[:middle] + bytes([content[middle] ^ 2]) + content[middle + 1 :]
            damage = {"empty": b"", "cut off": content[:-3], "changed": changed, "another file": b"text"}[how]
            entry.write_bytes(damage)
        again = read_corpus(folder, cache=place)
        assert "is damaged and is made again" in caplog.text
        assert again.vocabulary == whole.vocabulary
        assert {split: words(again, split) for split in PARTS} == expected

    def test_an_entry_made_for_other_words_is_not_taken(self, folder: Path, place: Path) -> None:
        text = Text(path=folder / "train.txt")
        one = cache.cached_stream(text, Vocabulary(["<unk>", "<eos>", "the"]), cache=place)
        two = cache.cached_stream(text, Vocabulary(["<unk>", "<eos>", "cat"]), cache=place)
        assert not one[:].equal(two[:])
        assert len(entries(place)) == 2

    def test_what_a_killed_process_left_goes_after_a_day(self, folder: Path, place: Path) -> None:
        read_corpus(folder, cache=place)
        kept = entries(place)[0].parent
        old, new = kept / ".x-y.npy.1.partial", kept / ".x-y.npy.2.partial"
        for file in (old, new):
            file.write_text("half")
        os.utime(old, (0, 0))
        source = next(path for path in folder.iterdir() if cache._digest(str(path.resolve())) == kept.name)
        source.write_text("the cat again\n")
        read_corpus(folder, cache=place)
        assert (old.exists(), new.exists()) == (False, True)

    def test_a_file_that_changes_while_it_is_read_is_refused(
        self, folder: Path, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stamps = iter(range(100))
        monkeypatch.setattr(Text, "stamp", lambda _: f"{next(stamps)}")
        with pytest.raises(DataError, match=r"train\.txt: got a file that changed while it was read"):
            read_corpus(folder, cache=place)
        assert entries(place, "*.json") == []

    def test_the_usual_place_is_the_packages_own(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STATEWISE_CACHE", str(tmp_path / "usual"))
        read_corpus(folder)
        assert len(entries(tmp_path / "usual")) == 3

    def test_a_home_that_cannot_be_written_is_replaced_by_temporary_files(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(cache, "cache_roots", lambda: [tmp_path / "file" / "below", tmp_path / "temporary" / "own"])
        read_corpus(folder)
        assert len(entries(tmp_path / "temporary")) == 3

    @pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
    def test_a_temporary_folder_that_others_can_write_is_not_trusted(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        monkeypatch.setattr(cache, "cache_roots", lambda: [tmp_path / "file" / "below", tmp_path / "open"])
        with pytest.raises(ArgumentError, match="STATEWISE_CACHE"):
            read_corpus(folder)

    def test_a_place_that_cannot_be_written_is_named(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ArgumentError, match=r"cache: got .*file, wanted a folder that can be written"):
            read_corpus(folder, cache=tmp_path / "file")

    def test_several_processes_at_once_make_one_entry_each_part(self, tmp_path: Path, place: Path) -> None:
        folder = make(tmp_path / "more", train="the cat sat on the mat .\n" * 50_000)
        program = (
            "import sys\nfrom statewise.data import read_corpus\nprint('ready', flush=True)\ninput()\n"
            "c = read_corpus(sys.argv[1], cache=sys.argv[2])\n"
            "print(len(c.train), int(c.train[:].sum()), c.vocabulary.fingerprint)\n"
        )
        running = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(folder), str(place)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
            for _ in range(2)
        ]
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate() for process in running]
        assert [error for _, error in said] == ["", ""]
        assert said[0][0] == said[1][0]
        assert said[0][0].startswith("400000 ")
        assert len(entries(place)) == 3
        assert entries(place, "*.partial") == []


@pytest.mark.data
class TestPublishedCounts:
    @pytest.mark.parametrize(
        ("name", "size", "tokens", "unknown", "updates"),
        [
            ("ptb", 10_000, (929_589, 73_760, 82_430), (45_020, 3_485, 4_794), 332),
            ("wikitext-2", 33_278, (2_088_628, 217_646, 245_569), (54_625, 11_718, 15_218), 746),
        ],
    )
    def test_a_benchmark_has_the_counts_of_its_paper(
        self, tmp_path: Path, name: str, size: int, tokens: tuple[int, ...], unknown: tuple[int, ...], updates: int
    ) -> None:
        corpus = read_corpus(shared_data(name), cache=tmp_path)
        streams = (corpus.train, corpus.valid, corpus.test)
        assert len(corpus.vocabulary) == size
        assert tuple(map(len, streams)) == tokens
        # No word of valid or test became unknown: all the unknown ones are so in the files.
        assert tuple(int((stream[:] == corpus.vocabulary.unknown_id).sum()) for stream in streams) == unknown
        assert Columns(corpus.train, 80).updates(35) == updates
        assert len(read_corpus(shared_data(name), cache=tmp_path, limit=size).vocabulary) == size

    def test_the_first_sentence_of_the_penn_treebank_is_decoded(self, tmp_path: Path) -> None:
        corpus = read_corpus(shared_data("ptb"), cache=tmp_path)
        assert words(corpus, "valid").startswith(
            "consumers may want to move their telephones a little closer to the tv"
        )


def test_the_saved_vocabulary_is_readable_text(tmp_path: Path) -> None:
    corpus = read_corpus(make(tmp_path / "pets"), cache=tmp_path / "cache")
    content = json.loads(entries(tmp_path / "cache", "*.json")[0].read_text(encoding="utf-8"))
    assert content["words"] == list(corpus.vocabulary.words)
