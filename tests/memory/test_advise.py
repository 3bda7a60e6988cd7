"""Advice on depth and width: bounds that hold, and warnings where they bind."""

from __future__ import annotations

import pytest

from statewise.errors import ArgumentError
from statewise.memory.advise import advise, rank_text, shape_advice
from statewise.memory.budget import orthogonal_parameters
from statewise.memory.generic import generic_rank


def test_every_depth_has_its_width_and_stays_within_the_budget() -> None:
    found = advise(budget=2**13, steps=100, inputs=34, classes=34, depths=(3, 1, 2))
    assert [(pair.depth, pair.width) for pair in found.pairs] == [(1, 76), (2, 48), (3, 39)]
    for pair in found.pairs:
        spent = orthogonal_parameters(inputs=34, classes=34, depth=pair.depth, width=pair.width)
        assert pair.parameters == spent <= 2**13
    assert [pair.proved for pair in found.pairs] == [True, True, False]
    thesis = advise(budget=2**13, steps=100, inputs=34, classes=34, count="thesis", depths=(2,))
    assert thesis.pairs[0].width == 54


@pytest.mark.parametrize(
    ("inputs", "width", "steps", "depth"), [(3, 2, 6, 1), (3, 3, 6, 2), (4, 3, 4, 3), (6, 5, 4, 3)]
)
def test_the_exact_rank_lies_between_the_bounds(inputs: int, width: int, steps: int, depth: int) -> None:
    bounds = shape_advice(depth=depth, width=width, inputs=inputs, steps=steps)
    rank = generic_rank(inputs=inputs, width=width, steps=steps, depth=depth).rank
    assert bounds.least <= rank <= bounds.most
    if bounds.known:
        assert rank == bounds.least


def test_a_width_below_the_alphabet_is_warned_of_where_it_binds() -> None:
    narrow = shape_advice(depth=3, width=5, inputs=6, steps=4)
    assert (narrow.least, narrow.printed, narrow.end_cap) == (30, 35, 30)
    assert "R = 5 < M = 6" in narrow.warning
    assert "false here" in narrow.warning
    binding = shape_advice(depth=3, width=3, inputs=4, steps=4)
    assert "U2 = 12 binds" in binding.warning
    assert not shape_advice(depth=1, width=5, inputs=6, steps=4).warning  # U1 binds
    assert not shape_advice(depth=2, width=3, inputs=4, steps=8).warning
    known = "the words of a half are all told apart"
    assert f"if the repaired conjecture holds, {known}" in shape_advice(depth=3, width=6, inputs=6, steps=4).warning
    assert shape_advice(depth=1, width=6, inputs=6, steps=2).warning.startswith(known)  # which is a theorem


def test_more_channels_are_not_advised_where_every_word_is_told_apart_already() -> None:
    """A Start of one step has M words, and two channels tell them all apart; the rank is M for any width."""
    found = shape_advice(depth=3, width=2, inputs=4, steps=4, split=1)
    assert "more channels" not in found.warning
    assert "all told apart" in found.warning
    assert [generic_rank(inputs=4, width=width, steps=4, depth=3, split=1).rank for width in (2, 3, 6)] == [4] * 3


def test_over_long_times_depth_is_what_remembers() -> None:
    found = advise(budget=2**14, steps=1000, inputs=34, classes=34)
    least = [pair.least for pair in found.pairs]
    assert least == sorted(least)
    assert found.best.depth == 4
    assert "repaired conjecture, which is not proved" in found.sentence


def test_what_is_proved_is_called_proved() -> None:
    found = advise(budget=2**14, steps=1000, inputs=34, classes=34, depths=(1, 2))
    assert found.best.depth == 2
    assert "(proved)" in found.sentence


def test_of_equals_the_shallowest_is_best() -> None:
    found = advise(budget=2**16, steps=2, inputs=3, depths=(1, 2, 3))
    assert {pair.least for pair in found.pairs} == {3}
    assert found.best.depth == 1


def test_other_splits_and_odd_lengths() -> None:
    found = advise(budget=1000, steps=7, inputs=3, split=3)
    assert {pair.split for pair in found.pairs} == {3}
    assert not found.pairs[1].proved  # of two layers only the middle is
    for pair in found.pairs:
        assert pair.least <= pair.most <= 3**3


def test_depths_that_do_not_fit_are_left_out() -> None:
    found = advise(budget=40, steps=4, inputs=30, depths=(1, 8, 40))
    assert [pair.depth for pair in found.pairs] == [1]
    assert found.left_out == (8, 40)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"budget": 5}, "Allow more parameters"),
        ({"budget": 0}, "budget"),
        ({"steps": 1}, "from 2 to 1000000"),
        ({"steps": 10**7}, "from 2 to 1000000"),
        ({"split": 0}, "from 1 to 7"),
        ({"classes": 0}, "classes"),
        ({"steps": 7}, "split: got none for 7 steps"),
        ({"split": 8}, "from 1 to 7"),
        ({"depths": ()}, "at least one"),
        ({"depths": (0,)}, "at least 1"),
        ({"inputs": 0}, "inputs"),
        ({"count": "other"}, "count"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        advise(**{"budget": 1000, "steps": 8, "inputs": 3, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("power", [8, 9, 100, 4299, 4301, 9000])
def test_powers_of_ten_are_told_at_their_edges(power: int) -> None:
    rank = 10**power
    assert rank_text(rank) == (f"1.00e{power}" if power >= 9 else "100,000,000")
    assert rank_text(rank - 1) == (f"9.99e{power - 1}" if power > 9 else f"{rank - 1:,}")


def test_depths_that_may_have_more_are_told() -> None:
    found = advise(budget=2**13, steps=100, inputs=34, classes=34)
    assert found.best.depth == 4
    assert "Upper bounds allow for more at depth 3." in found.sentence
    certain = advise(budget=2**13, steps=60, inputs=34, classes=34, depths=(1, 2))
    assert certain.pairs[0].most < certain.best.least
    assert "allow for more" not in certain.sentence


def test_one_symbol_is_refused_and_numbers_are_sent_elsewhere() -> None:
    with pytest.raises(ArgumentError, match=r"advise\.inputs: got 1, wanted a whole number of at least 2.*--samples"):
        advise(budget=20_000, steps=784, inputs=1, classes=10)


def test_one_of_anything_is_singular_and_the_depths_that_may_have_more_are_named() -> None:
    lone = advise(budget=8, steps=2, inputs=2, depths=(1,))
    assert lone.sentence.startswith("Within 8 parameters and over 2 steps, depth 1 with 1 channel has ")
    rivals = advise(budget=1000, steps=100_000, inputs=4)
    assert (
        rivals.rivals
        == (2, 3)
        == tuple(
            pair.depth for pair in rivals.pairs if pair.depth != rivals.best.depth and pair.most > rivals.best.least
        )
    )
    assert "more at depth 2 and 3." in rivals.sentence


def test_a_shape_of_one_symbol_has_bounds_of_one() -> None:
    bounds = shape_advice(depth=3, width=4, inputs=1, steps=6)
    assert bounds.least == bounds.most == bounds.printed == bounds.end_cap == 1
