"""Words to test with, and the comparison of a black box with a machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest

from contracts.machines import random_machine, tomita
from statewise.automata import agreement, all_words, from_regex, random_words, words_of
from statewise.errors import ArgumentError, DtypeError, ShapeError


def test_all_words_come_once_each_in_order() -> None:
    words = list(all_words("abc", 4))
    assert len(words) == len(set(words)) == 1 + 3 + 9 + 27 + 81
    assert words == sorted(words, key=lambda word: (len(word), word))
    assert list(all_words(("go", "on"), 1)) == [(), ("go",), ("on",)]
    assert list(all_words("ab", 2, min_length=2)) == ["aa", "ab", "ba", "bb"]
    assert list(all_words((), 3)) == [""]


def test_random_words_are_a_function_of_the_seed_and_cover_lengths_and_symbols() -> None:
    words = random_words("abc", 3000, min_length=2, max_length=6, seed=1)
    assert words == random_words("abc", 3000, min_length=2, max_length=6, seed=1)
    assert words != random_words("abc", 3000, min_length=2, max_length=6, seed=2)
    lengths = np.bincount([len(word) for word in words])
    assert (lengths[2:] > 500).all()
    assert lengths[:2].sum() == 0
    letters = "".join(map(str, words))
    assert min(letters.count(letter) for letter in "abc") > len(letters) * 0.3
    with pytest.raises(ArgumentError, match="min_length"):
        random_words("ab", 3, min_length=4, max_length=2, seed=0)
    with pytest.raises(ArgumentError, match="at least one"):
        random_words("", 3, max_length=2, seed=0)


def test_words_of_an_infinite_language_come_without_end_and_of_a_finite_one_end() -> None:
    assert len(list(islice(words_of(tomita(4)), 500))) == 500
    assert list(words_of(from_regex("a{3}|b"))) == ["b", "aaa"]
    assert list(words_of(from_regex("a{7}", "ab"), min_length=8)) == []


def test_a_machine_agrees_with_itself_on_everything() -> None:
    machine = tomita(3)
    report = agreement(machine, machine.classify, max_length=8, random=300)
    assert report.perfect
    assert (report.short, report.random) == (1.0, 1.0)
    assert (report.short_words, report.random_words) == (511, 300)
    assert report.random_lengths == (9, 90)
    assert str(report).startswith("511 of 511 words up to length 8 agree, 300 of 300 random words of lengths 9 to 90")


def test_differences_are_counted_and_the_shortest_are_kept_with_both_classes() -> None:
    machine, wrong = tomita(4), tomita(1)
    report = agreement(machine, wrong.classify, max_length=5, random=100, keep=3, batch=7)
    words = list(all_words("01", 5))
    assert report.short_agreeing == int((machine.classify(words) == wrong.classify(words)).sum())
    assert 0 < report.random < 1
    assert [example.word for example in report.counter_examples] == ["0", "00", "01"]
    assert (report.counter_examples[0].machine, report.counter_examples[0].other) == ("accept", "reject")
    assert not report.perfect


def test_a_difference_only_long_words_show_is_found_by_random_ones() -> None:
    machine = tomita(6)

    def forgetful(words: Sequence[str]) -> np.ndarray:
        return np.where([len(word) > 20 for word in words], 0, machine.classify(words))

    report = agreement(machine, forgetful, max_length=6)
    assert report.short == 1
    assert 0.1 < 1 - report.random < 0.6
    assert len(report.counter_examples[0].word) > 20


def test_the_default_length_is_bounded_for_any_alphabet() -> None:
    for machine in (random_machine(1, 3, 1), random_machine(1, 3, 26), tomita(1), random_machine(0, 2, 200)):
        assert agreement(machine, machine.classify, random=5).short_words <= 10_000
    assert agreement(tomita(1), tomita(1).classify, random=0).max_length == 12


def test_a_black_box_that_answers_wrongly_is_named() -> None:
    with pytest.raises(ShapeError, match="one class for each of 3 words"):
        agreement(tomita(1), lambda words: [0], max_length=1)
    with pytest.raises(ArgumentError, match="class numbers 0 to 1"):
        agreement(tomita(1), lambda words: [2] * len(words), max_length=1)
    for wrong in (0.9, "accept", None):
        with pytest.raises(DtypeError, match=r"agreement\.classify: got dtype .*whole"):
            agreement(tomita(1), lambda words, wrong=wrong: [wrong] * len(words), max_length=1)  # type: ignore[misc]


def test_a_black_box_may_answer_by_truth_values() -> None:
    assert agreement(tomita(1), lambda words: [tomita(1).accepts(word) for word in words], max_length=4).perfect
