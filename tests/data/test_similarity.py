"""Start-End similarity: two words T / 2 apart, which agree nowhere, at half of their places, or everywhere."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.memory_tasks import MemoryTaskContract, numbers_for
from statewise.data.similarity import StartEndSimilarity
from statewise.errors import ArgumentError


class TestContract(MemoryTaskContract):
    tasks = (
        (StartEndSimilarity(length=10, m=3, n=4), 14),
        (StartEndSimilarity(length=12, m=5, n=2, inclusive=True), 20),
        (StartEndSimilarity(length=8, m=4, n=3), 10),
        (StartEndSimilarity(length=90, m=30, n=32), 120),
    )


def halves(task: StartEndSimilarity, count: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    sequences, answers = task.examples(numbers_for(task, count, seed=seed))
    return sequences[:, : task.length // 2], sequences[:, task.length // 2 :], answers


@given(
    m=st.integers(1, 6), room=st.integers(0, 4), n=st.integers(2, 5), inclusive=st.booleans(), seed=st.integers(0, 99)
)
def test_every_example_is_as_it_is_told(m: int, room: int, n: int, inclusive: bool, seed: int) -> None:
    task = StartEndSimilarity(length=2 * (m + room), m=m, n=n, inclusive=inclusive)
    agreeing = {0: 0, 1: round(m / 2), 2: m}
    for first, second, answer in zip(*halves(task, 20, seed), strict=True):
        words = (first != n).nonzero().flatten()
        assert torch.equal(words, (second != n).nonzero().flatten()), "aligned, T / 2 apart"
        assert words.tolist() == list(range(int(words[0]), int(words[0]) + m)), "in one piece"
        assert int(words[0]) <= (max(room - 1, 0) if not inclusive else room)
        assert int((first == second)[words].sum()) == agreeing[int(answer)]


def test_classes_places_and_agreements_are_uniform() -> None:
    task = StartEndSimilarity(length=16, m=4, n=3)
    first, second, answers = halves(task, 30_000)
    shares = torch.bincount(answers) / 30_000
    torch.testing.assert_close(shares, torch.full((3,), 1 / 3), rtol=0, atol=0.015)
    starts = (first != 3).int().argmax(1)
    assert starts.unique().tolist() == [0, 1, 2, 3], "1 to T / 2 - m, counted from 1"
    torch.testing.assert_close(torch.bincount(starts) / 30_000, torch.full((4,), 0.25), rtol=0, atol=0.015)
    words, others = (half.gather(1, starts.unsqueeze(1) + torch.arange(4)) for half in (first, second))
    half = answers == 1
    # Each of the six pairs of places agrees equally often: 5,000 of about 10,000 at each place.
    sets = ((words == others)[half].long() * torch.tensor([1, 2, 4, 8])).sum(1)
    found = torch.bincount(sets, minlength=16)
    assert found.nonzero().flatten().tolist() == [3, 5, 6, 9, 10, 12]
    torch.testing.assert_close(found[found > 0] / half.sum(), torch.full((6,), 1 / 6), rtol=0, atol=0.02)
    shift = ((others - words) % 3)[answers == 0].flatten()
    torch.testing.assert_close(
        torch.bincount(shift, minlength=3) / len(shift), torch.tensor([0, 0.5, 0.5]), rtol=0, atol=0.02
    )


def test_the_last_place_is_taken_only_if_it_is_asked_for() -> None:
    first, _, _ = halves(StartEndSimilarity(length=16, m=4, n=3, inclusive=True), 2000)
    assert (first != 3).int().argmax(1).max() == 4


@pytest.mark.parametrize(("m", "half"), [(1, 0), (3, 2), (5, 2), (7, 4), (4, 2)])
def test_half_of_an_odd_word_is_rounded_to_even(m: int, half: int) -> None:
    first, second, answers = halves(StartEndSimilarity(length=2 * m, m=m, n=4), 300)
    assert (first == second).sum(1)[answers == 1].unique().tolist() == [half]


def test_words_that_fill_the_sequence_leave_no_blank() -> None:
    full, longer = StartEndSimilarity(length=60, m=30, n=32), StartEndSimilarity(length=62, m=30, n=32)
    assert (full.inputs, longer.inputs) == (32, 33)
    assert full.examples(numbers_for(full, 100))[0].max() == 31
    assert full.baseline == pytest.approx(math.log(3))
    assert full.min_delta == 1e-3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"length": 11}, r"StartEndSimilarity\.length: got 11, wanted an even integer >= 2"),
        ({"length": 0}, r"StartEndSimilarity\.length: got 0"),
        ({"m": 6}, r"StartEndSimilarity\.m: got 6, wanted 1 to 5, half of the length"),
        ({"m": 0}, r"StartEndSimilarity\.m: got 0"),
        ({"n": 1}, r"StartEndSimilarity\.n: got 1, .* With one symbol no two words differ"),
    ],
)
def test_senseless_tasks_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        StartEndSimilarity(**{"length": 10, "m": 3, "n": 4, **options})
