"""How far the state moves with each matrix, as formulas that gradients flow through: for training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

#: What stands for a norm of 0, whose logarithm has no gradient.
TINY = 1e-30
Scalar = Float[Tensor, ""]


@dataclass(frozen=True, kw_only=True, eq=False)
class Norms:
    """The constants of one recurrent layer, which gradients flow through.

    Args:
        kind: one of "rnn", "mgu", "gru" and "lstm".
        hidden: units.
        steps: t, the most steps of a sequence.
        log_input: ln of the bound on an input's length, with the 1 of a bias if there is one.
        norms: spectral norms by the names that bounds give to matrices: "U", "W forget".
        gates: the largest values of each sigmoid gate, and of 1 minus it.
        row_sum: of a GRU, the largest sum of absolute values of a row of the candidate's recurrent matrix.
        state_bias: of a GRU, whether that matrix has a bias as one more column.
        largest: of an Elman layer, the largest value of its activation.
    """

    kind: str
    hidden: int
    steps: int
    log_input: Scalar
    norms: Mapping[str, Scalar]
    gates: Mapping[str, tuple[Scalar, Scalar]]
    row_sum: Scalar | None = None
    state_bias: bool = False
    largest: float = 1.0

    @property
    def log_ceiling(self) -> float:
        """``ln(b √hidden)``: no state is longer."""
        return math.log(self.largest) + math.log(self.hidden) / 2 if self.largest < math.inf else math.inf

    def log_norm(self, name: str) -> Scalar:
        """The logarithm of a norm.

        Args:
            name: of the matrix.
        """
        return log_of(self.norms[name])

    def log_lengths(self, log_source: Scalar, log_decay: Scalar) -> Float[Tensor, " steps"]:
        """``ln η_j``, ``η_j = min(b √hidden, source S_j(θ))``, for j from 1 to t.

        Args:
            log_source: ln of what a step adds.
            log_decay: ln θ.
        """
        lengths = log_source + log_geometric_up_to(log_decay, self.steps)
        return lengths if math.isinf(self.log_ceiling) else lengths.clamp_max(self.log_ceiling)

    def log_past(self, log_growth: Scalar, log_lengths: Float[Tensor, " steps"]) -> Scalar | None:
        """``ln Σ_{j<t} β^(t-1-j) η_j``: what recurrent matrices have in the place of inputs; None for one step.

        Args:
            log_growth: ln β.
            log_lengths: ln η_j for j from 1 to t.
        """
        if self.steps == 1:
            return None
        ago = torch.arange(self.steps - 2, -1, -1, dtype=log_lengths.dtype, device=log_lengths.device)
        return torch.logsumexp(ago * log_growth + log_lengths[:-1], dim=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Moves:
    """What a formula gives.

    Args:
        log_moves: for each matrix ln of how far the last state moves with it; one that cannot move it is left out.
        log_hidden: ln η_t, the bound on the length of the last state.
    """

    log_moves: Mapping[str, Scalar]
    log_hidden: Scalar


def moves(norms: Norms) -> Moves:
    """How far the last state moves with each matrix.

    Elman: ``u_t = Σ_s β^(t-s) (η_{s-1} ΔU + ‖x‖ ΔW)``; MGU, GRU and LSTM: Chen, Li & Zhao 2019, Theorems 4 and 5, with
    the new or repaired constants of :class:`MGUClass`, :class:`GRUClass`, :class:`LSTMClass`, the same at every step.

    Args:
        norms: of the layer.
    """
    return _MOVES[norms.kind](norms)


def _rnn(n: Norms) -> Moves:
    log_growth = n.log_norm("U")
    lengths = n.log_lengths(n.log_norm("W") + n.log_input, log_growth)
    found = {"W": n.log_input + log_geometric(log_growth, n.steps), "U": n.log_past(log_growth, lengths)}
    return Moves(log_moves=_there(found), log_hidden=lengths[-1])


def _mgu(n: Norms) -> Moves:
    is_open, is_shut = n.gates["forget"]
    decay = is_shut + is_open.square() * n.norms["U candidate"]
    a = (2 + is_open * n.norms["U candidate"]) / 4
    log_growth = log_of(decay + a * n.norms["U forget"])
    lengths = n.log_lengths(log_of(is_open) + n.log_norm("W candidate") + n.log_input, log_of(decay))
    inputs, past = n.log_input + log_geometric(log_growth, n.steps), n.log_past(log_growth, lengths)
    found: dict[str, Scalar | None] = {}
    for gate, factor in (("forget", log_of(a)), ("candidate", log_of(is_open))):
        found |= {f"W {gate}": factor + inputs, f"U {gate}": None if past is None else factor + past}
    return Moves(log_moves=_there(found), log_hidden=lengths[-1])


def _gru(n: Norms) -> Moves:
    (z, q), (r, _) = n.gates["update"], n.gates["reset"]
    root = math.sqrt(n.hidden)
    read = math.sqrt(n.hidden + 1) if n.state_bias else root
    inside = n.norms["U candidate"] * read
    inside = inside if n.row_sum is None else torch.minimum(n.row_sum, inside)
    reset, decay = q * inside / 4, z + q * r * n.norms["U candidate"]
    log_sum = log_geometric(log_of(decay + n.norms["U update"] / 2 + reset * n.norms["U reset"]), n.steps)
    half = torch.full_like(q, 0.5)
    found: dict[str, Scalar | None] = {}
    for gate, factor, beside in (
        ("update", half, half * root),
        ("reset", reset, reset * root),
        ("candidate", q, q * r * read),
    ):
        found |= {f"W {gate}": log_sum + log_of(factor) + n.log_input}
        found |= {f"U {gate}": log_sum + log_of(beside)}
    source = n.norms["W candidate"] * n.log_input.exp() + (r * n.norms["U candidate"] if n.state_bias else 0.0)
    return Moves(log_moves=_there(found), log_hidden=n.log_lengths(log_of(q * source), log_of(decay))[-1])


def _lstm(n: Norms) -> Moves:
    g, r, o = (n.gates[gate][0] for gate in ("forget", "input", "output"))
    entry = r * log_geometric(log_of(g), n.steps).exp()
    crossed = (entry * n.norms["U forget"] + n.norms["U input"] + n.norms["U output"]) / 4
    log_sum = log_geometric(log_of(g + r * n.norms["U candidate"] + crossed), n.steps)
    quarter, log_root = torch.full_like(r, 0.25), math.log(n.hidden) / 2
    found: dict[str, Scalar | None] = {}
    for gate, factor in (("forget", entry / 4), ("input", quarter), ("output", quarter), ("candidate", r)):
        found |= {f"W {gate}": log_sum + log_of(factor) + n.log_input}
        found |= {f"U {gate}": log_sum + log_of(factor) + log_root}
    return Moves(log_moves=_there(found), log_hidden=log_of(o * torch.tanh(entry)) + log_root)


_MOVES: Mapping[str, Callable[[Norms], Moves]] = {"rnn": _rnn, "mgu": _mgu, "gru": _gru, "lstm": _lstm}


def _there(found: Mapping[str, Scalar | None]) -> dict[str, Scalar]:
    return {name: value for name, value in found.items() if value is not None}


def log_of(value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The logarithm, of what is below :data:`TINY` that of it, without a gradient.

    >>> log_of(torch.tensor([0.0, 1.0], dtype=torch.float64)).round().tolist()
    [-69.0, 0.0]
    """
    return value.clamp_min(TINY).log()


