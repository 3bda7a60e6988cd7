"""What every language and the words that are drawn of it must do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import product

import pytest

from statewise.data import Language, Sequences, sample_words
from statewise.errors import UnknownSymbolError


class LanguageContract(ABC):
    """Inherit, give the language and an oracle: the class of a word, told by other code than the library's."""

    longest = 7  # up to which all words are compared
    lengths = tuple(range(10))  # of the words drawn

    @abstractmethod
    def make(self) -> Language:
        """The language."""

    @abstractmethod
    def oracle(self, word: str) -> int:
        """The class of a word."""

    def draw(self, seed: int) -> Sequences:
        """Labelled words."""
        return sample_words(self.make(), lengths=self.lengths, per_length=200, cap=40, margin=5, seed=seed)

    def words(self) -> Iterator[str]:
        """All short words."""
        for length in range(self.longest + 1):
            yield from map("".join, product(self.make().alphabet, repeat=length))

    def test_it_has_the_words_that_the_oracle_has(self) -> None:
        language = self.make()
        assert all(language.run(word) == self.oracle(word) for word in self.words())

    def test_automaton_and_rule_agree_where_it_has_both(self) -> None:
        language = self.make()
        if language.minimal is not None:
            assert len(language.minimal.minimise()) == len(language.minimal)
            assert all(language.minimal.run(word) == self.oracle(word) for word in self.words())
        if language.rule is not None:
            assert all(int(language.rule(word)) == self.oracle(word) for word in self.words())

    def test_drawn_words_have_the_labels_of_the_oracle(self) -> None:
        drawn = self.draw(0)
        assert [self.oracle(word) for word in drawn.texts()] == drawn.labels.tolist()
        drawn.check_classes()

    def test_a_seed_gives_the_same_words_again_and_another_one_others(self) -> None:
        assert self.draw(3) == self.draw(3)
        assert self.draw(3) != self.draw(4)

    def test_no_word_is_drawn_twice(self) -> None:
        texts = self.draw(1).texts()
        assert len(set(texts)) == len(texts)

    def test_classes_are_balanced_at_every_length_as_promised(self) -> None:
        for length, counts in self.draw(2).by_length().items():
            assert max(counts) - min(counts) <= 5, length

    def test_the_empty_word_has_a_class(self) -> None:
        language = self.make()
        assert language.run("") == self.oracle("")
        assert language.contains("") == bool(self.oracle(""))

    def test_an_unknown_symbol_is_refused(self) -> None:
        with pytest.raises(UnknownSymbolError, match="the symbol '#'"):
            self.make().run(self.make().alphabet[0] + "#")
