"""The Elman cell with the activations of torch and of the orthogonal networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition
from statewise.errors import ArgumentError

NONLINEARITIES = ("tanh", "relu", "sigmoid", "identity", "modrelu")


def modrelu(z: Tensor, bias: Tensor) -> Tensor:
    """The real modReLU, which changes a value's size but never its sign.

    ``sigma(z) = sign(z) relu(|z| + b)``; at ``b = 0`` it is the identity (Helfrich et al. 2018, eq. 5).

    >>> modrelu(torch.tensor([-2.0, -0.3, 0.0, 0.3, 2.0]), torch.tensor(-0.5)).tolist()
    [-1.5, -0.0, 0.0, 0.0, 1.5]
    """
    return torch.sign(z) * torch.relu(z.abs() + bias)


@dataclass(frozen=True)
class RNNCell(Cell):
    """The Elman cell.

    ``u_t = act(W x_t + b + U h_{t-1} + b')`` (Elman 1990; Helfrich et al. 2018 for modReLU).

    Args:
        nonlinearity: "tanh", "relu", "sigmoid", "identity" or "modrelu" (with a learnt bias for each unit).

    >>> RNNCell("modrelu").extra_parameters
    (('bias_mod', 0),)
    """

    nonlinearity: str = "tanh"

    name: ClassVar[str] = "RNN"
    blocks: ClassVar[tuple[str, ...]] = ("state",)

    def __post_init__(self) -> None:
        if self.nonlinearity not in NONLINEARITIES:
            raise ArgumentError(
                where="RNN.nonlinearity",
                got=self.nonlinearity,
                wanted=f"one of {', '.join(NONLINEARITIES)}",
                remedy="torch.nn.RNN has the first two of them.",
            )

    @property
    def linear_path(self) -> bool:
        return self.nonlinearity in ("identity", "modrelu")

    @property
    def extra_parameters(self) -> tuple[tuple[str, int], ...]:
        return (("bias_mod", 0),) if self.nonlinearity == "modrelu" else ()

    def forward(
        self, input_term: Tensor, state: Rows, memory: Rows | None, product: Product, extra: tuple[Tensor, ...]
    ) -> Transition:
        z = input_term + product(state, 0, 1)
        match self.nonlinearity:
            case "tanh":
                z = torch.tanh(z)
            case "relu":
                z = torch.relu(z)
            case "sigmoid":
                z = torch.sigmoid(z)
            case "modrelu":
                z = modrelu(z, extra[0])
        return Transition(z, None)
