"""Balanced parentheses: exact Dyck paths, near misses, and the sets of the paper."""

from __future__ import annotations

import time
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.languages import LanguageContract
from statewise.data import Language, Sequences, parentheses, parentheses_language, parentheses_sets, weiss_parentheses
from statewise.data.bracket_words import balanced
from statewise.data.dyck import count_paths, draw_paths
from statewise.errors import ArgumentError, DataError


def stripped(word: str) -> str:
    """What is left when pairs that close each other are taken away: another way to say balanced."""
    word = "".join(sign for sign in word if sign in "()")
    while "()" in word:
        word = word.replace("()", "")
    return word


def depth(word: str) -> int:
    heights = np.cumsum([(sign == "(") - (sign == ")") for sign in word])
    return int(heights.max(initial=0))


class TestLanguage(LanguageContract):
    longest = 2  # of 28 symbols

    def make(self) -> Language:
        return parentheses_language()

    def oracle(self, word: str) -> int:
        return int(not stripped(word))

    def draw(self, seed: int) -> Sequences:
        return parentheses(200, depth=(1, 4), max_length=20, seed=seed)


class TestPaths:
    def test_counts_by_exact_height_are_the_known_ones(self) -> None:
        assert [count_paths(5, height) for height in range(1, 6)] == [1, 15, 18, 7, 1]
        assert [count_paths(6, height) for height in range(1, 7)] == [1, 31, 57, 33, 9, 1]
        assert [count_paths(0, 0), count_paths(0, 1), count_paths(2, 0), count_paths(3, 4)] == [1, 0, 0, 0]

    @pytest.mark.parametrize(("semilength", "height"), [(5, 3), (6, 4), (5, 1), (5, 5)])
    def test_every_path_comes_as_often_as_every_other(self, semilength: int, height: int) -> None:
        many, draws = count_paths(semilength, height), 400
        steps = draw_paths(np.full(many * draws, semilength), height, np.random.default_rng(0))
        found = Counter(map(bytes, steps))
        assert len(found) == many
        spread = sum((count - draws) ** 2 / draws for count in found.values())
        assert spread < many + 5 * np.sqrt(2 * many)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(1, 12), st.lists(st.integers(0, 30), min_size=1, max_size=5), st.integers(0, 100))
    def test_a_path_keeps_height_and_length(self, height: int, more: list[int], seed: int) -> None:
        sizes = height + np.array(more)
        steps = draw_paths(sizes, height, np.random.default_rng(seed))
        heights = np.cumsum(steps, axis=1)
        assert (np.abs(steps).sum(1) == 2 * sizes).all()
        assert (heights[:, -1] == 0).all()
        assert (heights.min(1) >= 0).all()
        assert (heights.max(1) == height).all()

    def test_long_paths_whose_numbers_no_float_holds_are_drawn(self) -> None:
        assert count_paths(700, 20) > 10**308
        steps = draw_paths(np.full(20, 700), 20, np.random.default_rng(0))
        assert (np.cumsum(steps, axis=1).max(1) == 20).all()

    def test_a_path_too_short_for_its_height_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="4 or more"):
            draw_paths(np.array([3]), 4, np.random.default_rng(0))


class TestCounting:
    def test_balanced_words_over_three_signs_are_motzkin_numbers(self) -> None:
        counts = [sum(map(balanced, map("".join, product("()a", repeat=length)))) for length in range(10)]
        assert counts == [1, 1, 2, 4, 9, 21, 51, 127, 323, 835]

    @pytest.mark.slow
    def test_balanced_words_of_depth_four_are_fewer_from_length_ten(self) -> None:
        found = [[w for w in map("".join, product("()a", repeat=n)) if balanced(w)] for n in (10, 11)]
        assert list(map(len, found)) == [2188, 5798]
        assert [sum(depth(word) <= 4 for word in words) for words in found] == [2187, 5787]

    def test_with_26_letters_there_are_as_many_as_known(self) -> None:
        # 26 ** letters for every word over three signs.
        words = [[w for w in map("".join, product("()a", repeat=n)) if balanced(w)] for n in range(5)]
        assert [sum(26 ** word.count("a") for word in some) for some in words] == [1, 26, 677, 17654, 461034]


