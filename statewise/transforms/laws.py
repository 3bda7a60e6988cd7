"""The eight noise laws of Noisin: how each is drawn, and its moments in closed form.

A law turns raw noise ``eta`` into centred noise ``eps = scale * (eta - mean)``, so that ``E eps = 0`` for every
``gamma``. A hidden state is then multiplied by ``1 + eps``, or shifted by ``eps``, and is unchanged on average (Dieng
et al. 2018, Table 2). The one number ``gamma`` sets the strength, and its meaning differs between the laws:

============================================  =========================================  ===============
laws                                          gamma is                                   no noise at
============================================  =========================================  ===============
gaussian, logistic, laplace, gamma, gumbel    the standard deviation of ``eps``          0
beta, chi-square                              the variance of ``eps``                    0
bernoulli                                     the probability to keep, in (0, 1]         1
============================================  =========================================  ===============
"""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import ClassVar, NoReturn

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from statewise.errors import ArgumentError, DeviceError, DtypeError
from statewise.transforms.recipes import Kind, Recipe
from statewise.transforms.streams import Randomness

__all__ = ["LAWS", "Law", "law"]

Number = float | int  # to a run-time type checker an int is not a float

EULER_GAMMA = 0.57721566490153286061
APERY = 1.20205690315959428540  # zeta(3), in the skewness of a Gumbel variable
LARGEST_ALPHA = 2.0**30  # there the skewness of a gamma law is 6e-5
DEFAULT_ALPHA = 2.0  # the only shape the paper names (its Table 5)
LONGEST_SERIES = 2**22  # terms of Kummer's series that are still summed in about a second