def log_geometric(log_beta: Scalar, steps: int) -> Scalar:
    """``ln S_t(β)``, ``S_t(β) = Σ_{n<t} β^n``, with its gradient, which is ``(t - 1) / 2`` in ln β at β = 1.

    Args:
        log_beta: ln β, finite.
        steps: t.

    >>> beta = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    >>> log_geometric(beta, 5).backward()
    >>> beta.grad.item()
    2.0
    """
    return log_geometric_up_to(log_beta, steps)[-1]


def log_geometric_up_to(log_beta: Scalar, most: int) -> Float[Tensor, " most"]:
    """``ln S_j(β)`` for j from 1 to ``most``.

    ``S_j(β) = β^((j-1)/2) sinh(j ln β / 2) / sinh(ln β / 2)``: both signs of ln β are one formula, smooth through 0.

    Args:
        log_beta: ln β, finite.
        most: the largest j.

    >>> log_geometric_up_to(torch.tensor(2.0, dtype=torch.float64).log(), 4).exp().round(decimals=9).tolist()
    [1.0, 3.0, 7.0, 15.0]
    """
    counts = torch.arange(1, most + 1, dtype=log_beta.dtype, device=log_beta.device)
    half = log_beta / 2
    return (counts - 1) * half + _log_sinhc(counts * half) - _log_sinhc(half) + counts.log()


def _log_sinhc(value: Tensor) -> Tensor:
    """``ln(sinh(x) / x)``, an even function that is 0 at 0; by its series where the quotient loses its gradient.

    >>> _log_sinhc(torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64)).round(decimals=6).tolist()
    [0.0, 0.161439, 0.161439]
    """
    small = value.abs() < 0.1
    square = torch.where(small, value, torch.zeros_like(value)).square()
    series = square * (1 / 6 - square * (1 / 180 - square * (1 / 2835 - square * (1 / 37800 - square / 467775))))
    away = torch.where(small, torch.ones_like(value), value.abs())
    return torch.where(small, series, away + torch.log(-torch.expm1(-2 * away)) - torch.log(2 * away))
