"""The Elman cell with the activations of torch and of the orthogonal networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from statewise.cells.base import Cell, Product, Rows, Transition, TransitionGrads
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
        if self.nonlinearity == "modrelu":
            return Transition(modrelu(z, extra[0]), None, (z,))
        u = self._activate(z)
        return Transition(u, None, (u,))

    def _activate(self, z: Tensor) -> Tensor:
        match self.nonlinearity:
            case "tanh":
                return torch.tanh(z)
            case "relu":
                return torch.relu(z)
            case "sigmoid":
                return torch.sigmoid(z)
        return z

    def backward(
        self,
        grad_state: Rows,
        grad_memory: Rows | None,
        saved: tuple[Tensor, ...],
        state: Rows,
        memory: Rows | None,
        new_memory: Rows | None,
        product: Product,
        extra: tuple[Tensor, ...],
    ) -> TransitionGrads:
        (s,) = saved  # the activation's value; for modReLU its argument
        grad_extra: tuple[Tensor, ...] = ()
        match self.nonlinearity:
            case "tanh":
                dz = grad_state * (1 - s * s)
            case "relu":
                dz = grad_state * (s > 0)
            case "sigmoid":
                dz = grad_state * s * (1 - s)
            case "modrelu":
                dz = grad_state * ((s.abs() + extra[0] > 0) & (s != 0))
                grad_extra = ((dz * torch.sign(s)).sum(0),)
            case _:
                dz = grad_state
        return TransitionGrads(dz, product.backward(dz, 0, 1), None, grad_extra)
