"""Angluin's L* on any black box that classes words, by AALpy: what there is to compare exact extraction with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from statewise.automata.moore import MooreMachine, Word
from statewise.automata.words import Text, all_words, longest_within, random_words
from statewise.errors import ArgumentError, MissingExtraError

Classify = Callable[[Sequence[Word]], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What L* found.

    Attributes:
        machine: the last hypothesis, minimal and canonical.
        queries: how many different words the black box was asked.
        rounds: how many hypotheses there were.
        seconds: the time it took.
        complete: whether the last hypothesis withstood all test words; else the budget was spent.
    """

    machine: MooreMachine
    queries: int
    rounds: int
    seconds: float
    complete: bool


def learn_by_lstar(
    classify: Classify,
    alphabet: Sequence[str],
    *,
    classes: Sequence[str] = ("reject", "accept"),
    short_words: int = 1000,
    test_words: int = 1000,
    max_length: int = 30,
    max_rounds: int = 50,
    max_seconds: float = 600.0,
    seed: int = 0,
) -> Learned:
    """Learn a machine from the answers of a black box, with no guarantee (Angluin 1987; through AALpy).

    Each hypothesis is tested on all words up to as many as ``short_words`` and on random longer ones; the shortest
    difference refines it. A box that is no finite machine gives ever larger hypotheses until the budget is spent.

    Args:
        classify: from words to class numbers, such as ``model.classify``.
        alphabet: the symbols.
        classes: the names of the classes.
        short_words: how many words the exhaustive part of a test may have.
        test_words: how many random words a test has.
        max_length: of the random words.
        max_rounds: of refinement.
        max_seconds: after which no further round begins.
        seed: of the random words; every round draws others.

    >>> from statewise.automata import from_regex
    >>> even = from_regex("(0|10*1)*")
    >>> learn_by_lstar(even.classify, even.alphabet).machine == even
    True
    """
    try:
        from aalpy import SUL, Oracle, run_Lstar
    except ImportError:
        raise MissingExtraError.of("learn_by_lstar", package="AALpy", extra="automata") from None
    if not alphabet:
        raise ArgumentError(where="learn_by_lstar alphabet", got="no symbols", wanted="at least one")
    began = time.perf_counter()
    box = _Box(classify, tuple(alphabet))
    test = _Test(box, tuple(classes), short_words, test_words, max_length, seed)

    class System(SUL):  # type: ignore[misc]
        """The black box, asked for all prefixes of a word at once."""

        def query(self, word: tuple[str, ...]) -> list[int]:
            self.num_queries += 1
            return box.ask([word[:end] for end in range(min(1, len(word)), len(word) + 1)])

        def pre(self) -> None:
            """Begin a word; nothing is kept between words."""

        def post(self) -> None:
            """End a word."""

        def step(self, letter: Any) -> int:
            raise NotImplementedError  # words are asked whole

    class Tester(Oracle):  # type: ignore[misc]
        """Tests with many words at once."""

        def find_cex(self, hypothesis: Any) -> tuple[str, ...] | None:
            late = time.perf_counter() - began > max_seconds
            found = test.difference(_machine(hypothesis, box.alphabet, test.classes), stop=late)
            return None if found is None else tuple(found)

    system = System()
    symbols = list(alphabet)
    options = {"max_learning_rounds": max_rounds, "cache_and_non_det_check": False, "print_level": 0}
    learnt = run_Lstar(symbols, system, Tester(symbols, system), automaton_type="moore", **options)
    return Learned(
        machine=_machine(learnt, box.alphabet, test.classes).minimise(),
        queries=len(box.known),
        rounds=test.rounds,
        seconds=time.perf_counter() - began,
        complete=test.withstood,
    )


class _Box:
    """The black box, which remembers its answers."""

    def __init__(self, classify: Classify, alphabet: tuple[str, ...]) -> None:
        self._classify, self.alphabet = classify, alphabet
        self.known: dict[tuple[str, ...], int] = {}

    def ask(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        new = list({word for word in words if word not in self.known})
        if new:
            self.known.update(zip(new, map(int, self._classify(new)), strict=True))
        return [self.known[word] for word in words]


class _Test:
    """The equivalence test: all short words, then random ones."""

    def __init__(
        self, box: _Box, classes: tuple[str, ...], short_words: int, test_words: int, max_length: int, seed: int
    ) -> None:
        self._box, self.classes = box, classes
        self._number, self._max_length, self._seed = test_words, max_length, seed
        self._short = longest_within(len(box.alphabet), short_words, at_most=max_length)
        self.rounds, self.withstood = 0, False

    def difference(self, machine: MooreMachine, *, stop: bool) -> Text | None:
        """The shortest word found on which the machine and the box differ; None if none was, or none is to be."""
        self.rounds += 1
        if stop:
            return None
        alphabet = self._box.alphabet
        longer = random_words(
            alphabet, self._number, min_length=self._short, max_length=self._max_length, seed=self._seed + self.rounds
        )
        for words in (list(all_words(alphabet, self._short)), sorted(longer, key=len)):
            theirs = np.array(self._box.ask([tuple(word) for word in words]))
            wrong = np.flatnonzero(machine.classify(words) != theirs)
            if len(wrong):
                return words[int(wrong[0])]
        self.withstood = True
        return None


def _machine(learnt: Any, alphabet: tuple[str, ...], classes: tuple[str, ...]) -> MooreMachine:
    """The machine of an AALpy hypothesis whose outputs are class numbers."""
    numbers = {id(state): number for number, state in enumerate(learnt.states)}
    return MooreMachine(
        alphabet=alphabet,
        transitions=np.array([[numbers[id(state.transitions[a])] for a in alphabet] for state in learnt.states]),
        outputs=np.array([state.output for state in learnt.states]),
        start=numbers[id(learnt.initial_state)],
        classes=classes,
    )
