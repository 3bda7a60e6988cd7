"""Languages by automata, rules and regular expressions, and the words drawn of them."""

from __future__ import annotations

import re
from itertools import pairwise, product

import numpy as np
import pytest

from contracts.languages import LanguageContract
from statewise.automata import MooreMachine
from statewise.data import Language, sample_words
from statewise.data.generate import draw_words
from statewise.errors import ArgumentError, DataError, UnknownSymbolError

BY_THREE = MooreMachine(
    alphabet=("0", "1"), transitions=np.array([[0, 1], [2, 0], [1, 2]]), outputs=np.array([1, 0, 0])
)


class TestMachine(LanguageContract):
    """Binary numbers that are multiples of three."""

    def make(self) -> Language:
        return Language.machine(BY_THREE)

    def oracle(self, word: str) -> int:
        return int(int(word or "0", 2) % 3 == 0)


class TestRule(LanguageContract):
    """Words of three letters in the order of the alphabet."""

    longest = 6

    def make(self) -> Language:
        return Language.predicate(lambda word: list(word) == sorted(word), "abc")

    def oracle(self, word: str) -> int:
        return int(all(one <= other for one, other in pairwise(word)))


class TestPattern(LanguageContract):
    longest = 6

    def make(self) -> Language:
        return Language.regex("(a|bc?)*|c{2,3}", "abc")

    def oracle(self, word: str) -> int:
        return int(re.fullmatch("(a|bc?)*|c{2,3}", word) is not None)


class TestMaking:
    def test_a_regular_expression_gives_the_words_that_match_it_wholly(self) -> None:
        language = Language.regex("(ab|b)*", "ab")
        for length in range(6):
            for word in map("".join, product("ab", repeat=length)):
                assert language.contains(word) == bool(re.fullmatch("(ab|b)*", word)), word

    def test_a_machine_is_made_minimal(self) -> None:
        doubled = MooreMachine(
            alphabet=("0", "1"), transitions=np.array([[1, 1], [0, 0]]), outputs=np.array([1, 1]), start=1
        )
        assert len(Language.machine(doubled).minimal or ()) == 1

    def test_more_classes_than_two_are_run_but_not_contained(self) -> None:
        rest = Language.predicate(lambda word: len(word) % 3, "a", classes=("none", "one", "two"))
        assert [rest.run("a" * length) for length in range(4)] == [0, 1, 2, 0]
        with pytest.raises(ArgumentError, match="two classes"):
            rest.contains("a")

    def test_a_class_that_has_no_name_is_refused_with_its_word(self) -> None:
        rest = Language.predicate(lambda word: len(word) % 3, "a", name="thirds")
        assert rest.run("a") == 1
        with pytest.raises(
            ArgumentError, match=r"language thirds: got the class 2 for 'aa', wanted .* 0 to 1.*classes="
        ):
            rest.run("aa")
        with pytest.raises(ArgumentError, match="the class 2"):
            sample_words(rest, lengths=range(4))
        with pytest.raises(ArgumentError, match="the class -1"):
            Language.predicate(lambda word: -1, "a").run("")

    def test_an_automaton_of_other_classes_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"Language\.minimal: got an automaton of the classes .*'reject'"):
            Language(name="x", alphabet=BY_THREE.alphabet, classes=("no", "yes", "maybe"), minimal=BY_THREE)

    def test_symbols_of_several_characters_come_as_tuples(self) -> None:
        language = Language.predicate(lambda word: word[-1:] == ("stop",), ("go", "stop"))
        assert language.contains(["go", "stop"])
        drawn = sample_words(language, lengths=[2], seed=0)
        assert sorted(drawn.texts()) == ["go go", "go stop", "stop go", "stop stop"]

    @pytest.mark.parametrize("alphabet", ["", "aa"])
    def test_an_alphabet_that_is_none_is_refused(self, alphabet: str) -> None:
        with pytest.raises(ArgumentError, match=r"Language\.alphabet"):
            Language.predicate(bool, alphabet)


class TestDrawing:
    EVEN = Language.predicate(lambda word: word.count("1") % 2 == 0, "01")

    def test_all_words_of_a_short_length_are_drawn_and_none_twice(self) -> None:
        drawn = draw_words(4, 3, 1000, np.random.default_rng(0))
        assert len(np.unique(drawn, axis=0)) == len(drawn) == 81

    def test_long_words_are_uniform(self) -> None:
        drawn = draw_words(40, 2, 2000, np.random.default_rng(0))
        assert drawn.shape == (2000, 40)
        assert abs(drawn.mean() - 0.5) < 4 * 0.5 / np.sqrt(drawn.size)

    def test_a_class_has_at_most_the_cap_and_the_smaller_plus_the_margin(self) -> None:
        drawn = sample_words(self.EVEN, lengths=[3, 10], per_length=100, cap=30, margin=2, seed=1)
        assert drawn.by_length() == {3: (4, 4), 10: (30, 30)}
        rare = Language.predicate(lambda word: word == "1" * len(word), "01")
        assert sample_words(rare, lengths=[6], per_length=64, margin=7, seed=0).by_length() == {6: (8, 1)}

    def test_given_words_come_first_and_are_labelled_afresh(self) -> None:
        drawn = sample_words(self.EVEN, lengths=[30], per_length=10, cap=2, seed=0, given=["1" * 30, "0" * 29 + "1"])
        assert {"1" * 30, "0" * 29 + "1"} <= set(drawn.texts())
        with pytest.raises(UnknownSymbolError, match="'2'"):
            sample_words(self.EVEN, lengths=[1], given=["2"])

    def test_a_sample_of_one_class_is_told_with_its_counts(self) -> None:
        everything = Language.predicate(lambda word: True, "01")
        with pytest.raises(DataError, match="0 of 'reject', 20 of 'accept'"):
            sample_words(everything, lengths=[8], seed=0).check_classes()

    @pytest.mark.parametrize(
        "wrong", [{"lengths": []}, {"lengths": [-1]}, {"lengths": [1], "cap": 0}, {"lengths": [1], "margin": -1}]
    )
    def test_a_demand_without_sense_is_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(ArgumentError, match="sample_words"):
            sample_words(self.EVEN, **wrong)  # type: ignore[arg-type]
