"""A certified bracket: numbers between which the excess of the expected loss must lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.heads import Bernoulli, Categorical, Readout
from statewise.heads.likelihoods import by_chunks, chunk_of
from statewise.objectives.exact import MOST_EXPONENTS, in_double, log_mgf
from statewise.objectives.expectation import expect
from statewise.objectives.noises import NOT_FED_BACK, checked, reach, variance
from statewise.objectives.penalty import second_order
from statewise.transforms import Noise
from statewise.transforms.base import choice
from statewise.transforms.laws import law

METHODS = ("curvature", "moments")
SEPARATE = "the outputs are read by a softmax or by independent sigmoids, so |A'''| <= range(u) A'' along every u"
Rows = Float[Tensor, "*rows"]


@dataclass(frozen=True, eq=False)
class Bracket:
    """Lower and upper bounds on ``E[A(V^T z + b)] - A(V^T h + b)`` for each row, with all that led to them.

    Attributes:
        lower: no excess is below it.
        upper: no excess is above it: the least of the three upper bounds.
        second_order: the penalty of each row, which lies near them but is no bound.
        by_curvature: ``E[q psi(r)] / 2``; infinite where tails are too heavy, or where it was not asked for.
        by_largest: ``E[max_k u_k - p . u]``, which is finite under every law; for "moments" a bound on it.
        by_mgf: ``log sum_k p_k E exp(u_k - p . u)``, by Jensen's inequality; infinite outside a law's domain, and not
            looked for (infinite too) where more than a million generating functions would be needed.
        error: how far the last two grids of a quadrature of curvatures were apart. The bounds allow for it; but it
            estimates what a grid has missed, and does not prove it. It is 0 where nothing is estimated: over all masks
            of Bernoulli noise, and by moments.
        method: how the expectations were found.
        assumptions: what must hold.
    """

    lower: Rows
    upper: Rows
    second_order: Rows
    by_curvature: Rows
    by_largest: Rows
    by_mgf: Rows
    error: Rows
    method: str
    noise: Noise
    assumptions: tuple[str, ...] = (NOT_FED_BACK, "the noise is independent over units and has mean zero", SEPARATE)

    @property
    def sentence(self) -> str:
        """What is certain, to be quoted."""
        rows = self.lower.numel()
        return (
            f"under {self.noise!r} the expected loss of {rows} row(s) exceeds the loss without noise by at least "
            f"{float(self.lower.sum()):.6g} and at most {float(self.upper.sum()):.6g} (by {self.method})"
        )


def bracket(
    readout: Readout, states: Float[Tensor, "*rows hidden"], noise: Noise, *, method: str | None = None
) -> Bracket:
    """Bounds on what noise on the last states adds to the expected loss, for each row.

    With ``u = V^T (z - h)``, ``q = u . Hess A u`` and ``r = max u - min u``, along ``u`` the third derivative of ``A``
    is at most ``r`` times the second, hence ``E[q psi(-r)] / 2 <= excess <= E[q psi(r)] / 2`` with
    ``psi(r) = 2 (e^r - 1 - r) / r^2``. For independent sigmoids the same holds output by output with ``r_k = |u_k|``.
    The upper side may be infinite; ``E[max_k u_k - p . u]`` and a bound by generating functions stand in.

    Args:
        readout: the output matrix, its bias, and a Categorical or Bernoulli likelihood.
        states: the clean states ``h``, shape (..., hidden).
        noise: the noise on them.
        method: "curvature" takes the expectations above over every mask or by quadrature, for a few units; "moments"
            bounds them by moments of the noise, for any number of units, and is looser. None takes the first that
            can be had.

    >>> readout = Readout(Categorical(), torch.tensor([[1.0, -1.0]]))
    >>> found = bracket(readout, torch.tensor([[0.5]]), Noise("bernoulli", 0.5))
    >>> print(f"{found.lower.item():.3f} {found.upper.item():.3f}")
    0.072 0.097
    """
    noise = checked(noise, where="bracket")
    if method is not None:
        choice("bracket.method", method, METHODS)
    if not isinstance(readout.likelihood, Categorical | Bernoulli):
        raise ArgumentError(
            where="bracket readout",
            got=repr(readout.likelihood),
            wanted="a Categorical or a Bernoulli likelihood",
            remedy="For Gaussian and Poisson likelihoods exact_excess has a closed form.",
        )
    with torch.no_grad():
        readout, rows = in_double(readout, states)
        if method is None:
            method = "curvature" if _few(noise, rows.shape[1]) else "moments"
        bounds = _by_curvature(readout, rows, noise) if method == "curvature" else _by_moments(readout, rows, noise)
        by_mgf = _by_mgf(readout, rows, noise)
        upper = torch.minimum(torch.minimum(bounds.curvature, bounds.largest), by_mgf)
        penalty = second_order(readout, rows, noise, reduction="none")
    shape = states.shape[:-1]
    return Bracket(
        lower=bounds.lower.reshape(shape),
        upper=upper.reshape(shape),
        second_order=penalty.reshape(shape),
        by_curvature=bounds.curvature.reshape(shape),
        by_largest=bounds.largest.reshape(shape),
        by_mgf=by_mgf.reshape(shape),
        error=bounds.error.reshape(shape),
        method=bounds.method,
        noise=noise,
    )


class _Bounds(NamedTuple):
    lower: Tensor
    curvature: Tensor
    largest: Tensor
    error: Tensor
    method: str


def psi(r: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``2 (e^r - 1 - r) / r^2``, and 1 at 0.

    >>> psi(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.4366])
    """
    small = r.abs() < 1e-2  # where the difference loses its digits, the series has them
    safe = torch.where(small, torch.ones_like(r), r)
    series = 1 + r / 3 * (1 + r / 4 * (1 + r / 5 * (1 + r / 6 * (1 + r / 7))))
    return torch.where(small, series, 2 * (safe.expm1() - safe) / safe.square())


