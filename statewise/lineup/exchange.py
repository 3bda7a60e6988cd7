"""Whether two kinds of networks differ more on the test sequences than chance would have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float, Int

from statewise.errors import ShapeError
from statewise.lineup.intervals import Rows, Score

DRAWS = 10_000
EXACT = 12  # sequences that differ, up to which all exchanges are tried
_AT_ONCE = 2**22
_SLACK = 1e-12  # sums of other orders differ in their last bits


def exchange_test(one: Rows, other: Rows, score: Score, *, generator: np.random.Generator, draws: int = DRAWS) -> float:
    """The p-value of the difference of two scores: how often it is as large when sequences change sides at random.

    If both kinds were equally good, what they did on a sequence could as well have been the other's (Fisher's
    randomization test, approximate where more than a dozen sequences differ; Yeh 2000). All seeds of a sequence change
    sides together, and are added up. It asks of these networks, whether they differ on such sequences; the seeds are
    left to :func:`~statewise.lineup.intervals.difference_interval`.

    Args:
        one: what each seed's network of the first kind did on each test sequence.
        other: the same of the second kind.
        score: of sums of rows.
        generator: of the exchanges.
        draws: how many, where not all are tried.

    >>> better, worse = np.ones((1, 4, 1)), np.zeros((1, 4, 1))
    >>> exchange_test(better, worse, lambda sums: sums[..., 0], generator=np.random.default_rng(0))  # 2 of 2^4
    0.125
    """
    if one.ndim != 3 or one.shape != other.shape:
        raise ShapeError(where="exchange_test.other", got=str(other.shape), wanted=str(one.shape))
    mine, yours = one.mean(0), other.mean(0)
    moved = yours - mine
    differing = np.flatnonzero((moved != 0).any(1))
    sums = mine.sum(0), yours.sum(0)
    seen = abs(float(score(sums[0]) - score(sums[1])))
    exact = len(differing) <= EXACT
    extreme = 0
    for swapped in _exchanges(len(differing), draws, generator):
        shift = swapped @ moved[differing]
        apart = np.abs(score(sums[0] + shift) - score(sums[1] - shift))
        extreme += int((apart >= seen - _SLACK * max(1.0, seen)).sum())
    # What was seen is itself one of the exchanges, so that a drawn p-value is never 0.
    return float(extreme / 2 ** len(differing) if exact else (extreme + 1) / (draws + 1))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values of several comparisons, raised so that even one false alarm among them is as rare as they say.

    ``p~_(i) = max_{j <= i} min(1, (m - j + 1) p_(j))`` over the sorted p-values (Holm 1979).

    Args:
        p_values: of each comparison.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    order = sorted(p_values, key=lambda name: p_values[name])
    found, highest = {}, 0.0
    for place, name in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[name]))
        found[name] = highest
    return {name: found[name] for name in p_values}


def smallest_p(units: int, *, comparisons: int = 1) -> float:
    """Below what no p-value falls, after Holm's rule: of ``2^units`` exchanges, all and none are always as extreme.

    Args:
        units: test sequences.
        comparisons: how many there are.

    >>> smallest_p(5), smallest_p(5, comparisons=2), smallest_p(100) < 0.001
    (0.0625, 0.125, True)
    """
    least = 2.0 ** (1 - units) if units <= EXACT else 1 / (DRAWS + 1)
    return float(min(1.0, max(1, comparisons) * least))


def _exchanges(
    differing: int, draws: int, generator: np.random.Generator
) -> Iterator[Float[np.ndarray, "draws units"]]:
    """Which sequences change sides, in portions: all ways where they are few, else some at random."""
    if differing <= EXACT:
        ways: Int[np.ndarray, "ways units"] = (np.arange(2**differing)[:, None] >> np.arange(differing)) & 1
        yield ways.astype(np.float64)
        return
    at_once = max(1, _AT_ONCE // differing)
    for start in range(0, draws, at_once):
        some = min(at_once, draws - start)
        yield generator.integers(0, 2, size=(some, differing)).astype(np.float64)
