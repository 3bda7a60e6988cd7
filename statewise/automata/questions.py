"""Questions about a language: is it empty, is it finite, how many words has it, which of them is the shortest?"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from statewise.automata.compare import witness
from statewise.automata.counts import ways_by_length
from statewise.automata.moore import MooreMachine
from statewise.automata.operations import constant, difference


def is_empty(machine: MooreMachine) -> bool:
    """Whether the machine accepts no word.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> is_empty(from_regex("a") & from_regex("aa"))
    True
    """
    machine.require_two_classes("is_empty")
    return not machine.trim().outputs.any()


def is_finite(machine: MooreMachine) -> bool:
    """Whether the machine accepts only finitely many words: no useful state lies on a cycle.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> is_finite(from_regex("a{2,4}")), is_finite(from_regex("a*"))
    (True, False)
    """
    return cardinality(machine) < math.inf


def cardinality(machine: MooreMachine) -> int | float:
    """How many words the machine accepts: a whole number, or infinity.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> cardinality(from_regex("[ab]{3}")), cardinality(from_regex("a*"))
    (8, inf)
    """
    machine.require_two_classes("cardinality")
    smallest = machine.minimise()
    # In a minimal machine at most one state leads to no accepted word, and it leads only to itself.
    alive = ~dead_ends(smallest)
    # A path through as many living states as there are, and one more, passes one of them twice: it can be repeated.
    if _can_walk(smallest, alive, int(alive.sum())):
        return math.inf
    ways = ways_by_length(smallest, 1)
    return sum(of_state[smallest.start] for of_state in islice(ways, int(alive.sum())))


def shortest_word(machine: MooreMachine) -> str | tuple[str, ...] | None:
    """The shortest word that the machine accepts, the first in alphabet order; None if there is none.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> shortest_word(from_regex("b*(ab|ba)b"))
    'abb'
    """
    machine.require_two_classes("shortest_word")
    return witness(machine, constant(machine, 0))


def is_subset(a: MooreMachine, b: MooreMachine) -> bool:
    """Whether the second machine accepts every word that the first one accepts.

    Args:
        a: a machine of two classes.
        b: another, over the same alphabet.

    >>> from statewise.automata import from_regex
    >>> is_subset(from_regex("aa"), from_regex("a*")), is_subset(from_regex("a*"), from_regex("aa"))
    (True, False)
    """
    return is_empty(difference(a, b))


def dead_ends(machine: MooreMachine) -> np.ndarray:
    """For each state whether it is of the first class and nothing leaves it.

    Args:
        machine: any.

    >>> from statewise.automata import from_regex
    >>> dead_ends(from_regex("a", "ab")).tolist()
    [False, False, True]
    """
    stays = (machine.transitions == np.arange(len(machine))[:, None]).all(axis=1)
    return np.asarray(stays & (machine.outputs == 0))


def _can_walk(machine: MooreMachine, alive: np.ndarray, steps: int) -> bool:
    """Whether some path of so many steps stays among living states."""
    at = np.zeros(len(machine), dtype=bool)
    at[machine.start] = alive[machine.start]
    for _ in range(steps):
        after = np.zeros_like(at)
        after[machine.transitions[at].ravel()] = True
        at = after & alive
    return bool(at.any())