def _few(noise: Noise, units: int) -> bool:
    return units <= (12 if noise.law == "bernoulli" else 4)


def _by_curvature(readout: Readout, rows: Tensor, noise: Noise) -> _Bounds:
    found = [_of_row(readout, row, noise) for row in rows]
    lower, curvature, largest, error = (torch.stack(part) for part in list(zip(*found, strict=True))[:4])
    return _Bounds(lower, curvature, largest, error, found[0].method)


def _of_row(readout: Readout, row: Tensor, noise: Noise) -> _Bounds:
    """The bounds of one row, by expectations over its units."""
    scores, moving = readout.scores(row), reach(row, noise.mode).unsqueeze(1) * readout.weight
    categorical = isinstance(readout.likelihood, Categorical)
    p = readout.likelihood.gradient(scores)

    def bounds(eps: Tensor) -> Tensor:
        u = eps @ moving
        if categorical:
            largest, mean = u.amax(1), u @ p
            r, q = largest - u.amin(1), (u - mean.unsqueeze(1)).square() @ p
            return torch.stack((q * psi(-r) / 2, q * psi(r) / 2, largest - mean))
        q, r = u.square() * p * (1 - p), u.abs()
        return torch.stack(((q * psi(-r)).sum(1) / 2, (q * psi(r)).sum(1) / 2, (u.clamp(min=0) - u * p).sum(1)))

    # A range has kinks, on which grids converge slowly; the bounds allow for the distance of the last two grids, which
    # estimates what is left.
    mean = expect(noise, len(row), bounds, like=row, width=4 * readout.outputs)
    lower, curvature, largest = mean.values
    error = mean.error
    if not _tails_allow(noise, moving, categorical):
        curvature = curvature.new_tensor(math.inf)
    curvature = (curvature + error[1]).nan_to_num(nan=math.inf, posinf=math.inf)
    widest = error[0] if curvature.isinf() else error[:2].amax()
    return _Bounds((lower - error[0]).clamp(min=0), curvature, largest + error[2], widest, mean.method)


def _tails_allow(noise: Noise, moving: Tensor, categorical: bool) -> bool:
    """Whether ``E e^r`` is finite: of each unit the range of what it moves must lie in the law's domain."""
    ranges = (moving.amax(1) - moving.amin(1)) if categorical else moving.abs().amax(1)
    return bool(log_mgf(noise, torch.stack((ranges, -ranges))).isfinite().all())


