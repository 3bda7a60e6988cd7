"""The constants of a class of Elman networks, from which all bounds on such networks are made."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from statewise.bounds.logs import Floats, log_add, log_geometric, log_of, log_sum
from statewise.bounds.profile import Block, Profile
from statewise.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class ElmanConstants:
    """All Elman networks with norms up to given ones, on inputs up to a given length.

    ``h_s = σ_h(U h_{s-1} + W x_s)``, ``y = σ_y(V h_t)``; both activations are 0 at 0 (Chen, Li & Zhao 2019, section 2).
    A bias of the cell is one more column of W, and one more input, 1: ``inputs + 1`` and ``√(B_x² + 1)``.

    Args:
        inputs: dx, with one more for a bias.
        hidden: dh.
        classes: dy, at least 2.
        steps: t, the most steps of a sequence.
        norm_u: B_U, the largest spectral norm of U.
        norm_w: B_W, that of W.
        norm_v: B_V, that of V, which includes the bias of the head if there is one.
        input_bound: B_x, the largest length of an input.
        cap: b, the largest entry of a state: 1 for tanh, infinite for relu and identity.
        rho_h: the Lipschitz constant of σ_h.
        rho_y: that of σ_y.
        start_norm: the length of the state before the first step.
        head_bias: whether V has one more column, ``y = σ_y(V [h_t; 1])``.

    >>> net = ElmanConstants(
    ...     inputs=1, hidden=4, classes=2, steps=3, norm_u=0.5, norm_w=3.0, norm_v=2.0, input_bound=1.0, cap=math.inf
    ... )
    >>> [round(math.exp(length), 6) for length in net.hidden_bounds()]
    [0.0, 3.0, 4.5, 5.25]
    >>> [round(math.exp(block.log_lipschitz), 6) for block in net.paper().blocks]
    [31.5, 5.25, 3.5]
    >>> [round(math.exp(block.log_lipschitz), 6) for block in net.tight().blocks]
    [12.0, 5.25, 3.5]
    """

    inputs: int
    hidden: int
    classes: int
    steps: int
    norm_u: float
    norm_w: float
    norm_v: float
    input_bound: float
    cap: float = 1.0
    rho_h: float = 1.0
    rho_y: float = 1.0
    start_norm: float = 0.0
    head_bias: bool = False

    def __post_init__(self) -> None:
        for name, least in (("inputs", 1), ("hidden", 1), ("classes", 2), ("steps", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(where=f"ElmanConstants.{name}", got=getattr(self, name), wanted=f"at least {least}")
        for name in ("norm_u", "norm_w", "norm_v", "start_norm"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ArgumentError(
                    where=f"ElmanConstants.{name}", got=getattr(self, name), wanted="a finite number >= 0"
                )
        for name in ("input_bound", "rho_h", "rho_y"):
            if not 0 < getattr(self, name) < math.inf:
                raise ArgumentError(
                    where=f"ElmanConstants.{name}", got=getattr(self, name), wanted="a finite number > 0"
                )
        if not self.cap > 0:
            raise ArgumentError(where="ElmanConstants.cap", got=self.cap, wanted="a number > 0, or infinity")

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Rows and columns of U, V and W."""
        columns = self.hidden + self.head_bias
        return {
            "U": (self.hidden, self.hidden),
            "V": (self.classes, columns),
            "W": (self.hidden, self.inputs),
        }

    @property
    def parameters(self) -> int:
        """P, the entries of all three."""
        return sum(rows * columns for rows, columns in self.shapes.values())

    @property
    def log_growth(self) -> float:
        """``ln β``, ``β = ρ_h B_U``."""
        return log_of(self.rho_h * self.norm_u)

    @property
    def log_ceiling(self) -> float:
        """``ln(b √dh)``: no state is longer, whatever the weights."""
        return log_of(self.cap) + 0.5 * math.log(self.hidden)

    def hidden_bounds(self) -> Floats:
        """``ln η_j`` for j from 0 to t: no state after j steps is longer than η_j.

        ``η_j = min(b √dh, ρ_h B_W B_x S_j(β) + β^j ‖h_0‖)`` (the paper's Lemma 6; equality for linear networks).
        """
        log_step = math.log(self.rho_h) + log_of(self.norm_w) + math.log(self.input_bound)
        free = log_step + log_geometric_up_to(self.log_growth, self.steps)
        if self.start_norm:
            free = np.logaddexp(free, log_powers(self.log_growth, self.steps) + math.log(self.start_norm))
        bounds: Floats = np.minimum(free, self.log_ceiling)
        bounds[0] = log_of(self.start_norm)
        return bounds

    def log_read(self, log_hidden: float) -> float:
        """The length of what V multiplies: the state, or the state and a 1.

        Args:
            log_hidden: ln of the state's length.
        """
        return 0.5 * log_add(2 * log_hidden, 0.0) if self.head_bias else log_hidden

    def tight(self) -> Profile:
        """How far the logits move with each matrix, in the spectral norm (new; attained by linear networks).

        ``L_U = ρ_y ρ_h B_V Σ_{j<t} β^(t-1-j) η_j``, ``L_V = ρ_y η_t``, ``L_W = ρ_y ρ_h B_V B_x S_t(β)``.
        """
        lengths = self.hidden_bounds()
        log_u = log_sum(log_powers(self.log_growth, self.steps - 1)[::-1] + lengths[:-1])
        return self._profile(math.log(self.rho_h) + self._log_head + log_u, self.log_read(float(lengths[-1])))

    def paper(self) -> Profile:
        """The same with the coarser constants of the paper's Lemmas 2 and 7.

        ``a_t = ρ_y ρ_h B_x S_t(β)``; ``L_U = ρ_h B_V B_W t a_t``, ``L_V = B_W a_t``, ``L_W = B_V a_t``. A start that is
        not 0 adds ``ρ_y ρ_h B_V t β^(t-1) ‖h_0‖`` and ``ρ_y β^t ‖h_0‖`` to the first two.
        """
        log_step = math.log(self.rho_h) + log_of(self.norm_w) + math.log(self.input_bound)
        log_free = log_step + log_geometric(self.log_growth, self.steps)
        log_last, log_end = log_powers(self.log_growth, self.steps)[-2:] + log_of(self.start_norm)
        log_u = math.log(self.rho_h) + self._log_head + math.log(self.steps) + log_add(log_free, log_last)
        return self._profile(log_u, self.log_read(log_add(log_free, log_end)))

    def log_printed_product(self) -> float:
        """``ln Λ`` as Theorem 2 prints it: ``Λ = c √d t S_t(β)``, ``c = ρ_y ρ_h B_V B_W B_x max(1, β)``, ``d = √P``.

        It is not below ``max_k R_k L_k`` of :meth:`paper`, by which it is replaced where a start or a bias of the head,
        which the paper does not have, makes that larger.
        """
        log_scale = math.log(self.rho_h) + self._log_head + log_of(self.norm_w) + math.log(self.input_bound)
        log_sizes = 0.25 * math.log(self.parameters) + math.log(self.steps)
        printed = log_scale + max(0.0, self.log_growth) + log_sizes + log_geometric(self.log_growth, self.steps)
        return max(printed, *(log_of(block.radius) + block.log_lipschitz for block in self.paper().blocks))

    @property
    def _log_head(self) -> float:
        return math.log(self.rho_y) + log_of(self.norm_v)

    def _profile(self, log_u: float, log_read: float) -> Profile:
        log_w = math.log(self.rho_h) + math.log(self.input_bound) + log_geometric(self.log_growth, self.steps)
        norms = {"U": self.norm_u, "V": self.norm_v, "W": self.norm_w}
        logs = {"U": log_u, "V": math.log(self.rho_y) + log_read, "W": self._log_head + log_w}
        log_hidden = float(self.hidden_bounds()[-1])
        blocks = (
            Block(name=name, rows=rows, columns=columns, bound=norms[name], log_lipschitz=logs[name])
            for name, (rows, columns) in self.shapes.items()
        )
        return Profile(
            architecture="Elman",
            blocks=tuple(blocks),
            steps=self.steps,
            log_hidden=log_hidden,
            log_output=self._log_head + self.log_read(log_hidden),
            log_growth=self.log_growth,
        )


