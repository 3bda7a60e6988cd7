"""Machines from tables that people write: states by any name, rows that may have gaps."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from statewise.automata.moore import MooreMachine
from statewise.errors import ArgumentError

State = TypeVar("State", bound=Hashable)


def from_table(
    table: Mapping[State, Mapping[str, State]],
    *,
    start: State,
    accepting: Collection[State] = (),
    outputs: Mapping[State, str] | None = None,
    classes: Sequence[str] = ("reject", "accept"),
    alphabet: Sequence[str] | None = None,
    sink: str | None = None,
) -> MooreMachine:
    """The machine of a table of rows; the states' names become its labels.

    Args:
        table: for each state, the next state of each symbol.
        start: the first state.
        accepting: the states that accept, for a machine of two classes; or
        outputs: the class of every state, by name.
        classes: the names of the classes.
        alphabet: the symbols in order; the default is those of the table, sorted.
        sink: where a pair has no next state, go to a new state, labelled ``sink``, of this class, for good. Without it
            a gap is an error.

    >>> machine = from_table({"A": {"a": "B"}, "B": {"b": "A"}}, start="A", accepting=["A"], sink="reject")
    >>> machine.labels, machine.classify(["", "ab", "aba", "b"]).tolist()
    (('A', 'B', 'sink'), [1, 1, 0, 0])
    """
    symbols = tuple(sorted({symbol for row in table.values() for symbol in row}) if alphabet is None else alphabet)
    found = (start, *table, *(target for row in table.values() for target in row.values()))
    states = [*table, *(state for state in dict.fromkeys(found) if state not in table)]
    of_state = _outputs(states, accepting, outputs, classes)
    gaps = [(state, symbol) for state in states for symbol in symbols if symbol not in table.get(state, {})]
    extra = sorted({symbol for row in table.values() for symbol in row} - set(symbols))
    if extra:
        raise ArgumentError(where="from_table.alphabet", got=f"none of {extra}", wanted="all symbols of the table")
    if gaps and sink is None:
        more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
        raise ArgumentError(
            where="from_table.table",
            got=f"no next state for state {gaps[0][0]!r} and symbol {gaps[0][1]!r}{more}",
            wanted="one for every pair",
            remedy="Fill the gaps, or name the class of a sink: sink='reject'.",
        )
    numbers = {state: number for number, state in enumerate(states)}
    rows = [[numbers[table[s][a]] if a in table.get(s, {}) else len(states) for a in symbols] for s in states]
    labels = [str(state) for state in states]
    if gaps and sink is not None:
        rows.append([len(states)] * len(symbols))
        of_state.append(_class_number(sink, classes, "from_table.sink"))
        labels.append("sink")
    return MooreMachine(
        alphabet=symbols,
        transitions=np.array(rows, dtype=np.int64).reshape(len(rows), len(symbols)),
        outputs=np.array(of_state),
        start=numbers[start],
        classes=tuple(classes),
        labels=tuple(labels),
    )


def _outputs(
    states: Sequence[State],
    accepting: Collection[State],
    outputs: Mapping[State, str] | None,
    classes: Sequence[str],
) -> list[int]:
    named = set(accepting) | set(outputs or ())
    unknown = [state for state in named if state not in states]
    if unknown:
        where = "from_table.accepting" if outputs is None else "from_table.outputs"
        raise ArgumentError(where=where, got=unknown[0], wanted="states of the table")
    if outputs is None:
        if len(classes) != 2:
            wanted = f"one of the {len(classes)} classes for every state"
            raise ArgumentError(where="from_table.outputs", got=None, wanted=wanted)
        return [int(state in accepting) for state in states]
    if accepting:
        raise ArgumentError(where="from_table.accepting", got=accepting, wanted="accepting or outputs, not both")
    missing = [state for state in states if state not in outputs]
    if missing:
        raise ArgumentError(where="from_table.outputs", got=f"no class for state {missing[0]!r}", wanted="one for each")
    return [_class_number(outputs[state], classes, f"from_table.outputs[{state!r}]") for state in states]


def _class_number(name: str, classes: Sequence[str], where: str) -> int:
    if name not in classes:
        raise ArgumentError(where=where, got=repr(name), wanted=f"one of {', '.join(map(repr, classes))}")
    return list(classes).index(name)
