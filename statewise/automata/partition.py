"""A partition of states into blocks that can only be split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Partition:
    """Blocks of states, kept as intervals of one list, so that a split moves only the states that cause it.

    Args:
        keys: one for each state; states of equal keys begin in one block.

    >>> partition = Partition(np.array([0, 0, 0, 1]))
    >>> partition.refine([[[], [0], [1], [2, 3]]], [1])  # one symbol: 0 -> 1 -> 2 -> 3 -> 3
    >>> partition.numbers().tolist()
    [0, 3, 2, 1]
    """

    def __init__(self, keys: np.ndarray) -> None:
        _, blocks, sizes = np.unique(keys, return_inverse=True, return_counts=True)
        order = np.argsort(blocks, kind="stable")
        self._members: list[int] = order.tolist()
        self._place: list[int] = np.argsort(order).tolist()
        self._block: list[int] = blocks.tolist()
        self._end: list[int] = np.cumsum(sizes).tolist()
        self._begin: list[int] = [0, *self._end[:-1]]

    def __len__(self) -> int:
        return len(self._begin)

    def size(self, block: int) -> int:
        """How many states the block has."""
        return self._end[block] - self._begin[block]

    def numbers(self) -> np.ndarray:
        """The block of each state."""
        return np.array(self._block, dtype=np.int64)

    def refine(self, sources: Sequence[Sequence[Sequence[int]]], waiting: Sequence[int]) -> None:
        """Split blocks until every symbol leads all states of a block into one block.

        Args:
            sources: for each symbol, for each state, the states that the symbol leads to it from.
            waiting: the blocks by whose preimages others may have to be split.
        """
        # One long body, because calls would cost more than the work between them.
        members, place, block, begin, end = self._members, self._place, self._block, self._begin, self._end
        stack, is_waiting = list(waiting), dict.fromkeys(waiting, True)
        while stack:
            splitter = stack.pop()
            is_waiting[splitter] = False
            # A copy: the splitter may itself be split, and is to be used as it was.
            targets = members[begin[splitter] : end[splitter]]
            for into in sources:
                fronts: dict[int, int] = {}
                for target in targets:
                    for state in into[target]:
                        # The states that lead into the splitter gather at the front of their block's interval.
                        home, here = block[state], place[state]
                        front = fronts.get(home, begin[home])
                        other = members[front]
                        members[front], members[here] = state, other
                        place[state], place[other] = front, here
                        fronts[home] = front + 1
                for home, front in fronts.items():
                    if front == end[home]:
                        continue
                    new = len(begin)
                    for state in members[begin[home] : front]:
                        block[state] = new
                    begin.append(begin[home])
                    end.append(front)
                    begin[home] = front
                    # A block that still waits stays, and its new part waits too; otherwise the smaller is enough.
                    smaller = home
                    if is_waiting.get(home) or front - begin[new] <= end[home] - front:
                        smaller = new
                    stack.append(smaller)
                    is_waiting[smaller] = True
