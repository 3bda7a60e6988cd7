"""Labelled sequences and pictures: kept in arrays, cut into batches."""

from __future__ import annotations

import pickle
import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import Images, Sequences
from statewise.data.labels import frozen
from statewise.errors import ArgumentError, DataError, DtypeError, LengthError, ShapeError, UnknownSymbolError

LABELLED = st.lists(st.tuples(st.text("abc", max_size=6), st.integers(0, 1)), max_size=12)


def build(pairs: list[tuple[str, int]]) -> Sequences:
    return Sequences.from_words([word for word, _ in pairs], [label for _, label in pairs], symbols="abc")


class TestSequences:
    @given(LABELLED)
    def test_words_come_back_as_they_were(self, pairs: list[tuple[str, int]]) -> None:
        found = build(pairs)
        assert found.texts() == [word for word, _ in pairs]
        assert found.labels.tolist() == [label for _, label in pairs]
        assert found.lengths.tolist() == [len(word) for word, _ in pairs]
        assert pickle.loads(pickle.dumps(found)) == found
        assert hash(build(pairs)) == hash(found)

    @given(LABELLED.filter(bool), st.data())
    def test_a_batch_is_each_word_with_zeros_behind(self, pairs: list[tuple[str, int]], data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.integers(-len(pairs), len(pairs) - 1), max_size=8))
        tokens, lengths, labels = build(pairs).padded(chosen)
        longest = max((len(pairs[index][0]) for index in chosen), default=0)
        assert tokens.dtype == lengths.dtype == labels.dtype == torch.int64
        assert tokens.shape == (len(chosen), longest)
        for row, length, label, index in zip(tokens.tolist(), lengths.tolist(), labels.tolist(), chosen, strict=True):
            word = ["abc".index(letter) for letter in pairs[index][0]]
            assert (row, length, label) == (word + [0] * (longest - len(word)), len(word), pairs[index][1])

    @given(LABELLED.filter(bool), st.data())
    def test_a_selection_is_the_words_at_these_places(self, pairs: list[tuple[str, int]], data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=8))
        assert build(pairs).select(chosen) == build([pairs[index] for index in chosen])
        assert build(pairs).select(torch.tensor(chosen, dtype=torch.int64)) == build([pairs[i] for i in chosen])
        assert build(pairs).select(slice(1, None)) == build(pairs[1:])
        assert build(pairs).where_length(3) == build([pair for pair in pairs if len(pair[0]) <= 3])

    @given(LABELLED, LABELLED.filter(bool))
    def test_without_leaves_new_words_once_and_join_puts_behind(
        self, pairs: list[tuple[str, int]], other: list[tuple[str, int]]
    ) -> None:
        rest = build(pairs).without(build(other)).texts()
        known = {word for word, _ in other}
        assert rest == list(dict.fromkeys(word for word, _ in pairs if word not in known))
        assert Sequences.join([build(pairs), build(other)]) == build(pairs + other)

    def test_symbols_may_have_several_characters(self) -> None:
        found = Sequences.from_words([["to", "be"], ["be"], []], [0, 1, 1])
        assert found.symbols == ("be", "to")
        assert found.texts() == ["to be", "be", ""]
        assert found.word(0) == [1, 0]

    def test_an_alphabet_beyond_ascii_is_numbered(self) -> None:
        assert Sequences.from_words(["öß𝔸"], [0], symbols="𝔸ßö").word(0) == [2, 1, 0]

    def test_a_part_has_its_share_of_every_class(self) -> None:
        whole = Sequences.from_words(["a"] * 700 + ["b"] * 301, [0] * 700 + [1] * 301)
        first, second = whole.split(0.9, seed=1)
        assert (len(first), len(second)) == (901, 100)
        assert abs(first.counts - 0.9 * whole.counts).max() <= 1
        assert (np.diff(first.tokens) >= 0).all(), "the order of the whole"
        marked = Sequences.from_words([f"{number:04}" for number in range(1001)], whole.labels)
        one, other = marked.split(0.9, seed=1)
        assert sorted(one.texts() + other.texts()) == marked.texts()
        assert marked.split(0.9, seed=1)[0] == one
        assert marked.split(0.9, seed=2)[0] != one

    def test_nobody_can_write_into_them(self) -> None:
        found = build([("ab", 1)])
        with pytest.raises(ValueError, match="read-only"):
            found.tokens[0] = 1

    def test_what_the_caller_writes_later_does_not_reach_them(self) -> None:
        tokens, starts, labels = np.array([0, 1], dtype=np.int32), np.array([0, 2]), np.array([1])
        found = Sequences(tokens=tokens, starts=starts, labels=labels, symbols=("a", "b"))
        seen = tokens.view()
        seen.setflags(write=False)
        through = Sequences(tokens=seen, starts=starts, labels=labels, symbols=("a", "b"))
        tensor = torch.ones(1, dtype=torch.int64)
        of_tensor = frozen(tensor, np.int64)
        tokens[:] = 1
        labels[:] = 0
        tensor[:] = 0
        assert of_tensor.tolist() == [1]
        for each in (found, through):
            assert (each.texts(), each.labels.tolist()) == (["ab"], [1])

    def test_what_nobody_can_write_into_is_not_copied(self) -> None:
        found = build([("ab", 1)])
        again = Sequences(tokens=found.tokens, starts=found.starts, labels=found.labels, symbols=found.symbols)
        assert np.shares_memory(again.tokens, found.tokens)
        raw = np.frombuffer(bytes(8), np.int32)
        assert np.shares_memory(frozen(raw, np.int32), raw)

    def test_counts_by_length_and_class(self) -> None:
        assert build([("a", 1), ("b", 0), ("abc", 0)]).by_length() == {1: (1, 1), 3: (1, 0)}

    def test_many_short_words_are_read_and_cut_fast(self) -> None:
        words = ["abcab"] * 200_000
        started = time.process_time()
        found = Sequences.from_words(words, np.zeros(len(words), dtype=np.int64))
        order = np.random.default_rng(0).permutation(len(words))
        for begin in range(0, len(words), 256):
            found.padded(order[begin : begin + 256])
        assert time.process_time() - started < 3


