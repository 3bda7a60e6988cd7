"""Which states of a machine behave alike: Hopcroft's partition refinement, on plain arrays.

Nothing here calls itself, so that a machine of a million states in one chain needs no deep stack.
"""

from __future__ import annotations

import numpy as np

from statewise.automata.partition import Partition

Array = np.ndarray


def breadth_first(transitions: Array, start: int) -> list[int]:
    """The states that can be reached, in the order in which a breadth-first search over the alphabet meets them.

    Args:
        transitions: the next state of each (state, symbol).
        start: the first state.

    >>> breadth_first(np.array([[2, 0], [0, 0], [2, 2]]), 0)
    [0, 2]
    """
    rows = transitions.tolist()
    seen = [False] * len(rows)
    seen[start] = True
    order = [start]
    for state in order:
        for target in rows[state]:
            if not seen[target]:
                seen[target] = True
                order.append(target)
    return order


def equivalent_states(transitions: Array, outputs: Array) -> Array:
    """A number for each state, the same for two states exactly if every word leads from both to the same class.

    Hopcroft (1971): O(states · symbols · log states), as a block splits others only when it is the smaller half.

    Args:
        transitions: the next state of each (state, symbol).
        outputs: the class of each state.

    >>> equivalent_states(np.array([[1, 2], [1, 2], [2, 2]]), np.array([1, 1, 0])).tolist()
    [1, 1, 0]
    """
    states, symbols = transitions.shape
    sources = [_sources_by_target(transitions[:, symbol], states) for symbol in range(symbols)]
    partition = Partition(outputs)
    # Knowing the preimages of all blocks but one, one knows those of the last: the largest is left out.
    waiting = sorted(range(len(partition)), key=partition.size)[:-1]
    partition.refine(sources, waiting)
    return partition.numbers()


def _sources_by_target(targets: Array, states: int) -> list[list[int]]:
    """For each state, the states that one symbol leads to it from."""
    order = np.argsort(targets, kind="stable")
    ends = np.cumsum(np.bincount(targets, minlength=states)).tolist()
    flat = order.tolist()
    return [flat[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
