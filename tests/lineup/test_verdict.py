"""What is said of a comparison: only what its numbers allow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from statewise.commands.compare_table import table_of
from statewise.lineup import Comparison, Interval, Line, adaptor
from statewise.lineup.classifying import ACCURACY, NLL
from statewise.lineup.exchange import exchange_test, smallest_p
from statewise.lineup.forecasting import Forecasting
from statewise.lineup.verdict import lines_of, sentences


def counted(shares: Mapping[str, tuple[float, ...]], units: int) -> dict[str, list[adaptor.Tested]]:
    """Candidates that are right on the first so many of their test sequences, a share for each seed."""
    found: dict[str, list[adaptor.Tested]] = {}
    for name, some in shares.items():
        hits = [(np.arange(units) < round(share * units)).astype(np.float64) for share in some]
        found[name] = [adaptor.Tested(np.stack([np.ones(units), each, 1.0 - each], axis=1), 10) for each in hits]
    return found


def judged(shares: Mapping[str, tuple[float, ...]], units: int) -> tuple[list[Line], list[str]]:
    """The lines in the order that was given, and what is said of them."""
    same = {name: name for name in shares}
    numbers = dict.fromkeys(shares, 1.0)
    lines = lines_of(counted(shares, units), same, numbers, numbers, (ACCURACY, NLL), seed=0)
    return lines, sentences(lines, ACCURACY, units=units, called="texts", seeds=len(next(iter(shares.values()))))


def test_no_interval_of_shares_leaves_what_is_possible() -> None:
    """Two seeds that differ much: Student's t with one degree of freedom reaches far beyond."""
    lines, said = judged({"noise": (0.2, 0.9), "none": (0.8, 0.3)}, 60)
    apart = lines[0].differences["accuracy"]
    assert (apart.low, apart.high) == (-100.0, 100.0)
    for line in lines:
        assert 0.0 <= line.scores["accuracy"].low <= line.scores["accuracy"].high <= 100.0
        assert line.scores["NLL"].low >= 0.0
    assert any("-100 and +100 points" in sentence for sentence in said)
    assert not any("e+" in sentence for sentence in said), said


def test_intervals_that_end_before_are_not_called_cut() -> None:
    _, said = judged({"noise": (0.6, 0.61, 0.6), "none": (0.5, 0.5, 0.51)}, 200)
    assert not any("impossible" in sentence for sentence in said)


@pytest.mark.parametrize("units", [1, 3, 5])
def test_so_few_sequences_that_nothing_can_be_shown_are_called_too_few(units: int) -> None:
    lines, said = judged({"noise": (1.0, 1.0), "none": (0.0, 0.0)}, units)
    assert lines[0].says == "unclear"
    assert lines[0].p == pytest.approx(smallest_p(units)), "all differ, in the same direction"
    assert said[0] == "Nothing was shown to help here; keep none."
    assert any(sentence.startswith(f"Too few are tested: with {units} texts") for sentence in said)


def test_enough_sequences_are_not_called_too_few() -> None:
    lines, said = judged({"noise": (1.0, 1.0), "none": (0.0, 0.0)}, 6)
    assert lines[0].says == "helps"
    assert not any("Too few" in sentence for sentence in said)


def test_the_smallest_p_is_that_of_the_test() -> None:
    for units in (2, 7, 12):
        rows = np.ones((1, units, 1))
        found = exchange_test(rows, 0 * rows, lambda sums: sums[..., 0], generator=np.random.default_rng(0))
        assert found == smallest_p(units)
    assert smallest_p(3, comparisons=9) == 1.0


def test_others_are_better_too_only_if_the_best_is() -> None:
    _, said = judged({"noise": (0.5,) * 3, "dropout": (0.95,) * 3, "none": (0.5,) * 3}, 200)
    assert "Better than none on the test: dropout." in said
    _, said = judged({"noise": (0.9,) * 3, "dropout": (0.95,) * 3, "none": (0.5,) * 3}, 200)
    assert "Better than none on the test too: dropout." in said


def test_a_standardised_error_is_shown_with_the_digits_in_which_candidates_differ() -> None:
    rmse, _ = Forecasting().metrics
    apart = {"RMSE": Interval(1.0, -1.0, 3.0, 0.5, 0.5), "NLL": Interval(0.0, -1.0, 1.0, 0.5, 0.5)}
    scores = {"RMSE": Interval(0.59321, 0.4, 0.8, 0.1, 0.1), "NLL": Interval(1.0, 0.5, 1.5, 0.1, 0.1)}
    line = Line(name="noise-0.3", family="noise", valid=0.59318, scores=scores, differences=apart, p_holm=0.5)
    found = Comparison(
        folder=Path("x"), kind="forecast", lines=(line,), says=(), best="noise-0.3", best_run="noise-0.3-s0", units=9,
        called="windows", epochs=1, seeds=(0, 1),
    )  # fmt: skip
    (row,) = table_of(found).rows
    assert row[1:3] == ["0.5932", "0.5932 [0.4000, 0.8000]"]
    assert str(ACCURACY.loss(0.0)) == "0.0"
    assert rmse.loss(0.5) == 0.5
