"""The parts of a Moore machine, looked over when they are put together, and compared by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import numpy as np

from statewise.automata.checks import checked_names, numbers_below
from statewise.errors import ArgumentError, ShapeError

Class = str | int | np.integer[Any]  # by its name or its number


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MooreTable:
    """Alphabet, transitions, outputs, start, names of classes and states; see :class:`MooreMachine`."""

    alphabet: tuple[str, ...]
    transitions: np.ndarray
    outputs: np.ndarray
    start: int = 0
    classes: tuple[str, ...] = ("reject", "accept")
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        for name in ("alphabet", "classes", "labels"):
            put(name, checked_names(getattr(self, name), f"MooreMachine.{name}", distinct=name != "labels"))
        if not self.classes:
            raise ArgumentError(where="MooreMachine.classes", got=(), wanted="at least one class")
        outputs = numbers_below(self.outputs, "MooreMachine.outputs", (None,), len(self.classes))
        if not len(outputs):
            raise ShapeError(where="MooreMachine.outputs", got=(0,), wanted="at least one state")
        shape = (len(outputs), len(self.alphabet))
        put("outputs", outputs)
        put("transitions", numbers_below(self.transitions, "MooreMachine.transitions", shape, len(outputs)))
        put("start", int(numbers_below(self.start, "MooreMachine.start", (), len(outputs))))
        if self.labels and len(self.labels) != len(outputs):
            raise ArgumentError(
                where="MooreMachine.labels", got=f"{len(self.labels)} labels", wanted=f"none or {len(outputs)}"
            )

    def __len__(self) -> int:
        return len(self.outputs)

    def __repr__(self) -> str:
        states = "1 state" if len(self) == 1 else f"{len(self)} states"
        return f"MooreMachine({states}; alphabet {_listed(self.alphabet)}; classes {_listed(self.classes)})"

    def __eq__(self, other: object) -> bool:
        return self._identity == other._identity if isinstance(other, MooreTable) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that the arrays of a copy are read-only too.
        return partial(type(self), **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return self.alphabet, self.classes, self.start, self.outputs.tobytes(), self.transitions.tobytes()

    def class_number(self, wanted: Class) -> int:
        """The number of a class that is given by its name or its number.

        Args:
            wanted: the class.
        """
        if isinstance(wanted, str) and wanted in self.classes:
            return self.classes.index(wanted)
        if isinstance(wanted, (int, np.integer)) and 0 <= wanted < len(self.classes):
            return int(wanted)
        raise ArgumentError(where="class", got=wanted, wanted=f"one of {', '.join(map(repr, self.classes))}")

    def require_two_classes(self, where: str) -> None:
        """An error unless the machine accepts or rejects.

        Args:
            where: what asks for it.
        """
        if len(self.classes) != 2:
            raise ArgumentError(
                where=where,
                got=f"a machine of {len(self.classes)} classes",
                wanted="two, of which the second accepts",
                remedy="Name the class: machine.accepting('name') is the machine of its words.",
            )


def _listed(names: Sequence[str]) -> str:
    shown = " ".join(names[:8])
    return f"{shown} ... ({len(names)})" if len(names) > 8 else shown
