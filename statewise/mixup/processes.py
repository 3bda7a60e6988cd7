"""How strongly two sequences are mixed at each step: chains of coefficients from 0 to 1."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from jaxtyping import Float64
from torch import Tensor

from statewise.errors import ArgumentError, DeviceError, DtypeError, ShapeError
from statewise.mixup.beta import SMALL, sample_beta
from statewise.transforms.base import choice, probability

STILL = 1e-7  # a chain that moves less than this per step is constant: its concentration grows like 1 / rho^2
NEARLY = 1e-6  # how far below m (1 - m) a variance is set that no Beta distribution has

Chain = Float64[Tensor, " batch"]


@dataclass(frozen=True)
class CoefficientProcess(ABC):
    """A chain ``lambda_1, lambda_2, ...`` of mixing coefficients, one chain for every pair of sequences.

    Each process here has ``E[lambda_{t+1} | lambda_t] = mean + persistence (lambda_t - mean)``, so that its covariances
    follow from its variances. Steps are counted from 1, as in the paper. One of your own gives :meth:`first`,
    :meth:`following`, :meth:`variance` and :attr:`persistence`.
    """

    @property
    def mean(self) -> float:
        """``E[lambda_t]``, the same for all steps."""
        return 0.5

    @property
    @abstractmethod
    def persistence(self) -> float:
        """How much of a deviation from the mean is left after a step, from 0 to 1."""

    @abstractmethod
    def variance(self, step: int) -> float:
        """``Var(lambda_t)`` at a step, counted from 1."""

    @abstractmethod
    def first(self, batch: int, generator: torch.Generator | None) -> Chain:
        """Draw ``lambda_1`` for so many pairs, in float64 on the CPU."""

    @abstractmethod
    def following(self, previous: Chain, generator: torch.Generator | None) -> Chain:
        """Draw ``lambda_t`` given ``lambda_{t-1}``."""

    def sample(
        self, batch: int, steps: int, *, generator: torch.Generator | None = None, previous: Chain | None = None
    ) -> Float64[Tensor, "steps batch"]:
        """Draw the coefficients of a batch of pairs.

        What a step draws does not depend on how many follow, so a chain may be drawn in segments.

        Args:
            batch: how many pairs.
            steps: how many steps.
            generator: a generator of the CPU; None means torch's global one.
            previous: the last coefficients of the segment before; None begins a chain.

        Returns:
            In float64 on the CPU, without gradient.
        """
        for name, value in (("batch", batch), ("steps", steps)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ArgumentError(where=f"{self._name}.{name}", got=value, wanted="a whole number of at least 1")
        check_cpu(generator, where=self._name)
        if previous is not None and tuple(previous.shape) != (batch,):
            raise ShapeError(where=f"{self._name}.previous", got=tuple(previous.shape), wanted=f"({batch},)")
        return self._chain(batch, steps, generator, None if previous is None else previous.double().cpu())

    def _chain(
        self, batch: int, steps: int, generator: torch.Generator | None, previous: Tensor | None
    ) -> Float64[Tensor, "steps batch"]:
        rows = [self.first(batch, generator) if previous is None else self.following(previous, generator)]
        for _ in range(steps - 1):
            rows.append(self.following(rows[-1], generator))
        return torch.stack(rows)

    def covariance(self, step: int, lag: int) -> float:
        """``Cov(lambda_t, lambda_{t+lag}) = persistence^lag Var(lambda_t)``."""
        return float(self.persistence**lag) * self.variance(step)

    def correlation(self, step: int, lag: int) -> float:
        """``Corr(lambda_t, lambda_{t+lag})``; NaN where the coefficients do not vary.

        >>> round(MarkovBeta(0.5, 0.5).correlation(1, 1), 4)
        0.7071
        """
        spread = math.sqrt(self.variance(step) * self.variance(step + lag))
        return self.covariance(step, lag) / spread if spread > 0 else math.nan

    def strength(self, steps: int) -> float:
        """``E[lambda (1 - lambda)]`` over the first steps: 0 mixes nothing, 1/4 mixes evenly.

        >>> [round(MarkovBeta(0.5, rho).strength(15), 4) for rho in (0.0, 0.25, 1.0)]
        [0.125, 0.2158, 0.125]
        """
        spread = sum(self.variance(step) for step in range(1, steps + 1)) / steps
        return self.mean * (1 - self.mean) - spread

    @property
    def _name(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Constant(CoefficientProcess):
    """The same coefficient for all pairs and steps: 1 is the first member alone, 0 the second.

    Args:
        value: from 0 to 1.

    >>> Constant(0.3).sample(2, 1)
    tensor([[0.3000, 0.3000]], dtype=torch.float64)
    """

    value: float

    def __post_init__(self) -> None:
        probability("Constant.value", self.value, one_allowed=True)

    @property
    def mean(self) -> float:
        return self.value

    @property
    def persistence(self) -> float:
        return 1.0

    def variance(self, step: int) -> float:
        return 0.0

    def first(self, batch: int, generator: torch.Generator | None) -> Chain:
        return torch.full((batch,), self.value, dtype=torch.float64)

    def following(self, previous: Chain, generator: torch.Generator | None) -> Chain:
        return previous


@dataclass(frozen=True)
class BetaChain(CoefficientProcess):
    """A chain that starts in ``Beta(alpha, alpha)`` and draws each coefficient from a Beta distribution given the last.

    A rule of your own gives :meth:`conditional`, :meth:`variance` and :attr:`persistence`.

    Args:
        alpha: the shape of the start, from 0 (a coin) to infinity (always 1/2).
        on_infeasible: what to do if :meth:`conditional` asks for a variance that no Beta distribution has: "raise", or
            "project", which takes the largest one and keeps the mean.
    """

    alpha: float = 1.0
    on_infeasible: str = field(default="raise", kw_only=True)

    def __post_init__(self) -> None:
        check_alpha(f"{self._name}.alpha", self.alpha)
        choice(f"{self._name}.on_infeasible", self.on_infeasible, ("raise", "project"))

    @abstractmethod
    def conditional(self, previous: Float64[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
        """Mean and variance of a coefficient given the one before."""

    def shapes(self, previous: Float64[Tensor, "*shape"] | float) -> tuple[Tensor, Tensor]:
        """The two shapes of the Beta distribution from which a coefficient is drawn, given the one before.

        ``S = m (1 - m) / v - 1``, ``alpha_t = m S``, ``beta_t = (1 - m) S``.

        >>> MarkovBeta(0.5, 0.5).shapes(0.2)
        (tensor(2.1980, dtype=torch.float64), tensor(4.0820, dtype=torch.float64))
        """
        mean, size = self._mean_and_size(torch.as_tensor(previous, dtype=torch.float64))
        return mean * size, (1 - mean) * size

    def first(self, batch: int, generator: torch.Generator | None) -> Chain:
        return _symmetric(self.alpha, (batch,), generator)

    def following(self, previous: Chain, generator: torch.Generator | None) -> Chain:
        return sample_beta(*self._mean_and_size(previous), generator=generator)

    def _mean_and_size(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = self.conditional(previous)
        return mean, beta_size(mean, variance, on_infeasible=self.on_infeasible, where=self._name)


@dataclass(frozen=True)
class _Symmetric(BetaChain):
    """Chains whose mean moves ``rho`` of the way to 1/2 at each step, with a constant conditional variance ``r V``."""

    rho: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        probability(f"{self._name}.rho", self.rho, one_allowed=True)

    @property
    @abstractmethod
    def _share(self) -> float:
        """``r``: the conditional variance over that of the start."""

    @property
    @abstractmethod
    def _slack(self) -> float:
        """``rho (2 - rho) - r``, written without a difference."""

    @property
    def persistence(self) -> float:
        return 1.0 - self.rho

    def conditional(self, previous: Float64[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
        mean = self.rho / 2 + (1 - self.rho) * previous
        return mean, torch.full_like(mean, self._share * start_variance(self.alpha))

    def _mean_and_size(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """``m (1 - m) / v = q (2 alpha + 1)``, so ``S = 2 alpha q + (q - 1)``, where ``q - 1`` is a sum, no difference.

        So the shapes are exact for all ``rho`` and ``alpha``, and never negative: no rescue is needed.
        """
        if self.rho < STILL:
            raise ArgumentError(
                where=f"{self._name}.shapes", got=f"rho={self.rho}", wanted="rho > 0: without it a coefficient stays"
            )
        mean = self.rho / 2 + (1 - self.rho) * previous
        beyond = (self._slack + (1 - self.rho) ** 2 * 4 * previous * (1 - previous)) / self._share
        return mean, 2 * self.alpha * (1 + beyond) + beyond

    def following(self, previous: Chain, generator: torch.Generator | None) -> Chain:
        return previous if self.rho < STILL else super().following(previous, generator)

    def _chain(self, batch: int, steps: int, generator: torch.Generator | None, previous: Tensor | None) -> Tensor:
        if self.rho < STILL:
            start = self.first(batch, generator) if previous is None else previous
            return start.repeat(steps, 1)
        # Logarithms of small shapes need further numbers, which would mingle the steps of a common draw.
        if self.rho == 1.0 and self.alpha >= SMALL:
            return _symmetric(self.alpha, (steps, batch), generator)
        return super()._chain(batch, steps, generator, previous)


@dataclass(frozen=True)
class MarkovBeta(_Symmetric):
    """The coefficients of sequence mixup: a Markov chain of Beta variables.

    ``lambda_1 ~ Beta(alpha, alpha)``; given ``lambda_{t-1}``, ``lambda_t`` is the Beta variable of

    ``mean m = rho / 2 + (1 - rho) lambda_{t-1}``, ``variance v = rho^2 / (4 (2 alpha + 1))``

    (Karamzade et al. 2020, section 3; the closed forms of its shapes are ours, since the paper prints none). ``rho``
    0 is one coefficient for a sequence, 1 independent ones: a larger ``rho`` means LESS dependence. In between the
    variance falls along the sequence, so that mixing gets stronger; :class:`StationaryBeta` keeps it.

    Args:
        alpha: the shape of the start: 0 is a coin, so that nothing is mixed; infinity is always 1/2.
        rho: from 0 to 1.
        on_infeasible: as for every :class:`BetaChain`; no ``alpha`` and ``rho`` of this process need it.

    >>> MarkovBeta(0.5, 0.5).variance(1), MarkovBeta(0.5, 0.5).variance(2)
    (0.125, 0.0625)
    >>> MarkovBeta(0.5, 0.5).sample(3, 8, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([8, 3])
    """

    @property
    def _share(self) -> float:
        return self.rho**2

    @property
    def _slack(self) -> float:
        return 2 * self.rho * (1 - self.rho)

    def variance(self, step: int) -> float:
        """``V (rho + 2 (1 - rho)^(2 t - 1)) / (2 - rho)``, which falls to ``V rho / (2 - rho)``."""
        fading = 2 * (1 - self.rho) ** (2 * step - 1)
        return float(start_variance(self.alpha) * (self.rho + fading) / (2 - self.rho))


@dataclass(frozen=True)
class StationaryBeta(_Symmetric):
    """As :class:`MarkovBeta`, with ``v = rho (2 - rho) V``: then the variance is ``V`` at every step.

    So a study of ``rho`` changes the dependence of the coefficients and not how strongly they mix. Not in the paper.

    Args:
        alpha: the shape of the start.
        rho: from 0 to 1.
        on_infeasible: as for every :class:`BetaChain`; no ``alpha`` and ``rho`` of this process need it.

    >>> StationaryBeta(0.5, 0.5).variance(1), StationaryBeta(0.5, 0.5).variance(9)
    (0.125, 0.125)
    """

    @property
    def _share(self) -> float:
        return self.rho * (2 - self.rho)

    @property
    def _slack(self) -> float:
        return 0.0

    def variance(self, step: int) -> float:
        return start_variance(self.alpha)


@dataclass(frozen=True)
class BinomialBeta(CoefficientProcess):
    """A chain whose every coefficient is exactly ``Beta(alpha, alpha)``.

    ``N ~ Binomial(n, lambda_{t-1})``, ``lambda_t ~ Beta(alpha + N, alpha + n - N)``, of correlation
    ``n / (2 alpha + n)`` from step to step. Not in the paper, whose text wants these marginals and whose process has
    them at ``rho`` 0 and 1 only.

    Args:
        alpha: the shape, above 0.
        n: how many coins tell a coefficient of the one before; 0 for none.

    >>> BinomialBeta(0.5, 1).correlation(1, 1)
    0.5
    """

    alpha: float = 1.0
    n: int = 1

    def __post_init__(self) -> None:
        check_alpha("BinomialBeta.alpha", self.alpha)
        if self.alpha == 0 or math.isinf(self.alpha):
            raise ArgumentError(where="BinomialBeta.alpha", got=self.alpha, wanted="a finite number above 0")
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 0:
            raise ArgumentError(where="BinomialBeta.n", got=self.n, wanted="a whole number of at least 0")

    @property
    def persistence(self) -> float:
        return self.n / (2 * self.alpha + self.n)

    def variance(self, step: int) -> float:
        return start_variance(self.alpha)

    def first(self, batch: int, generator: torch.Generator | None) -> Chain:
        return _symmetric(self.alpha, (batch,), generator)

    def following(self, previous: Chain, generator: torch.Generator | None) -> Chain:
        heads = torch.binomial(torch.full_like(previous, self.n), previous, generator=generator)
        size = 2 * self.alpha + self.n
        return sample_beta((self.alpha + heads) / size, torch.full_like(previous, size), generator=generator)


def start_variance(alpha: float) -> float:
    """``V = 1 / (4 (2 alpha + 1))``, the variance of ``Beta(alpha, alpha)``.

    >>> start_variance(0.5)
    0.125
    """
    return 1 / (4 * (2 * alpha + 1))


def beta_size(
    mean: Float64[Tensor, "*shape"],
    variance: Float64[Tensor, "*shape"],
    *,
    on_infeasible: str = "raise",
    where: str = "beta_size",
) -> Float64[Tensor, "*shape"]:
    """The concentration ``S = m (1 - m) / v - 1`` of the Beta distribution of a mean and a variance.

    It exists if ``0 < v < m (1 - m)``.

    Args:
        mean: ``m``.
        variance: ``v``.
        on_infeasible: "raise", or "project": a larger ``v`` becomes almost ``m (1 - m)``, and the mean is kept.
        where: who asks, for the error.

    >>> half = torch.tensor(0.5, dtype=torch.float64)
    >>> float(beta_size(half, half / 4))
    1.0
    """
    most = mean * (1 - mean)
    wrong = ~((variance > 0) & (variance < most))
    if bool(wrong.any()):
        low = ~(variance > 0)
        if on_infeasible == "raise" or bool(low.any()):
            raise ArgumentError(
                where=where,
                got=f"a conditional variance of {float(variance[wrong].flatten()[0]):g}",
                wanted=f"one above 0 and below m(1-m) = {float(most[wrong].flatten()[0]):g}: "
                "no Beta distribution exists beyond",
                remedy="Change the rule, or say on_infeasible='project' to take the largest variance at the same mean.",
            )
        variance = torch.where(wrong, (1 - NEARLY) * most, variance)
    return most / variance - 1


def check_alpha(where: str, alpha: float) -> None:
    """Refuse what is no shape; 0 and infinity are its limits.

    >>> check_alpha("MarkovBeta.alpha", 0.5)
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float):
        raise DtypeError(where=where, got=type(alpha).__name__, wanted="a real number")
    if not alpha >= 0:
        wanted = "a number above 0, or one of the limits 0 (a coin) and infinity (always 1/2)"
        raise ArgumentError(where=where, got=alpha, wanted=wanted)


def check_cpu(generator: torch.Generator | None, *, where: str) -> None:
    """Refuse a generator of a device: pairs and coefficients are drawn on the CPU, where nothing waits for them.

    >>> check_cpu(torch.Generator(), where="MarkovBeta")
    """
    if generator is None:
        return
    if not isinstance(generator, torch.Generator):
        raise DtypeError(where=f"{where} generator", got=type(generator).__name__, wanted="a torch.Generator")
    if generator.device.type != "cpu":
        raise DeviceError(
            where=f"{where} generator",
            got=f"a generator on {generator.device}",
            wanted="one on the CPU, where pairs and coefficients are drawn",
            remedy="Make it with torch.Generator().",
        )


def _symmetric(alpha: float, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
    """``Beta(alpha, alpha)`` variables."""
    half = torch.full(shape, 0.5, dtype=torch.float64)
    return sample_beta(half, torch.full_like(half, 2 * float(alpha)), generator=generator)