def log_powers(log_beta: float, most: int) -> Floats:
    """``n ln β`` for n from 0 to ``most``, with ``0^0 = 1``.

    Args:
        log_beta: ln β; -inf for β = 0.
        most: the largest power.

    >>> log_powers(-math.inf, 2).tolist()
    [0.0, -inf, -inf]
    """
    powers = np.arange(most + 1, dtype=np.float64)
    if log_beta == -math.inf:
        return np.where(powers == 0, 0.0, -math.inf)
    return powers * log_beta


def log_geometric_up_to(log_beta: float, most: int) -> Floats:
    """``ln S_j(β)`` for j from 0 to ``most``.

    Args:
        log_beta: ln β; -inf for β = 0.
        most: the largest j.

    >>> np.exp(log_geometric_up_to(math.log(2.0), 4)).round(9).tolist()
    [0.0, 1.0, 3.0, 7.0, 15.0]
    """
    counts = np.arange(1, most + 1, dtype=np.float64)
    if log_beta == -math.inf:
        sums = np.zeros(most)
    elif log_beta == 0:
        sums = np.log(counts)
    else:
        # Both signs are one formula in the ratio that is below 1: S_j(β) = β^(j-1) S_j(1/β).
        ratio = -abs(log_beta)
        sums = np.log(-np.expm1(counts * ratio)) - math.log(-math.expm1(ratio)) + (counts - 1) * max(log_beta, 0.0)
    return np.concatenate([[-math.inf], sums])
