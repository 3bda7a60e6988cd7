"""Intervals that cover, tests that do not cry wolf, and known answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from statewise.data import TaggedSentences, compare_span_runs
from statewise.errors import ArgumentError, ShapeError
from statewise.lineup import Interval, difference_interval, exchange_test, holm, score_interval, sequences_needed
from statewise.lineup.tagging import _counts, _f1


def mean(sums: np.ndarray) -> np.ndarray:
    """Of rows that have a number and a 1 each."""
    return np.asarray(sums[..., 0] / sums[..., 1])


def rows_of(values: np.ndarray) -> np.ndarray:
    return np.stack([values, np.ones_like(values)], axis=-1)


def drawn(
    generator: np.random.Generator, *, seeds: int, units: int, over_seeds: float, over_units: float
) -> np.ndarray:
    """Scores around 0: a part of the seed's, a part of the sequence's, and a part of both."""
    of_seeds = over_seeds * generator.normal(size=(seeds, 1))
    of_units = over_units * generator.normal(size=(1, units))
    return rows_of(of_seeds + of_units + 0.3 * over_units * generator.normal(size=(seeds, units)))


def test_an_exchange_of_few_sequences_is_exact() -> None:
    """Every way in which sequences may change sides, by hand."""
    one, other = np.array([[3.0, 5.0, 2.0, 9.0]]), np.array([[1.0, 6.0, 2.0, 4.0]])
    apart = (one - other)[0]
    seen = abs(apart.mean())
    ways = [abs(np.mean(apart * signs)) for signs in itertools.product((1, -1), repeat=4)]
    by_hand = np.mean([way >= seen - 1e-12 for way in ways])
    found = exchange_test(rows_of(one), rows_of(other), mean, generator=np.random.default_rng(0))
    assert found == pytest.approx(by_hand)


def test_drawn_exchanges_come_near_the_exact_ones() -> None:
    generator = np.random.default_rng(3)
    one = generator.normal(size=(1, 13)) + 0.4
    other = generator.normal(size=(1, 13))
    apart = (one - other)[0]
    signs = 1 - 2 * ((np.arange(2**13)[:, None] >> np.arange(13)) & 1)
    exact = np.mean(np.abs(signs @ apart) >= abs(apart.sum()) - 1e-12)
    found = exchange_test(rows_of(one), rows_of(other), mean, generator=np.random.default_rng(0))
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000) + 1e-4)


def test_of_spans_it_is_the_test_that_the_data_room_has() -> None:
    gold = (("B-PER", "O"), ("O", "B-LOC"), ("B-PER", "I-PER"), ("O", "O"), ("B-LOC", "O"))
    one = (("B-PER", "O"), ("O", "B-LOC"), ("B-PER", "O"), ("B-PER", "O"), ("B-LOC", "O"))
    other = (("O", "O"), ("O", "B-PER"), ("B-PER", "I-PER"), ("O", "O"), ("O", "O"))
    sentences = TaggedSentences(tuple(("a", "b") for _ in gold), gold, "iob2")
    rows = [np.stack([_counts(sentences, tags)]) for tags in (one, other)]
    theirs = compare_span_runs(gold, [one], [other], draws=2000)
    found = exchange_test(rows[0], rows[1], _f1, generator=np.random.default_rng(0))
    assert found == pytest.approx(theirs.p)
    assert float(_f1(rows[0].sum(1))[0] - _f1(rows[1].sum(1))[0]) == pytest.approx(theirs.difference)


def test_holm_is_the_published_rule_and_keeps_the_order() -> None:
    raised = holm({"a": 0.005, "b": 0.011, "c": 0.02, "d": 0.04, "e": 0.13})
    assert [raised[name] for name in "abcde"] == pytest.approx([0.025, 0.044, 0.06, 0.08, 0.13])
    assert holm({}) == {}
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_what_is_the_same_differs_by_nothing() -> None:
    rows = drawn(np.random.default_rng(0), seeds=3, units=30, over_seeds=1.0, over_units=1.0)
    found = difference_interval(rows, rows, mean, generator=np.random.default_rng(0))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    assert not found.excludes_zero
    assert exchange_test(rows, rows, mean, generator=np.random.default_rng(0)) == 1.0
    assert sequences_needed(found, 30) is None


def test_standard_errors_are_those_of_the_textbook() -> None:
    rows = drawn(np.random.default_rng(1), seeds=4, units=200, over_seeds=2.0, over_units=3.0)
    found = score_interval(rows, mean, generator=np.random.default_rng(0), draws=20_000)
    scores = rows[..., 0].mean(1)
    assert found.value == pytest.approx(scores.mean())
    assert found.over_seeds == pytest.approx(scores.std(ddof=1) / 2)
    assert found.over_units == pytest.approx(rows[..., 0].mean(0).std() / np.sqrt(200), rel=0.03)


def test_one_seed_knows_only_of_sequences() -> None:
    rows = drawn(np.random.default_rng(1), seeds=1, units=50, over_seeds=5.0, over_units=1.0)
    assert score_interval(rows, mean, generator=np.random.default_rng(0)).over_seeds == 0.0


def test_the_same_draws_give_the_same_interval() -> None:
    rows = drawn(np.random.default_rng(1), seeds=3, units=50, over_seeds=1.0, over_units=1.0)
    one, two = (score_interval(rows, mean, generator=np.random.default_rng(7)) for _ in range(2))
    assert one == two


@pytest.mark.usefixtures("as_users_have_it")
def test_shapes_that_cannot_be_compared_are_refused() -> None:
    rows, few = np.ones((2, 3, 2)), np.ones((2, 4, 2))
    generator = np.random.default_rng(0)
    with pytest.raises(ShapeError):
        difference_interval(rows, few, mean, generator=generator)
    with pytest.raises(ShapeError):
        exchange_test(rows, few, mean, generator=generator)
    with pytest.raises(ShapeError):
        score_interval(np.ones((0, 3, 2)), mean, generator=generator)
    with pytest.raises(ArgumentError):
        score_interval(rows, mean, generator=generator, draws=5)


def test_so_many_sequences_as_it_says_show_the_difference() -> None:
    """Simulated: of normal differences with that mean and spread, four of five tests find them."""
    apart, spread, units = 0.2, 1.0, 40
    asked = sequences_needed(Interval(apart, -1.0, 1.0, spread / np.sqrt(units), 0.0), units)
    assert asked == pytest.approx(((1.96 + 0.8416) * spread / apart) ** 2, rel=0.02)
    generator = np.random.default_rng(0)
    samples = apart + spread * generator.normal(size=(2000, int(asked or 0)))
    z = samples.mean(1) / (samples.std(1, ddof=1) / np.sqrt(samples.shape[1]))
    assert np.mean(np.abs(z) > 1.96) == pytest.approx(0.8, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("over_seeds", "over_units"), [(0.0, 1.0), (1.0, 0.3), (0.1, 1.0), (0.3, 0.3)])
def test_intervals_hold_the_truth_as_often_as_they_say(over_seeds: float, over_units: float) -> None:
    """Where seeds rule, where sequences rule, and where neither does, with three seeds."""
    generator, held, tries = np.random.default_rng(11), 0, 600
    for _ in range(tries):
        rows = drawn(generator, seeds=3, units=60, over_seeds=over_seeds, over_units=over_units)
        found = score_interval(rows, mean, generator=generator, draws=400)
        held += found.low <= 0.0 <= found.high
    assert held / tries >= 0.93


@pytest.mark.slow
def test_five_of_a_hundred_differences_that_are_none_are_taken_for_one() -> None:
    generator, alarms, tries = np.random.default_rng(5), 0, 600
    for _ in range(tries):
        of_units = generator.normal(size=(1, 40))
        one, two = (rows_of(of_units + generator.normal(size=(3, 40))) for _ in range(2))
        alarms += exchange_test(one, two, mean, generator=generator, draws=400) <= 0.05
    assert 0.03 <= alarms / tries <= 0.075
