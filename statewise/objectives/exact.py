"""The exact excess: what unbiased noise adds to the expected loss, without an approximation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, StatewiseError
from statewise.heads import Gaussian, Poisson, Readout
from statewise.objectives.expectation import expect
from statewise.objectives.noises import NOT_FED_BACK, checked, reach
from statewise.objectives.penalty import second_order
from statewise.transforms import Noise
from statewise.transforms.laws import law

MOST_EXPONENTS = 2**20  # of moment generating functions, each found by itself


class InfiniteExpectationError(StatewiseError, ArithmeticError):
    """A number was asked of an expectation that is infinite."""


@dataclass(frozen=True)
class Divergence:
    """Where an expectation is infinite: the row, the unit and the output, and the exponent that is too large."""

    row: int
    unit: int
    output: int
    exponent: float


@dataclass(frozen=True, eq=False)
class Excess:
    """``E[A(V^T z + b)] - A(V^T h + b)`` for each row, and how it is known.

    Attributes:
        values: the excess of each row; infinite where the expectation is.
        method: how it was found.
        error: for each row a bound on rounding, or how far the last two grids of a quadrature were apart.
        divergence: the first place where the expectation is infinite, or None.
        assumptions: what must hold for the values to be the excess of a training loss.
    """

    values: Float[Tensor, "*rows"]
    method: str
    error: Float[Tensor, "*rows"]
    noise: Noise
    divergence: Divergence | None = None
    assumptions: tuple[str, ...] = (NOT_FED_BACK, "the noise is independent over units and has mean zero")

    @property
    def finite(self) -> bool:
        """Whether every row has a finite expectation."""
        return self.divergence is None

    @property
    def total(self) -> float:
        """The sum over the rows; an error where it is infinite."""
        if self.divergence is not None:
            raise InfiniteExpectationError(
                where="Excess.total",
                got=self.sentence,
                wanted="a finite expectation",
                remedy="Use weaker noise or a law with lighter tails, such as 'gaussian', 'bernoulli' or 'beta'.",
            )
        return float(self.values.sum())

    @property
    def sentence(self) -> str:
        """What was found, to be quoted."""
        if self.divergence is not None:
            at = self.divergence
            return (
                f"the expected loss is infinite under {self.noise!r}: at row {at.row} unit {at.unit} moves output "
                f"{at.output} by {at.exponent:.4g} eps, and E exp({at.exponent:.4g} eps) is infinite"
            )
        return (
            f"{self.noise!r} adds {self.total:.8g} to the expected loss of {self.values.numel()} row(s), "
            f"by {self.method}, to within {float(self.error.sum()):.1g}"
        )


def exact_excess(
    readout: Readout, states: Float[Tensor, "*rows hidden"], noise: Noise, *, tolerance: float = 1e-6
) -> Excess:
    """The exact excess of the expected loss under noise on the last states, for each row.

    By the theorem of Dieng et al. 2018, section 4, it does not depend on what is observed, and is never negative.
    A Gaussian likelihood has it in closed form, which is the second-order penalty; a Poisson likelihood too, from
    moment generating functions. Else Bernoulli noise is enumerated, and other laws are integrated by Gauss rules on a
    tensor grid, which is for a few units only. All is computed in float64, without gradients.

    Args:
        readout: the output matrix, its bias and the likelihood.
        states: the clean states ``h``, shape (..., hidden).
        noise: the noise on them.
        tolerance: how far the last two grids may lie apart, relative to the value; if they do, it is an error.

    >>> from statewise.heads import Categorical
    >>> readout = Readout(Categorical(), torch.tensor([[1.0, -1.0]]))
    >>> exact_excess(readout, torch.tensor([[0.5]]), Noise("bernoulli", 0.5)).total
    0.09677...
    """
    noise = checked(noise, where="exact_excess")
    with torch.no_grad():
        readout, rows = in_double(readout, states)
        if isinstance(readout.likelihood, Gaussian):
            values = second_order(readout, rows, noise, reduction="none")
            found = Excess(values, "a closed form", values * 1e-14, noise)
        elif isinstance(readout.likelihood, Poisson):
            found = _poisson(readout, rows, noise)
        else:
            found = _expected(readout, rows, noise, tolerance)
    shape = states.shape[:-1]
    return Excess(
        found.values.reshape(shape), found.method, found.error.reshape(shape), noise, divergence=found.divergence
    )


def in_double(readout: Readout, states: Tensor) -> tuple[Readout, Tensor]:
    """The readout and the states as rows, in float64 and free of gradients."""
    bias = None if readout.bias is None else readout.bias.detach().double()
    double = Readout(readout.likelihood, readout.weight.detach().double(), bias)
    rows = states.detach().double().reshape(-1, states.shape[-1])
    double.scores(rows[:0])  # which checks the shapes
    return double, rows


def divergences(readout: Readout, scores: Tensor, moves: Tensor) -> Tensor:
    """``A(s + u) - A(s) - grad A(s) . u``; since ``E u = 0`` it has the mean of ``A(s + u) - A(s)``, and no sign."""
    likelihood = readout.likelihood
    linear = (likelihood.gradient(scores) * moves).sum(-1)
    return likelihood.log_normalizer(scores + moves) - likelihood.log_normalizer(scores) - linear


def _divergences_at(readout: Readout, scores: Tensor, moving: Tensor, eps: Tensor) -> Tensor:
    return divergences(readout, scores.expand(len(eps), -1), eps @ moving)


def _expected(readout: Readout, rows: Tensor, noise: Noise, tolerance: float) -> Excess:
    values, errors, method = [], [], ""
    for row in rows:
        scores, moving = readout.scores(row), reach(row, noise.mode).unsqueeze(1) * readout.weight
        of_points = partial(_divergences_at, readout, scores, moving)
        mean = expect(noise, len(row), of_points, like=rows, width=readout.outputs)
        values.append(mean.values)
        errors.append(mean.error)
        method = mean.method
    found = Excess(torch.stack(values), method, torch.stack(errors), noise)
    if bool((found.error > tolerance * found.values.abs().clamp(min=1e-12)).any()):
        raise ArgumentError(
            where="exact_excess",
            got=f"grids that differ by {float((found.error / found.values.abs()).max()):.1g} of the value",
            wanted=f"at most {tolerance:.1g}",
            remedy="Use weaker noise or fewer units, allow a larger tolerance, or use bracket or estimated_excess.",
        )
    return found


def _poisson(readout: Readout, rows: Tensor, noise: Noise) -> Excess:
    """``sum_k e^{s_k} (prod_i M(h_i V_ik) - 1)`` (section 4 of the paper with the generating functions of Table 2)."""
    exponents = reach(rows, noise.mode).unsqueeze(2) * readout.weight
    if exponents.numel() > MOST_EXPONENTS:
        raise ArgumentError(
            where="exact_excess states",
            got=f"{exponents.numel()} rows times units times outputs",
            wanted=f"at most {MOST_EXPONENTS}",
            remedy="Give fewer rows at a time.",
        )
    logs = log_mgf(noise, exponents)
    infinite = logs.isinf().nonzero()
    divergence = None
    if len(infinite):
        row, unit, output = infinite[0].tolist()
        divergence = Divergence(row, unit, output, float(exponents[row, unit, output]))
    values = (readout.scores(rows).exp() * logs.sum(1).expm1()).sum(1)
    return Excess(values, "a closed form", (values * 1e-13).nan_to_num(posinf=0.0), noise, divergence=divergence)


def log_mgf(noise: Noise, exponents: Tensor) -> Tensor:
    """``log E exp(a eps)`` for each exponent; infinite outside the law's domain."""
    of = law(noise.law)
    if noise.law == "gaussian":
        return exponents.square() * (noise.gamma**2 / 2)
    found = [
        of.log_mgf(a, noise.gamma, noise.alpha) if math.isfinite(a) else math.inf for a in exponents.flatten().tolist()
    ]
    return torch.tensor(found, dtype=exponents.dtype, device=exponents.device).view_as(exponents)