class Law(ABC):
    """One law of centred noise: validation, moments, moment generating function and sampling.

    ``eps = scale * (eta - mean)``, ``E eps = 0``, ``Var eps = variance(gamma)``.
    Dieng et al. 2018, Table 2. Instances hold no state; take them from ``LAWS`` or ``law(name)``.

    ``alpha`` is the first shape of the gamma and beta laws, and the other laws ignore it.

    >>> noise = law("chi-square")
    >>> noise.variance(0.4), noise.support(0.0)
    (0.4, (0.0, 0.0))
    >>> noise.fill(torch.empty(2, 3), 0.4, 2.0, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 3])
    """

    name: ClassVar[str]
    gamma_meaning: ClassVar[str]
    silent_gamma: ClassVar[float] = 0.0

    def check(self, gamma: object, alpha: object = DEFAULT_ALPHA) -> None:
        """Raise unless ``gamma`` and ``alpha`` are numbers in the law's domain."""
        self._checked(gamma, alpha)

    def is_silent(self, gamma: Number) -> bool:
        """Whether this ``gamma`` means no noise at all: 1 for Bernoulli, 0 for every other law."""
        return self._checked_gamma(gamma) == self.silent_gamma

    def variance(self, gamma: Number, alpha: Number = DEFAULT_ALPHA) -> float:
        """``Var eps``; in no law does it depend on ``alpha``."""
        return self._variance(self._checked(gamma, alpha)[0])

    def std(self, gamma: Number) -> float:
        """Standard deviation of ``eps``: the one unit in which the laws can be compared."""
        return math.sqrt(self.variance(gamma))

    def gamma_from_std(self, std: Number) -> float:
        """The ``gamma`` at which ``eps`` has this standard deviation; the inverse of ``std``."""
        return self._checked_gamma(self._gamma_from_std(_number(std, f"{self.name}.std", "a finite number >= 0")))

    def skewness(self, gamma: Number, alpha: Number = DEFAULT_ALPHA) -> float:
        """``E eps^3 / Var(eps)^(3/2)``; NaN where there is no noise."""
        return self._known_shape(gamma, alpha)[0]

    def excess_kurtosis(self, gamma: Number, alpha: Number = DEFAULT_ALPHA) -> float:
        """``E eps^4 / Var(eps)^2 - 3``; NaN where there is no noise."""
        return self._known_shape(gamma, alpha)[1]

    def support(self, gamma: Number, alpha: Number = DEFAULT_ALPHA) -> tuple[float, float]:
        """Smallest interval that holds ``eps``; Bernoulli noise takes only its two ends."""
        gamma, alpha = self._checked(gamma, alpha)
        return (0.0, 0.0) if gamma == self.silent_gamma else self._support(gamma, alpha)

    def log_mgf(self, a: Number, gamma: Number, alpha: Number = DEFAULT_ALPHA) -> float:
        """``log E exp(a eps)``, or infinity outside the domain; a sum of these does not overflow as a product would."""
        gamma, alpha = self._checked(gamma, alpha)
        a = _number(a, f"{self.name}.a", "a finite number", low=-math.inf)
        if gamma == self.silent_gamma or a == 0:
            return 0.0
        try:
            value = self._log_mgf(a, gamma, alpha)
        except OverflowError:
            return math.inf
        return math.inf if math.isnan(value) else value  # log E exp >= 0 (Jensen): inf - inf can only be upwards

    def mgf(self, a: Number, gamma: Number, alpha: Number = DEFAULT_ALPHA) -> float:
        """``E exp(a eps)`` in closed form, or infinity where the expectation does not exist.

        >>> law("gaussian").mgf(0.3, 0.4) == math.exp(0.4**2 * 0.3**2 / 2)
        True
        >>> law("laplace").mgf(4.0, 0.4)
        inf
        """
        try:
            return math.exp(self.log_mgf(a, gamma, alpha))
        except OverflowError:
            return math.inf

    def recipe(self, gamma: Number, alpha: Number = DEFAULT_ALPHA, *, mean: Number = 0.0) -> Recipe:
        """How ``mean + eps`` is drawn by counting: the numbers are a function of a seed and of their place.

        ``eps`` is never clamped, since that would bias its mean. It has the digits of float32, and no draw is infinite:
        ``transforms/recipes.py`` tells where the tails end.

        Args:
            gamma: strength, in the law's own meaning.
            alpha: shape of the gamma and beta laws; beyond 2^30, where the law no longer depends on it, it is 2^30.
            mean: added to the noise.

        >>> law("laplace").recipe(0.5, mean=1.0).shift
        1.0
        """
        gamma, alpha = self._checked(gamma, alpha)
        mean = _number(mean, f"{self.name}.mean", "a finite number", low=-math.inf)
        if gamma == self.silent_gamma:
            return Recipe.of(Kind.UNIFORM, scale=0.0, shift=mean)
        return self._recipe(gamma, min(alpha, LARGEST_ALPHA), mean)

    def fill(
        self, out: Float[Tensor, "*shape"], gamma: Number, alpha: Number, generator: Generator
    ) -> Float[Tensor, "*shape"]:
        """Overwrite ``out`` with independent draws of ``eps`` and return it.

        One number is taken from the generator, and none without noise; the draws are counted from it (:meth:`recipe`).

        Args:
            out: float32 or float64, of any shape; for half precision draw in float32, then cast.
            gamma: strength, in the law's own meaning.
            alpha: shape of the gamma and beta laws.
            generator: source of randomness, on the device of ``out``.
        """
        recipe = self.recipe(gamma, alpha)
        if out.dtype not in (torch.float32, torch.float64):
            remedy = "Draw in float32, then cast."
            raise DtypeError(where=f"{self.name}.out", got=out.dtype, wanted="torch.float32 or .float64", remedy=remedy)
        if generator.device.type != out.device.type:
            got, wanted = f"a generator on {generator.device}", f"one on {out.device}, like the tensor to fill"
            remedy = f"Make it with torch.Generator({str(out.device)!r})."
            raise DeviceError(where=f"{self.name}.generator", got=got, wanted=wanted, remedy=remedy)
        if self.is_silent(gamma):
            return out.zero_()
        drawn = Randomness(generator).stream().draw(out.new_empty(1, out.numel()), recipe)
        return out.copy_(drawn.view(out.shape))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} is shared by all its users and cannot be changed: tried to set {name!r}.")

    def __repr__(self) -> str:
        return f"law({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return law, (self.name,)  # a copy or an unpickled law is the registered one

    def _checked(self, gamma: object, alpha: object = DEFAULT_ALPHA) -> tuple[float, float]:
        return self._checked_gamma(gamma), _number(alpha, f"{self.name}.alpha", "a finite shape > 0", open_low=True)

    def _checked_gamma(self, gamma: object) -> float:
        return _number(gamma, f"{self.name}.gamma", f"a finite {self.gamma_meaning} >= 0", remedy="0 is no noise.")

    def _known_shape(self, gamma: Number, alpha: Number) -> tuple[float, float]:
        gamma, alpha = self._checked(gamma, alpha)
        return (math.nan, math.nan) if gamma == self.silent_gamma else self._skewness_and_excess(gamma, alpha)

    @abstractmethod
    def _variance(self, gamma: float) -> float: ...

    @abstractmethod
    def _gamma_from_std(self, std: float) -> float: ...

    @abstractmethod
    def _skewness_and_excess(self, gamma: float, alpha: float) -> tuple[float, float]: ...

    @abstractmethod
    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float: ...

    @abstractmethod
    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe: ...

    def _support(self, gamma: float, alpha: float) -> tuple[float, float]:
        return -math.inf, math.inf


