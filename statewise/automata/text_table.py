"""Machines as text for a terminal: a row for each state, a column for each symbol."""

from __future__ import annotations

from statewise.automata.captions import symbol_text
from statewise.automata.moore import MooreMachine


def to_table(machine: MooreMachine) -> str:
    """The transition table; an arrow marks the start, a star the states that accept.

    With more than two classes a last column names the class.

    Args:
        machine: any.

    >>> import numpy as np
    >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
    >>> print(to_table(even))
       state | 0 1
    ---------+----
    -> 0   * | 0 1
       1     | 1 0
    """
    names = machine.labels or tuple(map(str, range(len(machine))))
    two = len(machine.classes) == 2
    heads = [symbol_text(symbol) for symbol in machine.alphabet] + ([] if two else ["class"])
    rows = [
        [names[target] for target in row] + ([] if two else [machine.classes[kind]])
        for row, kind in zip(machine.transitions, machine.outputs, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    wide = max(len("state") - 2, *map(len, names))
    marks = ["*" if two and kind == 1 else " " for kind in machine.outputs]
    lines = [f"   {'state':{wide + 2}} | {_cells(heads, widths)}"]
    lines.append("-" * (wide + 6) + "+" + "-" * (sum(widths) + max(len(widths), 1)))
    for state, (name, mark, row) in enumerate(zip(names, marks, rows, strict=True)):
        arrow = "->" if state == machine.start else "  "
        lines.append(f"{arrow} {name:{wide}} {mark} | {_cells(row, widths)}")
    return "\n".join(line.rstrip() for line in lines)


def _cells(texts: list[str], widths: list[int]) -> str:
    return " ".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
