"""What a comparison came to: a line for each finalist, and in sentences what may be said of it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from statewise.lineup.adaptor import Metric, Tested
from statewise.lineup.exchange import exchange_test, holm, smallest_p
from statewise.lineup.halving import NONE
from statewise.lineup.intervals import Interval, difference_interval, score_interval, sequences_needed

SIGNIFICANT = 0.05
HELPS, HARMS, UNKNOWN = "helps", "harms", "unclear"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A finalist.

    Attributes:
        name: of the candidate.
        family: of the candidate.
        valid: its validation score, the mean over seeds, as a person reads it.
        scores: by metric, its test score with an interval, as a person reads it; standard errors are in the unit of
            differences.
        differences: by metric, how much higher that is than without regularization; nothing for the plain network.
        seeds: the test score of each seed, by the first metric.
        p: how often chance alone gives such a difference; None for the plain network.
        p_holm: the same, raised for the number of comparisons.
        says: "helps", "harms" or "unclear"; None for the plain network.
        needed: how many test sequences would show the difference that was seen; None where there is none.
        ece: the calibration error, the mean over seeds; None where it means nothing.
        cost: the time of an epoch, over that of the plain network's.
        parameters: how many the model has.
    """

    name: str
    family: str
    valid: float
    scores: Mapping[str, Interval]
    differences: Mapping[str, Interval] = field(default_factory=dict)
    seeds: tuple[float, ...] = ()
    p: float | None = None
    p_holm: float | None = None
    says: str | None = None
    needed: int | None = None
    ece: float | None = None
    cost: float = 1.0
    parameters: int = 0

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "seeds": list(self.seeds)}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Line:
        """What :meth:`document` gave.

        Args:
            document: of a file.
        """
        parts = {
            name: {metric: Interval(**each) for metric, each in document[name].items()}
            for name in ("scores", "differences")
        }
        return cls(**{**document, **parts, "seeds": tuple(document["seeds"])})


def lines_of(
    tested: Mapping[str, Sequence[Tested]],
    families: Mapping[str, str],
    valid: Mapping[str, float],
    seconds: Mapping[str, float],
    metrics: Sequence[Metric],
    *,
    seed: int,
) -> list[Line]:
    """The finalists, from the best by validation to the worst.

    Args:
        tested: what each seed of each candidate did on the test set, the plain network among them.
        families: of the candidates.
        valid: their validation scores, as a person reads them, from the best to the worst.
        seconds: of an epoch.
        metrics: what is reported.
        seed: of the draws.
    """
    rows = {name: np.stack([each.rows for each in some]) for name, some in tested.items()}
    first = metrics[0]
    p = {
        name: exchange_test(rows[name], rows[NONE], first.score, generator=_draws(seed, name))
        for name in rows
        if name != NONE
    }
    raised = holm(p)
    found = []
    for name in (name for name in valid if name in rows):
        scores = {
            metric.name: _shown(metric, score_interval(rows[name], metric.score, generator=_draws(seed, name)))
            for metric in metrics
        }
        apart = {
            metric.name: difference_interval(rows[name], rows[NONE], metric.score, generator=_draws(seed, name))
            for metric in (metrics if name != NONE else ())
        }
        eces = [each.ece for each in tested[name] if each.ece is not None]
        found.append(
            Line(
                name=name,
                family=families[name],
                valid=valid[name],
                scores=scores,
                differences={each.name: _shown_difference(each, apart[each.name]) for each in metrics if apart},
                seeds=tuple(first.shown(float(score)) for score in first.score(rows[name].sum(1))),
                p=p.get(name),
                p_holm=raised.get(name),
                says=_says(apart[first.name], raised[name], higher=first.higher) if apart else None,
                needed=sequences_needed(apart[first.name], rows[name].shape[1]) if apart else None,
                ece=float(np.mean(eces)) if eces else None,
                cost=seconds[name] / seconds[NONE] if seconds[NONE] > 0 else 1.0,
                parameters=tested[name][0].parameters,
            )
        )
    return found