class ScaleLaw(Law):
    """Laws whose raw noise has scale gamma, rescaled so that gamma is the standard deviation of ``eps``."""

    gamma_meaning = "standard deviation"
    skewness_and_excess: ClassVar[tuple[float, float]] = (0.0, 0.0)

    def _variance(self, gamma: float) -> float:
        return gamma * gamma

    def _gamma_from_std(self, std: float) -> float:
        return std

    def _skewness_and_excess(self, gamma: float, alpha: float) -> tuple[float, float]:
        return self.skewness_and_excess


class VarianceLaw(Law):
    """Laws in which gamma is a shape, and the variance (not the standard deviation) of ``eps``."""

    gamma_meaning = "variance"

    def _variance(self, gamma: float) -> float:
        return gamma

    def _gamma_from_std(self, std: float) -> float:
        return std * std


class GaussianLaw(ScaleLaw):
    """``eps = eta ~ Normal(0, gamma)``, gamma its standard deviation (Dieng et al. 2018, Table 2)."""

    name = "gaussian"

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        return (a * gamma) * (a * gamma) / 2

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        return Recipe.of(Kind.NORMAL, scale=gamma, shift=mean)


class LogisticLaw(ScaleLaw):
    """``eps = sqrt(3) eta / pi``, ``eta ~ Logistic(0, gamma)`` (Dieng et al. 2018, Table 2)."""

    name = "logistic"
    skewness_and_excess = (0.0, 1.2)

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        angle = math.sqrt(3) * gamma * abs(a)
        if angle == 0:  # a * gamma underflowed
            return 0.0
        return math.log(angle / math.sin(angle)) if angle < math.pi else math.inf

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        return Recipe.of(Kind.LOGISTIC, scale=gamma * math.sqrt(3) / math.pi, shift=mean)


class LaplaceLaw(ScaleLaw):
    """``eps = eta / sqrt(2)``, ``eta ~ Laplace(0, gamma)`` (Dieng et al. 2018, Table 2)."""

    name = "laplace"
    skewness_and_excess = (0.0, 3.0)

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        half_square = (a * gamma) * (a * gamma) / 2
        return -math.log1p(-half_square) if half_square < 1 else math.inf

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        return Recipe.of(Kind.LAPLACE, scale=gamma / math.sqrt(2), shift=mean)


class GumbelLaw(ScaleLaw):
    """``eps = sqrt(6) (eta - delta gamma) / pi``, ``eta ~ Gumbel(0, gamma)`` of maxima, ``delta`` Euler's constant.

    Dieng et al. 2018, Table 2.
    """

    name = "gumbel"
    skewness_and_excess = (12 * math.sqrt(6) * APERY / math.pi**3, 2.4)

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        tilt = a * gamma * math.sqrt(6) / math.pi
        return math.lgamma(1 - tilt) - EULER_GAMMA * tilt if tilt < 1 else math.inf

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        scale = gamma * math.sqrt(6) / math.pi
        return Recipe.of(Kind.GUMBEL, scale=scale, shift=mean - scale * EULER_GAMMA)