class TestBadSequences:
    def test_an_unknown_symbol_names_word_and_place(self) -> None:
        with pytest.raises(UnknownSymbolError, match=r"word 2, place 1: got the symbol 'x', wanted one of 'a', 'b'"):
            Sequences.from_words(["a", "", "bxa"], [0, 0, 1], symbols="ab")
        with pytest.raises(UnknownSymbolError, match="'dog'"):
            Sequences.from_words([["cat", "dog"]], [0], symbols=["cat"])

    @pytest.mark.parametrize("label", [-1, 2])
    def test_a_label_that_names_no_class_is_refused(self, label: int) -> None:
        with pytest.raises(ArgumentError, match=rf"{label} at 1, wanted a class from 0 to 1"):
            Sequences.from_words(["a", "b"], [0, label])

    def test_too_few_labels_are_refused(self) -> None:
        with pytest.raises(LengthError, match="2 places for 1 labels"):
            Sequences.from_words(["a", "b"], [0])

    def test_labels_of_fractions_are_refused(self) -> None:
        with pytest.raises(DtypeError, match="wanted integers"):
            Sequences.from_words(["a"], np.array([0.5]))

    @pytest.mark.parametrize("starts", [[0, 3, 2], [1, 1, 2], [0, 1, 1]])
    def test_places_that_do_not_fit_are_refused(self, starts: list[int]) -> None:
        with pytest.raises(ArgumentError, match=r"Sequences\.starts"):
            Sequences(tokens=np.array([0, 0]), starts=np.array(starts), labels=np.array([0, 0]), symbols=("a",))

    @pytest.mark.parametrize("chosen", [[3], [-4], [0.5], [[0]]])
    def test_a_place_that_is_not_there_is_refused(self, chosen: Any) -> None:
        with pytest.raises((ArgumentError, DtypeError), match="indices"):
            build([("a", 0)] * 3).padded(np.array(chosen))

    def test_no_words_and_words_of_one_class_are_refused_for_learning(self) -> None:
        with pytest.raises(DataError, match="the sample: got no examples"):
            build([]).check_classes(where="the sample")
        with pytest.raises(DataError, match="2 of 'reject', 0 of 'accept', wanted examples of two classes"):
            build([("a", 0), ("b", 0)]).check_classes()
        build([("a", 0), ("b", 1)]).check_classes()

    @pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5])
    def test_a_fraction_out_of_range_is_refused(self, fraction: float) -> None:
        with pytest.raises(ArgumentError, match=r"split\.fraction"):
            build([("a", 0)]).split(fraction, seed=0)


class TestImages:
    @pytest.fixture
    def images(self) -> Images:
        values = np.random.default_rng(0).integers(256, size=(5, 12), dtype=np.uint8)
        return Images(values=values, labels=np.array([0, 1, 2, 0, 1]), classes=tuple("abc"), height=3, width=4)

    def test_a_batch_is_grey_values_from_0_to_1(self, images: Images) -> None:
        values, lengths, labels = images.padded([4, 0])
        assert (values.shape, values.dtype, lengths) == ((2, 12, 1), torch.float32, None)
        np.testing.assert_allclose(values[0, :, 0].numpy(), images.values[4] / 255, rtol=1e-6)
        assert labels.tolist() == [1, 0]

    def test_a_permutation_is_kept_and_can_be_undone(self, images: Images) -> None:
        mixed = images.permuted(seed=3)
        assert mixed.permutation is not None
        assert (mixed.values == images.values[:, mixed.permutation]).all()
        assert not (mixed.values == images.values).all()
        assert (mixed.pictures() == images.pictures()).all()
        assert (images.permuted(seed=3).values == mixed.values).all()
        assert not (images.permuted(seed=4).values == mixed.values).all()
        assert mixed.select([2, 1]).in_order(mixed.permutation).values.tolist() == mixed.values[[2, 1]].tolist()
        assert (pickle.loads(pickle.dumps(mixed)).permutation == mixed.permutation).all()
        assert (mixed.permuted(seed=4).values == images.permuted(seed=4).values).all()

    def test_wrong_shapes_and_permutations_are_refused(self, images: Images) -> None:
        with pytest.raises(ShapeError, match=r"\(5, 16\)"):
            Images(values=images.values, labels=images.labels, classes=images.classes, height=4, width=4)
        with pytest.raises(ArgumentError, match="each of 0 to 11 once"):
            images.in_order([0] * 12)
        with pytest.raises(ArgumentError, match="0 to 255"):
            Images(values=images.values + np.int64(256), labels=images.labels, classes=tuple("abc"), height=3, width=4)