def _by_mgf(readout: Readout, rows: Tensor, noise: Noise) -> Tensor:
    """``log sum_k p_k E exp(u_k - p . u)``: the logarithm is concave, and ``E u = 0``."""
    if noise.law != "gaussian" and rows.numel() * readout.outputs > MOST_EXPONENTS:
        return torch.full_like(rows[:, 0], math.inf)
    found = []
    for row in rows:
        scores, moving = readout.scores(row), reach(row, noise.mode).unsqueeze(1) * readout.weight
        p = readout.likelihood.gradient(scores)
        if isinstance(readout.likelihood, Categorical):
            logs = log_mgf(noise, moving - (moving @ p).unsqueeze(1)).sum(0)
            found.append((p.log() + logs).logsumexp(0))
        else:
            on, off = log_mgf(noise, moving * (1 - p)).sum(0), log_mgf(noise, -moving * p).sum(0)
            found.append(torch.logaddexp(p.log() + on, (1 - p).log() + off).sum())
    return torch.stack(found).clamp(min=0)


def _by_moments(readout: Readout, rows: Tensor, noise: Noise) -> _Bounds:
    """Bounds from moments alone, for any number of units.

    ``psi(-r) >= 1 / (1 + r / 2)`` and Cauchy-Schwarz, twice, give ``E[q psi(-r)] >= E[q] / (1 + c)`` with
    ``c = sqrt(E[q^2] E[r^2]) / (2 E[q])``.
    """
    v = variance(noise)
    kurtosis = law(noise.law).excess_kurtosis(noise.gamma, noise.alpha) if v else 0.0
    categorical = isinstance(readout.likelihood, Categorical)
    one = _categorical_moments if categorical else _separate_moments
    found = by_chunks(lambda part: one(readout, part, noise.mode, v, kurtosis), rows, _chunk(readout))
    lower, largest = found.unbind(1)
    nothing = torch.full_like(lower, math.inf)
    return _Bounds(lower, nothing, largest, torch.zeros_like(lower), "moments of the noise")


def _chunk(readout: Readout) -> int:
    return chunk_of(readout.hidden_size * max(readout.outputs, readout.hidden_size))


def _categorical_moments(readout: Readout, rows: Tensor, mode: str, v: float, kurtosis: float) -> Tensor:
    size = reach(rows, mode)
    between = readout.likelihood.curvature_matrix(readout.weight, readout.scores(rows))
    between = between * size.unsqueeze(-1) * size.unsqueeze(-2)
    own = between.diagonal(dim1=-2, dim2=-1)
    q = v * own.sum(-1)
    # E q^2 of a quadratic form in independent noise of mean zero.
    square = v * v * (own.sum(-1).square() + 2 * between.square().sum((-1, -2)) + kurtosis * own.square().sum(-1))
    spread = readout.weight.amax(1) - readout.weight.amin(1)
    # r <= sum_i |eps_i| |h_i| spread_i, and r^2 <= 2 |u - c|^2 for every c: the smaller of both.
    centred = (readout.weight - readout.weight.mean(1, keepdim=True)).square().sum(1)
    range_square = torch.minimum(v * (size.abs() @ spread).square(), 2 * v * (size.square() @ centred))
    return torch.stack((_lower(q, square, range_square), range_square.sqrt()), 1)


def _separate_moments(readout: Readout, rows: Tensor, mode: str, v: float, kurtosis: float) -> Tensor:
    p = readout.likelihood.gradient(readout.scores(rows))
    moving = reach(rows, mode).unsqueeze(2) * readout.weight
    second, fourth = v * moving.square().sum(1), v * v * moving.pow(4).sum(1)
    u_fourth = 3 * second.square() + kurtosis * fourth
    fisher = p * (1 - p)
    lower = _lower(fisher * second, fisher.square() * u_fourth, second).sum(1)
    return torch.stack((lower, second.sqrt().sum(1)), 1)


def _lower(q: Tensor, q_square: Tensor, r_square: Tensor) -> Tensor:
    c = (q_square * r_square).clamp(min=0).sqrt() / (2 * q)
    return torch.where(q > 0, q / (1 + c) / 2, torch.zeros_like(q))