class GammaLaw(ScaleLaw):
    """``eps = (eta - alpha gamma) / sqrt(alpha)``, ``eta ~ Gamma(shape alpha, scale gamma)``.

    Dieng et al. 2018, Table 2; gamma is the standard deviation of ``eps``.
    """

    name = "gamma"

    def _skewness_and_excess(self, gamma: float, alpha: float) -> tuple[float, float]:
        return 2 / math.sqrt(alpha), 6 / alpha

    def _support(self, gamma: float, alpha: float) -> tuple[float, float]:
        return -gamma * math.sqrt(alpha), math.inf

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        return _centred_gamma_log_mgf(a * gamma / math.sqrt(alpha), alpha)

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        return Recipe.gamma(alpha, scale=gamma / math.sqrt(alpha), shift=mean)


class ChiSquareLaw(VarianceLaw):
    """``eps = (eta - gamma) / sqrt(2)``, ``eta ~ ChiSquare(gamma degrees of freedom) = Gamma(gamma / 2, scale 2)``.

    Dieng et al. 2018, Table 2; gamma is the variance of ``eps``, so the standard deviation is its square root.
    """

    name = "chi-square"

    def _skewness_and_excess(self, gamma: float, alpha: float) -> tuple[float, float]:
        return math.sqrt(8 / gamma), 12 / gamma

    def _support(self, gamma: float, alpha: float) -> tuple[float, float]:
        return -gamma / math.sqrt(2), math.inf

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        return _centred_gamma_log_mgf(a * math.sqrt(2), gamma / 2)

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        return Recipe.gamma(gamma / 2, scale=math.sqrt(2), shift=mean)


class BernoulliLaw(Law):
    """``eps = eta / gamma - 1``, ``eta ~ Bernoulli(gamma)``: inverted dropout (Dieng et al. 2018, Table 2).

    gamma is the probability to KEEP a unit: dropout with probability p is ``gamma = 1 - p``, and 1 is no noise.
    """

    name = "bernoulli"
    gamma_meaning = "keep probability"
    silent_gamma = 1.0

    def _checked_gamma(self, gamma: object) -> float:
        remedy = "Dropout with probability p is gamma = 1 - p, and 1 is no noise."
        wanted = f"a {self.gamma_meaning} in (0, 1]"
        return _number(gamma, f"{self.name}.gamma", wanted, high=1.0, open_low=True, remedy=remedy)

    def _variance(self, gamma: float) -> float:
        return (1 - gamma) / gamma

    def _gamma_from_std(self, std: float) -> float:
        return 1 / (1 + std * std)

    def _skewness_and_excess(self, gamma: float, alpha: float) -> tuple[float, float]:
        spread = gamma * (1 - gamma)
        return (1 - 2 * gamma) / math.sqrt(spread), (1 - 6 * spread) / spread

    def _support(self, gamma: float, alpha: float) -> tuple[float, float]:
        return -1.0, (1 - gamma) / gamma

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        lift = a / gamma
        if lift > 0:  # the kept branch taken out of the logarithm, so that its exponential cannot overflow
            return math.log1p((1 - gamma) * math.expm1(-lift)) + lift - a
        return math.log1p(gamma * math.expm1(lift)) - a

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        return Recipe.bernoulli(gamma, scale=1 / gamma, shift=mean - 1)


