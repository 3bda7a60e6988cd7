"""Streams as parallel columns."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from statewise.data import Columns, TokenStream, bptt_lengths, columns
from statewise.data.columns import NOTHING
from statewise.errors import ArgumentError, LengthError


def counting(tokens: int) -> TokenStream:
    """A stream whose ids are their places."""
    return TokenStream(np.arange(tokens))


SIZES = st.tuples(st.integers(1, 7), st.integers(0, 60)).map(lambda pair: (pair[0], 2 * pair[0] + pair[1]))


@given(SIZES, st.integers(1, 9))
def test_a_column_is_a_stretch_of_the_stream_and_its_targets_are_one_further_on(
    sizes: tuple[int, int], length: int
) -> None:
    batch, tokens = sizes
    rows = tokens // batch
    found = list(Columns(counting(tokens), batch).segments(length))
    inputs, targets = (torch.cat([segment[side] for segment in found]) for side in (0, 1))
    whole = torch.arange(rows * batch).view(batch, rows).T
    assert inputs.equal(whole[:-1])
    assert targets.equal(whole[1:])
    assert [len(segment[0]) for segment in found[:-1]] == [length] * (len(found) - 1)
    assert inputs.dtype == targets.dtype == torch.int64


@given(SIZES, st.integers(1, 9), st.booleans())
def test_for_evaluation_every_token_but_the_first_is_a_target_once(
    sizes: tuple[int, int], length: int, started: bool
) -> None:
    batch, tokens = sizes
    start_token = 999 if started else None
    whole = Columns(counting(tokens), batch, start_token=start_token, overlap=True, remainder=True)
    seen: list[int] = []
    for inputs, targets in whole.segments(length):
        real = targets != NOTHING
        assert (inputs >= 0).all()
        # The input is the token before, across columns too.
        before = torch.where(targets == 0, 999, targets - 1)
        assert inputs[real].equal(before[real])
        seen += targets[real].tolist()
    assert sorted(seen) == list(range(0 if started else 1, tokens))
    assert whole.predicted == len(seen)
    assert len(whole) == math.ceil(len(seen) / batch)


@given(SIZES)
def test_without_the_remainder_no_target_is_missing_in_between(sizes: tuple[int, int]) -> None:
    batch, tokens = sizes
    whole = Columns(counting(tokens), batch, overlap=True)
    _, targets = whole.segment(0, len(whole))
    assert targets.T.flatten().tolist() == list(range(1, 1 + (tokens - 1) // batch * batch))


def test_nothing_stands_in_the_last_row_only() -> None:
    whole = Columns(counting(12), 4, overlap=True, remainder=True)
    _, targets = whole.segment(0, len(whole))
    assert targets.tolist() == [[1, 4, 7, 10], [2, 5, 8, 11], [3, 6, 9, NOTHING]]
    scores = torch.arange(48.0).view(4, 12).sin()
    assert cross_entropy(scores, targets[2]) == cross_entropy(scores[:3], targets[2, :3])


def test_a_start_token_comes_before_the_stream() -> None:
    inputs, targets = Columns(counting(5), 1, start_token=42).segment(0, 5)
    assert inputs.flatten().tolist() == [42, 0, 1, 2, 3]
    assert targets.flatten().tolist() == [0, 1, 2, 3, 4]
    assert Columns(counting(5), 2, start_token=42).segment(1, 1)[0].tolist() == [[0, 3]]


@pytest.mark.parametrize("window", [1, 100, 10_000])
def test_windows_of_any_size_give_the_same_segments_in_any_order(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Columns(counting(1000), 7).to("cpu")
    monkeypatch.setattr(columns, "_WINDOW_BYTES", window)
    some = Columns(counting(1000), 7)
    for start, length in [(0, 9), (9, 9), (3, 1), (100, 41), (100, 41), (140, 1), (0, 141)]:
        for ours, theirs in zip(some.segment(start, length), whole.segment(start, length), strict=True):
            assert ours.equal(theirs)


def test_a_segment_that_was_given_out_does_not_change_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_WINDOW_BYTES", 1)
    some = Columns(counting(100), 2)
    first = some.segment(0, 5)[0]
    kept = first.clone()
    some.segment(30, 5)
    assert first.equal(kept)


def test_columns_kept_whole_give_views_of_one_tensor() -> None:
    whole = Columns(counting(1000), 4).to("cpu")
    (a, b), (c, _) = whole.segment(0, 10), whole.segment(200, 10)
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() == c.untyped_storage().data_ptr()
    assert a.is_contiguous()


def test_columns_over_the_limit_are_kept_in_parts_with_the_same_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_WINDOW_BYTES", 800)
    parts = Columns(counting(1000), 4).to("cpu", limit=7999)
    a, b = parts.segment(0, 10)[0], parts.segment(200, 10)[0]
    assert a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr()
    assert b[0].tolist() == [200, 450, 700, 950]
    whole = Columns(counting(1000), 4).to("cpu", limit=8000)
    assert whole.segment(200, 10)[0].untyped_storage().nbytes() == 8000


def test_moving_leaves_the_columns_as_they_were() -> None:
    here = Columns(counting(100), 4)
    there = here.to("meta")
    assert (here.device.type, there.device.type) == ("cpu", "meta")
    assert (here.segment(0, 3)[0].device.type, there.segment(0, 3)[0].device.type) == ("cpu", "meta")


@pytest.mark.gpu
def test_segments_of_a_device_are_those_of_the_host() -> None:
    here = Columns(counting(1000), 4)
    for there in (here.to("cuda"), here.to("cuda", limit=0)):
        for ours, theirs in zip(there.segment(30, 9), here.segment(30, 9), strict=True):
            assert ours.is_cuda
            assert ours.cpu().equal(theirs)


@pytest.mark.parametrize("world", [1, 2, 3, 6])
@pytest.mark.parametrize("moved", [False, True])
def test_shards_side_by_side_are_the_columns(world: int, moved: bool) -> None:
    whole = Columns(counting(103), 6, overlap=True, remainder=True)
    whole = whole.to("cpu") if moved else whole
    shards = [whole.shard(rank, world) for rank in range(world)]
    for side in (0, 1):
        assert torch.cat([shard.segment(0, len(shard))[side] for shard in shards], 1).equal(
            whole.segment(0, len(whole))[side]
        )
    assert {len(shard) for shard in shards} == {len(whole)}
    assert sum(shard.predicted for shard in shards) == whole.predicted == 102


@pytest.mark.parametrize(("rank", "world"), [(0, 4), (2, 2), (-1, 2), (0, 0)])
def test_columns_that_cannot_be_divided_are_refused(rank: int, world: int) -> None:
    with pytest.raises(ArgumentError, match="Columns"):
        Columns(counting(100), 6).shard(rank, world)


def test_a_run_goes_on_where_it_stopped() -> None:
    whole = Columns(counting(100), 2)
    later = list(whole.segments(7, start=21))
    for ours, theirs in zip(later, list(whole.segments(7))[3:], strict=True):
        assert ours[1].equal(theirs[1])
    assert list(whole.segments(7, start=len(whole))) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"start_token": -1}, "start_token"),
        ({"remainder": True}, "overlap=True"),
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Columns(counting(100), **({"batch_size": 2} | options))


@pytest.mark.parametrize(("tokens", "overlap", "least"), [(9, False, 10), (5, True, 6), (0, False, 10), (0, True, 6)])
def test_a_stream_too_short_is_refused_and_one_token_more_is_enough(tokens: int, overlap: bool, least: int) -> None:
    with pytest.raises(LengthError, match=f"at least {least} tokens for 5 columns"):
        Columns(counting(tokens), 5, overlap=overlap, remainder=overlap)
    assert len(Columns(counting(least), 5, overlap=overlap, remainder=overlap)) == 1


@pytest.mark.parametrize(("start", "length"), [(-1, 2), (0, 0), (0, 50), (48, 2)])
def test_a_segment_outside_is_refused(start: int, length: int) -> None:
    whole = Columns(counting(100), 2)
    assert len(whole) == 49
    with pytest.raises(ArgumentError, match=r"Columns\.segment"):
        whole.segment(start, length)


@given(st.integers(1, 3000), st.integers(1, 100), st.booleans(), st.integers(0, 2**32))
def test_lengths_make_up_the_total(total: int, base: int, random: bool, seed: int) -> None:
    lengths = bptt_lengths(total, base=base, random=random, generator=torch.Generator().manual_seed(seed))
    assert sum(lengths) == total
    assert min(lengths) >= 1
    if random:
        assert all(5 <= length <= base + 40 for length in lengths[:-1])
    else:
        assert lengths[:-1] == [base] * (len(lengths) - 1)


def test_random_lengths_have_the_law_of_the_paper(generator: torch.Generator) -> None:
    lengths = torch.tensor(bptt_lengths(400_000, base=70, random=True, generator=generator)[:-1]).double()
    # int() cuts off half a step on average. The two bases are 14 standard deviations apart from 52.
    long = lengths > 52
    assert long.double().mean() == pytest.approx(0.95, abs=0.01)
    assert lengths[long].mean() == pytest.approx(69.5, abs=0.3)
    assert lengths[~long].mean() == pytest.approx(34.5, abs=1.2)
    assert lengths[long].std() == pytest.approx(5, abs=0.2)


def test_random_lengths_are_those_of_the_seed() -> None:
    drawn = [
        bptt_lengths(5000, base=70, random=True, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_longest_may_be_named() -> None:
    lengths = bptt_lengths(5000, base=70, random=True, generator=torch.Generator().manual_seed(1), most=70)
    assert max(lengths) == 70


def test_random_lengths_need_a_generator() -> None:
    with pytest.raises(ArgumentError, match="generator"):
        bptt_lengths(100, base=70, random=True)


@pytest.mark.parametrize("options", [{"total": 0, "base": 3}, {"total": 3, "base": 0}])
def test_lengths_of_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="bptt_lengths"):
        bptt_lengths(**options)


def test_segments_have_the_lengths_that_were_drawn(generator: torch.Generator) -> None:
    whole = Columns(counting(3000), 3)
    lengths = bptt_lengths(len(whole), base=20, random=True, generator=generator)
    found = list(whole.segments(lengths))
    assert [len(inputs) for inputs, _ in found] == lengths
    for (_, before), (after, _) in pairwise(found):
        assert before[-1].equal(after[0])


@pytest.mark.parametrize(("tokens", "updates"), [(929_589, 332), (2_088_628, 746)])
def test_the_published_numbers_of_updates_come_out(tokens: int, updates: int) -> None:
    assert Columns(counting(tokens), 80).updates(35) == updates
