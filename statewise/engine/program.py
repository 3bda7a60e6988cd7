"""A recurrence as the CPU kernel reads it, but for its numbers: which cell, which transforms, what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statewise.cells import (
    Cell,
    GRUCell,
    LSTMCell,
    MGUCell,
    PeepholeLSTMCell,
    RACCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from statewise.engine.operands import facts_of
from statewise.engine.recurrence import Recurrence
from statewise.transforms import Centroids, Noise, StateTransform
from statewise.transforms.centroids import SIMILARITIES

# The numbers by which the kernel knows cells, activations and transforms.
CELLS: dict[type[Cell], int] = {
    RNNCell: 0,
    LSTMCell: 1,
    PeepholeLSTMCell: 2,
    GRUCell: 3,
    ResetBeforeGRUCell: 4,
    MGUCell: 5,
    RACCell: 6,
}
_TYPES = tuple(CELLS)
ACTIVATIONS = ("tanh", "relu", "sigmoid", "identity", "modrelu")
MULTIPLY, ADD, ZONEOUT, CENTROIDS = range(4)
_WORD = 7  # integers for each transform in a program


@dataclass(frozen=True)
class Program:
    """All of a recurrence but its numbers, as the kernel reads it.

    Attributes:
        cell, activation: by the kernel's numbers.
        mask_constant, coefficients_constant: whether these are constant in time.
        memory_changes: whether the memory after a step is another than the cell's.
        keep: whether the way back may come, or somebody looks; without it only states are written.
        record: whether the probabilities of centroids are to be seen.
        replicas: how many come first in every tensor; 0 for one network, and no such dimension.
        batch_sizes: of each step; empty where all sequences are equally long.
        chain: for each transform its kind, whether it draws, whether that is constant in time, and of centroids their
            number, similarity, whether the choice is hard, and whether its gradient is soft.
        numbers: for each transform of centroids 1 / temperature and the sharpness, else zeros.
    """

    cell: int
    activation: int
    reverse: bool
    start_at_one: bool
    mask_constant: bool
    coefficients_constant: bool
    memory_changes: bool
    keep: bool
    record: bool
    replicas: int
    batch_sizes: tuple[int, ...]
    chain: tuple[tuple[int, ...], ...]
    numbers: tuple[float, ...]

    @property
    def blocks(self) -> int:
        """Number of gates, as the weights have them."""
        return len(_TYPES[self.cell].blocks)

    @property
    def has_memory(self) -> bool:
        """Whether the cell carries a memory."""
        return _TYPES[self.cell].has_memory

    @property
    def extra_rows(self) -> int | None:
        """The rows of the cell's own parameter; 0 for a vector, None if it has none."""
        type_ = _TYPES[self.cell]
        cell = RNNCell(ACTIVATIONS[self.activation]) if type_ is RNNCell else type_()
        return cell.extra_parameters[0][1] if cell.extra_parameters else None

    @property
    def apart(self) -> bool:
        """Whether the product of the last block is kept apart from the input term."""
        return self.cell in (3, 6)

    @property
    def gated(self) -> bool:
        """Whether a product takes the gated state."""
        return self.cell in (4, 5)

    def encoded(self) -> tuple[list[int], list[float], list[int]]:
        """What the operators of ``torch.library`` take, undone by :meth:`of`; their autograd takes no empty list."""
        head = [int(getattr(self, name)) for name in _HEAD]
        words = [number for word in self.chain for number in word]
        return [*head, *words], [0.0, *self.numbers], [0, *self.batch_sizes]

    @classmethod
    def of(cls, integers: Sequence[int], numbers: Sequence[float], batch_sizes: Sequence[int]) -> Program:
        """A program from the numbers that the operators have."""
        head = {name: type_(number) for (name, type_), number in zip(_HEAD.items(), integers, strict=False)}
        words = tuple(tuple(integers[at : at + _WORD]) for at in range(len(_HEAD), len(integers), _WORD))
        return cls(**head, batch_sizes=tuple(batch_sizes[1:]), chain=words, numbers=tuple(numbers[1:]))


#: The fields of a program that are a number or a truth value, and which of the two.
_HEAD: dict[str, Any] = {
    **dict.fromkeys(("cell", "activation"), int),
    **dict.fromkeys(("reverse", "start_at_one", "mask_constant", "coefficients_constant"), bool),
    **dict.fromkeys(("memory_changes", "keep", "record"), bool),
    "replicas": int,
}


def program_of(call: Recurrence, *, keep: bool) -> Program:
    """The program of a recurrence of one network."""
    facts = facts_of(call)
    words, numbers = zip(*(_word(*entry) for entry in facts.chain), strict=True) if facts.chain else ((), ())
    activation = ACTIVATIONS.index(facts.activation) if facts.activation else 0
    return Program(
        cell=CELLS[type(call.cell)],
        activation=activation,
        reverse=call.reverse,
        start_at_one=call.start_at_one,
        mask_constant=facts.mask is not None and facts.mask[2],
        coefficients_constant=bool(facts.coefficients),
        memory_changes=facts.memory_changes,
        keep=keep,
        record=call.record,
        replicas=0,
        batch_sizes=call.layout.uneven or (),
        chain=words,
        numbers=tuple(number for pair in numbers for number in pair),
    )


def _word(transform: StateTransform, constant: bool) -> tuple[tuple[int, ...], tuple[float, float]]:
    """A transform as the kernel reads it, but for the places of its tensors."""
    if isinstance(transform, Centroids):
        similarity = SIMILARITIES.index(transform.similarity)
        word = (CENTROIDS, 1, 0, transform.k, similarity, int(transform.hard), int(transform.soft_gradient))
        return word, (1 / transform.temperature, transform.sharpness)
    kind = ZONEOUT
    if isinstance(transform, Noise):
        kind = MULTIPLY if transform.mode == "multiplicative" else ADD
    return (kind, 1, int(constant), 0, 0, 0, 0), (0.0, 0.0)