class TestDrawing:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 8), st.integers(0, 3), st.integers(0, 40), st.integers(0, 1000))
    def test_balanced_words_have_the_depth_and_others_are_unbalanced(
        self, low: int, more: int, room: int, seed: int
    ) -> None:
        longest = 2 * (low + more) + 4 + room
        words = parentheses(40, depth=(low, low + more), max_length=longest, seed=seed)
        assert words.counts.tolist() == [20, 20]
        assert int(words.lengths.max()) <= longest
        for text, label in zip(words.texts(), words.labels, strict=True):
            assert bool(label) == (not stripped(text))
            if label:
                assert low <= depth(text) <= low + more

    def test_both_classes_have_the_same_lengths(self) -> None:
        words = parentheses(600, depth=(1, 6), max_length=40, seed=5)
        assert all(wrong == right for wrong, right in words.by_length().values())

    def test_near_misses_are_near(self) -> None:
        words = parentheses(2000, depth=(1, 5), max_length=60, seed=0)
        wrong = [stripped(words.text(index)) for index in np.flatnonzero(words.labels == 0)]
        # One edit leaves one or two parentheses over; only an exchange can leave more.
        assert sum(len(rest) <= 2 for rest in wrong) > 0.9 * len(wrong)
        kinds = Counter((rest.count("(") - rest.count(")")) for rest in wrong)
        assert set(kinds) == {-2, -1, 0, 1, 2}
        assert min(kinds.values()) > 30, kinds

    def test_depths_and_lengths_follow_the_law_that_is_told(self) -> None:
        words = parentheses(4000, depth=(3, 4), max_length=50, seed=1)
        good = words.select(words.labels == 1)
        deep = np.array([depth(text) for text in good.texts()])
        assert abs((deep == 3).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(deep))
        spread = (good.lengths[deep == 3] - 6) / 44
        assert abs(spread.mean() - 0.5) < 4 * 0.29 / np.sqrt(len(spread))
        pairs = np.array([text.count("(") for text in good.texts()])
        assert pairs.max() == 12
        assert pairs.min() == 3

    def test_more_near_misses_than_balanced_words_can_be_asked_for(self) -> None:
        assert parentheses(50, accepted=10, seed=0).counts.tolist() == [40, 10]

    @pytest.mark.parametrize("wrong", [{"depth": (0, 2)}, {"depth": (3, 2)}, {"max_length": 9}, {"accepted": 0}])
    def test_a_demand_without_sense_is_refused(self, wrong: dict[str, int]) -> None:
        with pytest.raises(ArgumentError, match="parentheses"):
            parentheses(10, **wrong)  # type: ignore[arg-type]

    def test_more_words_than_there_are_is_refused(self) -> None:
        with pytest.raises(DataError, match="different balanced words of length 2"):
            parentheses(10, depth=(1, 1), max_length=2, seed=0)


class TestSets:
    def test_sizes_and_depths_are_those_of_the_paper_and_parts_share_no_word(self) -> None:
        started = time.process_time()
        sets = parentheses_sets("large", seed=0)
        assert time.process_time() - started < 20
        assert sets.valid is not None
        assert (len(sets.train), sets.train.counts[1]) == (22286, 13025)
        assert (len(sets.valid), sets.valid.counts[1]) == (6704, 3582)
        assert [len(part) for part in sets.tests.values()] == [1000] * 6
        seen = [set(part.keys()) for part in (sets.train, sets.valid)]
        assert not seen[0] & seen[1]
        assert all(not set(part.keys()) & (seen[0] | seen[1]) for part in sets.tests.values())
        bounds = {"train": (sets.train, 1, 5), "valid": (sets.valid, 6, 10)} | {
            name: (
                part,
                int(name.split()[1].rstrip(",").split("-")[0]),
                int(name.split()[1].rstrip(",").split("-")[-1]),
            )
            for name, part in sets.tests.items()
        }
        for part, low, high in bounds.values():
            good = part.select(part.labels == 1).select(slice(300))
            found = [depth(text) for text in good.texts()]
            assert (min(found), max(found)) == (low, high)

    def test_the_small_sets_are_drawn_by_the_seed(self) -> None:
        sets = parentheses_sets("small", seed=3, max_length=50)
        assert sets.valid is not None
        assert (len(sets.train), sets.train.counts[1], len(sets.valid), sets.valid.counts[1]) == (1008, 601, 268, 142)
        assert int(sets.train.lengths.max()) <= 50
        assert parentheses_sets("small", seed=3, max_length=50).train == sets.train
        assert parentheses_sets("small", seed=4, max_length=50).train != sets.train
        with pytest.raises(ArgumentError, match="'large' or 'small'"):
            parentheses_sets("tiny", seed=0)


class TestWeiss:
    def test_words_are_labelled_rightly_and_none_comes_twice(self) -> None:
        words = weiss_parentheses(600, seed=0)
        assert [int(not stripped(text)) for text in words.texts()] == words.labels.tolist()
        assert len(set(words.keys())) == len(words)
        assert weiss_parentheses(600, seed=0) == words
        assert all(abs(wrong - right) <= 20 for wrong, right in words.by_length().values())

    def test_a_demand_without_sense_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="weiss_parentheses"):
            weiss_parentheses(10, short=5, long=5)
