"""The derivative of every memory-less cell in its state, with its range over a ball: what a Lipschitz bound needs.

Each derivative is a sum of products ``diag(f) M diag(g) N ...`` of gates, known up to an interval, and weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from statewise.automata.frozen import FrozenLayer
from statewise.automata.proof.intervals import Interval, sigmoid_slope, tanh_slope
from statewise.cells import (
    GRUCell,
    MGUCell,
    MultiplicativeRNNCell,
    RACCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from statewise.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Matrix:
    """A weight, (hidden, hidden), with the bounds on it that are used."""

    weight: Tensor
    norm: Tensor
    row_norms: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> Matrix:
        """The matrix with its largest singular value and the lengths of its rows."""
        return cls(weight, torch.linalg.matrix_norm(weight, 2), torch.linalg.vector_norm(weight, dim=1))


Summand = tuple[Interval | Matrix, ...]
BOUNDED = (RNNCell, GRUCell, ResetBeforeGRUCell, MGUCell, RACCell, MultiplicativeRNNCell)


@dataclass(frozen=True, eq=False)
class Ball:
    """States within a radius of centres, with one input each.

    Args:
        layer: whose derivative is wanted.
        matrices: its recurrent weights, one for each block.
        input_term: (rows, blocks * hidden), ``W x + b``.
        centers: (rows, hidden).
        radius: (rows,).
    """

    layer: FrozenLayer
    matrices: tuple[Matrix, ...]
    input_term: Tensor
    centers: Tensor
    radius: Tensor

    @property
    def state(self) -> Interval:
        """Each unit of the state."""
        return Interval.around(self.centers, self.radius[:, None])

    def own_input(self, block: int) -> Interval:
        """The input term of a block."""
        return Interval.exactly(self.input_term.chunk(len(self.matrices), dim=1)[block])

    def product(self, block: int) -> Interval:
        """``U h + b'`` of a block: over a ball, exactly the centre's up to the radius times the row's length."""
        value = self.centers @ self.matrices[block].weight.T + self._bias(block)
        return Interval.around(value, self.radius[:, None] * self.matrices[block].row_norms)

    def product_of(self, block: int, value: Interval) -> Interval:
        """``U v + b'`` of a block for a vector known unit by unit."""
        weight, bias = self.matrices[block].weight, self._bias(block)
        middle, half = (value.high + value.low) / 2, (value.high - value.low) / 2
        reach = half @ weight.abs().T
        around = middle @ weight.T + bias
        return Interval(value.center @ weight.T + bias, around - reach, around + reach)

    def _bias(self, block: int) -> Tensor:
        if self.layer.bias_hh is None:
            return self.centers.new_zeros(())
        return self.layer.bias_hh.chunk(len(self.matrices))[block]


def summands(ball: Ball) -> list[Summand]:
    """The derivative ``du / dh`` over the ball, as a sum of products."""
    match ball.layer.cell:
        case RNNCell():
            return _rnn(ball)
        case GRUCell():
            return _gru(ball)
        case ResetBeforeGRUCell() | MGUCell():
            return _reset_before(ball)
        case RACCell():
            return [(ball.own_input(0), ball.matrices[0])]
        case MultiplicativeRNNCell():
            return _multiplicative(ball)
    raise ArgumentError(
        where="certify model", got=ball.layer.cell.name, wanted="a cell whose derivative is bounded here"
    )


def _rnn(ball: Ball) -> list[Summand]:
    """``u = act(a + U h)``."""
    cell = ball.layer.cell
    assert isinstance(cell, RNNCell)
    z = ball.own_input(0) + ball.product(0)
    match cell.nonlinearity:
        case "tanh":
            slope = z.bell(tanh_slope)
        case "sigmoid":
            slope = z.bell(sigmoid_slope)
        case "relu":
            slope = z.rising(lambda value: (value > 0).to(value.dtype))
        case "modrelu":
            slope = _modrelu_slope(z, ball.layer.extra[0])
        case _:
            slope = Interval.exactly(torch.ones_like(z.center))
    return [(slope, ball.matrices[0])]


def _modrelu_slope(z: Interval, bias: Tensor) -> Interval:
    """1 outside the dead zone ``|z| <= -b``, 0 inside; with ``b > 0`` it jumps at 0, where no bound exists."""

    def lives(size: Tensor) -> Tensor:
        return (size + bias > 0).to(size.dtype)

    crosses = (z.low <= 0) & (z.high >= 0)
    smallest = torch.where(crosses, torch.zeros_like(z.low), torch.minimum(z.low.abs(), z.high.abs()))
    high = torch.where(crosses & (bias > 0), torch.full_like(z.low, torch.inf), lives(z.largest))
    return Interval(lives(z.center.abs()), lives(smallest), high)


