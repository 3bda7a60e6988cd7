"""Whether one tagger is better than another, or whether chance would do: paired tests over sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from statewise.data.span_scores import SpanScores, Tags, add_scores, each_sentence, score_spans
from statewise.errors import ArgumentError, LengthError

_EXACT = 16  # so many sentences that differ have 65,536 ways to be exchanged, which are all tried


@dataclass(frozen=True)
class SpanComparison:
    """The difference of two F1, and how far to trust it.

    Args:
        one: the scores of the first prediction; of several runs, of all their spans together.
        other: the scores of the second, likewise.
        difference: F1 of the first less F1 of the second.
        p: the p-value: how probable a difference at least as large would be, of either sign, if it did not matter which
            of the two each sentence's tags came from.
        interval: in which the difference lies in ``level`` of the samples of sentences that are drawn with replacement.
        level: of the interval.
        differing: how many sentences the two score differently on.
        exact: whether all exchanges were tried; else some were drawn at random.
        draws: how many samples were drawn.
    """

    one: SpanScores
    other: SpanScores
    difference: float
    p: float
    interval: tuple[float, float]
    level: float
    differing: int
    exact: bool
    draws: int

    def __str__(self) -> str:
        low, high = self.interval
        scores = f"F1 {100 * self.one.f1:.2f} and {100 * self.other.f1:.2f}: {100 * self.difference:+.2f}"
        return f"{scores} ({100 * self.level:g} %: {100 * low:+.2f} to {100 * high:+.2f}), p = {self.p:.3g}"


def compare_spans(
    gold: Tags,
    one: Tags,
    other: Tags,
    *,
    convention: str = "conll",
    scheme: str | None = None,
    draws: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> SpanComparison:
    """Compare the F1 of two predictions of the same sentences.

    The p-value is that of a randomisation test (Yeh 2000): the tags of each sentence are exchanged between the two, or
    not, by chance, and the F1 compared again. Where at most 16 sentences score differently all exchanges are tried, and
    the p-value is exact. The interval is that of a paired bootstrap (Koehn 2004): sentences are drawn with replacement,
    the same for both.

    Args:
        gold: the true tags of each sentence.
        one: the first prediction.
        other: the second.
        convention: by which spans are found, see `spans`.
        scheme: to be strict by; None for that of ``gold``, if it has one.
        draws: how many exchanges and how many samples are drawn.
        seed: what the draws depend on.
        level: how much of the samples the interval covers.

    >>> gold = [["B-PER", "O"]] * 6
    >>> found = compare_spans(gold, gold, [["O", "O"]] * 5 + [["B-PER", "O"]], seed=1)
    >>> round(found.difference, 3), found.p, found.exact  # 5 sentences: 2 of 32 exchanges are as extreme
    (0.714, 0.0625, True)
    """
    return compare_span_runs(
        gold, (one,), (other,), convention=convention, scheme=scheme, draws=draws, seed=seed, level=level
    )


def compare_span_runs(
    gold: Tags,
    ones: Sequence[Tags],
    others: Sequence[Tags],
    *,
    convention: str = "conll",
    scheme: str | None = None,
    draws: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> SpanComparison:
    """Compare the F1 of two ways to train, each with the predictions of several runs of the same sentences.

    The tests are those of `compare_spans`. What is exchanged and what is drawn is still a sentence, with the tags of
    all runs: the counts of a sentence are added up over the runs first. Other seeds tag the same sentences, and as
    further sentences they would make a difference look surer than it is. So F1 is that of all spans of all runs, not
    the mean of the runs'; and what other sentences would say is told, not what other seeds would.

    Args:
        gold: the true tags of each sentence.
        ones: the predictions of the first, one for each run.
        others: those of the second, of as many runs.
        convention: by which spans are found, see `spans`.
        scheme: to be strict by; None for that of ``gold``, if it has one.
        draws: how many exchanges and how many samples are drawn.
        seed: what the draws depend on.
        level: how much of the samples the interval covers.

    >>> gold, nothing = [["B-PER", "O"]] * 6, [["O", "O"]] * 6
    >>> compare_span_runs(gold, [gold] * 3, [nothing] * 3).p  # as of one run: 2 of 64 exchanges are as extreme
    0.03125
    """
    if draws < 1 or not 0 < level < 1:
        wanted = "draws from 1, and a level between 0 and 1"
        raise ArgumentError(where="compare_spans", got=f"draws={draws}, level={level}", wanted=wanted)
    if not ones or len(ones) != len(others):
        got, wanted = f"{len(ones)} and {len(others)} predictions", "as many of each, one or more"
        raise LengthError(where="compare_span_runs", got=got, wanted=wanted)
    first, second = (
        add_scores([score_spans(gold, tags, convention, scheme) for tags in runs]) for runs in (ones, others)
    )
    counts = np.sum([_counts(gold, *pair, convention, scheme) for pair in zip(ones, others, strict=True)], axis=0)
    generator = np.random.default_rng(seed)
    differing = int((counts[:, 1:3] != counts[:, 3:5]).any(axis=1).sum())
    difference = first.f1 - second.f1
    exchanged = _all_exchanges(counts) if differing <= _EXACT else _some_exchanges(counts, draws, generator)
    # As in the statistic itself a sum of whole numbers is divided, so that equal ones are equal but for a last bit.
    extreme = int((np.abs(exchanged) >= abs(difference) - 1e-12).sum())
    exact = differing <= _EXACT
    resampled = _resampled(counts, draws, generator)
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return SpanComparison(
        one=first,
        other=second,
        difference=difference,
        # What was observed is itself one of the exchanges, so that a drawn p-value is never 0.
        p=extreme / len(exchanged) if exact else (extreme + 1) / (draws + 1),
        interval=(low, high),
        level=level,
        differing=differing,
        exact=exact,
        draws=draws,
    )


def _counts(gold: Tags, one: Tags, other: Tags, convention: str, scheme: str | None) -> npt.NDArray[np.int64]:
    """Of each sentence the true spans, those that the first predicts, and the correct of them, and of the second."""
    rows = zip(*(each_sentence(gold, tags, convention, scheme) for tags in (one, other)), strict=True)
    found = [
        (len(true), len(mine), len(true & mine), len(yours), len(true & yours)) for (true, mine), (_, yours) in rows
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 5)


def _all_exchanges(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    differ = counts[(counts[:, 1:3] != counts[:, 3:5]).any(axis=1)]
    swapped = (np.arange(2 ** len(differ))[:, None] >> np.arange(len(differ))) & 1
    return _exchanged(counts, swapped @ (differ[:, 3:5] - differ[:, 1:3]))


def _some_exchanges(
    counts: npt.NDArray[np.int64], draws: int, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    # Sentences with the same counts are as good as each other: how many of them are exchanged is binomial.
    kinds, repeats = np.unique(counts, axis=0, return_counts=True)
    swapped = generator.binomial(repeats, 0.5, size=(draws, len(repeats)))
    return _exchanged(counts, swapped @ (kinds[:, 3:5] - kinds[:, 1:3]))


def _exchanged(counts: npt.NDArray[np.int64], moved: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The differences of F1 when so many predicted and correct spans are moved to the first and from the second."""
    sums = np.tile(counts.sum(axis=0), (len(moved), 1))
    sums[:, 1:3] += moved
    sums[:, 3:5] -= moved
    return _difference(sums)


def _resampled(counts: npt.NDArray[np.int64], draws: int, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    if not len(counts):
        return np.zeros(draws)
    # As above: how often each kind of sentence is drawn is multinomial.
    kinds, repeats = np.unique(counts, axis=0, return_counts=True)
    sums = generator.multinomial(len(counts), repeats / len(counts), size=draws) @ kinds
    return _difference(sums)


def _difference(sums: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """F1 of the first less F1 of the second, for each row of summed counts."""
    first, second = (2.0 * sums[:, at + 1] / np.maximum(sums[:, 0] + sums[:, at], 1) for at in (1, 3))
    return np.asarray(first - second, dtype=np.float64)
