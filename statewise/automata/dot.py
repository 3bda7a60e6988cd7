r"""Machines as DOT text, the language of graphviz, and back from what is written here.

Parallel edges are one edge, whose label lists their symbols. Symbols and names that could be mistaken stand in quotes.
"""

from __future__ import annotations

import json
import re

import numpy as np

from statewise.automata.moore import MooreMachine
from statewise.errors import DataError, StatewiseError

_TEXT = r'"((?:[^"\\]|\\.)*)"'
_COMMENT = re.compile(r"  // (alphabet|classes) (\[.*\])")
_NUMBER = r"(\d{1,18})"  # what fits into 64 bits
_STATE = re.compile(rf"  {_NUMBER} \[label={_TEXT}, class={_TEXT}, shape=\w+\];")
_EDGE = re.compile(rf"  {_NUMBER} -> {_NUMBER} \[label={_TEXT}\];")
_START = re.compile(rf"  start -> {_NUMBER};")
_PLAIN = re.compile(r"[^\s,\"\\]+")
_FRAME = ("digraph machine {", "  rankdir=LR;", '  start [label="", shape=none, width=0];', "}", "")


def to_dot(machine: MooreMachine) -> str:
    """The machine as a DOT graph; accepting states, or with more classes none, have a double circle.

    Args:
        machine: any.

    >>> from statewise.automata import from_regex
    >>> print(to_dot(from_regex("a*b")))
    digraph machine {
      rankdir=LR;
      // alphabet ["a", "b"]
      // classes ["reject", "accept"]
      start [label="", shape=none, width=0];
      start -> 0;
      0 [label="0", class="reject", shape=circle];
      1 [label="1", class="accept", shape=doublecircle];
      2 [label="2", class="reject", shape=circle];
      0 -> 0 [label="a"];
      0 -> 1 [label="b"];
      1 -> 2 [label="a, b"];
      2 -> 2 [label="a, b"];
    }
    <BLANKLINE>
    """
    lines = [
        *_FRAME[:2],
        f"  // alphabet {json.dumps(machine.alphabet)}",
        f"  // classes {json.dumps(machine.classes)}",
        _FRAME[2],
        f"  start -> {machine.start};",
    ]
    for state, output in enumerate(machine.outputs.tolist()):
        name, shape = _state_text(machine, state), _shape(machine, output)
        lines.append(f"  {state} [label={_quoted(name)}, class={_quoted(machine.classes[output])}, shape={shape}];")
    for state, row in enumerate(machine.transitions.tolist()):
        by_target: dict[int, list[str]] = {}
        for symbol, target in zip(machine.alphabet, row, strict=True):
            by_target.setdefault(target, []).append(symbol)
        for target, symbols in by_target.items():
            lines.append(f"  {state} -> {target} [label={_quoted(', '.join(map(_spelt, symbols)))}];")
    return "\n".join([*lines, *_FRAME[3:]])


def from_dot(text: str) -> MooreMachine:
    """The machine that :func:`to_dot` wrote; what else DOT can say is not understood.

    Args:
        text: of the graph.

    >>> from statewise.automata import from_regex
    >>> from_dot(to_dot(from_regex("a*b"))) == from_regex("a*b")
    True
    """
    header: dict[str, list[str]] = {}
    start = 0
    states: list[tuple[str, str, int]] = []
    edges: list[tuple[int, int, list[str], int]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if found := _COMMENT.fullmatch(line):
            header[found[1]] = _list(found[2], number)
        elif found := _STATE.fullmatch(line):
            if int(found[1]) != len(states):
                raise _wrong(number, f"state {found[1]}", f"state {len(states)}")
            states.append((_unquoted(found[2]), _unquoted(found[3]), number))
        elif found := _EDGE.fullmatch(line):
            edges.append((int(found[1]), int(found[2]), _symbols(_unquoted(found[3]), number), number))
        elif found := _START.fullmatch(line):
            start = int(found[1])
        elif line not in _FRAME:
            raise _wrong(number, repr(line), "a line as to_dot writes it")
    for name in ("alphabet", "classes"):
        if name not in header:
            raise _wrong(1, f"no comment '// {name} [...]'", "one, as to_dot writes it")
    return _machine(header["alphabet"], header["classes"], start, states, edges)


def _machine(
    alphabet: list[str],
    classes: list[str],
    start: int,
    states: list[tuple[str, str, int]],
    edges: list[tuple[int, int, list[str], int]],
) -> MooreMachine:
    table = np.full((len(states), len(alphabet)), -1)
    for source, target, symbols, number in edges:
        for symbol in symbols:
            if symbol not in alphabet or source >= len(states):
                raise _wrong(number, f"state {source} and symbol {symbol!r}", "a known state and symbol")
            table[source, alphabet.index(symbol)] = target
    for _, name, number in states:
        if name not in classes:
            raise _wrong(number, f"class {name!r}", f"one of {', '.join(classes)}")
    gaps = np.argwhere(table < 0)
    if len(gaps):
        raise _wrong(1, f"no edge from state {gaps[0][0]} for symbol {alphabet[gaps[0][1]]!r}", "one for each")
    labels = tuple(label for label, _, _ in states)
    try:
        return MooreMachine(
            alphabet=tuple(alphabet),
            transitions=table,
            outputs=np.array([classes.index(name) for _, name, _ in states], dtype=np.int64),
            start=start,
            classes=tuple(classes),
            labels=() if labels == tuple(map(str, range(len(labels)))) else labels,
        )
    except StatewiseError as error:
        raise DataError(where=f"from_dot, {error.where}", got=error.got, wanted=error.wanted) from None


def _state_text(machine: MooreMachine, state: int) -> str:
    return machine.labels[state] if machine.labels else str(state)


def _shape(machine: MooreMachine, output: int) -> str:
    return "doublecircle" if len(machine.classes) == 2 and output == 1 else "circle"


def _spelt(symbol: str) -> str:
    return symbol if _PLAIN.fullmatch(symbol) and symbol.isprintable() else json.dumps(symbol)


def _symbols(text: str, number: int) -> list[str]:
    found, place = [], 0
    token = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s,"\\]+)(?:, |$)')
    while place < len(text):
        part = token.match(text, place)
        if part is None:
            raise _wrong(number, repr(text), "symbols, with ', ' between them")
        try:
            found.append(json.loads(part[1]) if part[1].startswith('"') else part[1])
        except ValueError:
            raise _wrong(number, repr(text), "symbols, those in quotes as JSON writes them") from None
        place = part.end()
    return found


def _quoted(text: str) -> str:
    # In DOT a backslash before a letter is a command, so it is doubled; a line break becomes the command for one.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), text)


def _list(text: str, number: int) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong(number, repr(text[:80]), "a JSON list of texts") from None
    return [str(entry) for entry in found]


def _wrong(number: int, got: str, wanted: str) -> DataError:
    return DataError(where=f"from_dot, line {number}", got=got, wanted=wanted)
