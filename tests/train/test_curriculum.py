"""What changes from epoch to epoch: lengths, temperature, noise."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.train import Curriculum, NoiseRamp, temperature_at
from statewise.train.classify_data import EpochBatches

LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=40)


def test_the_longest_grows_when_the_loss_is_low_or_after_so_many_epochs() -> None:
    curriculum = Curriculum(range(1, 10), start=2, step=3, every=3, solved=0.1)
    found = []
    for loss in (0.5, 0.05, 0.5, 0.5, 0.5, 0.01):
        curriculum.observe(loss)
        found.append(curriculum.longest)
    assert found == [2, 5, 5, 5, 8, 9]
    assert curriculum.complete
    assert curriculum.complete_at == 6


def test_without_a_start_all_lengths_are_there_from_the_beginning() -> None:
    curriculum = Curriculum([4, 900], start=None)
    assert curriculum.complete
    assert not curriculum.observe(0.0)
    assert curriculum.longest == 900


def test_lengths_that_no_example_has_are_passed_over() -> None:
    curriculum = Curriculum([4, 900], start=1)
    assert curriculum.longest == 4
    assert curriculum.observe(0.0)
    assert curriculum.longest == 900


@given(LENGTHS, st.integers(0, 40), st.integers(1, 5), st.integers(1, 3))
def test_it_always_ends_with_all_lengths_and_every_step_adds_examples(
    lengths: list[int], start: int, step: int, every: int
) -> None:
    curriculum = Curriculum(lengths, start=start, step=step, every=every)
    seen = [sum(length <= curriculum.longest for length in lengths)]
    assert seen[0] > 0
    grown = [curriculum.longest for _ in range(every * (len(set(lengths)) + 1)) if curriculum.observe(9.0)]
    seen += [sum(length <= longest for length in lengths) for longest in grown]
    assert curriculum.complete
    assert seen == sorted(set(seen))


def test_no_lengths_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"Curriculum\.lengths"):
        Curriculum([], start=1)


def test_the_noise_grows_only_while_the_loss_is_low_and_stops_at_its_most() -> None:
    ramp = NoiseRamp(0.0, ramp=0.1, most=0.25)
    found = []
    for loss in (1.0, 0.01, 0.2, 0.01, 0.01, 0.01, 0.01):
        ramp.observe(loss, updates=1)
        found.append(ramp.noise)
    assert found == [0.0, 0.0625, 0.0625, 0.125, 0.1875, 0.25, 0.25]


def test_noise_that_begins_above_its_most_stays() -> None:
    ramp = NoiseRamp(2.0, ramp=0.1, most=1.0)
    assert not ramp.observe(0.0, updates=9)
    assert ramp.noise == 2.0


@pytest.mark.parametrize("rule", [Curriculum([1, 2, 3], start=1), NoiseRamp(0.0, ramp=0.1, most=1.0)])
def test_a_rule_goes_on_from_its_state(rule: Curriculum | NoiseRamp) -> None:
    state = json.loads(json.dumps(rule.state()))
    loss = {"loss": 0.01} if isinstance(rule, Curriculum) else {"loss": 0.01, "updates": 1}
    rule.observe(**loss)  # type: ignore[arg-type]
    after = rule.state()
    assert after != state
    rule.load_state(state)
    rule.observe(**loss)  # type: ignore[arg-type]
    assert rule.state() == after


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.integers(2, 50))
def test_the_temperature_goes_from_its_begin_to_its_end_in_equal_ratios(begin: float, end: float, epochs: int) -> None:
    found = [temperature_at(epoch, epochs, begin=begin, end=end) for epoch in range(epochs)]
    assert found[0] == begin
    assert found[-1] == end
    ratios = [later / earlier for earlier, later in itertools.pairwise(found)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios))


def test_without_an_end_the_temperature_stays() -> None:
    assert {temperature_at(epoch, 9, begin=0.7, end=None) for epoch in range(12)} == {0.7}


@given(LENGTHS, st.integers(1, 7), st.integers(1, 3), st.integers(0, 30))
def test_the_batches_of_an_epoch_hold_every_example_that_is_short_enough_once(
    lengths: list[int], batch: int, bucket: int, longest: int
) -> None:
    generator = torch.Generator().manual_seed(len(lengths))
    sizes = np.array(lengths)
    batches = EpochBatches.shuffled(sizes, batch=batch, bucket=bucket, longest=longest, generator=generator)
    assert sorted(batches.places.tolist()) == np.flatnonzero(sizes <= longest).tolist()
    found = [part.stop - part.start for part in batches.slices()]
    assert sum(found) == len(batches.places)
    assert all(size == batch for size in sorted(found)[1:])


def test_batches_of_a_bucket_are_padded_much_less_than_random_ones() -> None:
    lengths = np.random.default_rng(0).integers(1, 101, size=3000)

    def padding(bucket: int) -> int:
        generator = torch.Generator().manual_seed(0)
        batches = EpochBatches.shuffled(lengths, batch=30, bucket=bucket, generator=generator)
        parts = [lengths[batches.places[part]] for part in batches.slices()]
        return sum(int((part.max() - part).sum()) for part in parts)

    assert padding(50) < 0.05 * padding(1)


def test_another_epoch_has_other_batches_and_the_same_seed_the_same() -> None:
    def order(seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        places = EpochBatches.shuffled(np.full(50, 7), batch=8, generator=generator).places
        return [int(place) for place in places]

    assert order(1) == order(1) != order(2)
    assert order(1) != sorted(order(1))
