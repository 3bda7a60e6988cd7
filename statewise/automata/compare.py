"""Do two machines give every word the same class? If not, the shortest word that tells them apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from statewise.automata.moore import MooreMachine
from statewise.automata.symbols import text_or_tuple
from statewise.errors import ArgumentError


def witness(a: MooreMachine, b: MooreMachine) -> str | tuple[str, ...] | None:
    """The shortest word to which the two machines give different classes, the first in alphabet order; None if none.

    A breadth-first search of the product: at most ``len(a) · len(b)`` pairs of states. Classes are compared by name.

    Args:
        a: a machine.
        b: a machine over the same alphabet.

    >>> import numpy as np
    >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
    >>> none = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 0]]), outputs=np.array([1]))
    >>> witness(even, none), witness(even, even)
    ('1', None)
    """
    _require_same_classes(a, b)
    b = in_order_of(a, b, "witness")
    rows_a, rows_b = a.transitions.tolist(), b.transitions.tolist()
    outputs_a, outputs_b = a.outputs.tolist(), b.outputs.tolist()
    first = (a.start, b.start)
    came_from: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {first: None}
    order = [first]
    for pair in order:
        if outputs_a[pair[0]] != outputs_b[pair[1]]:
            return text_or_tuple(_trace(pair, came_from, a.alphabet), a.alphabet)
        for symbol, after in enumerate(zip(rows_a[pair[0]], rows_b[pair[1]], strict=True)):
            if after not in came_from:
                came_from[after] = (pair, symbol)
                order.append(after)
    return None


def equivalent(a: MooreMachine, b: MooreMachine) -> bool:
    """Whether the two machines give every word the same class.

    Args:
        a: a machine.
        b: a machine over the same alphabet.

    >>> import numpy as np
    >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
    >>> equivalent(even, even)
    True
    """
    return witness(a, b) is None


def in_order_of(a: MooreMachine, b: MooreMachine, where: str) -> MooreMachine:
    """The second machine with symbols and classes in the order of the first, so that their numbers mean the same.

    Classes of other names stay as they are: then the second of two accepts, whatever it is called.

    Args:
        a: a machine.
        b: a machine over the same symbols, in whatever order.
        where: what asks for it.

    >>> import numpy as np
    >>> a = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 1]]), outputs=np.array([0, 1]))
    >>> b = MooreMachine(
    ...     alphabet=("1", "0"),
    ...     transitions=np.array([[1, 0], [1, 1]]),
    ...     outputs=np.array([1, 0]),
    ...     classes=("accept", "reject"),
    ... )
    >>> in_order_of(a, b, "here") == a
    True
    """
    b = with_symbols_of(a, b, where)
    if a.classes == b.classes or set(a.classes) != set(b.classes):
        return b
    numbers = np.array([a.class_number(name) for name in b.classes])
    return replace(b, outputs=numbers[b.outputs], classes=a.classes)


def with_symbols_of(a: MooreMachine, b: MooreMachine, where: str) -> MooreMachine:
    """The second machine with its symbols in the order of the first; an error unless both have the same.

    Args:
        a: a machine.
        b: a machine.
        where: what asks for it.
    """
    only_a, only_b = sorted(set(a.alphabet) - set(b.alphabet)), sorted(set(b.alphabet) - set(a.alphabet))
    if only_a or only_b:
        raise ArgumentError(
            where=where,
            got=f"symbols of the first machine alone {only_a}, of the second alone {only_b}",
            wanted="two machines over one alphabet",
            remedy="Widen both with over(machine, alphabet) first.",
        )
    return replace(b, alphabet=a.alphabet, transitions=b.transitions[:, b.encode(a.alphabet)])


def _require_same_classes(a: MooreMachine, b: MooreMachine) -> None:
    if set(a.classes) != set(b.classes):
        raise ArgumentError(
            where="witness",
            got=f"classes {', '.join(a.classes)} and {', '.join(b.classes)}",
            wanted="two machines of the same classes",
            remedy="Rename those of one: dataclasses.replace(machine, classes=other.classes).",
        )


def _trace(
    pair: tuple[int, int],
    came_from: dict[tuple[int, int], tuple[tuple[int, int], int] | None],
    alphabet: tuple[str, ...],
) -> list[str]:
    symbols = []
    while (step := came_from[pair]) is not None:
        pair, symbol = step
        symbols.append(alphabet[symbol])
    return symbols[::-1]
