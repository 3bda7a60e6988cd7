"""The nats that a certificate will have to pay for a network, as a term of the loss that it is trained with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.bounds.closed_forms import Norms, Scalar, log_of, moves
from statewise.bounds.matrices import GATES, SIGMOID
from statewise.bounds.reading import read_model
from statewise.errors import ArgumentError, AssumptionError
from statewise.models import SequenceClassifier
from statewise.models.views import resting_view

_HOST = 2**16  # entries of a matrix up to which a decomposition is done sooner on the host than launched on a device
_LARGEST = {"tanh": 1.0, "relu": math.inf, "identity": math.inf}


@dataclass(frozen=True, kw_only=True, eq=False)
class Class:
    """The smallest class around a network, which gradients flow through.

    Args:
        layer: the constants of its recurrent layer.
        norms: of all matrices, those of the head ("V") and of an embedding ("embedding", its longest row) included.
        parameters: how many numbers each matrix has.
        head_bias: whether the head has a bias.
    """

    layer: Norms
    norms: Mapping[str, Scalar]
    parameters: Mapping[str, int]
    head_bias: bool

    def log_lipschitz(self) -> dict[str, Scalar]:
        """The logarithm of L of each matrix: how far the logits move when it does, in the spectral norm."""
        found, log_head = moves(self.layer), log_of(self.norms["V"])
        logs = {name: log_head + moved for name, moved in found.log_moves.items()}
        if "embedding" in self.norms:
            # A row that moves by e moves W x by at most ‖W‖ e, where a W that moves by e moves it by at most ‖x‖ e.
            passed = [logs[name] + log_of(self.norms[name]) for name in logs if name.startswith("W")]
            logs["embedding"] = torch.logsumexp(torch.stack(passed), dim=0) - self.layer.log_input
        logs["V"] = _with_one(found.log_hidden) if self.head_bias else found.log_hidden
        return logs

    def cover_nats(self, gamma: float) -> Scalar:
        """``Σ_k P_k softplus(ln 2B_k + ln L_k - ln π_k - ln(γ / 2√2))``, ``π_k = P_k / P``.

        Args:
            gamma: the margin.
        """
        log_scale, total = math.log(gamma) - 1.5 * math.log(2), sum(self.parameters.values())
        terms = [
            count * nn.functional.softplus(math.log(2 * total / count) + log_of(self.norms[name]) + logs - log_scale)
            for name, logs in self.log_lipschitz().items()
            if (count := self.parameters[name])
        ]
        return torch.stack(terms).sum()


def smooth_cover_nats(
    model: nn.Module, *, steps: int, gamma: float = 1.0, input_bound: float | None = None
) -> Float[Tensor, ""]:
    """How many nats cover the smallest class around a network so well that no logit moves by more than γ / 2√2.

    ``Σ_k P_k softplus(ln 2B_k + ln L_k - ln(π_k γ / 2√2))``, ``π_k = P_k / P`` (new: the cover of the margin-Occam
    certificate, with the network's own norms in the place of constants that were fixed beforehand). Gradients flow
    through the spectral norms B_k and the Lipschitz constants L_k, which are closed forms; a certificate computes
    them step by step, and has somewhat fewer nats, but pays for the choice of its constants.

    Args:
        model: a :class:`~statewise.models.SequenceClassifier` of one layer of Elman, MGU, GRU or LSTM cells that reads
            out its state; see :func:`refuse_uncovered`.
        steps: of the longest sequence, start and end tokens not counted.
        gamma: the margin.
        input_bound: the greatest length of an input; None where there is an embedding, whose longest row it is.

    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(cell="rnn", hidden=4, readout="h").build(features=3, classes=2)
    >>> nats = smooth_cover_nats(model, steps=20, input_bound=1.0)
    >>> nats.backward()
    >>> bool(model.layer.weight_hh_l0.grad.norm() > 0)
    True
    """
    return smallest_class(model, steps=steps, input_bound=input_bound).cover_nats(gamma)


def refuse_uncovered(model: nn.Module, *, where: str = "smooth_cover_nats") -> None:
    """Refuse a model that has no closed forms, by name.

    Args:
        model: in whatever mode.
        where: who asks, for the error.
    """
    wanted = "a SequenceClassifier of one layer of rnn, mgu, gru or lstm cells, without centroids"
    if not isinstance(model, SequenceClassifier):
        raise AssumptionError(where=where, got=f"a {type(model).__name__}", wanted=wanted)
    reading = read_model(resting_view(model))
    if reading.matrices is None:
        raise AssumptionError(where=where, got=reading.why_not, wanted=wanted)
    if len(reading.matrices.layers) > 1:
        raise AssumptionError(where=where, got=f"{len(reading.matrices.layers)} layers", wanted=wanted)
    if reading.matrices.readout != "h":
        got = f'readout="{reading.matrices.readout}"'
        raise AssumptionError(where=where, got=got, wanted='readout="h" or "u_end": a state, not a memory')


def smallest_class(model: Any, *, steps: int, input_bound: float | None) -> Class:
    """The norms of a network that :func:`refuse_uncovered` lets pass.

    Args:
        model: the network.
        steps: as for :func:`smooth_cover_nats`.
        input_bound: likewise.
    """
    cell, kind = model.layer.cell, model.layer.cell.name.lower()
    longest = _longest_input(model, input_bound)
    matrices, gates = _matrices(model.layer, kind, longest)
    matrices["V"] = _folded(model.head.weight.to(longest), model.head.bias)
    norms = {name: spectral_norm(matrix) for name, matrix in matrices.items()}
    sizes = {name: matrix.numel() for name, matrix in matrices.items()}
    layer = Norms(
        kind=kind,
        hidden=model.layer.hidden_size,
        steps=steps + _marks(model),
        log_input=_with_one(log_of(longest)),
        norms=norms,
        gates=gates,
        row_sum=matrices["U candidate"].abs().sum(1).amax() if kind == "gru" else None,
        state_bias=kind == "gru",
        largest=_LARGEST[cell.nonlinearity] if kind == "rnn" else 1.0,
    )
    if model.embedding is not None:
        norms, sizes = {**norms, "embedding": longest}, {**sizes, "embedding": model.embedding.weight.numel()}
    return Class(layer=layer, norms=norms, parameters=sizes, head_bias=model.head.bias is not None)


def _longest_input(model: Any, input_bound: float | None) -> Scalar:
    """The greatest length of an input, in float64, where all of the class is computed."""
    embedding = model.embedding
    if (embedding is None) == (input_bound is None):
        got = "no bound" if embedding is None else f"{input_bound} for a network of tokens"
        wanted = "the greatest length of an input" if embedding is None else "None: its rows are the inputs"
        raise ArgumentError(where="input_bound", got=got, wanted=wanted)
    place = "cpu" if model.layer.weight_hh_l0.numel() <= _HOST else model.head.weight.device
    if embedding is None:
        return torch.tensor(input_bound, dtype=torch.float64, device=place)
    return _longest(embedding.weight.to(place, torch.float64))


def _matrices(layer: Any, kind: str, longest: Scalar) -> tuple[dict[str, Tensor], dict[str, tuple[Scalar, Scalar]]]:
    """The matrices of a layer by name, biases as columns, and how far its gates open and shut."""
    matrices: dict[str, Tensor] = {}
    gates: dict[str, tuple[Scalar, Scalar]] = {}
    stacked = (
        getattr(layer, f"{name}_l0").to(longest).chunk(len(GATES[kind]))
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    for gate, W, U, bias, inner in zip(GATES[kind], *stacked, strict=True):
        # The reset gate of a GRU multiplies the second bias of the candidate: there it belongs to the state.
        beside_state = kind == "gru" and gate == "candidate"
        first = bias if beside_state else bias + inner
        name = "" if kind == "rnn" else f" {gate}"
        matrices |= {f"W{name}": _folded(W, first), f"U{name}": _folded(U, inner if beside_state else None)}
        if gate in SIGMOID:
            reach = _longest(W) * longest + U.abs().sum(1).amax()
            gates[gate] = torch.sigmoid(first.amax() + reach), torch.sigmoid((-first).amax() + reach)
    return matrices, gates


def _folded(weight: Tensor, bias: Tensor | None) -> Tensor:
    return weight if bias is None else torch.column_stack([weight, bias.to(weight)])


def spectral_norm(matrix: Float[Tensor, "rows columns"]) -> Scalar:
    """The largest singular value, in float64 and with a gradient; NaN where the matrix is not finite.

    Args:
        matrix: on any device.

    >>> spectral_norm(torch.tensor([[3.0, 0.0], [4.0, 0.0]])).item()
    5.0
    """
    matrix = matrix.double()
    if not bool(torch.isfinite(matrix).all()):
        return matrix.sum() * math.nan  # a decomposition would raise, where the loss can tell
    norm: Tensor = torch.linalg.matrix_norm(matrix, 2)
    return norm


def _marks(model: SequenceClassifier) -> int:
    """Steps besides those of the sequence: a start token, an end token."""
    started = model.tokens is not None and model.config.start_token
    return started + (model.config.readout == "u_end")


def _longest(rows: Float[Tensor, "rows columns"]) -> Scalar:
    """The length of the longest row."""
    longest: Tensor = torch.linalg.vector_norm(rows, dim=1).amax()
    return longest


def _with_one(log_length: Scalar) -> Scalar:
    """``ln √(n² + 1)`` from ln n."""
    return nn.functional.softplus(2 * log_length) / 2
