"""Machines to and from two other libraries: automata-lib and AALpy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from importlib import import_module
from typing import Any

from statewise.automata.moore import MooreMachine
from statewise.automata.rows import from_table
from statewise.errors import DtypeError, MissingExtraError


def to_automata_lib(machine: MooreMachine) -> Any:
    """The ``automata.fa.dfa.DFA`` of a machine with two classes; its states are the machine's numbers.

    Args:
        machine: of two classes.

    >>> from statewise.automata import from_regex
    >>> to_automata_lib(from_regex("a*b")).accepts_input("aab")
    True
    """
    machine.require_two_classes("to_automata_lib")
    rows = machine.transitions.tolist()
    return _automata_lib("to_automata_lib").DFA(
        states=set(range(len(machine))),
        input_symbols=set(machine.alphabet),
        transitions={state: dict(zip(machine.alphabet, row, strict=True)) for state, row in enumerate(rows)},
        initial_state=machine.start,
        final_states={state for state, output in enumerate(machine.outputs.tolist()) if output},
    )


def from_automata_lib(dfa: Any, *, alphabet: Sequence[str] | None = None) -> MooreMachine:
    """The machine of an ``automata.fa.dfa.DFA``, which may be partial; the names of its states become labels.

    Args:
        dfa: of automata-lib.
        alphabet: the order of the symbols; the default is sorted.

    >>> from statewise.automata import from_regex
    >>> from_automata_lib(to_automata_lib(from_regex("a*b"))) == from_regex("a*b")
    True
    """
    library = _automata_lib("from_automata_lib")
    if not isinstance(dfa, library.DFA):
        raise DtypeError(where="from_automata_lib.dfa", got=type(dfa).__name__, wanted="automata.fa.dfa.DFA")
    ordered = sorted(dfa.states, key=lambda state: (str(type(state)), _sort_key(state)))
    return from_table(
        {state: dfa.transitions.get(state, {}) for state in ordered},
        start=dfa.initial_state,
        accepting=dfa.final_states,
        alphabet=sorted(dfa.input_symbols) if alphabet is None else alphabet,
        sink="reject",
    )


def to_aalpy(machine: MooreMachine) -> Any:
    """The machine in AALpy: a ``Dfa`` for two classes, else a ``MooreMachine`` whose outputs are the class names.

    Args:
        machine: any.

    >>> from statewise.automata import from_regex
    >>> type(to_aalpy(from_regex("a*b"))).__name__
    'Dfa'
    """
    library = _aalpy("to_aalpy")
    outputs = machine.outputs.tolist()
    if len(machine.classes) == 2:
        states = [library.DfaState(f"s{i}", is_accepting=bool(output)) for i, output in enumerate(outputs)]
        kind = library.Dfa
    else:
        states = [library.MooreState(f"s{i}", output=machine.classes[output]) for i, output in enumerate(outputs)]
        kind = library.MooreMachine
    for state, row in zip(states, machine.transitions.tolist(), strict=True):
        state.transitions.update({a: states[after] for a, after in zip(machine.alphabet, row, strict=True)})
    return kind(states[machine.start], states)


def from_aalpy(model: Any, *, alphabet: Sequence[str] | None = None) -> MooreMachine:
    """The machine of an AALpy ``Dfa`` or ``MooreMachine``; the names of its states become labels.

    A gap of a ``Dfa`` leads to a rejecting sink; a gap of a ``MooreMachine`` is an error, as no class is right for it.

    Args:
        model: of AALpy, with symbols that are texts.
        alphabet: the order of the symbols; the default is sorted.

    >>> from statewise.automata import from_regex
    >>> from_aalpy(to_aalpy(from_regex("a*b"))) == from_regex("a*b")
    True
    """
    library = _aalpy("from_aalpy")
    if not isinstance(model, library.Dfa | library.MooreMachine):
        raise DtypeError(where="from_aalpy.model", got=type(model).__name__, wanted="an AALpy Dfa or MooreMachine")
    symbols = {symbol for state in model.states for symbol in state.transitions}
    wrong = next((symbol for symbol in symbols if not isinstance(symbol, str)), None)
    if wrong is not None:
        raise DtypeError(where="from_aalpy.model", got=wrong, wanted="symbols that are texts")
    table: dict[Hashable, dict[str, Hashable]] = {
        state.state_id: {symbol: after.state_id for symbol, after in state.transitions.items()}
        for state in model.states
    }
    ordered = sorted(symbols) if alphabet is None else alphabet
    first = model.initial_state.state_id
    if isinstance(model, library.Dfa):
        accepting = [state.state_id for state in model.states if state.is_accepting]
        return from_table(table, start=first, accepting=accepting, alphabet=ordered, sink="reject")
    outputs = {state.state_id: str(state.output) for state in model.states}
    return from_table(table, start=first, outputs=outputs, classes=sorted(set(outputs.values())), alphabet=ordered)


def _sort_key(state: Any) -> Any:
    return (0, state, "") if isinstance(state, int) else (1, 0, str(state))


def _automata_lib(where: str) -> Any:
    try:
        return import_module("automata.fa.dfa")
    except ImportError:
        raise MissingExtraError(
            where=where, got="no automata-lib", wanted="the package", remedy="Install it: pip install automata-lib."
        ) from None


def _aalpy(where: str) -> Any:
    try:
        return import_module("aalpy.automata")
    except ImportError:
        raise MissingExtraError.of(where, package="AALpy", extra="automata") from None
