"""Does a black box class words as a machine does? Asked on all short words, and on longer random ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from statewise.automata.moore import MooreMachine
from statewise.automata.words import Text, all_words, longest_within, random_words
from statewise.errors import ArgumentError, DtypeError, ShapeError


@dataclass(frozen=True)
class CounterExample:
    """A word on which machine and black box differ.

    Args:
        word: a text, or a tuple of symbols.
        machine: the class that the machine gives it, by name.
        other: the class that the black box gives it, by name.
    """

    word: Text
    machine: str
    other: str


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How often a black box and a machine gave a word the same class.

    Args:
        max_length: all words up to this length were asked.
        short_words: how many those are.
        short_agreeing: on how many of them both agree.
        random_words: how many random words were asked.
        random_agreeing: on how many of them both agree.
        random_lengths: the smallest and largest length of the random words that were allowed.
        counter_examples: the shortest words on which they differ, shortest first.

    >>> print(
    ...     Agreement(
    ...         max_length=2,
    ...         short_words=7,
    ...         short_agreeing=7,
    ...         random_words=10,
    ...         random_agreeing=9,
    ...         random_lengths=(3, 30),
    ...         counter_examples=(CounterExample("0101", "accept", "reject"),),
    ...     )
    ... )
    7 of 7 words up to length 2 agree, 9 of 10 random words of lengths 3 to 30; first difference: '0101'
    """

    max_length: int
    short_words: int
    short_agreeing: int
    random_words: int
    random_agreeing: int
    random_lengths: tuple[int, int]
    counter_examples: tuple[CounterExample, ...]

    @property
    def short(self) -> float:
        """The fraction of the short words that agree."""
        return self.short_agreeing / self.short_words if self.short_words else 1.0

    @property
    def random(self) -> float:
        """The fraction of the random words that agree; 1 if none were asked."""
        return self.random_agreeing / self.random_words if self.random_words else 1.0

    @property
    def perfect(self) -> bool:
        """Whether no difference was found."""
        return not self.counter_examples

    def __str__(self) -> str:
        low, high = self.random_lengths
        text = (
            f"{self.short_agreeing} of {self.short_words} words up to length {self.max_length} agree, "
            f"{self.random_agreeing} of {self.random_words} random words of lengths {low} to {high}"
        )
        return text if self.perfect else f"{text}; first difference: {self.counter_examples[0].word!r}"


def agreement(
    machine: MooreMachine,
    classify: Callable[[Sequence[Any]], Any],
    *,
    max_length: int | None = None,
    random: int = 1000,
    random_lengths: tuple[int, int] | None = None,
    seed: int = 0,
    keep: int = 10,
    batch: int = 4096,
) -> Agreement:
    """Compare a machine with any function that classes words.

    Args:
        machine: what the function should do.
        classify: from a batch of words, texts or tuples of symbols, to their class numbers.
        max_length: all words up to this length are asked; the default is the length where they exceed 10,000.
        random: how many random words are asked.
        random_lengths: their smallest and largest length; the default is one past max_length to ten times that.
        seed: of the random words.
        keep: how many counter-examples are kept, the shortest ones.
        batch: how many words the function is given at once.

    >>> from statewise.automata import from_regex
    >>> machine = from_regex("(aa)*")
    >>> print(agreement(machine, lambda words: [int(len(word) != 1) for word in words], max_length=4, random=0))
    4 of 5 words up to length 4 agree, 0 of 0 random words of lengths 5 to 50; first difference: 'aaa'
    """
    if max_length is None:
        max_length = longest_within(len(machine.alphabet), 10_000)
    if random_lengths is None:
        random_lengths = (max_length + 1, 10 * (max_length + 1))
    if not machine.alphabet:
        random, random_lengths = 0, (0, 0)
    low, high = random_lengths
    drawn = random_words(machine.alphabet, random, min_length=low, max_length=high, seed=seed)
    short, short_wrong = _compare(machine, classify, all_words(machine.alphabet, max_length), batch)
    _, random_wrong = _compare(machine, classify, drawn, batch)
    found = sorted({example.word: example for example in (*short_wrong, *random_wrong)}.values(), key=_length)
    return Agreement(
        max_length=max_length,
        short_words=short,
        short_agreeing=short - len(short_wrong),
        random_words=random,
        random_agreeing=random - len(random_wrong),
        random_lengths=random_lengths,
        counter_examples=tuple(found[:keep]),
    )


def _length(example: CounterExample) -> int:
    return len(example.word)


def _compare(
    machine: MooreMachine, classify: Callable[[Sequence[Any]], Any], words: Iterable[Text], batch: int
) -> tuple[int, list[CounterExample]]:
    asked, wrong = 0, []
    for some in _batches(words, batch):
        ours, theirs = machine.classify(some), _checked(classify(some), some, machine)
        asked += len(some)
        for place in np.flatnonzero(ours != theirs).tolist():
            names = machine.classes[ours[place]], machine.classes[theirs[place]]
            wrong.append(CounterExample(some[place], *names))
    return asked, wrong


def _batches(words: Iterable[Text], size: int) -> Iterator[list[Text]]:
    source = iter(words)
    while some := list(itertools.islice(source, size)):
        yield some


def _checked(found: Any, words: Sequence[Text], machine: MooreMachine) -> np.ndarray:
    classes = np.asarray(found)
    if classes.shape != (len(words),):
        raise ShapeError(
            where="agreement.classify", got=classes.shape, wanted=f"one class for each of {len(words)} words"
        )
    if classes.dtype.kind not in "iub":
        raise DtypeError(
            where="agreement.classify",
            got=f"dtype {classes.dtype}",
            wanted="class numbers, which are whole",
            remedy="Of scores take the place of the largest: scores.argmax(1).",
        )
    classes = classes.astype(np.int64)
    if not 0 <= classes.min() <= classes.max() < len(machine.classes):
        raise ArgumentError(
            where="agreement.classify",
            got=f"classes {classes.min()} to {classes.max()}",
            wanted=f"class numbers 0 to {len(machine.classes) - 1}",
        )
    return classes