def sentences(lines: Sequence[Line], metric: Metric, *, units: int, called: str, seeds: int) -> list[str]:
    """What may be said, and what not.

    Args:
        lines: the finalists, from the best by validation to the worst.
        metric: the first one.
        units: how many test sequences there were.
        called: what they are called.
        seeds: how many there were.
    """
    best = lines[0]
    helping = [line for line in lines if line.says == HELPS]
    told = []
    if best.says == HELPS:
        told.append(f"{best.name}, the best by validation, helps: {_by(best, metric)}.")
    elif len(lines) == 1:
        told.append("Nothing is left to be compared with none: all others came to nothing.")
    elif best.name == NONE or not helping:
        told.append("Nothing was shown to help here; keep none.")
        if best.name != NONE:
            told.append(f"Best by validation is {best.name}, but on the test it {_verb(best)}: {_by(best, metric)}.")
    else:
        told.append(f"{best.name} is the best by validation, but on the test it {_verb(best)}: {_by(best, metric)}.")
    others = [line.name for line in helping if line is not best]
    if others:
        told.append(f"Better than none on the test{' too' * (best.says == HELPS)}: {', '.join(others)}.")
    if harming := [line.name for line in lines if line.says == HARMS]:
        told.append(f"Worse than none: {', '.join(harming)}.")
    unsure = [line for line in lines if line.says == UNKNOWN and line.needed]
    least = smallest_p(units, comparisons=len(lines) - 1)
    if least >= SIGNIFICANT and len(lines) > 1:
        told.append(
            f"Too few are tested: with {units:,} {called} and {len(lines) - 1} comparisons p cannot fall below "
            f"{least:.2g}, whatever a candidate does. Test on more (--test), or compare fewer (--lineup)."
        )
    elif unsure:
        near = next((line for line in unsure if line is best), min(unsure, key=lambda line: line.needed or 0))
        told.append(_wanting(near, near.differences[metric.name], units=units, called=called, seeds=seeds))
    if seeds == 1:
        told.append("With one seed nothing is known of how much training by chance adds: --seeds 3 would tell.")
    if metric.share and any(_cut(line, metric) for line in lines):
        told.append(
            f"Intervals of {metric.name} end at 0 and 100 %, and those of differences at -100 and +100 points: what "
            "lies beyond is impossible."
        )
    return told


def _cut(line: Line, metric: Metric) -> bool:
    """Whether an interval ends where scores do, though the score itself is another."""
    scores, apart = line.scores[metric.name], line.differences.get(metric.name)
    ends = [(scores.low, scores.value, 0.0), (scores.high, scores.value, 100.0)]
    ends += [] if apart is None else [(apart.low, apart.value, -100.0), (apart.high, apart.value, 100.0)]
    return any(end == limit != value for end, value, limit in ends)


def _wanting(line: Line, apart: Interval, *, units: int, called: str, seeds: int) -> str:
    """What would be needed to see a difference, if it is as large as it looks."""
    if apart.over_seeds > apart.over_units:
        return (
            f"What hides the difference of {line.name} are the seeds rather than the {units:,} test {called}: "
            f"more of them (--seeds {max(2 * seeds, 5)}) would tell more."
        )
    if (line.needed or 0) <= units:
        return f"{units:,} test {called} are too few to be sure of the difference of {line.name}."
    return (
        f"There were {units:,} test {called}; to see the difference of {line.name} four times out of five, about "
        f"{line.needed:,} would be needed, if it is as large as it looks."
    )


def _by(line: Line, metric: Metric) -> str:
    apart, score = line.differences.get(metric.name), line.scores[metric.name]
    if apart is None:
        return f"{metric.name} {score.value:.4g}"
    unit = f" {metric.unit}" if metric.unit else ""
    return (
        f"{metric.name} {score.value:.4g}, {_signed(apart.value)}{unit} against none "
        f"({_signed(apart.low)} to {_signed(apart.high)}; p = {line.p_holm or 0.0:.2g})"
    )


def _signed(value: float) -> str:
    return f"{value:+.2g}" if abs(value) < 99.5 else f"{value:+,.0f}"


def _verb(line: Line) -> str:
    return {HARMS: "harms", UNKNOWN: "cannot be told apart from none", None: "is the plain network"}[line.says]


def _says(difference: Interval, p: float, *, higher: bool) -> str:
    """Both must agree: the test over sequences, and the interval over sequences and seeds."""
    if p >= SIGNIFICANT or not difference.excludes_zero:
        return UNKNOWN
    return HELPS if (difference.value > 0) == higher else HARMS


def _shown(metric: Metric, found: Interval) -> Interval:
    value, low, high = (metric.shown(metric.possible(each)) for each in (found.value, found.low, found.high))
    return Interval(value, low, high, *_errors(metric, found))


def _shown_difference(metric: Metric, found: Interval) -> Interval:
    ends = (metric.possible(each, apart=True) for each in (found.value, found.low, found.high))
    value, low, high = (metric.shown_difference(each) for each in ends)
    return Interval(value, low, high, *_errors(metric, found))


def _errors(metric: Metric, found: Interval) -> tuple[float, float]:
    """Standard errors in the unit of differences: points, per cent, or the number's own."""
    factor = 100.0 if metric.share or metric.logarithmic else 1.0
    return factor * found.over_units, factor * found.over_seeds


def _draws(seed: int, name: str) -> np.random.Generator:
    """Draws of a candidate's own, so that its numbers do not depend on who else takes part."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])
