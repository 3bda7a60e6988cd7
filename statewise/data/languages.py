"""A language: which class every word over an alphabet has, by an automaton, by a rule, or by both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from statewise.automata import MooreMachine, from_regex
from statewise.automata.symbols import text_or_tuple
from statewise.data.examples import TWO_CLASSES
from statewise.errors import ArgumentError, UnknownSymbolError

Word = Sequence[str]
Rule = Callable[[Any], int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """A language over an alphabet, made by `tomita`, `regex`, `machine` or `predicate`.

    Args:
        name: what to call it.
        alphabet: its symbols.
        classes: the names of the classes; a word of a language of two is accepted or not.
        minimal: the least automaton that has it; None where there is none, or none is known.
        rule: the class of a word, told otherwise than by the automaton; a word comes as a string if all symbols have
            one character, else as a tuple of symbols.

    >>> even = Language.predicate(lambda word: word.count("1") % 2 == 0, "01")
    >>> even.contains("0110"), even.contains("1")
    (True, False)
    >>> Language.regex("(ab)*", "ab").minimal.accepts("abab")
    True
    """

    name: str
    alphabet: tuple[str, ...]
    classes: tuple[str, ...] = TWO_CLASSES
    minimal: MooreMachine | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        alphabet = tuple(self.alphabet)
        if not alphabet or len(set(alphabet)) < len(alphabet) or "" in alphabet:
            raise ArgumentError(where="Language.alphabet", got=alphabet, wanted="symbols, each of them once")
        object.__setattr__(self, "alphabet", alphabet)
        if self.minimal is None and self.rule is None:
            raise ArgumentError(where="Language", got="neither", wanted="an automaton, a rule, or both")
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.minimal is not None and self.minimal.alphabet != alphabet:
            got = f"an automaton over {self.minimal.alphabet}"
            raise ArgumentError(where="Language.minimal", got=got, wanted=f"one over {alphabet}")
        if self.minimal is not None and self.minimal.classes != self.classes:
            got, remedy = f"an automaton of the classes {self.minimal.classes}", "Language.machine takes them over."
            raise ArgumentError(where="Language.minimal", got=got, wanted=f"one of {self.classes}", remedy=remedy)

    @classmethod
    def tomita(cls, number: int, *, reading: str = "A") -> Language:
        """One of Tomita's seven languages over 0 and 1; see there."""
        from statewise.data.grammars import tomita

        return tomita(number, reading=reading)

    @classmethod
    def regex(cls, pattern: str, alphabet: Iterable[str], *, name: str | None = None) -> Language:
        r"""The words that match a regular expression from their first to their last symbol.

        Args:
            pattern: the expression; :func:`~statewise.automata.from_regex` says what may stand in it.
            alphabet: the symbols, each of one character.
            name: what to call it; None for the pattern.

        Raises:
            ArgumentError: the pattern is malformed; says at which sign.
        """
        symbols = tuple(alphabet)
        return cls(name=name or pattern, alphabet=symbols, minimal=from_regex(pattern, symbols))

    @classmethod
    def machine(cls, machine: MooreMachine, *, name: str = "machine") -> Language:
        """The language of an automaton, which is made minimal."""
        least = machine.minimise()
        return cls(name=name, alphabet=least.alphabet, classes=least.classes, minimal=least)

    @classmethod
    def predicate(
        cls, rule: Rule, alphabet: Iterable[str], *, name: str = "rule", classes: Iterable[str] = TWO_CLASSES
    ) -> Language:
        """The language of a function that says whether it has a word, or which class the word is of."""
        return cls(name=name, alphabet=tuple(alphabet), classes=tuple(classes), rule=rule)

    def contains(self, word: Word) -> bool:
        """Whether a language of two classes has a word."""
        if len(self.classes) != 2:
            wanted, remedy = "a language of two classes", "Use run(word), which gives the class."
            raise ArgumentError(where="Language.contains", got=f"{len(self.classes)}", wanted=wanted, remedy=remedy)
        return self.run(word) == 1

    def run(self, word: Word) -> int:
        """The class of a word.

        Raises:
            UnknownSymbolError: the word has a symbol that the alphabet has not.
        """
        ids = {symbol: number for number, symbol in enumerate(self.alphabet)}
        if unknown := [symbol for symbol in word if symbol not in ids]:
            wanted = f"one of {', '.join(map(repr, self.alphabet))}"
            raise UnknownSymbolError(where=f"language {self.name}", got=f"the symbol {unknown[0]!r}", wanted=wanted)
        return int(self.classify(np.array([[ids[symbol] for symbol in word]], dtype=np.int64))[0])

    def classify(self, tokens: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The classes of words of the same length, given as (words, length) places in the alphabet."""
        if self.minimal is not None:
            return self.minimal.classify_ids(tokens)
        return self.classify_by_rule(tokens)

    def classify_by_rule(self, tokens: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """As `classify`, by the rule even where there is an automaton."""
        if self.rule is None:
            raise ArgumentError(where=f"language {self.name}", got="no rule", wanted="a language that has one")
        words = self.words(tokens)
        labels = np.array([int(self.rule(word)) for word in words], dtype=np.int64)
        if len(wrong := np.flatnonzero((labels < 0) | (labels >= len(self.classes)))):
            raise ArgumentError(
                where=f"the rule of language {self.name}",
                got=f"the class {labels[wrong[0]]} for {words[wrong[0]]!r}",
                wanted=f"a class from 0 to {len(self.classes) - 1}",
                remedy="Name all classes that it gives: Language.predicate(..., classes=(...)).",
            )
        return labels

    def words(self, tokens: npt.NDArray[Any]) -> list[Any]:
        """Rows of places in the alphabet as words: strings if all symbols have one character, else tuples."""
        return [text_or_tuple([self.alphabet[place] for place in row], self.alphabet) for row in tokens.tolist()]
