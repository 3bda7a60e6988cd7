"""Who survives a rung, and how many epochs fit into a time."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.lineup import Standing, rungs, survivors
from statewise.lineup.budget import MARKS, more_epochs, too_little
from statewise.lineup.halving import NONE, check_line_up, protected, ranked

LOSSES = st.one_of(st.floats(-10, 10), st.sampled_from([math.inf, math.nan]))


@st.composite
def fields(draw: st.DrawFn) -> tuple[dict[str, Standing], dict[str, str]]:
    """Some families with strengths, and how each stands; the plain network always has a number."""
    standings, families = {NONE: Standing(draw(st.floats(-10, 10)))}, {NONE: NONE}
    for family in range(draw(st.integers(1, 5))):
        for strength in range(draw(st.integers(1, 3))):
            name = f"f{family}-{strength}"
            standings[name], families[name] = Standing(draw(LOSSES)), f"f{family}"
    return standings, families


@given(epochs=st.integers(1, 500), count=st.integers(1, 6), factor=st.integers(2, 4))
def test_rungs_rise_and_end_with_all_epochs(epochs: int, count: int, factor: int) -> None:
    found = rungs(epochs, count=count, factor=factor)
    assert found[-1] == epochs
    assert list(found) == sorted(set(found))
    assert 1 <= found[0]
    assert len(found) <= count


@given(field=fields(), last=st.booleans())
def test_the_plain_network_and_the_best_of_each_family_survive(
    field: tuple[dict[str, Standing], dict[str, str]], last: bool
) -> None:
    standings, families = field
    kept = survivors(standings, families, last=last)
    assert NONE in kept
    assert kept == [name for name in standings if name in kept], "in the order in which they came"
    for family in set(families.values()) - {NONE}:
        sound = [name for name in standings if families[name] == family and math.isfinite(standings[name].loss)]
        if sound:
            best = min(sound, key=lambda name: standings[name].loss)
            assert standings[best].loss in [standings[name].loss for name in kept if families[name] == family]
    assert all(math.isfinite(standings[name].loss) for name in kept)
    if last:
        assert len({families[name] for name in kept}) == len(kept), "one of each family"
    else:
        assert len(kept) <= max(len(protected(standings, families)), -(-len(standings) // 2))


@given(field=fields(), name=st.integers(0, 20), gain=st.floats(0.1, 20))
def test_a_better_score_never_costs_a_place(
    field: tuple[dict[str, Standing], dict[str, str]], name: int, gain: float
) -> None:
    standings, families = field
    kept = survivors(standings, families)
    chosen = kept[name % len(kept)]
    better = {**standings, chosen: Standing(standings[chosen].loss - gain)}
    assert chosen in survivors(better, families)


@given(field=fields())
def test_survivors_of_survivors_are_no_others(field: tuple[dict[str, Standing], dict[str, str]]) -> None:
    standings, families = field
    once = survivors(standings, families)
    again = survivors({name: standings[name] for name in once}, families, last=True)
    assert set(again) <= set(once)


def test_equals_are_told_apart_by_their_loss_and_then_by_their_place() -> None:
    assert ranked({"a": Standing(1.0, 2.0), "b": Standing(1.0, 1.0), "c": Standing(1.0, 1.0)}) == ["b", "c", "a"]


def test_a_line_up_needs_the_plain_network_and_another() -> None:
    check_line_up(["none", "dropout"])
    for names in (["none"], ["dropout"], []):
        with pytest.raises(ArgumentError, match="something to compare it with"):
            check_line_up(names)


@given(budget=st.floats(1, 1000), cost=st.floats(0.01, 2000), seed=st.integers(0, 1000))
def test_the_time_is_exceeded_by_an_epoch_at_most(budget: float, cost: float, seed: int) -> None:
    """Epochs may turn out up to twice as long as they were; whoever is dropped makes them shorter."""
    draw, spent, known = random.Random(seed), 0.0, cost
    for mark in MARKS:
        while more := more_epochs(left=mark * budget - spent, epoch=known):
            took = known * draw.uniform(0.5, 2.0)
            spent += more * took
            known = took
            assert spent <= mark * budget + took + 1e-9
        known *= draw.uniform(0.3, 1.0)


def test_too_little_time_says_how_much_would_do() -> None:
    assert "one epoch of 30 runs takes 10.0 minutes" in str(too_little(budget=60.0, epoch=600.0, runs=30))
    assert more_epochs(left=0.0, epoch=0.0) == 0
    with pytest.raises(ArgumentError):
        more_epochs(left=1.0, epoch=-1.0)
