"""Languages combined: the product of two machines, and union, intersection, difference, complement made of it.

Results are minimal and canonical, so two ways to one language give equal machines. The order of the first machine's
classes says which one accepts; the second machine may have the same classes in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from statewise.automata.compare import in_order_of, with_symbols_of
from statewise.automata.moore import MooreMachine
from statewise.automata.moore_table import Class
from statewise.errors import ArgumentError


def product(
    a: MooreMachine,
    b: MooreMachine,
    combine: Callable[[int, int], int],
    *,
    classes: Sequence[str] = ("reject", "accept"),
) -> MooreMachine:
    """The machine that runs both at once and classes a word by a function of their two classes.

    Only pairs of states that a word reaches are made. The result is not minimised; its labels name the pairs.

    Args:
        a: a machine.
        b: a machine over the same alphabet; the result's columns are in the order of a's.
        combine: the class of the result, from the class numbers of a and b.
        classes: the result's names.

    >>> from statewise.automata import from_regex
    >>> both = product(
    ...     from_regex("a*", "ab"),
    ...     from_regex(".", "ab"),
    ...     lambda one, other: one + other,
    ...     classes=("none", "one", "both"),
    ... )
    >>> [both.classes[both.run(word)] for word in ("a", "b", "bb")]
    ['both', 'one', 'none']
    """
    rows_a, rows_b = a.transitions.tolist(), with_symbols_of(a, b, "product").transitions.tolist()
    numbers = {(a.start, b.start): 0}
    pairs, transitions = [(a.start, b.start)], []
    for one, other in pairs:
        row = []
        for after in zip(rows_a[one], rows_b[other], strict=True):
            if after not in numbers:
                numbers[after] = len(pairs)
                pairs.append(after)
            row.append(numbers[after])
        transitions.append(row)
    names_a, names_b = a.labels or range(len(a)), b.labels or range(len(b))
    return MooreMachine(
        alphabet=a.alphabet,
        transitions=np.array(transitions).reshape(len(pairs), len(a.alphabet)),
        outputs=np.array([combine(int(a.outputs[one]), int(b.outputs[other])) for one, other in pairs]),
        classes=tuple(classes),
        labels=tuple(f"{names_a[one]},{names_b[other]}" for one, other in pairs),
    )


def union(a: MooreMachine, b: MooreMachine) -> MooreMachine:
    """The words that either machine accepts; written ``a | b``.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> (from_regex("a*", "ab") | from_regex("b*", "ab")).classify(["aa", "bb", "ab"]).tolist()
    [1, 1, 0]
    """
    return _boolean(a, b, lambda one, other: one | other)


def intersection(a: MooreMachine, b: MooreMachine) -> MooreMachine:
    """The words that both machines accept; written ``a & b``.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> (from_regex("a.*", "ab") & from_regex(".*b", "ab")).classify(["ab", "a"]).tolist()
    [1, 0]
    """
    return _boolean(a, b, lambda one, other: one & other)


def difference(a: MooreMachine, b: MooreMachine) -> MooreMachine:
    """The words that the first machine accepts and the second does not; written ``a - b``.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> (from_regex("a*") - from_regex("aa")).classify(["a", "aa"]).tolist()
    [1, 0]
    """
    return _boolean(a, b, lambda one, other: one & (1 - other))


def symmetric_difference(a: MooreMachine, b: MooreMachine) -> MooreMachine:
    """The words that exactly one of the machines accepts; written ``a ^ b``.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> (from_regex("a+") ^ from_regex("a?")).classify(["", "a", "aa"]).tolist()
    [1, 0, 1]
    """
    return _boolean(a, b, lambda one, other: one ^ other)


def complement(machine: MooreMachine) -> MooreMachine:
    """The words that the machine rejects; written ``~machine``.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> (~from_regex("a*", "ab")).classify(["", "ab"]).tolist()
    [0, 1]
    """
    machine.require_two_classes("complement")
    return replace(machine, outputs=1 - machine.outputs).minimise()


def constant(machine: MooreMachine, wanted: Class) -> MooreMachine:
    """The machine over the same symbols and classes that gives every word one class.

    Args:
        machine: any.
        wanted: the class, by name or number.

    >>> from statewise.automata import from_regex
    >>> constant(from_regex("ab"), "accept") == from_regex("[ab]*")
    True
    """
    outputs = np.full(len(machine), machine.class_number(wanted))
    return replace(machine, outputs=outputs, labels=()).minimise()


def over(machine: MooreMachine, alphabet: Sequence[str], *, sink: Class = 0) -> MooreMachine:
    """The machine over a wider or reordered alphabet: a word with a new symbol in it gets the class of the sink.

    Args:
        machine: any.
        alphabet: at least the machine's symbols, in the wanted order.
        sink: the class, by name or number, of all words with a new symbol.

    >>> from statewise.automata import from_regex
    >>> over(from_regex("a*"), "ab").classify(["aa", "ab"]).tolist()
    [1, 0]
    """
    missing = sorted(set(machine.alphabet) - set(alphabet))
    if missing:
        raise ArgumentError(where="over.alphabet", got=f"none of {missing}", wanted="all of the machine's symbols")
    end = len(machine)
    columns = {symbol: column for column, symbol in enumerate(machine.alphabet)}
    padded = np.full((end + 1, len(alphabet)), end)
    for place, symbol in enumerate(alphabet):
        if symbol in columns:
            padded[:end, place] = machine.transitions[:, columns[symbol]]
    outputs = np.append(machine.outputs, machine.class_number(sink))
    labels = (*machine.labels, "sink") if machine.labels else ()
    return replace(machine, alphabet=tuple(alphabet), transitions=padded, outputs=outputs, labels=labels).trim()


def _boolean(a: MooreMachine, b: MooreMachine, combine: Callable[[int, int], int]) -> MooreMachine:
    a.require_two_classes("union, intersection and difference")
    b.require_two_classes("union, intersection and difference")
    joined = product(a, in_order_of(a, b, "product"), combine, classes=a.classes)
    return replace(joined, labels=()).minimise()
