"""Words as a tree of their prefixes, so that the state after each prefix is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from statewise.data import Sequences

Numbers = npt.NDArray[np.int64]


class Level(NamedTuple):
    """The prefixes of one length.

    Attributes:
        parents: the place in the level above of each prefix without its last symbol.
        tokens: its last symbol.
    """

    parents: Numbers
    tokens: Numbers


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """All prefixes of some words, level by level; the root is the empty word, node 0.

    Args:
        levels: the prefixes of length 1, 2 and so on.
        ends: the node of each word, counted through all levels.

    >>> tree = PrefixTree.of(Sequences.from_words(["ab", "aa", ""], [1, 0, 0]))
    >>> len(tree), [level.tokens.tolist() for level in tree.levels], tree.ends.tolist()
    (4, [[0], [0, 1]], [3, 2, 0])
    """

    levels: tuple[Level, ...]
    ends: Numbers

    @classmethod
    def of(cls, words: Sequences) -> PrefixTree:
        """The tree of a set of words."""
        lengths, starts, symbols = words.lengths, words.starts[:-1], len(words.symbols)
        nodes = np.zeros(len(words), dtype=np.int64)  # where each word stands, in its level
        ends = np.zeros(len(words), dtype=np.int64)
        levels, first = [], 1
        for length in range(1, int(lengths.max(initial=0)) + 1):
            longer = np.flatnonzero(lengths >= length)
            keys = nodes[longer] * symbols + words.tokens[starts[longer] + length - 1]
            distinct, places = np.unique(keys, return_inverse=True)
            nodes[longer] = places
            levels.append(Level(distinct // symbols, distinct % symbols))
            here = longer[lengths[longer] == length]
            ends[here] = first + nodes[here]
            first += len(distinct)
        return cls(tuple(levels), ends)

    def __len__(self) -> int:
        return 1 + sum(len(level.tokens) for level in self.levels)

    @property
    def firsts(self) -> list[int]:
        """The first node of each level, the root's included, and one past the last."""
        return np.cumsum([0, 1, *(len(level.tokens) for level in self.levels)]).tolist()  # type: ignore[no-any-return]

    def children(self, symbols: int) -> Numbers:
        """The node that each symbol leads to from each node; -1 where no word goes on so.

        Args:
            symbols: how many there are.
        """
        found = np.full((len(self), symbols), -1, dtype=np.int64)
        for level, (above, first) in zip(self.levels, pairwise(self.firsts), strict=False):
            found[above + level.parents, level.tokens] = first + np.arange(len(level.tokens))
        return found

    def keep(self, words: npt.NDArray[np.bool_]) -> tuple[PrefixTree, Numbers]:
        """The tree of some of the words, and which nodes of this tree its nodes were.

        Args:
            words: for each word whether it stays.
        """
        firsts, needed = self.firsts, np.zeros(len(self), dtype=bool)
        needed[0] = True
        needed[self.ends[words]] = True
        for depth in range(len(self.levels) - 1, 0, -1):  # whoever has a child stays
            below = needed[firsts[depth + 1] : firsts[depth + 2]]
            needed[firsts[depth] + self.levels[depth].parents[below]] = True
        places = np.cumsum(needed) - 1
        levels = []
        for depth, level in enumerate(self.levels):
            stays = needed[firsts[depth + 1] : firsts[depth + 2]]
            if not stays.any():
                break
            # Places are counted through all levels, parents within their own.
            before = int(needed[: firsts[depth]].sum())
            levels.append(Level(places[firsts[depth] + level.parents[stays]] - before, level.tokens[stays]))
        return PrefixTree(tuple(levels), places[self.ends[words]]), np.flatnonzero(needed)

    def walk(self, successors: Numbers, starts: Numbers) -> Numbers:
        """The state after every prefix in several machines at once, shape (machines, nodes).

        Args:
            successors: (machines, states, symbols), the next state.
            starts: (machines,), the state of the empty word.
        """
        machines = np.arange(len(starts))[:, None]
        states = [starts[:, None]]
        for level in self.levels:
            states.append(successors[machines, states[-1][:, level.parents], level.tokens])
        return np.concatenate(states, axis=1)

    def continued(self, labels: Numbers, symbols: int, suffixes: Sequence[Sequence[int]]) -> Numbers:
        """The class of every prefix continued by each suffix, shape (nodes, suffixes); -1 where no word tells it.

        This is a block of the Hankel matrix of the language: two prefixes with different rows cannot share a state.

        Args:
            labels: of the words.
            symbols: how many there are.
            suffixes: each a row of symbols.
        """
        known = np.full(len(self) + 1, -1, dtype=np.int64)  # the last entry stands for nodes that are not there
        known[self.ends] = labels
        onwards = np.concatenate([self.children(symbols), np.full((1, symbols), -1)])
        columns = []
        for suffix in suffixes:
            at: npt.NDArray[Any] = np.arange(len(self))
            for symbol in suffix:
                at = onwards[at, symbol]
            columns.append(known[at])
        return np.stack(columns, axis=1)