def _gru(ball: Ball) -> list[Summand]:
    """``n = tanh(a_n + r (U_n h))``, ``u = (1 - z) n + z h``."""
    for_r, for_z = (ball.own_input(block) + ball.product(block) for block in (0, 1))
    r, z, recurrent = for_r.rising(torch.sigmoid), for_z.rising(torch.sigmoid), ball.product(2)
    for_n = ball.own_input(2) + r * recurrent
    n = for_n.rising(torch.tanh)
    through_n = z.from_one() * for_n.bell(tanh_slope)
    reset, update, candidate = ball.matrices
    return [
        (z,),
        ((ball.state - n) * for_z.bell(sigmoid_slope), update),
        (through_n * r, candidate),
        (through_n * recurrent * for_r.bell(sigmoid_slope), reset),
    ]


def _reset_before(ball: Ball) -> list[Summand]:
    """``n = tanh(a_n + U_n (r h))`` and ``u = (1 - z) n + z h``; in the minimal gated unit ``z = 1 - r``."""
    minimal = len(ball.matrices) == 2
    for_r = ball.own_input(0) + ball.product(0)
    r, r_slope = for_r.rising(torch.sigmoid), for_r.bell(sigmoid_slope)
    for_n = ball.own_input(1 if minimal else 2) + ball.product_of(1 if minimal else 2, r * ball.state)
    n = for_n.rising(torch.tanh)
    if minimal:
        z, to_update = r.from_one(), (n - ball.state) * r_slope
        reset, candidate = ball.matrices
        update = reset
    else:
        for_z = ball.own_input(1) + ball.product(1)
        z, to_update = for_z.rising(torch.sigmoid), (ball.state - n) * for_z.bell(sigmoid_slope)
        reset, update, candidate = ball.matrices
    through_n = z.from_one() * for_n.bell(tanh_slope)
    return [
        (z,),
        (to_update, update),
        (through_n, candidate, r),
        (through_n, candidate, ball.state * r_slope, reset),
    ]


def _multiplicative(ball: Ball) -> list[Summand]:
    """``u = tanh(a_n + U_n ((W_f x) (U_f h)))``."""
    factor, candidate = ball.matrices
    chosen, value = ball.own_input(0), ball.product(0)
    through = ball.product_of(1, Interval.exactly(chosen.center * value.center))
    # The product moves by U_n diag(W_f x) U_f times a vector no longer than the radius.
    lengths = (chosen.center.square() @ candidate.weight.square().T).sqrt()
    reach = ball.radius[:, None] * factor.norm * lengths
    for_n = ball.own_input(1) + Interval.around(through.center, reach)
    return [(for_n.bell(tanh_slope), candidate, chosen, factor)]


def at_center_on(parts: list[Summand], vectors: Tensor) -> Tensor:
    """``J(centre) d`` for (rows, vectors, hidden) vectors d.

    Args:
        parts: of the derivative.
        vectors: that are multiplied.
    """
    total = torch.zeros_like(vectors)
    for summand in parts:
        moved = vectors
        for factor in reversed(summand):
            moved = moved @ factor.weight.T if isinstance(factor, Matrix) else moved * factor.center[:, None]
        total = total + moved
    return total


def deviation(parts: list[Summand]) -> Tensor:
    """(rows,) a bound on ``||J(h) - J(centre)||_2`` over the ball.

    ``diag(f) M diag(g) N - diag(f_0) M diag(g_0) N`` telescopes into one summand for each gate that moved.
    """
    total = torch.zeros(())
    for summand in parts:
        for place, factor in enumerate(summand):
            if isinstance(factor, Interval):
                total = total + _one_moved(summand, place, factor)
    return total


def _one_moved(summand: Summand, place: int, moved: Interval) -> Tensor:
    bound = moved.spread.amax(1)
    rest = summand[place + 1 :]
    if rest and isinstance(rest[0], Matrix):
        # diag(f) M: by its rows, where few units move, or by the norm of M.
        by_rows = torch.linalg.vector_norm(moved.spread * rest[0].row_norms, dim=1)
        bound, rest = torch.minimum(by_rows, bound * rest[0].norm), rest[1:]
    for factor in summand[:place]:
        bound = bound * (factor.norm if isinstance(factor, Matrix) else factor.center.abs().amax(1))
    for factor in rest:
        bound = bound * (factor.norm if isinstance(factor, Matrix) else factor.largest.amax(1))
    return bound
