"""Palindromes, near misses of them, and the sets of the paper."""

from __future__ import annotations

import time

import numpy as np
import pytest

from contracts.languages import LanguageContract
from statewise.data import Language, Sequences, palindrome_language, palindrome_sets, palindromes
from statewise.errors import ArgumentError, DataError


class TestLanguage(LanguageContract):
    def make(self) -> Language:
        return palindrome_language("abc")

    def oracle(self, word: str) -> int:
        half = len(word) // 2
        return int(len(word) == 2 * half and list(word[:half]) == list(reversed(word[half:])))

    def draw(self, seed: int) -> Sequences:
        return palindromes(300, lengths=range(4, 15, 2), letters="abc", seed=seed)


class TestDrawing:
    def test_near_misses_differ_in_one_or_two_letters(self) -> None:
        words = palindromes(2000, lengths=[10, 12], seed=0)
        for index in np.flatnonzero(words.labels == 0):
            letters = np.array(words.word(int(index)))
            assert (letters != letters[::-1]).sum() in (2, 4)

    def test_the_first_and_the_last_letter_tell_little(self) -> None:
        words = palindromes(4000, lengths=[20], seed=0)
        alike = np.array([text[0] == text[-1] for text in words.texts()])
        assert (alike == words.labels).mean() < 0.6

    def test_a_short_length_has_all_there_are(self) -> None:
        words = palindromes(400, lengths=[2, 6], accepted=200, seed=0)
        assert words.by_length() == {2: (26, 26), 6: (174, 174)}

    def test_more_words_than_there_are_is_refused(self) -> None:
        with pytest.raises(DataError, match="room for 4"):
            palindromes(12, lengths=[4], letters="ab")

    @pytest.mark.parametrize("wrong", [{"lengths": [3]}, {"lengths": []}, {"lengths": [2], "letters": "a"}])
    def test_a_demand_without_sense_is_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(ArgumentError, match="palindromes"):
            palindromes(2, **wrong)  # type: ignore[arg-type]


class TestSets:
    def test_sizes_and_lengths_are_those_of_the_paper(self) -> None:
        started = time.process_time()
        sets = palindrome_sets(seed=0)
        assert time.process_time() - started < 20
        assert sets.valid is not None
        assert sets.train.counts.tolist() == [114944, 115040]
        assert sets.valid.counts.tolist() == [25000, 25000]
        assert {name: part.counts.tolist() for name, part in sets.tests.items()} == {
            "l 100": [500, 500],
            "l 200": [500, 500],
            "l 500": [500, 500],
        }
        spans = [(int(part.lengths.min()), int(part.lengths.max())) for part in (sets.train, sets.valid)]
        assert spans == [(2, 24), (26, 50)]
        assert [int(part.lengths.max()) for part in sets.tests.values()] == [100, 200, 500]
        assert len(set(sets.train.keys())) == len(sets.train)
        tokens, _, labels = sets.valid.select(sets.valid.lengths == 30).padded(slice(None))
        assert ((tokens == tokens.flip(1)).all(1) == labels.bool()).all()
