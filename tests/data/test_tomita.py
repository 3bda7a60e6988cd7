"""Tomita's languages: known answers of their automata, and the published sizes of their sets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from contracts.languages import LanguageContract
from statewise.automata import witness
from statewise.data import Language, tomita, tomita_sets
from statewise.errors import ArgumentError

EVERY = pytest.mark.parametrize("number", range(1, 8))

#: Words of length 0 to 12 that each language has.
COUNTS = {
    1: [1] * 13,
    2: [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
    3: [1, 2, 3, 6, 10, 18, 31, 54, 93, 160, 274, 468, 797],
    4: [1, 2, 4, 7, 13, 24, 44, 81, 149, 274, 504, 927, 1705],
    5: [1, 0, 2, 0, 8, 0, 32, 0, 128, 0, 512, 0, 2048],
    6: [1, 0, 2, 2, 6, 10, 22, 42, 86, 170, 342, 682, 1366],
    7: [1, 2, 4, 8, 15, 26, 42, 64, 93, 130, 176, 232, 299],
}


def all_words(length: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=length)), dtype=np.int64).reshape(2**length, length)


class TestThird(LanguageContract):
    """The one with two readings; the others are compared with their rules below."""

    def make(self) -> Language:
        return Language.tomita(3)

    def oracle(self, word: str) -> int:
        ones = zeros = 0
        seen = False
        for sign in word + "1":
            if sign == "0":
                seen, ones, zeros = seen or ones % 2 == 1, 0, zeros + 1
            else:
                if seen and zeros % 2:
                    return 0
                ones, zeros = ones + 1, 0
        return 1


class TestFifth(LanguageContract):
    def make(self) -> Language:
        return tomita(5)

    def oracle(self, word: str) -> int:
        return int(not word.count("0") % 2 and not word.count("1") % 2)


class TestAutomata:
    @EVERY
    def test_automaton_and_rule_agree_on_all_words_to_length_12(self, number: int) -> None:
        language = tomita(number)
        for length in range(13):
            words = all_words(length)
            labels = language.classify(words)
            assert (labels == language.classify_by_rule(words)).all()
            assert labels.sum() == COUNTS[number][length]

    def test_totals_and_states_are_the_known_ones(self) -> None:
        assert [sum(counts) for counts in COUNTS.values()] == [13, 7, 1917, 3735, 2731, 2731, 1092]
        machines = [tomita(number).minimal for number in range(1, 8)]
        assert [len(machine.minimise()) for machine in machines if machine] == [2, 3, 5, 4, 4, 3, 5]
        assert all(machine is not None and machine.canonical() == machine for machine in machines)

    def test_the_two_readings_of_the_third_part_at_100110(self) -> None:
        one, other = tomita(3), tomita(3, reading="B")
        assert one.minimal is not None
        assert other.minimal is not None
        assert witness(one.minimal, other.minimal) == "100110"
        words = [all_words(length) for length in range(13)]
        assert sum(int(other.classify(some).sum()) for some in words) == 2244
        assert all((other.classify(some) == other.classify_by_rule(some)).all() for some in words)

    @pytest.mark.parametrize(("number", "reading"), [(0, "A"), (8, "A"), (3, "C"), (4, "B")])
    def test_others_are_refused(self, number: int, reading: str) -> None:
        with pytest.raises(ArgumentError, match="tomita"):
            tomita(number, reading=reading)


class TestSets:
    @pytest.mark.parametrize(
        ("number", "sizes"),
        [(4, ((2571, 1335), None)), (5, ((1651, 771), (1298, 608))), (6, ((2523, 1221), (2222, 1098)))],
    )
    def test_sizes_that_no_seed_changes_are_the_published_ones(
        self, number: int, sizes: tuple[tuple[int, int] | None, ...]
    ) -> None:
        for seed in range(12):
            for part, size in zip(tomita_sets(number, seed), sizes, strict=True):
                assert size is None or (len(part), part.counts[1]) == size

    @pytest.mark.parametrize(
        ("number", "train", "valid"),
        [
            (1, (263, 267), (180, 184)),
            (2, (257, 259), (180, 180)),
            (3, (2053, 2183), (1236, 1382)),
            (4, (2571, 2571), (2098, 2212)),
            (7, (1493, 1585), (652, 718)),
        ],
    )
    def test_other_sizes_are_in_the_range_around_the_published_ones(
        self, number: int, train: tuple[int, int], valid: tuple[int, int]
    ) -> None:
        for seed in range(6):
            first, second = tomita_sets(number, seed)
            # The ranges are those of some dozen seeds: a few words beyond them are no fault.
            assert train[0] - 20 <= len(first) <= train[1] + 20
            assert valid[0] - 20 <= len(second) <= valid[1] + 20

    def test_the_second_has_two_words_to_choose_by_for_nearly_every_seed(self) -> None:
        found = [tuple(tomita_sets(2, seed)[1].counts.tolist()) for seed in range(20)]
        assert sum(counts == (178, 2) for counts in found) >= 17

    def test_a_machine_that_counts_ones_only_does_well_on_the_fifth(self) -> None:
        for seed in range(3):
            for part in tomita_sets(5, seed):
                guess = np.array([text.count("1") % 2 == 0 for text in part.texts()])
                assert 0.960 <= (guess == part.labels).mean() <= 0.974

    def test_a_set_has_the_lengths_of_the_paper(self) -> None:
        train, valid = tomita_sets(6, 0)
        assert sorted(train.by_length()) == [*range(13), 16, 19, 22]
        assert sorted(valid.by_length()) == list(range(1, 29, 3))

    def test_the_words_of_a_seed_are_the_same_on_every_machine(self) -> None:
        train, _ = tomita_sets(7, 0)
        assert (len(train), train.texts()[1000:1003]) == (1555, ["1110011111", "0001100001", "0111100011"])
