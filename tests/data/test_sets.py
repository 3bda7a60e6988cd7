"""Where benchmark data is found, and the sample that is always there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from statewise.data import find_data_set, sample_corpus, sets
from statewise.errors import ArgumentError, DataError

ROOT = Path(__file__).resolve().parents[2]


def make(folder: Path, layout: str = "ptb.{}.txt") -> Path:
    folder.mkdir(parents=True)
    for split in ("train", "valid", "test"):
        (folder / layout.format(split)).write_text("the cat\n")
    return folder


class TestFinding:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A working directory and a checkout without data beside them."""
        monkeypatch.delenv("STATEWISE_DATA", raising=False)
        (tmp_path / "work" / "here").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "work" / "here")
        monkeypatch.setattr(sets, "_checkout", lambda: tmp_path / "code" / "checkout")

    @pytest.mark.parametrize("below", ["ptb", "penn", "simple-examples/data", "."])
    def test_the_argument_is_the_folder_of_the_set_or_the_one_above(self, tmp_path: Path, below: str) -> None:
        made = make(tmp_path / "data" / below)
        assert find_data_set("ptb", data=tmp_path / "data").resolve() == made.resolve()

    def test_a_named_folder_comes_before_an_unnamed_one(self, tmp_path: Path) -> None:
        make(tmp_path / "data", "{}.txt")
        made = make(tmp_path / "data" / "wikitext-2", "wiki.{}.tokens")
        assert find_data_set("wikitext-2", data=str(tmp_path / "data")) == made

    def test_the_environment_comes_before_the_neighbours(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        beside = make(tmp_path / "work" / "shared" / "data" / "ptb")
        assert find_data_set("ptb") == beside
        monkeypatch.setenv("STATEWISE_DATA", str(tmp_path / "mine"))
        assert find_data_set("ptb") == beside
        mine = make(tmp_path / "mine" / "ptb")
        assert find_data_set("ptb") == mine

    def test_data_beside_the_checkout_is_found(self, tmp_path: Path) -> None:
        made = make(tmp_path / "code" / "shared" / "data" / "ptb")
        assert find_data_set("ptb") == made

    def test_a_folder_that_was_named_is_the_only_one_searched(self, tmp_path: Path) -> None:
        make(tmp_path / "work" / "shared" / "data" / "ptb")
        with pytest.raises(DataError, match=r"data set ptb: got nothing in .*wrong, wanted"):
            find_data_set("ptb", data=tmp_path / "wrong")

    @pytest.mark.parametrize(("name", "origin"), [("ptb", "simple-examples"), ("wikitext-2", "Salesforce")])
    def test_the_error_says_where_was_searched_and_where_to_get_it(
        self, tmp_path: Path, name: str, origin: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STATEWISE_DATA", str(tmp_path / "mine"))
        with pytest.raises(DataError) as caught:
            find_data_set(name)
        said = str(caught.value)
        places = ("mine", "work/shared/data", "code/shared/data")
        assert all(str(tmp_path / place) in said for place in places)
        assert origin in said
        assert "--data" in said

    def test_a_set_with_a_part_missing_is_not_taken(self, tmp_path: Path) -> None:
        (make(tmp_path / "ptb") / "ptb.test.txt").unlink()
        with pytest.raises(DataError, match="nothing in"):
            find_data_set("ptb", data=tmp_path)

    def test_an_unknown_set_is_refused_with_the_known_ones(self) -> None:
        with pytest.raises(ArgumentError, match="one of ptb, wikitext-2"):
            find_data_set("imagenet")


class TestSample:
    def test_it_has_the_size_it_says(self) -> None:
        corpus = sample_corpus()
        assert 6000 <= len(corpus.train) <= 7000
        assert 1400 <= len(corpus.valid) <= 1700
        assert 1400 <= len(corpus.test) <= 1700
        assert 100 <= len(corpus.vocabulary) <= 130

    def test_no_word_of_any_part_is_unknown(self) -> None:
        corpus = sample_corpus()
        for stream in (corpus.train, corpus.valid, corpus.test):
            assert (stream[:] != corpus.vocabulary.unknown_id).all()
            assert stream[-1] == corpus.vocabulary.end_id

    def test_few_sentences_of_the_other_parts_are_in_the_training_part(self) -> None:
        corpus = sample_corpus()
        parts = [
            Counter(" ".join(corpus.vocabulary.decode(stream[:])).split(" <eos> "))
            for stream in (corpus.train, corpus.valid, corpus.test)
        ]
        assert all(len(set(part) & set(parts[0])) < 0.1 * len(part) for part in parts[1:])

    def test_verbs_agree_with_the_subject_before_the_clause_between(self) -> None:
        corpus = sample_corpus()
        said = " ".join(corpus.vocabulary.decode(corpus.train[:])).split(" <eos> ")
        plural = {"these", "some", "all"}
        checked = 0
        for sentence in said:
            words = sentence.split()
            if "whom" in words and words[0] in {"a", "this", "every", *plural} and "that" not in words:
                following = words[words.index("whom") + 1 :]
                verbs = [word for word in following if word in SINGULAR | PLURAL]
                # The inner verb is the first, the one of the subject the second.
                checked += 1
                assert verbs[1] in (PLURAL if words[0] in plural else SINGULAR), sentence
        assert checked >= 10

    def test_it_is_the_same_in_every_process(self) -> None:
        program = (
            "from statewise.data import sample_corpus as s; print(s().vocabulary.fingerprint, *s().train[:].tolist())"
        )
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"},
            capture_output=True,
            text=True,
            check=True,
        )
        corpus = sample_corpus()
        assert ran.stdout.split() == [corpus.vocabulary.fingerprint, *map(str, corpus.train[:].tolist())]


SINGULAR = {
    *("sleeps", "sings", "waits", "laughs", "works", "dances", "rests"),
    *("sees", "follows", "likes", "helps", "calls", "fears", "meets", "paints", "says", "thinks", "knows"),
}
PLURAL = {verb.removesuffix("s") for verb in SINGULAR}
