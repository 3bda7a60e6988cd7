"""Nondeterministic acceptors as bit sets, and the deterministic machine of the same language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from statewise.automata.moore import MooreMachine
from statewise.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class Nondeterministic:
    """An acceptor without empty moves; a set of states is a whole number whose bits are its members.

    Args:
        alphabet: the symbols.
        moves: for each symbol, for each state, the set of next states.
        start: the set of first states.
        accepting: the set of accepting states.
        classes: the names of rejection and acceptance.
    """

    alphabet: tuple[str, ...]
    moves: Sequence[Sequence[int]]
    start: int
    accepting: int
    classes: tuple[str, ...] = ("reject", "accept")

    def determinise(self, *, limit: int = 100_000) -> MooreMachine:
        """The minimal machine of the same language, by the subset construction.

        Args:
            limit: more sets of states than this are an error, as their number can double with each state.

        >>> ends_in_a = Nondeterministic(alphabet=("a", "b"), moves=[[0b11, 0], [0b01, 0]], start=0b1, accepting=0b10)
        >>> ends_in_a.determinise().classify(["a", "ab", "ba"]).tolist()
        [1, 0, 1]
        """
        numbers, sets = {self.start: 0}, [self.start]
        transitions = []
        for states in sets:
            row = []
            for by_state in self.moves:
                after = 0
                for state in members(states):
                    after |= by_state[state]
                if after not in numbers:
                    numbers[after] = len(sets)
                    sets.append(after)
                row.append(numbers[after])
            transitions.append(row)
            if len(sets) > limit:
                raise ArgumentError(
                    where="determinise.limit",
                    got=f"more than {limit} states",
                    wanted="a language whose deterministic machine is smaller",
                    remedy="Raise the limit, or simplify the expression.",
                )
        return MooreMachine(
            alphabet=self.alphabet,
            transitions=np.array(transitions).reshape(len(sets), len(self.alphabet)),
            outputs=np.array([int(bool(states & self.accepting)) for states in sets]),
            classes=self.classes,
        ).minimise()


def members(states: int) -> Iterator[int]:
    """The members of a set that is written as bits.

    >>> list(members(0b1011))
    [0, 1, 3]
    """
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest


def as_bits(states: np.ndarray) -> int:
    """The set of the states that a mask marks.

    >>> as_bits(np.array([True, False, True]))
    5
    """
    return sum(1 << int(state) for state in np.flatnonzero(states))
