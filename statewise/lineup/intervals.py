r"""How sure a score is, and the difference of two: over test sequences, and over the seeds of training.

Every test sequence gives a row of numbers that can be added up (hits, tokens, negative log-likelihoods ...), and a
score is a function of the sums. Let ``x[s, u]`` be the row of seed ``s`` and sequence ``u``. The score is the mean over
seeds,

    score = 1/S sum_s f(sum_u x[s, u]).

Two things are random: which sequences happened to be in the test set, and which seeds the networks were trained with.
The first is resampled: sequences are drawn with replacement, the same for all seeds, since all were tested on the same.
The second cannot be, as three seeds drawn with replacement vary by a third too little and know nothing of their tails;
instead Student's t with ``S - 1`` degrees of freedom, scaled by the standard error over seeds, is added to each draw
(the fiducial distribution of Behrens and Fisher, whose intervals cover at least as often as they say for normal seeds).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from statewise.errors import ArgumentError, ShapeError

DRAWS = 4000
LEVEL = 0.95
_NOTHING = 1e-3  # standard errors: what would need millions of times as many sequences to be seen is rounding
_AT_ONCE = 2**22  # numbers that are drawn at a time

#: What makes a score of sums: the last dimension has the columns.
Score = Callable[[Float[np.ndarray, "*any columns"]], Float[np.ndarray, "*any"]]
Rows = Float[np.ndarray, "seeds units columns"]


@dataclass(frozen=True)
class Interval:
    """A number, and between which two it lies.

    Attributes:
        value: what was measured.
        low: the lower end.
        high: the upper one.
        over_units: the standard error over test sequences.
        over_seeds: and over seeds; 0 where there is one seed, of which nothing is known.

    >>> print(Interval(1.0, 0.5, 1.5, 0.2, 0.1))
    1 (0.5 to 1.5)
    """

    value: float
    low: float
    high: float
    over_units: float
    over_seeds: float

    @property
    def excludes_zero(self) -> bool:
        """Whether all of it lies on one side of 0."""
        return self.low > 0.0 or self.high < 0.0

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


def score_interval(
    rows: Rows, score: Score, *, generator: np.random.Generator, draws: int = DRAWS, level: float = LEVEL
) -> Interval:
    """The mean score over seeds, with an interval over sequences and seeds.

    Args:
        rows: what each seed's network did on each test sequence.
        score: of sums of rows.
        generator: of the draws.
        draws: how many.
        level: how often the interval shall hold the truth.

    >>> hits = np.ones((3, 50, 1)) * np.arange(50)[None, :, None].__mod__(2)
    >>> found = score_interval(hits, lambda sums: sums[..., 0] / 50, generator=np.random.default_rng(0))
    >>> found.value, found.low < 0.4, found.over_seeds
    (0.5, True, 0.0)
    """
    _check(rows, draws, level)
    return _interval(score(rows.sum(1)), _resampled(rows, score, generator, draws), generator, level)


def difference_interval(
    one: Rows,
    other: Rows,
    score: Score,
    *,
    generator: np.random.Generator,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval:
    """By how much the first scores higher than the second, both tested on the same sequences, seed by seed.

    Args:
        one: what each seed's network did on each test sequence.
        other: the same of the others, with as many seeds.
        score: of sums of rows.
        generator: of the draws.
        draws: how many.
        level: how often the interval shall hold the truth.
    """
    if one.shape != other.shape:
        raise ShapeError(where="difference_interval.other", got=str(other.shape), wanted=str(one.shape))
    _check(one, draws, level)
    width = one.shape[-1]

    def apart(sums: Float[np.ndarray, "*any columns"]) -> Float[np.ndarray, "*any"]:
        return score(sums[..., :width]) - score(sums[..., width:])

    both = np.concatenate((one, other), axis=-1)
    return _interval(apart(both.sum(1)), _resampled(both, apart, generator, draws), generator, level)


def sequences_needed(difference: Interval, units: int) -> int | None:
    """About how many test sequences would show the difference that was seen, four times out of five.

    ``n = units ((1.96 + 0.84) se / difference)^2``: of a two-sided test at 5 % with a power of 80 %. What the seeds add
    to the uncertainty does not shrink with more sequences, and is not counted. None where nothing was seen.

    Args:
        difference: that was seen on so many sequences.
        units: how many.

    >>> sequences_needed(Interval(0.1, -0.1, 0.3, 0.1, 0.0), 100)
    785
    """
    if abs(difference.value) <= _NOTHING * difference.over_units:
        return None
    return int(np.ceil(units * ((1.959964 + 0.841621) * difference.over_units / difference.value) ** 2))


def _interval(
    seeds: Float[np.ndarray, " seeds"],
    resampled: Float[np.ndarray, " draws"],
    generator: np.random.Generator,
    level: float,
) -> Interval:
    count, value = len(seeds), float(seeds.mean())
    error = float(seeds.std(ddof=1)) / count**0.5 if count > 1 else 0.0
    shifted = resampled + (error * generator.standard_t(count - 1, size=len(resampled)) if error else 0.0)
    low, high = np.quantile(shifted, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(value, float(low), float(high), float(resampled.std(ddof=1)), error)


def _resampled(rows: Rows, score: Score, generator: np.random.Generator, draws: int) -> Float[np.ndarray, " draws"]:
    """The mean score over seeds of test sets whose sequences were drawn with replacement."""
    _, units, _ = rows.shape
    found, at_once = [], max(1, _AT_ONCE // units)
    for start in range(0, draws, at_once):
        some = min(at_once, draws - start)
        often = generator.multinomial(units, np.full(units, 1.0 / units), size=some).astype(np.float64)
        found.append(score(np.einsum("du,suc->dsc", often, rows, optimize=True)).mean(1))
    return np.concatenate(found)


def _check(rows: Rows, draws: int, level: float) -> None:
    if rows.ndim != 3 or 0 in rows.shape:
        raise ShapeError(where="rows", got=str(rows.shape), wanted="(seeds, units, columns), at least one of each")
    if draws < 100 or not 0 < level < 1:
        raise ArgumentError(where="draws, level", got=f"{draws}, {level}", wanted="100 draws or more, 0 < level < 1")
