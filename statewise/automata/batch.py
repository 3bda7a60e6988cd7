"""Many words run at once."""

from __future__ import annotations

import numpy as np


def final_states(transitions: np.ndarray, start: int, tokens: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The state in which each word ends.

    Args:
        transitions: the next state of each (state, symbol).
        start: the first state.
        tokens: the symbol numbers of all words, one word after the other.
        starts: where each word starts, with the end of the last one.

    >>> final_states(np.array([[1, 0], [1, 1]]), 0, np.array([1, 1, 0]), np.array([0, 2, 2, 3])).tolist()
    [0, 0, 1]
    """
    lengths = np.diff(starts)
    # Longest first: the words that still run at step t are the first so many.
    order = np.argsort(-lengths, kind="stable")
    begins, longest = starts[:-1][order], int(lengths.max(initial=0))
    running = np.searchsorted(-lengths[order], -np.arange(longest), side="left")
    states = np.full(len(lengths), start, dtype=np.int64)
    for step, active in enumerate(running.tolist()):
        states[:active] = transitions[states[:active], tokens[begins[:active] + step]]
    ends = np.empty_like(states)
    ends[order] = states
    return ends
