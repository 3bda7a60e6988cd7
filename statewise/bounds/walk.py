"""How far two recurrent networks drift apart, step by step: what the recursions of all cells have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from statewise.bounds.logs import Floats

#: The largest logarithm that is taken back to a number; it stands for all above.
_MOST = 700.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Signal:
    """A sequence of vectors of one network, beside that of another network of the class.

    ``‖x_s‖ <= n_s`` and ``‖x_s - x'_s‖ <= sum_k c_sk ‖A_k - A'_k‖``.

    Args:
        log_norm: ln n, (steps,).
        log_moves: ln c, (steps, matrices), for the matrices that come before.

    >>> signal = Signal(log_norm=np.log([3.0, 4.0]), log_moves=np.zeros((2, 1)))
    >>> (
    ...     joined(signal, signal.greatest).log_norm.round(3).tolist(),
    ...     np.exp(signal.log_norms(folded=True)).round(3).tolist(),
    ... )
    ([1.609, 1.733], [3.162, 4.123])
    """

    log_norm: Floats
    log_moves: Floats

    @property
    def greatest(self) -> Signal:
        """At each step the most of all steps: a bound for whichever step is read, and for means over steps."""
        return Signal(
            log_norm=np.full_like(self.log_norm, self.log_norm.max()),
            log_moves=np.broadcast_to(self.log_moves.max(axis=0, initial=-math.inf), self.log_moves.shape),
        )

    def log_norms(self, *, folded: bool) -> Floats:
        """The logarithm of n, or with a 1 below the vector, as a bias is read, ``ln √(n² + 1)``.

        Args:
            folded: whether the 1 is there.
        """
        return np.logaddexp(0.0, 2 * self.log_norm) / 2 if folded else self.log_norm

    def among(self, below: int, before: int, after: int) -> Signal:
        """The same among more matrices, none of which moves it.

        Args:
            below: how many of its own matrices stay in front.
            before: how many others come next.
            after: how many others come last.
        """
        moves = np.pad(self.log_moves, ((0, 0), (0, after)), constant_values=-math.inf)
        others = np.full((len(moves), before), -math.inf)
        return Signal(log_norm=self.log_norm, log_moves=np.hstack([moves[:, :below], others, moves[:, below:]]))


def joined(*signals: Signal) -> Signal:
    """Vectors one below the other: lengths and distances are those of Pythagoras, matrix by matrix.

    Args:
        *signals: over the same steps and matrices.
    """
    norms, moves = [one.log_norm for one in signals], [one.log_moves for one in signals]
    return Signal(
        log_norm=np.logaddexp.reduce([2 * one for one in norms]) / 2,
        log_moves=np.logaddexp.reduce([2 * one for one in moves]) / 2,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Walk:
    """A layer over time.

    Args:
        state: h after each step; its matrices are those of the input, then the layer's own.
        memory: the same of c, of an LSTM.
        log_growth: ln β, by which a difference grows at most with each step.
        log_decay: ln θ, by which the state itself does, of gated cells.
    """

    state: Signal
    log_growth: float
    memory: Signal | None = None
    log_decay: float | None = None


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """The constants of a layer after its last step as formulas give them, looser than those of a walk.

    Args:
        log_moves: for each matrix the logarithm of how far it moves the state.
        log_hidden: ln η_t, the bound on the length of the state.
        log_read: what the formula for the head's matrix has in its place.
        log_growth: ln β.
        log_decay: ln θ, of gated cells.
    """

    log_moves: Mapping[str, float]
    log_hidden: float
    log_read: float
    log_growth: float
    log_decay: float | None = None


def accumulated(log_growth: Floats, log_added: Floats, log_first: Floats) -> Floats:
    """``u_s = β_s u_{s-1} + a_s`` in logarithms, for many u at once; (steps, matrices).

    Args:
        log_growth: ln β, (steps,).
        log_added: ln a, (steps, matrices).
        log_first: ln u_0, (matrices,).

    >>> np.exp(accumulated(np.log([2.0, 2.0, 2.0]), np.zeros((3, 1)), np.array([-np.inf])))[:, 0].round(9).tolist()
    [1.0, 3.0, 7.0]
    """
    found, u = np.empty_like(log_added), log_first
    for step, growth in enumerate(log_growth.tolist()):
        u = np.logaddexp(u + growth, log_added[step])
        found[step] = u
    return found


def label(kind: str, gate: str) -> str:
    """What follows W and U in the name of a gate's matrix.

    >>> label("rnn", "state"), label("lstm", "forget")
    ('', ' forget')
    """
    return "" if kind == "rnn" else f" {gate}"


def logs(values: Floats | float) -> Floats:
    """Natural logarithms of an array, -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


def numbers(log_values: Floats) -> list[float]:
    """Numbers from their logarithms; beyond what float64 can hold one that is larger than all that matters."""
    return [float(value) for value in np.exp(np.minimum(log_values, _MOST))]