class BetaLaw(VarianceLaw):
    """``eps = (alpha + gamma) sqrt((alpha + gamma + 1) / alpha) (eta - alpha / (alpha + gamma))``.

    ``eta ~ Beta(alpha, gamma)``, alpha first (Dieng et al. 2018, Table 2); gamma, the second shape, is the variance of
    ``eps``, so the standard deviation is its square root.
    """

    name = "beta"

    def _skewness_and_excess(self, gamma: float, alpha: float) -> tuple[float, float]:
        total = alpha + gamma
        tilt = (gamma - alpha) / math.sqrt(alpha) / math.sqrt(gamma) * math.sqrt(total + 1)
        return 2 * tilt / (total + 2), 6 * (tilt * tilt / (total + 2) - 1) / (total + 3)

    def _support(self, gamma: float, alpha: float) -> tuple[float, float]:
        spread = _beta_spread(gamma, alpha)
        return -alpha * spread, gamma * spread

    def _log_mgf(self, a: float, gamma: float, alpha: float) -> float:
        total = alpha + gamma
        argument = abs(a) * total * _beta_spread(gamma, alpha)
        # Kummer: 1F1(alpha; total; -z) = exp(-z) 1F1(gamma; total; z), so every term of the series is positive.
        shape = alpha if a > 0 else gamma
        return _log_kummer(shape, total, argument) - argument * shape / total

    def _recipe(self, gamma: float, alpha: float, mean: float) -> Recipe:
        total, spread = alpha + gamma, _beta_spread(gamma, alpha)
        if alpha >= gamma:  # eta is near 1: 1 - eta keeps the digits
            return Recipe.beta(gamma, alpha, scale=-total * spread, shift=mean + gamma * spread)
        return Recipe.beta(alpha, gamma, scale=total * spread, shift=mean - alpha * spread)


LAWS: Mapping[str, Law] = MappingProxyType(
    {
        one.name: one
        for one in (
            *(GaussianLaw(), LogisticLaw(), LaplaceLaw(), GammaLaw()),
            *(BernoulliLaw(), GumbelLaw(), BetaLaw(), ChiSquareLaw()),
        )
    }
)
"""The eight laws of Table 2 of Dieng et al. 2018, by name."""


def law(name: str) -> Law:
    """The noise law of this name (Dieng et al. 2018, Table 2).

    >>> law("gumbel")
    law('gumbel')
    """
    if name in LAWS:
        return LAWS[name]
    close = difflib.get_close_matches(str(name).lower(), LAWS, n=1, cutoff=0.5)
    raise ArgumentError(
        where="law",
        got=repr(name),
        wanted="one of " + ", ".join(map(repr, LAWS)),
        remedy=f"Did you mean {close[0]!r}?" if close else "",
    )


def _number(
    value: object,
    where: str,
    wanted: str,
    *,
    low: float = 0.0,
    high: float = math.inf,
    open_low: bool = False,
    remedy: str = "",
) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        got = f"{value!r} of type {type(value).__name__}"
        raise DtypeError(where=where, got=got, wanted=wanted, remedy="Pass a Python number.")
    try:
        number = float(value)
    except OverflowError:  # an int or a fraction past the range of a float
        number = math.inf
    inside = low < number if open_low else low <= number
    if not (inside and number <= high and math.isfinite(number)):
        raise ArgumentError(where=where, got=value, wanted=wanted, remedy=remedy)
    return number


def _beta_spread(gamma: float, alpha: float) -> float:
    return math.sqrt(alpha + gamma + 1) / math.sqrt(alpha)  # the quotient itself may overflow


def _centred_gamma_log_mgf(tilt: float, shape: float) -> float:
    return shape * (-math.log1p(-tilt) - tilt) if tilt < 1 else math.inf


def _log_kummer(shape: float, total: float, argument: float) -> float:
    """``log 1F1(shape; total; argument)`` for ``0 < shape < total`` and ``argument > 0``, by its series.

    All terms are positive, so nothing cancels; the running sum is rescaled before it overflows.
    """
    if argument > LONGEST_SERIES:
        raise ArgumentError(
            where="beta.mgf",
            got=f"|a| (alpha + gamma) sqrt((alpha + gamma + 1) / alpha) = {argument:.4g}",
            wanted=f"at most {LONGEST_SERIES}",
            remedy="Use a smaller a, or a less extreme alpha.",
        )
    term, series, log_scale, index = 1.0, 1.0, 0.0, 0
    # Terms can dip and rise again before the index reaches the argument; after that they only fall.
    while index <= argument or term > series * 2.0**-60:
        term *= (shape + index) / (total + index) * (argument / (index + 1))
        series += term
        index += 1
        if series > 1e250:
            log_scale += math.log(series)
            term, series = term / series, 1.0
    return math.log(series) + log_scale
