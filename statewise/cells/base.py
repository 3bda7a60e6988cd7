"""What every cell is: the transition between two hidden states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

Rows = Float[Tensor, "rows hidden"]


@runtime_checkable
class Product(Protocol):
    """The recurrent product ``U[first:last] v + b[first:last]`` of a step, counted in blocks of the hidden size.

    The cell does not own the product, because what happens to ``v`` on the way (recurrent dropout) is not its business.
    """

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        """The product of blocks ``first`` to ``last`` with ``value``, shape (rows, blocks * hidden)."""


class Transition(NamedTuple):
    """What one step gives: the new state, the new cell memory (or None), and the gates that can be observed."""

    state: Tensor
    memory: Tensor | None
    gates: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Cell(ABC):
    """The transition function of a recurrent layer: ``u_t, c_t = cell(W x_t + b, U h_{t-1} + b', h_{t-1}, c_{t-1})``.

    A cell is an immutable description without parameters. ``forward`` is written in plain torch operations, which
    autograd differentiates; derivatives are written out only in the kernels. ``CONTRIBUTING.md`` shows how to add one.

    Attributes:
        name: the cell's name in plans and error messages.
        blocks: what the row blocks of ``weight_ih`` and ``weight_hh`` compute, in order.
        observed: names of ``Transition.gates``, which ``collect=("gates",)`` shows.
        has_memory: whether a second tensor ``c`` is carried (the LSTM family).
        additive: whether the recurrent product enters only as ``input term + product``, so that the two gradients
            are one and the two biases may be added beforehand.
        linear_path: whether ``h_{t-1}`` reaches ``h_t`` unsquashed; multiplicative noise fed back there compounds.
        extra_parameters: (name, rows) of the cell's own parameters; rows 0 means a vector of the hidden size.
    """

    name: ClassVar[str]
    blocks: ClassVar[tuple[str, ...]]
    observed: ClassVar[tuple[str, ...]] = ()
    has_memory: ClassVar[bool] = False
    additive: ClassVar[bool] = True

    @property
    def linear_path(self) -> bool:
        """Whether the old state reaches the new one unsquashed."""
        return False

    @property
    def extra_parameters(self) -> tuple[tuple[str, int], ...]:
        """(name, rows) of the cell's own parameters beyond W, U and the biases."""
        return ()

    @abstractmethod
    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        """One step. ``input_term`` is ``W x_t + b_ih``, shape (rows, blocks * hidden)."""
