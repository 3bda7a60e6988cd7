"""How many machines there are, and how many nats say which one is meant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Int

from statewise.automata import MooreMachine
from statewise.bounds.grid import SLACK, prefix_nats
from statewise.bounds.logs import log_of
from statewise.errors import ArgumentError

Transitions = Int[np.ndarray, "states symbols"]

#: So many additions of whole numbers, or of logarithms, are made at most; a call of numpy counts as many.
EXACT, IN_LOGARITHMS, CALL = 500_000, 100_000_000, 2_000
#: Alphabets of more symbols have three codes, of which the shortest counts, for ln 3 nats. As the alphabet is fixed
#: before the data, so is this.
FEW_SYMBOLS = 8


@dataclass(frozen=True, kw_only=True)
class MachineDescription:
    """How many nats say which machine is meant, part by part: ``exp(-total)`` is its share of the prior.

    Attributes:
        code: which code of the transitions is the shortest: "any table", "kinds of symbols" or "favourite targets".
        states: n, of the minimal machine.
        size: of the number of states, ``ln(n(n+1))``.
        choice: of the code; 0 where there is but one.
        transitions: of the table, up to renaming of the states.
        outputs: of the classes of the states, ``n ln C``.
    """

    code: str
    states: int
    size: float
    choice: float
    transitions: float
    outputs: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.size + self.choice + self.transitions + self.outputs


def count_structures(states: int, symbols: int) -> int:
    """The number of complete transition tables whose states can all be reached from the first, up to renaming.

    A breadth-first search names the states in the order in which it meets them, so that each table has one name. It
    reads the table arrow by arrow; an arrow leads to one of the d states met so far, or to the next new one::

        ways(d) <- d ways(d) + ways(d - 1)

    and the row of a state is read only if the state has been met. Since only its start is left in place by all
    renamings of such a table, this is also the number of labelled tables, which Liskovets 1969 counted, divided by
    ``(states - 1)!``; at most ``states^(states symbols) / (states - 1)!``.

    Args:
        states: n, at least 1.
        symbols: in the alphabet.

    >>> [count_structures(states, 2) for states in range(1, 6)]
    [1, 12, 216, 5248, 160675]
    """
    _check(states, symbols)
    # ways[d - 1] is of d states met; a Python integer of any size in each place.
    ways, met = np.array([1] + [0] * (states - 1), dtype=object), np.arange(1, states + 1, dtype=object)
    for row in range(states):
        ways[:row] = 0
        for _ in range(symbols):
            fresh = np.concatenate(([0], ways[:-1]))
            ways = met * ways + fresh
    return int(ways[-1])


def count_machines(states: int, symbols: int, classes: int) -> int:
    """The number of Moore machines with reachable states, up to renaming: a structure, and a class for each state.

    Args:
        states: n, at least 1.
        symbols: in the alphabet.
        classes: C.

    >>> count_machines(2, 2, 2)
    48
    """
    if classes < 1:
        raise ArgumentError(where="count_machines.classes", got=classes, wanted="at least 1")
    outputs: int = classes**states
    return count_structures(states, symbols) * outputs


@lru_cache(maxsize=256)
def structure_nats(states: int, symbols: int) -> float:
    """``ln`` of :func:`count_structures`, or slightly more.

    Exact for hundreds of states; the same sum in logarithms for thousands. Beyond it is ``n|A| ln n - ln (n-1)!``,
    the tables with and without unreachable states: never less, and hardly more where there are many symbols.

    Args:
        states: n, at least 1.
        symbols: in the alphabet.

    >>> round(structure_nats(4, 2), 6), round(structure_nats(1000, 1000), 0)
    (8.565602, 6901850.0)
    """
    _check(states, symbols)
    arrows = states * symbols
    if arrows * states <= EXACT:
        return log_of(count_structures(states, symbols))
    if arrows * (states + CALL) <= IN_LOGARITHMS:
        return SLACK * _sum_of_logarithms(states, symbols)
    return SLACK * (arrows * math.log(states) - _log_factorial(states - 1))


def kinds_nats(transitions: Transitions) -> float:
    """The nats of a table in a code that is short where many symbols act alike: of letters between brackets, say.

    Said are how many kinds r of symbols there are, which r maps of the states they are, how many symbols are of each
    kind, and which: ``ln|A| + ln binom(n^n, r) + ln binom(|A|-1, r-1) + ln |A|!/(c_1! ... c_r!) - ln (n-1)!``. The code
    gives all ``(n-1)!`` numberings of a machine the same length, hence the last term.

    Args:
        transitions: (states, symbols), all states reachable from the first.

    >>> letters = np.array([[0] * 26 + [1], [1] * 26 + [0]])
    >>> round(kinds_nats(letters), 2), round(structure_nats(2, 27), 2)
    (11.93, 37.43)
    """
    states, symbols = transitions.shape
    _check(states, symbols)
    if symbols == 0:
        return 0.0
    counts = np.unique(transitions, axis=1, return_counts=True)[1]
    kinds = len(counts)
    maps = kinds * states * math.log(states) - _log_factorial(kinds)  # of ln binom(n^n, r) an upper bound
    sizes = _log_choices(symbols - 1, kinds - 1) + _log_arrangements(symbols, counts)
    return float(SLACK * (math.log(symbols) + maps + sizes) - _log_factorial(states - 1))


def targets_nats(transitions: Transitions) -> float:
    """The nats of a table in a code that is short where each state has favourite targets, such as itself.

    Said are, for each state, how many symbols lead to each of the n states, and which: ``sum over the states of
    ln binom(|A|+n-1, n-1) + ln |A|!/(c_1! ... c_n!)``, less ``ln (n-1)!`` as in :func:`kinds_nats`.

    Args:
        transitions: (states, symbols), all states reachable from the first.

    >>> chain = np.array([[1] + [0] * 99, [1] * 100])
    >>> round(targets_nats(chain), 2), round(structure_nats(2, 100), 2)
    (13.84, 138.63)
    """
    states, symbols = transitions.shape
    _check(states, symbols)
    pairs = transitions + states * np.arange(states)[:, None]
    counts = np.unique(pairs, return_counts=True)[1]
    histograms = states * _log_choices(symbols + states - 1, states - 1)
    places = states * _log_factorial(symbols) - sum(map(_log_factorial, counts.tolist()))
    return float(SLACK * (histograms + places) - _log_factorial(states - 1))


def describe_machine(machine: MooreMachine) -> MachineDescription:
    """The shortest description of what a machine does, in nats, part by part.

    The machine is made minimal first. Alphabet and classes are not said: they are fixed before the data.

    Args:
        machine: any.

    >>> from statewise.automata import from_regex
    >>> describe_machine(from_regex("1*", "01"))
    MachineDescription(code='any table', states=2, size=1.79..., choice=0.0, transitions=2.48..., outputs=1.38...)
    """
    least = machine.minimise()
    states, symbols = least.transitions.shape
    codes = {"any table": structure_nats(states, symbols)}
    if symbols > FEW_SYMBOLS:
        codes["kinds of symbols"] = kinds_nats(least.transitions)
        codes["favourite targets"] = targets_nats(least.transitions)
    code = min(codes, key=lambda name: codes[name])
    return MachineDescription(
        code=code,
        states=states,
        size=prefix_nats(states),
        choice=math.log(len(codes)),
        transitions=codes[code],
        outputs=states * math.log(len(least.classes)),
    )


def machine_nats(machine: MooreMachine) -> float:
    """How many nats say what a machine does: ``ln count(n) + ln(n(n+1))`` for n states after minimisation.

    ``exp(-nats)`` sums to at most 1 over all machines of the alphabet and the classes. Alphabets of more than 8 symbols
    have shorter codes as well, see :func:`describe_machine`.

    Args:
        machine: any.

    >>> from statewise.automata import from_regex
    >>> round(machine_nats(from_regex("1*", "01")), 9), round(math.log(12 * 2**2) + math.log(2 * 3), 9)
    (5.66296048, 5.66296048)
    """
    return describe_machine(machine).total


def _sum_of_logarithms(states: int, symbols: int) -> float:
    """The recurrence of :func:`count_structures`: sums of positive terms, so that nothing cancels."""
    ways, met = np.full(states, -np.inf), np.log(np.arange(1, states + 1))
    ways[0] = 0.0
    for row in range(states):
        known = slice(row, min(states, row * symbols + 1))  # no more can have been met before this row
        ways[: known.start] = -np.inf
        for step in range(symbols):
            live = slice(known.start, min(states, known.stop + step + 1))
            ahead = met[live] + ways[live]
            np.logaddexp(ahead[1:], ways[live][:-1], out=ahead[1:])
            ways[live] = ahead
    return float(ways[-1])


def _log_factorial(number: int) -> float:
    return math.lgamma(number + 1)


def _log_choices(whole: int, part: int) -> float:
    return _log_factorial(whole) - _log_factorial(part) - _log_factorial(whole - part)


def _log_arrangements(whole: int, counts: Int[np.ndarray, " kinds"]) -> float:
    return _log_factorial(whole) - sum(map(_log_factorial, counts.tolist()))


def _check(states: int, symbols: int) -> None:
    if states < 1 or symbols < 0:
        got = f"{states} states and {symbols} symbols"
        raise ArgumentError(where="the size of a machine", got=got, wanted="at least 1 and 0")
