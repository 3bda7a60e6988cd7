"""Projection as a callback: the norms of a network stay below what was promised before the data was seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from statewise.bounds.matrices import GATES, KINDS
from statewise.bounds.network_class import prefixed
from statewise.errors import ArgumentError
from statewise.layers import RecurrentLayer
from statewise.train.callbacks import Callback
from statewise.train.settings import check_number
from statewise.weights import project_spectral_

_HOST = 2**16  # entries up to which a decomposition is done sooner on the host than launched on a device


class Piece(NamedTuple):
    """A matrix that a bound sees.

    Attributes:
        name: that bounds give to it, such as "U" or "layer 1: W forget".
        field: the constant that bounds it: "recurrent", "input" or "head".
        weight: the matrix, as a part of a parameter.
        biases: of which the sum is one more column.
    """

    name: str
    field: str
    weight: Tensor
    biases: tuple[Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class SpectralProjection(Callback):
    """After each update every matrix is replaced by the nearest one whose spectral norm is within its bound.

    ``A = P S Q^T  ->  P min(S, bound) Q^T``, gate by gate, with the bias as one more column: ``[W, b]`` is what a bound
    sees (Chen, Li & Zhao 2019, Assumption 2, which it enforces). So the norms are no longer looked up in the trained
    network, and a certificate need not pay for the choice.

    With quantised weights the promise is one on what the optimiser moves, not on the rounded weights that are kept.

    Args:
        recurrent: the largest norm of a gate's recurrent matrix; None leaves them free.
        input: of a gate's input matrix with its bias; None leaves them free.
        head: of the head's matrix with its bias; None leaves it free.
        biases: whether biases belong to the matrices; else they stay free, and nothing is promised of a network that
            has some.

    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(cell="rnn", hidden=4, readout="h").build(features=3, classes=2)
    >>> with torch.no_grad():
    ...     _ = model.layer.weight_hh_l0.mul_(9)
    ...     SpectralProjection(recurrent=0.5).after_update(model)
    ...     bool(torch.linalg.matrix_norm(model.layer.weight_hh_l0.double(), 2) <= 0.5)
    True
    """

    kind: ClassVar[str] = "spectral projection"
    recurrent: float | None = 1.0
    input: float | None = 3.0
    head: float | None = 3.0
    biases: bool = True

    def __post_init__(self) -> None:
        for name in ("recurrent", "input", "head"):
            if getattr(self, name) is not None:
                check_number(f"SpectralProjection.{name}", getattr(self, name))
        if self.recurrent is None and self.input is None and self.head is None:
            raise ArgumentError(where="SpectralProjection", got="no bound at all", wanted="one at least")

    def check(self, model: nn.Module) -> None:
        for _ in pieces(model, where="SpectralProjection"):
            pass

    def after_update(self, model: nn.Module) -> None:
        for piece in pieces(model, where="SpectralProjection"):
            bound = getattr(self, piece.field)
            if bound is not None:
                project_folded_(piece.weight, piece.biases if self.biases else (), bound=bound)

    def promises(self, model: nn.Module) -> dict[str, float]:
        """The norms that are promised, by the names that bounds give to matrices.

        Args:
            model: that was trained with it.
        """
        found = {piece.name: getattr(self, piece.field) for piece in self._promised(model)}
        return {name: bound for name, bound in found.items() if bound is not None}

    def _promised(self, model: nn.Module) -> list[Piece]:
        return [piece for piece in pieces(model, where="SpectralProjection") if self.biases or not piece.biases]


def pieces(model: nn.Module, *, where: str) -> Iterator[Piece]:
    """The matrices of a recurrent classifier gate by gate, each with the biases that belong to it.

    Args:
        model: with a recurrent layer ``layer`` and a linear ``head``.
        where: who asks, for the error.
    """
    layer, head = getattr(model, "layer", None), getattr(model, "head", None)
    if not isinstance(layer, RecurrentLayer) or not isinstance(head, nn.Linear):
        wanted = "a classifier with a recurrent layer and a linear head"
        raise ArgumentError(where=where, got=type(model).__name__, wanted=wanted)
    kind = KINDS.get(type(layer.cell))
    if kind is None:
        raise ArgumentError(where=where, got=f"the {layer.cell.name} cell", wanted=f"one of {', '.join(GATES)}")
    plain = {name for name, _ in layer.named_parameters()}
    sides = [["", "_reverse"][: layer.num_directions]] * layer.num_layers
    for prefix, suffix in prefixed([[f"_l{at}{side}" for side in each] for at, each in enumerate(sides)]):
        if not {f"weight_ih{suffix}", f"weight_hh{suffix}"} <= plain:
            raise ArgumentError(where=where, got="weights that are parametrized", wanted="plain parameters")
        yield from _gates(layer, prefix, suffix, kind)
    yield Piece("V", "head", head.weight, () if head.bias is None else (head.bias,))


def _gates(layer: RecurrentLayer, prefix: str, suffix: str, kind: str) -> Iterator[Piece]:
    parts = [
        [None] * len(GATES[kind]) if (stacked := getattr(layer, f"{name}{suffix}", None)) is None
        else stacked.chunk(len(GATES[kind]))
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]  # fmt: skip
    for gate, weight, state, bias, inner in zip(GATES[kind], *parts, strict=True):
        # The reset gate of a GRU multiplies the second bias of the candidate: there it belongs to the state.
        beside_state = kind == "gru" and gate == "candidate"
        own, other = ((bias,), (inner,)) if beside_state else ((bias, inner), ())
        name = "" if kind == "rnn" else f" {gate}"
        yield Piece(f"{prefix}W{name}", "input", weight, tuple(each for each in own if each is not None))
        yield Piece(f"{prefix}U{name}", "recurrent", state, tuple(each for each in other if each is not None))


@torch.no_grad()
def project_folded_(weight: Tensor, biases: Sequence[Tensor], *, bound: float) -> None:
    """Clip the singular values of ``[W, b]`` in place, b the sum of the biases; one that obeys keeps its bits.

    Args:
        weight: W.
        biases: of which each gets an equal part of what b becomes.
        bound: largest singular value allowed.

    >>> weight, bias = torch.eye(2), torch.tensor([3.0, 0.0])
    >>> project_folded_(weight, (bias,), bound=1.0)
    >>> bool(torch.linalg.matrix_norm(torch.column_stack([weight, bias]).double(), 2) <= 1.0)
    True
    """
    columns = [weight.double()]
    if biases:
        columns.append(torch.stack([bias.double() for bias in biases]).sum(0).unsqueeze(1))
    folded = torch.cat(columns, dim=1)
    if folded.numel() <= _HOST:
        folded = folded.cpu()
    # What has diverged is left as it is: the loss will tell.
    if not bool(torch.isfinite(folded).all()) or float(torch.linalg.matrix_norm(folded, 2)) <= bound:
        return
    # Entries will be rounded to the precision of the weight, which moves the norm by at most so much, generously.
    slack = math.sqrt(min(folded.shape)) * torch.finfo(weight.dtype).eps
    clipped = project_spectral_(folded, bound=bound / (1 + slack)).to(weight.device)
    weight.copy_(clipped[:, : weight.shape[1]])
    for bias in biases:
        # Halves and quarters are exact, so that their sum is what was projected.
        bias.copy_(clipped[:, -1] / len(biases))
