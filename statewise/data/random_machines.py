"""Random automata: languages that no method was tuned on."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np

from statewise.automata import MooreMachine
from statewise.automata.minimise import breadth_first
from statewise.data.examples import TWO_CLASSES
from statewise.errors import ArgumentError

_MOST_TRIES = 200_000


def random_machine(states: int, symbols: int, seed: int, *, classes: Sequence[str] = TWO_CLASSES) -> MooreMachine:
    """A complete minimal automaton of exactly so many states, all of them reached, uniform among those there are.

    Tables are drawn uniformly until one is minimal. Every minimal automaton can be numbered in the same number of ways,
    so none is preferred. All classes occur. States are numbered in breadth-first order.

    Args:
        states: at least two, and no fewer than classes.
        symbols: how many there are: a, b, c, ...
        seed: what the draw depends on.
        classes: their names, two or more.

    Raises:
        ArgumentError: so large that none was found; beyond about 30 states over two symbols few tables are connected.

    >>> machine = random_machine(5, 3, seed=0)
    >>> len(machine.minimise()), machine.alphabet
    (5, ('a', 'b', 'c'))
    """
    if len(classes) < 2:
        wanted = "two or more: of one class there is no minimal automaton but that of one state"
        raise ArgumentError(where="random_machine.classes", got=tuple(classes), wanted=wanted)
    if states < max(2, len(classes)):
        raise ArgumentError(where="random_machine.states", got=states, wanted=f"at least {max(2, len(classes))}")
    if not 1 <= symbols <= len(ascii_lowercase):
        raise ArgumentError(where="random_machine.symbols", got=symbols, wanted=f"1 to {len(ascii_lowercase)}")
    generator = np.random.Generator(np.random.PCG64(seed))
    for _ in range(_MOST_TRIES):
        table = generator.integers(states, size=(states, symbols))
        outputs = generator.integers(len(classes), size=states)
        if len(set(outputs.tolist())) < len(classes) or len(breadth_first(table, 0)) < states:
            continue
        machine = MooreMachine(
            alphabet=tuple(ascii_lowercase[:symbols]), transitions=table, outputs=outputs, classes=tuple(classes)
        )
        if len(machine.minimise()) == states:
            return machine.canonical()
    got, wanted = f"{states} states over {symbols} symbols", "so few that a random table can be minimal"
    raise ArgumentError(where="random_machine", got=got, wanted=wanted, remedy="Ask for fewer states or more symbols.")
