"""Who is joined to whom in a machine, as a layout needs it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from statewise.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Who is joined to whom, without directions and loops, and the tree of shortest ways from the start.

    Args:
        states: how many.
        pairs: the joined states, the smaller number first.
        start: the state at the left.
        parents: the state before each on a shortest way from the start; -1 for the start and what cannot be reached.
        depths: the length of that way; for what cannot be reached, one more than the longest.
    """

    states: int
    pairs: Int[np.ndarray, "pairs 2"]
    start: int
    parents: Int[np.ndarray, " states"]
    depths: Int[np.ndarray, " states"]

    @classmethod
    def of(cls, transitions: Int[np.ndarray, "states symbols"], start: int = 0) -> Graph:
        """The graph of a transition table.

        Args:
            transitions: the next state by state and symbol.
            start: the first state.

        >>> Graph.of(np.array([[0, 1], [1, 0]])).pairs.tolist()
        [[0, 1]]
        """
        states = len(transitions)
        if not 0 <= start < states:
            raise ArgumentError(where="Graph.of.start", got=start, wanted=f"a state of {states}")
        arrows = {tuple(sorted((i, int(j)))) for i, row in enumerate(transitions) for j in row if i != j}
        parents, depths = np.full(states, -1), np.full(states, -1)
        depths[start], queue = 0, deque([start])
        while queue:
            state = queue.popleft()
            for successor in map(int, transitions[state]):
                if depths[successor] < 0:
                    parents[successor], depths[successor] = state, depths[state] + 1
                    queue.append(successor)
        depths[depths < 0] = depths.max() + 1
        pairs = np.array(sorted(arrows), dtype=np.int64).reshape(-1, 2)
        return cls(states=states, pairs=pairs, start=start, parents=parents, depths=depths)

    @cached_property
    def neighbours(self) -> list[Int[np.ndarray, " some"]]:
        """The states that each is joined to."""
        joined = [self.pairs[(self.pairs == state).any(1)].sum(1) - state for state in range(self.states)]
        return [np.sort(mates) for mates in joined]

    @cached_property
    def elsewhere(self) -> list[Int[np.ndarray, "some 2"]]:
        """The pairs that each state is not in."""
        return [self.pairs[(self.pairs != state).all(1)] for state in range(self.states)]

    @cached_property
    def fellows(self) -> list[Int[np.ndarray, "mates some"]]:
        """For each state, and each of its neighbours, the others that the neighbour is joined to; -1 fills up."""
        width = max(map(len, self.neighbours), default=0)
        tables = []
        for state, mates in enumerate(self.neighbours):
            table = np.full((len(mates), width), -1)
            for row, mate in enumerate(mates):
                others = self.neighbours[mate][self.neighbours[mate] != state]
                table[row, : len(others)] = others
            tables.append(table)
        return tables
