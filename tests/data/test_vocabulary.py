"""Words and their ids."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import Vocabulary
from statewise.data.counting import WordCounts
from statewise.errors import ArgumentError, DataError, DtypeError

# Any text of words: no white space, no lone surrogates.
WORDS = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=4)
LINES = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=8)


def small() -> Vocabulary:
    return Vocabulary(["<unk>", "<eos>", "the", "cat", "été"])


def test_words_are_numbered_in_their_order_and_others_are_unknown() -> None:
    assert small().encode(["cat", "the", "dog", "<eos>"]) == [3, 2, 0, 1]
    assert (small().unknown_id, small().end_id) == (0, 1)


@pytest.mark.parametrize(
    "ids", [[2, 4, 1], np.array([2, 4, 1]), torch.tensor([2, 4, 1])], ids=["list", "numpy", "torch"]
)
def test_ids_are_decoded_from_anything_that_holds_integers(ids: list[int]) -> None:
    assert small().decode(ids) == ["the", "été", "<eos>"]


@pytest.mark.parametrize("number", [-1, 5])
def test_an_id_without_a_word_is_refused(number: int) -> None:
    with pytest.raises(ArgumentError, match=r"decode: got -?\d, wanted ids under 5"):
        small().decode([number])


def test_a_string_in_the_place_of_words_is_refused() -> None:
    with pytest.raises(DtypeError, match="split"):
        small().encode("the cat")
    with pytest.raises(DtypeError, match="a string"):
        Vocabulary.build("the cat")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["<unk>", "<eos>", "a b"], r"words\[2\]"),
        (["<unk>", "<eos>", ""], r"words\[2\]"),
        (["<unk>", "<eos>", "x", "x"], "'x' twice"),
        (["<eos>", "x"], r"Vocabulary.unknown: got <unk>"),
        (["<unk>", "x"], r"Vocabulary.end: got <eos>"),
    ],
)
def test_words_that_are_no_vocabulary_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Vocabulary(words)


def test_the_unknown_word_and_the_end_are_two() -> None:
    with pytest.raises(ArgumentError, match="other than unknown"):
        Vocabulary(["x"], unknown="x", end="x")


def test_the_two_special_words_may_be_others() -> None:
    vocabulary = Vocabulary.build(["a a b"], unknown="[UNK]", end="</s>")
    assert vocabulary.words == ("[UNK]", "</s>", "a", "b")


def test_frequent_words_come_first_and_equally_frequent_ones_by_code_point() -> None:
    assert Vocabulary.build(["b a z", "z é B"]).words == ("<unk>", "<eos>", "z", "B", "a", "b", "é")


def test_special_words_of_the_text_are_not_counted_twice() -> None:
    assert Vocabulary.build(["<unk> a <eos> <unk>"]).words == ("<unk>", "<eos>", "a")


def test_a_limit_counts_the_special_words() -> None:
    assert len(Vocabulary.build(["a b c d"], limit=4)) == 4
    assert Vocabulary.build(["a b c d"], limit=2).words == ("<unk>", "<eos>")


def test_rare_words_are_left_out() -> None:
    assert "b" not in Vocabulary.build(["a b a"], min_count=2)
    assert "a" in Vocabulary.build(["a b a"], min_count=2)


@pytest.mark.parametrize("options", [{"limit": 1}, {"min_count": 0}])
def test_numbers_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"Vocabulary\.build"):
        Vocabulary.build(["a"], **options)


@given(LINES, st.none() | st.integers(2, 9), st.integers(1, 3))
def test_lines_and_their_counts_give_the_same_vocabulary(lines: list[str], limit: int | None, min_count: int) -> None:
    counts = Counter(word for line in lines for word in line.split())
    from_lines = Vocabulary.build(lines, limit=limit, min_count=min_count)
    assert from_lines == Vocabulary.build(counts, limit=limit, min_count=min_count)
    kept = [word for word in counts if counts[word] >= min_count and word not in ("<unk>", "<eos>")]
    kept = sorted(kept, key=lambda word: (-counts[word], word))
    assert from_lines.words == ("<unk>", "<eos>", *kept)[:limit]


@given(LINES, st.none() | st.integers(0, 9), st.integers(1, 3))
def test_counts_put_aside_are_the_counts(lines: list[str], most: int | None, min_count: int) -> None:
    with WordCounts() as whole, WordCounts(most_types=1) as aside:
        whole.add(lines)
        aside.add(lines)
        assert aside.most_common(most, min_count=min_count) == whole.most_common(most, min_count=min_count)


def test_counts_put_aside_many_times_are_the_counts() -> None:
    with WordCounts(most_types=1) as counts:
        counts.add(f"common w{number % 97:03} {'x' * (number % 7)}" for number in range(500))
        assert counts.most_common(1) == ["common"]
        assert counts.most_common(None)[-1] == "w096"
        assert len(counts.most_common(None)) == 1 + 97 + 6


@given(LINES)
def test_what_is_saved_is_what_is_loaded(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "words.json"
    vocabulary = Vocabulary.build(lines)
    vocabulary.save(path)
    loaded = Vocabulary.load(path)
    assert (loaded, hash(loaded), loaded.fingerprint) == (vocabulary, hash(vocabulary), vocabulary.fingerprint)
    assert loaded.encode(vocabulary.words) == list(range(len(vocabulary)))


def test_others_have_another_fingerprint() -> None:
    same = Vocabulary(small().words)
    assert same == small()
    others = [
        Vocabulary(small().words[:-1]),
        Vocabulary(small().words[::-1]),
        Vocabulary(small().words, end="cat"),
        Vocabulary([*small().words, "dog"]),
    ]
    assert len({small().fingerprint, *(other.fingerprint for other in others)}) == 5
    assert all(other != small() for other in others)
    assert small() != small().words


def test_it_crosses_processes() -> None:
    copied = pickle.loads(pickle.dumps(small()))
    assert copied == small()
    assert copied.encode(["dog", "cat"]) == [0, 3]


def damaged(content: dict[str, object], how: str) -> str:
    text = json.dumps(content)
    return {
        "cut off": text[:-9],
        "another list": json.dumps(["a"]),
        "another format": json.dumps(content | {"format": "other"}),
        "a word changed": text.replace("cat", "dog"),
        "no words": json.dumps({key: value for key, value in content.items() if key != "words"}),
        "a word twice": text.replace("cat", "the"),
        "numbers": json.dumps(content | {"words": [1, 2]}),
        "binary": "\0\1",
    }[how]


@pytest.mark.parametrize(
    "how",
    ["cut off", "another list", "another format", "a word changed", "no words", "a word twice", "numbers", "binary"],
)
def test_a_damaged_file_is_named(tmp_path: Path, how: str) -> None:
    path = tmp_path / "words.json"
    small().save(path)
    path.write_text(damaged(json.loads(path.read_text(encoding="utf-8")), how), encoding="utf-8")
    with pytest.raises(DataError, match=r"words\.json: got .* Build it again"):
        Vocabulary.load(path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"words\.json"):
        Vocabulary.load(tmp_path / "words.json")
