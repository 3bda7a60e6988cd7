"""Exponential-family likelihoods: what the noise on a state costs depends on nothing else of a head.

``log p(x | s) = log nu(x) + s . T(x) - A(s)`` with scores ``s = V^T h + b``. ``A`` is convex, so noise of mean zero on
the state can only raise the expected loss, and the Hessian of ``A`` says by how much (Dieng et al. 2018, section 4).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from statewise.errors import ArgumentError, DtypeError, ShapeError

__all__ = ["Bernoulli", "Categorical", "Gaussian", "Likelihood", "Poisson"]

LARGEST_CHUNK = 2**24  # scores that are held at a time

Scores = Float[Tensor, "*rows outputs"]
Values = Float[Tensor, "*rows"]
Weight = Float[Tensor, "hidden outputs"]


@dataclass(frozen=True)
class Likelihood(ABC):
    """One exponential family: its log-normaliser ``A``, the derivatives of ``A``, and its log-probability.

    Dieng et al. 2018, eq. 4 and Table 1. Scores have the shape (..., outputs); ``weight`` is ``V``, of shape (hidden,
    outputs): the transpose of what ``torch.nn.Linear`` holds. Values are immutable and compare by what they are.

    >>> Categorical().log_normalizer(torch.zeros(4)).exp()
    tensor(4.)
    """

    @abstractmethod
    def log_normalizer(self, scores: Scores) -> Values:
        """``A(s)``, for each row."""

    @abstractmethod
    def gradient(self, scores: Scores) -> Scores:
        """The gradient of ``A``."""

    def mean(self, scores: Scores) -> Scores:
        """``E x`` under the model: the gradient of ``A``, but for the Gaussian."""
        return self.gradient(scores)

    @abstractmethod
    def hessian(self, scores: Scores) -> Float[Tensor, "*rows outputs outputs"]:
        """The Hessian of ``A``, which is the Fisher information of ``s``; dense, so for few outputs."""

    @abstractmethod
    def quadratic(self, direction: Scores, scores: Scores) -> Values:
        """``u . Hess A(s) u`` for a direction ``u`` of each row."""

    @abstractmethod
    def log_prob(self, scores: Scores, observed: Shaped[Tensor, "..."]) -> Values:
        """``log p(x | s)``, summed over the outputs; ``x`` has the shape of the scores."""

    def curvature(self, weight: Weight, scores: Scores, *, chunk: int | None = None) -> Float[Tensor, "*rows hidden"]:
        """``q_i = V_i . Hess A(s) V_i`` for every unit, in at least float32; never a matrix of outputs by outputs.

        Args:
            weight: the output matrix ``V``.
            scores: ``s`` for each row.
            chunk: rows at a time; None chooses by memory. A gradient recomputes chunk by chunk.
        """
        self._check(weight, scores)
        weight, rows = widened(weight), widened(scores).flatten(0, -2)
        found = by_chunks(lambda part: self._curvature(weight, part), rows, chunk or chunk_of(rows.shape[1]))
        return found.unflatten(0, scores.shape[:-1]) if scores.ndim != 2 else found

    def curvature_matrix(self, weight: Weight, scores: Scores) -> Float[Tensor, "*rows hidden hidden"]:
        """``V Hess A(s) V^T`` for each row: what noise that is correlated between units needs."""
        self._check(weight, scores)
        return self._curvature_matrix(widened(weight), widened(scores))

    @abstractmethod
    def _curvature(self, weight: Tensor, scores: Tensor) -> Tensor: ...

    @abstractmethod
    def _curvature_matrix(self, weight: Tensor, scores: Tensor) -> Tensor: ...

    def _check(self, weight: Tensor, scores: Tensor) -> None:
        if weight.shape[1] != scores.shape[-1]:
            raise ShapeError(
                where=f"{type(self).__name__} weight",
                got=tuple(weight.shape),
                wanted=f"(hidden, {scores.shape[-1]}), for scores of {scores.shape[-1]} outputs",
                remedy="The weight of a torch.nn.Linear has to be transposed.",
            )

    def _check_observed(self, scores: Tensor, observed: Tensor) -> None:
        if observed.shape != scores.shape:
            raise ShapeError(
                where=f"{type(self).__name__} observed",
                got=tuple(observed.shape),
                wanted=f"the shape of the scores, {tuple(scores.shape)}",
            )


class _Separate(Likelihood):
    """Outputs that are independent given the scores: ``A(s) = sum_k a(s_k)``, so the Hessian is diagonal."""

    @abstractmethod
    def _second(self, scores: Tensor) -> Tensor:
        """``a''`` of each score."""

    def hessian(self, scores: Scores) -> Float[Tensor, "*rows outputs outputs"]:
        return torch.diag_embed(self._second(scores))

    def quadratic(self, direction: Scores, scores: Scores) -> Values:
        return (direction.square() * self._second(scores)).sum(-1)

    def _curvature(self, weight: Tensor, scores: Tensor) -> Tensor:
        return self._second(scores) @ weight.square().T

    def _curvature_matrix(self, weight: Tensor, scores: Tensor) -> Tensor:
        return (weight * self._second(scores).unsqueeze(-2)) @ weight.T


@dataclass(frozen=True)
class Bernoulli(_Separate):
    """Independent coins: ``A(s) = sum_k log(1 + e^{s_k})``, mean ``sigmoid(s)`` (Dieng et al. 2018, Table 1).

    >>> Bernoulli().curvature(torch.tensor([[2.0]]), torch.zeros(1, 1))
    tensor([[1.]])
    """

    def log_normalizer(self, scores: Scores) -> Values:
        return torch.nn.functional.softplus(scores).sum(-1)

    def gradient(self, scores: Scores) -> Scores:
        return scores.sigmoid()

    def log_prob(self, scores: Scores, observed: Shaped[Tensor, "..."]) -> Values:
        self._check_observed(scores, observed)
        return (scores * observed - torch.nn.functional.softplus(scores)).sum(-1)

    def _second(self, scores: Tensor) -> Tensor:
        return scores.sigmoid() * (-scores).sigmoid()


@dataclass(frozen=True)
class Gaussian(_Separate):
    """Normal outputs of a known variance, whose mean is the score: ``A(s) = |s|^2 / (2 variance)``.

    The dispersion form ``log p = (s . x - |s|^2 / 2) / variance + log nu(x)``. (Eq. 4 of Dieng et al. 2018 with the
    ``A`` of their Table 1 would be a normal law of variance ``1 / variance``.) The Hessian is ``I / variance``.

    Args:
        variance: of the observations, above 0.

    >>> Gaussian(variance=0.5).hessian(torch.zeros(1))
    tensor([[2.]])
    """

    variance: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.variance, bool) or not isinstance(self.variance, int | float):
            raise DtypeError(where="Gaussian.variance", got=type(self.variance).__name__, wanted="a real number")
        if not 0 < self.variance < math.inf:
            raise ArgumentError(where="Gaussian.variance", got=self.variance, wanted="a finite number above 0")

    def log_normalizer(self, scores: Scores) -> Values:
        return scores.square().sum(-1) / (2 * self.variance)

    def gradient(self, scores: Scores) -> Scores:
        return scores / self.variance

    def mean(self, scores: Scores) -> Scores:
        """The scores themselves."""
        return scores

    def log_prob(self, scores: Scores, observed: Shaped[Tensor, "..."]) -> Values:
        self._check_observed(scores, observed)
        constant = scores.shape[-1] * math.log(2 * math.pi * self.variance) / 2
        return -(observed - scores).square().sum(-1) / (2 * self.variance) - constant

    def _second(self, scores: Tensor) -> Tensor:
        return torch.full_like(scores, 1 / self.variance)


@dataclass(frozen=True)
class Poisson(_Separate):
    """Independent counts of rate ``e^s``: ``A(s) = sum_k e^{s_k}`` (Dieng et al. 2018, Table 1).

    ``A`` grows exponentially, so under noise of heavy tails the expected loss may be infinite.

    >>> Poisson().mean(torch.zeros(2))
    tensor([1., 1.])
    """

    def log_normalizer(self, scores: Scores) -> Values:
        return scores.exp().sum(-1)

    def gradient(self, scores: Scores) -> Scores:
        return scores.exp()

    def log_prob(self, scores: Scores, observed: Shaped[Tensor, "..."]) -> Values:
        self._check_observed(scores, observed)
        return (scores * observed - scores.exp() - torch.lgamma(observed.to(scores.dtype) + 1)).sum(-1)

    def _second(self, scores: Tensor) -> Tensor:
        return scores.exp()


@dataclass(frozen=True)
class Categorical(Likelihood):
    """One of many classes: ``A(s) = logsumexp(s)``, mean ``p = softmax(s)``, Hessian ``diag(p) - p p^T``.

    Dieng et al. 2018, Table 1 (where ``A`` is misprinted as the logsumexp of ``e^s``). The curvature of a unit is the
    variance of its output weights over the predicted classes. ``log_prob`` takes indices of classes, of the shape of
    the rows, or probabilities of the shape of the scores.

    >>> Categorical().curvature(torch.tensor([[1.0, -1.0], [3.0, 3.0]]), torch.zeros(1, 2))
    tensor([[1., 0.]])
    """

    def log_normalizer(self, scores: Scores) -> Values:
        return scores.logsumexp(-1)

    def gradient(self, scores: Scores) -> Scores:
        return scores.softmax(-1)

    def hessian(self, scores: Scores) -> Float[Tensor, "*rows outputs outputs"]:
        p = scores.softmax(-1)
        return torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)

    def quadratic(self, direction: Scores, scores: Scores) -> Values:
        p = scores.softmax(-1)
        return (p * (direction - (p * direction).sum(-1, keepdim=True)).square()).sum(-1)

    def log_prob(self, scores: Scores, observed: Shaped[Tensor, "..."]) -> Values:
        if observed.is_floating_point():
            self._check_observed(scores, observed)
            return (scores * observed).sum(-1) - scores.logsumexp(-1) * observed.sum(-1)
        if observed.dtype not in (torch.int64, torch.int32) or observed.shape != scores.shape[:-1]:
            raise ShapeError(
                where="Categorical observed",
                got=f"{observed.dtype} of shape {tuple(observed.shape)}",
                wanted=f"indices of shape {tuple(scores.shape[:-1])}, or probabilities of {tuple(scores.shape)}",
            )
        return scores.gather(-1, observed.long().unsqueeze(-1)).squeeze(-1) - scores.logsumexp(-1)

    def _curvature(self, weight: Tensor, scores: Tensor) -> Tensor:
        p = scores.softmax(-1)
        # A variance by subtraction loses its digits where a row lies far from zero: it is centred first, which changes
        # nothing else. What rounding leaves below zero is clamped.
        weight = weight - (weight @ p.detach().mean(0)).unsqueeze(1)
        return (p @ weight.square().T - (p @ weight.T).square()).clamp(min=0)

    def _curvature_matrix(self, weight: Tensor, scores: Tensor) -> Tensor:
        p = scores.softmax(-1).unsqueeze(-2)
        centred = weight - (p * weight).sum(-1, keepdim=True)
        return (p * centred) @ centred.transpose(-1, -2)


def widened(tensor: Tensor) -> Tensor:
    """The tensor in float32 at least, where sums of many terms keep their digits.

    >>> widened(torch.ones(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def chunk_of(width: int) -> int:
    """How many rows of this width are held at a time.

    >>> chunk_of(2**20)
    16
    """
    return max(1, LARGEST_CHUNK // width)


def by_chunks(work: Callable[[Tensor], Tensor], rows: Tensor, chunk: int) -> Tensor:
    """Work on some rows after the other; a gradient recomputes each chunk instead of keeping them all.

    >>> by_chunks(lambda part: part * 2, torch.arange(3.0), 2)
    tensor([0., 2., 4.])
    """
    if len(rows) <= chunk:
        return work(rows)
    parts = rows.split(chunk)
    if not torch.is_grad_enabled():
        return torch.cat([work(part) for part in parts])
    return torch.cat([checkpoint(work, part, use_reentrant=False, preserve_rng_state=False) for part in parts])
