"""How many words of each class a machine has of each length, exactly; the words in order; and words drawn evenly."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, islice

from statewise.automata.moore import MooreMachine
from statewise.automata.moore_table import Class
from statewise.automata.symbols import text_or_tuple
from statewise.errors import ArgumentError, LengthError

Text = str | tuple[str, ...]


def ways_by_length(machine: MooreMachine, wanted: Class) -> Iterator[list[int]]:
    """For lengths 0, 1, 2 and so on without end: from each state, how many words lead to the class.

    ``ways_0(q) = [output of q is the class]``, ``ways_{n+1}(q) = sum_a ways_n(δ(q, a))``, in whole numbers of any size.

    Args:
        machine: any.
        wanted: the class, by name or number.

    >>> from statewise.automata import from_regex
    >>> list(islice(ways_by_length(from_regex("[ab]*"), 1), 4))
    [[1], [2], [4], [8]]
    """
    number = machine.class_number(wanted)
    rows = machine.transitions.tolist()
    ways = [int(output == number) for output in machine.outputs.tolist()]
    while True:
        yield ways
        ways = [sum([ways[after] for after in row]) for row in rows]


def count_words(machine: MooreMachine, length: int) -> tuple[int, ...]:
    """How many words of the length each class has.

    Args:
        machine: any.
        length: of the words.

    >>> from statewise.automata import from_regex
    >>> count_words(from_regex("a*b", "ab"), 3)
    (7, 1)
    """
    _require_length(length, "count_words.length")
    rows = machine.transitions.tolist()
    at = [0] * len(machine)
    at[machine.start] = 1
    for _ in range(length):
        after = [0] * len(machine)
        for state, words in enumerate(at):
            if words:
                for target in rows[state]:
                    after[target] += words
        at = after
    totals = [0] * len(machine.classes)
    for output, words in zip(machine.outputs.tolist(), at, strict=True):
        totals[output] += words
    return tuple(totals)


def words_of(
    machine: MooreMachine, wanted: Class = 1, *, min_length: int = 0, max_length: int | None = None
) -> Iterator[Text]:
    """The words of a class, shorter ones first, and in alphabet order among those of one length.

    Args:
        machine: any.
        wanted: the class, by name or number; the default is the accepted words.
        min_length: of the words.
        max_length: of the words; without it the words end only where the language does.

    >>> from statewise.automata import from_regex
    >>> list(islice(words_of(from_regex("(ab|b)*")), 5))
    ['', 'b', 'ab', 'bb', 'abb']
    """
    _require_length(min_length, "words_of.min_length")
    number = machine.class_number(wanted)
    rows = machine.transitions.tolist()
    # can[n][q]: some word of length n leads from q to the class, so that no branch is followed in vain.
    can = [[output == number for output in machine.outputs.tolist()]]
    silent = 0
    for length in count() if max_length is None else range(max_length + 1):
        if can[length][machine.start]:
            silent = 0
            if length >= min_length:
                for symbols in _words_of_length(rows, can, machine.start, length):
                    yield text_or_tuple([machine.alphabet[symbol] for symbol in symbols], machine.alphabet)
        else:
            silent += 1
        # An infinite language has a word in any len(machine) lengths that follow each other.
        if silent >= len(machine):
            return
        can.append([any(can[length][after] for after in row) for row in rows])


def sample_words(machine: MooreMachine, wanted: Class, length: int, *, seed: int, number: int = 1) -> list[Text]:
    """Words of one class and length, each equally likely, drawn with replacement; called as ``machine.sample``.

    Args:
        machine: any.
        wanted: the class, by name or number.
        length: of the words.
        seed: of the draw; the same seed gives the same words.
        number: how many.

    >>> from statewise.automata import from_regex
    >>> sample_words(from_regex("a*b*"), 1, 5, seed=0, number=3)
    ['aabbb', 'aabbb', 'aaaaa']
    """
    _require_length(length, "MooreMachine.sample.length")
    ways = list(islice(ways_by_length(machine, wanted), length + 1))
    if not ways[length][machine.start]:
        raise LengthError(
            where="MooreMachine.sample.length",
            got=f"no word of length {length} in class {machine.classes[machine.class_number(wanted)]!r}",
            wanted="a length of which there are words",
            remedy="machine.count(length) says which.",
        )
    draw = random.Random(seed)
    rows = machine.transitions.tolist()
    words = []
    for _ in range(number):
        state, rank, symbols = machine.start, draw.randrange(ways[length][machine.start]), []
        for left in range(length - 1, -1, -1):
            # The words from here, in alphabet order, are numbered; the rank says behind which symbol the drawn one is.
            ends = list(accumulate(ways[left][after] for after in rows[state]))
            symbol = bisect_right(ends, rank)
            rank -= ends[symbol - 1] if symbol else 0
            state = rows[state][symbol]
            symbols.append(machine.alphabet[symbol])
        words.append(text_or_tuple(symbols, machine.alphabet))
    return words


def _words_of_length(
    rows: Sequence[Sequence[int]], can: Sequence[Sequence[bool]], start: int, length: int
) -> Iterator[list[int]]:
    """Depth-first in alphabet order, with a stack of its own, along states from which the class can be reached."""
    states, symbols = [start], [-1]
    while states:
        left = length - len(states) + 1
        if left == 0:
            yield symbols[:-1]
        row = rows[states[-1]]
        following = next(
            (s for s in range(symbols[-1] + 1, len(row)) if left and can[left - 1][row[s]]),
            None,
        )
        if following is None:
            states.pop()
            symbols.pop()
        else:
            symbols[-1] = following
            states.append(row[following])
            symbols.append(-1)


def _require_length(length: int, where: str) -> None:
    if length < 0:
        raise ArgumentError(where=where, got=length, wanted="0 or more")
