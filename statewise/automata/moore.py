"""Moore machines: finite automata whose states carry a class; with two classes, deterministic acceptors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from statewise.automata.batch import final_states
from statewise.automata.checks import numbers_below, whole_numbers
from statewise.automata.minimise import breadth_first, equivalent_states
from statewise.automata.moore_table import Class, MooreTable
from statewise.automata.symbols import encode_word, encode_words, numbering
from statewise.errors import UnknownSymbolError

Word = Sequence[str]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MooreMachine(MooreTable):
    """A complete deterministic automaton that gives every word a class: that of the state where the word ends.

    ``run(w) = outputs[δ(... δ(start, w_1) ..., w_T)]`` with ``δ = transitions``. Two machines are equal if their
    alphabet, classes, start and tables are; labels are names for people and do not count.

    Args:
        alphabet: the symbols, in the order of the columns.
        transitions: (states, symbols), the next state.
        outputs: (states,), the class of each state.
        start: the state of the empty word.
        classes: the names of the classes; a word is accepted if its class is the second of two.
        labels: a name of each state; none means their numbers.

    >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
    >>> even.accepts("0110"), even.run("1"), even.path("101")
    (True, 0, [0, 1, 1, 0])
    >>> even
    MooreMachine(2 states; alphabet 0 1; classes reject accept)
    """

    def __invert__(self) -> MooreMachine:
        return _module("operations").complement(self)  # type: ignore[no-any-return]

    def __or__(self, other: MooreMachine) -> MooreMachine:
        return _module("operations").union(self, other)  # type: ignore[no-any-return]

    def __and__(self, other: MooreMachine) -> MooreMachine:
        return _module("operations").intersection(self, other)  # type: ignore[no-any-return]

    def __sub__(self, other: MooreMachine) -> MooreMachine:
        return _module("operations").difference(self, other)  # type: ignore[no-any-return]

    def __xor__(self, other: MooreMachine) -> MooreMachine:
        return _module("operations").symmetric_difference(self, other)  # type: ignore[no-any-return]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return numbering(self.alphabet)

    @cached_property
    def _rows(self) -> list[list[int]]:
        rows: list[list[int]] = self.transitions.tolist()
        return rows

    def encode(self, word: Word) -> list[int]:
        """The numbers of the word's symbols; a plain text counts as its characters.

        Args:
            word: symbols of the alphabet.
        """
        return encode_word(word, self._numbers)

    def path(self, word: Word) -> list[int]:
        """The states that the word passes, from the start to the end: one more than it has symbols.

        Args:
            word: symbols of the alphabet.
        """
        states, rows = [self.start], self._rows
        for symbol in self.encode(word):
            states.append(rows[states[-1]][symbol])
        return states

    def run(self, word: Word) -> int:
        """The number of the word's class.

        Args:
            word: symbols of the alphabet.
        """
        state, rows = self.start, self._rows
        for symbol in self.encode(word):
            state = rows[state][symbol]
        return int(self.outputs[state])

    def accepts(self, word: Word) -> bool:
        """Whether the word's class is the second of two.

        Args:
            word: symbols of the alphabet.
        """
        self.require_two_classes("MooreMachine.accepts")
        return self.run(word) == 1

    def accepting(self, wanted: Class) -> MooreMachine:
        """The machine of two classes that accepts the words of one class.

        Args:
            wanted: the class, by name or number.
        """
        outputs = (self.outputs == self.class_number(wanted)).astype(np.int64)
        return replace(self, outputs=outputs, classes=("reject", "accept"))

    def classify(self, words: Sequence[Word]) -> np.ndarray:
        """The class number of every word, all words stepped at once.

        Args:
            words: each of symbols of the alphabet.

        >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
        >>> even.classify(["", "1", "11"]).tolist()
        [1, 0, 1]
        """
        tokens, starts = encode_words(words, self._numbers)
        return np.asarray(self.outputs[final_states(self.transitions, self.start, tokens, starts)])

    def classify_ids(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        """The class number of every row of symbol numbers.

        Args:
            tokens: (words, steps) places in the alphabet; what lies past a word's length is not looked at.
            lengths: (words,) of each word; none means that all rows are full.

        >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
        >>> even.classify_ids(np.array([[1, 1], [1, -1]]), np.array([2, 1])).tolist()
        [1, 0]
        """
        tokens = whole_numbers(tokens, "MooreMachine.classify_ids.tokens", (None, None))
        count, steps = tokens.shape
        lengths = np.full(count, steps) if lengths is None else numbers_below(lengths, "lengths", (count,), steps + 1)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = tokens[np.arange(steps) < lengths[:, None]]
        if len(flat) and not 0 <= flat.min() <= flat.max() < len(self.alphabet):
            raise UnknownSymbolError(
                where="MooreMachine.classify_ids.tokens",
                got=f"numbers from {flat.min()} to {flat.max()}",
                wanted=f"0 to {len(self.alphabet) - 1}",
            )
        return np.asarray(self.outputs[final_states(self.transitions, self.start, flat, starts)])

    def count(self, length: int) -> tuple[int, ...]:
        """How many words of the length each class has, exactly; see :func:`count_words`.

        Args:
            length: of the words.
        """
        return _module("counts").count_words(self, length)  # type: ignore[no-any-return]

    def sample(self, wanted: Class, length: int, *, seed: int, number: int = 1) -> list[Any]:
        """Words of one class and length, each equally likely, drawn with replacement.

        Args:
            wanted: the class, by name or number.
            length: of the words.
            seed: of the draw.
            number: how many.
        """
        return _module("counts").sample_words(self, wanted, length, seed=seed, number=number)  # type: ignore[no-any-return]

    def canonical(self) -> MooreMachine:
        """The same machine without unreachable states, numbered breadth-first: equal for isomorphic machines.

        >>> shuffled = MooreMachine(
        ...     alphabet=("a",), transitions=np.array([[0], [2], [1]]), outputs=np.array([0, 1, 0]), start=2
        ... )
        >>> shuffled.canonical().transitions.tolist(), shuffled.canonical().outputs.tolist()
        ([[1], [0]], [0, 1])
        """
        order = breadth_first(self.transitions, self.start)
        places = np.full(len(self), -1)
        places[order] = np.arange(len(order))
        labels = tuple(self.labels[state] for state in order) if self.labels else ()
        return replace(
            self, transitions=places[self.transitions[order]], outputs=self.outputs[order], start=0, labels=labels
        )

    def trim(self) -> MooreMachine:
        """The same machine without the states that no word reaches; the others keep their order."""
        kept = np.sort(breadth_first(self.transitions, self.start))
        labels = tuple(self.labels[state] for state in kept) if self.labels else ()
        transitions = np.searchsorted(kept, self.transitions[kept])
        start = int(np.searchsorted(kept, self.start))
        return replace(self, transitions=transitions, outputs=self.outputs[kept], start=start, labels=labels)

    def minimise(self) -> MooreMachine:
        """The smallest machine of the same classes for all words, canonical; labels of merged states join by ``+``.

        >>> twice = MooreMachine(alphabet=("a",), transitions=np.array([[1], [0]]), outputs=np.array([1, 1]))
        >>> len(twice.minimise())
        1
        """
        trimmed = self.trim()
        blocks = equivalent_states(trimmed.transitions, trimmed.outputs)
        _, first = np.unique(blocks, return_index=True)
        smallest = replace(
            trimmed,
            transitions=blocks[trimmed.transitions[first]],
            outputs=trimmed.outputs[first],
            start=int(blocks[trimmed.start]),
            labels=_joined(trimmed.labels, blocks, len(first)),
        )
        return smallest.canonical()


def _module(name: str) -> ModuleType:
    # Late, because what is done with machines imports them.
    return import_module(f"statewise.automata.{name}")


def _joined(labels: tuple[str, ...], blocks: np.ndarray, count: int) -> tuple[str, ...]:
    """The labels of each block's states; none if there are none."""
    parts: list[list[str]] = [[] for _ in range(count)]
    for label, block in zip(labels, blocks.tolist(), strict=False):
        parts[block].append(label)
    return tuple("+".join(part) for part in parts) if labels else ()
