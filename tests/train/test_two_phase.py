"""The rule that divides the rates once and then ends a run."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.train.two_phase import TwoPhase

LOSSES = st.lists(st.sampled_from([0.1, 0.15, 0.2, 0.5, 0.6, 1.0]), max_size=40)


def by_the_book(losses: list[float], *, min_delta: float, patience: int) -> list[str]:
    """Written from the sentence: a phase ends with the first run of more than ``patience`` losses that all fail."""
    told, best, phase, failed = [], math.inf, 1, 0
    for loss in losses:
        failed = 0 if loss < best - min_delta else failed + 1
        best = loss if failed == 0 else best
        if failed > patience:
            told.append("slower" if phase == 1 else "stop")
            phase, failed = phase + 1, 0
            if phase == 3:
                break
        else:
            told.append("waiting" if failed else "improved")
    return told


@given(losses=LOSSES, min_delta=st.sampled_from([0.0, 0.06, 0.3]), patience=st.integers(0, 4))
def test_it_says_what_the_sentence_says(losses: list[float], min_delta: float, patience: int) -> None:
    expected = by_the_book(losses, min_delta=min_delta, patience=patience)
    rule = TwoPhase(min_delta=min_delta, patience=patience)
    assert [rule.observe(loss) for loss in losses[: len(expected)]] == expected
    assert rule.over == (expected[-1:] == ["stop"])


@given(losses=LOSSES, cut=st.integers(0, 40))
def test_one_that_was_saved_goes_on_as_if_nothing_had_happened(losses: list[float], cut: int) -> None:
    length = len(by_the_book(losses, min_delta=0.06, patience=2))
    whole, begun = TwoPhase(min_delta=0.06, patience=2), TwoPhase(min_delta=0.06, patience=2)
    expected = [whole.observe(loss) for loss in losses[:length]]
    found = [begun.observe(loss) for loss in losses[: min(cut, length)]]
    again = TwoPhase(**json.loads(json.dumps(begun.describe(), allow_nan=False)))
    assert again == begun
    assert found + [again.observe(loss) for loss in losses[min(cut, length) : length]] == expected
    assert again == whole


def test_more_than_ten_looks_are_needed_by_default() -> None:
    rule = TwoPhase(min_delta=1e-3)
    assert rule.observe(1.0) == "improved"
    assert [rule.observe(1.0) for _ in range(11)] == ["waiting"] * 10 + ["slower"]
    assert [rule.observe(1.0) for _ in range(11)] == ["waiting"] * 10 + ["stop"]


def test_an_improvement_must_be_more_than_min_delta_of_the_best() -> None:
    rule = TwoPhase(min_delta=0.25)
    assert [rule.observe(loss) for loss in (1.0, 0.75, 0.5, 0.25)] == ["improved", "waiting", "improved", "waiting"]
    assert rule.best == 0.5


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_ends_the_run(loss: float) -> None:
    rule = TwoPhase(min_delta=0.1)
    assert [rule.observe(1.0), rule.observe(loss)] == ["improved", "diverged"]
    with pytest.raises(ArgumentError, match=r"TwoPhase\.observe: got the loss 1\.0 after the end"):
        rule.observe(1.0)
    assert rule.describe()["best"] == 1.0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"min_delta": -1.0}, "min_delta"),
        ({"min_delta": math.nan}, "min_delta"),
        ({"patience": -1}, "patience"),
        ({"waited": -1}, "waited"),
        ({"best": math.inf}, "best"),
    ],
)
def test_senseless_rules_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=rf"TwoPhase\.{text}: got"):
        TwoPhase(**{"min_delta": 0.1, **options})
