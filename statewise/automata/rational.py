"""Languages joined end to end, repeated, turned round and cut: what needs a nondeterministic machine on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from statewise.automata.compare import in_order_of
from statewise.automata.moore import MooreMachine
from statewise.automata.operations import constant
from statewise.automata.subsets import Nondeterministic, as_bits


def concatenation(a: MooreMachine, b: MooreMachine) -> MooreMachine:
    """The words that are a word of the first language followed by one of the second.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> concatenation(from_regex("a*", "ab"), from_regex("b", "ab")) == from_regex("a*b")
    True
    """
    a.require_two_classes("concatenation")
    b.require_two_classes("concatenation")
    b = in_order_of(a, b, "concatenation")
    second = 1 << (len(a) + b.start)
    # Where the first word may end, the second may begin.
    entered = [1 << state | (second if a.outputs[state] else 0) for state in range(len(a))]
    moves = [
        [entered[after] for after in of_a] + [1 << (len(a) + after) for after in of_b]
        for of_a, of_b in zip(a.transitions.T.tolist(), b.transitions.T.tolist(), strict=True)
    ]
    accepting = as_bits(b.outputs == 1) << len(a)
    return Nondeterministic(
        alphabet=a.alphabet, moves=moves, start=entered[a.start], accepting=accepting, classes=a.classes
    ).determinise()


def star(machine: MooreMachine) -> MooreMachine:
    """The words that are any number of words of the language, none included, one after the other.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> star(from_regex("ab")) == from_regex("(ab)*")
    True
    """
    machine.require_two_classes("star")
    start = 1 << machine.start
    entered = [1 << state | (start if machine.outputs[state] else 0) for state in range(len(machine))]
    # A state of its own accepts the empty word, lest a loop back to the start accept too much.
    fresh = len(machine)
    moves = [[entered[after] for after in column] for column in machine.transitions.T.tolist()]
    for column in moves:
        column.append(column[machine.start])
    accepting = as_bits(machine.outputs == 1) | 1 << fresh
    return Nondeterministic(
        alphabet=machine.alphabet, moves=moves, start=1 << fresh, accepting=accepting, classes=machine.classes
    ).determinise()


def reversal(machine: MooreMachine) -> MooreMachine:
    """The words of the language read from the end.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> reversal(from_regex("ab*")) == from_regex("b*a")
    True
    """
    machine.require_two_classes("reversal")
    moves = []
    for column in machine.transitions.T.tolist():
        back = [0] * len(machine)
        for before, after in enumerate(column):
            back[after] |= 1 << before
        moves.append(back)
    return Nondeterministic(
        alphabet=machine.alphabet,
        moves=moves,
        start=as_bits(machine.outputs == 1),
        accepting=1 << machine.start,
        classes=machine.classes,
    ).determinise()


def right_quotient(a: MooreMachine, b: MooreMachine) -> MooreMachine:
    """The words that some word of the second language completes to one of the first: ``{u : uv in A, v in B}``.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> right_quotient(from_regex("a*b", "ab"), from_regex("b", "ab")) == from_regex("a*", "ab")
    True
    """
    a.require_two_classes("right_quotient")
    b.require_two_classes("right_quotient")
    good = _pairs_that_can_accept(a, in_order_of(a, b, "right_quotient"))[:, b.start]
    return replace(a, outputs=good.astype(np.int64), labels=()).minimise()


def left_quotient(a: MooreMachine, b: MooreMachine) -> MooreMachine:
    """What words of the first language have after a word of the second: ``{v : uv in A, u in B}``.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> left_quotient(from_regex("ab*"), from_regex("a", "ab")) == from_regex("b*", "ab")
    True
    """
    return reversal(right_quotient(reversal(a), reversal(in_order_of(a, b, "left_quotient"))))


def prefixes(machine: MooreMachine) -> MooreMachine:
    """The beginnings of the language's words, the empty and the whole word included.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> prefixes(from_regex("ab")) == from_regex("(ab?)?")
    True
    """
    return right_quotient(machine, constant(machine, 1))


def suffixes(machine: MooreMachine) -> MooreMachine:
    """The ends of the language's words, the empty and the whole word included.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> suffixes(from_regex("ab")) == from_regex("(a?b)?")
    True
    """
    return reversal(prefixes(reversal(machine)))


def _pairs_that_can_accept(a: MooreMachine, b: MooreMachine) -> np.ndarray:
    """(states of a, states of b): whether one word leads both to acceptance."""
    good = np.outer(a.outputs == 1, b.outputs == 1)
    before = -1
    while before != (before := int(good.sum())):
        for column_a, column_b in zip(a.transitions.T, b.transitions.T, strict=True):
            good |= good[np.ix_(column_a, column_b)]
    return good
