"""Copying memory: symbols, a delay, a trigger, and the symbols again."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts.memory_tasks import MemoryTaskContract, numbers_for
from statewise.data.copying_memory import CopyingMemory
from statewise.errors import ArgumentError


class TestContract(MemoryTaskContract):
    tasks = (
        (CopyingMemory(m=3, n=5, delay=4), 9),
        (CopyingMemory(m=2, n=3, delay=3, trigger_lead=1), 4),
        (CopyingMemory(m=4, n=8, delay=0, scale="bits"), 15),
        (CopyingMemory(m=30, n=32, delay=50), 100),
    )


@given(
    m=st.integers(1, 6), n=st.integers(2, 9), delay=st.integers(0, 7), lead=st.integers(0, 7), seed=st.integers(0, 999)
)
def test_examples_are_as_they_are_told(m: int, n: int, delay: int, lead: int, seed: int) -> None:
    """Written out position by position, as lists."""
    lead = min(lead, delay)
    task = CopyingMemory(m=m, n=n, delay=delay, trigger_lead=lead)
    numbers = numbers_for(task, seed=seed, dtype=torch.float64)
    inputs, answers = task.examples(numbers)
    data = [math.floor(u * n) for u in numbers.tolist()]
    expected = data + [n] * (delay - lead) + [n + 1] + [n] * (lead + m - 1)
    assert inputs.tolist() == expected
    assert answers.tolist() == [n] * (m + delay) + data
    assert len(expected) == task.steps


def test_symbols_are_uniform_and_independent() -> None:
    task = CopyingMemory(m=2, n=4, delay=1)
    data = task.examples(numbers_for(task, 40_000))[0][:, :2]
    counts = torch.bincount(data[:, 0] * 4 + data[:, 1], minlength=16)
    # 16 pairs, 2,500 of each expected; the chi-square of 15 degrees is below 45 with probability 0.9999
    assert ((counts - 2500) ** 2 / 2500).sum() < 45


@pytest.mark.parametrize(("delay", "loss"), [(0, 1.7329), (50, 0.9452), (1000, 0.09809)])
def test_the_baseline_is_the_printed_loss(delay: int, loss: float) -> None:
    task = CopyingMemory(m=30, n=32, delay=delay)
    assert task.baseline == pytest.approx(loss, rel=5e-5)
    assert task.min_delta == pytest.approx(1e-3 * 30 / (delay + 60))
    assert task.chance == 1 / 32


def test_the_baseline_is_the_loss_of_who_knows_only_the_time() -> None:
    """Blank until the data are due, then any of the n symbols: measured, not by the formula."""
    task = CopyingMemory(m=3, n=4, delay=6)
    _, answers = task.examples(numbers_for(task, 50))
    chances = torch.zeros(task.steps, task.classes)
    chances[: task.steps - 3, 4] = 1
    chances[task.steps - 3 :, :4] = 1 / 4
    told = chances.log().expand(50, -1, -1).flatten(0, 1)
    assert torch.nn.functional.nll_loss(told, answers.flatten()).item() == pytest.approx(task.baseline, rel=1e-6)


def test_hardness_is_the_delay_or_the_bits() -> None:
    assert CopyingMemory(m=30, n=32, delay=700).hardness == 700
    assert CopyingMemory(m=30, n=32, delay=7, scale="bits").hardness == 150
    harder = CopyingMemory(m=30, n=32, delay=7, scale="bits").harder(1000)
    assert (harder.m, harder.delay, harder.bits) == (200, 7, 1000.0)
    assert CopyingMemory(m=10, n=10, delay=0).bits == pytest.approx(10 * math.log2(10))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"m": 0}, r"CopyingMemory\.m: got 0, wanted an integer >= 1"),
        ({"n": 1}, r"CopyingMemory\.n: got 1, wanted an integer >= 2"),
        ({"delay": -1}, r"CopyingMemory\.delay: got -1"),
        ({"trigger_lead": -1}, r"CopyingMemory\.trigger_lead: got -1"),
        ({"trigger_lead": 6}, r"at most the delay, 5\. The trigger would stand among the data"),
        ({"scale": "length"}, r"CopyingMemory\.scale: got length, wanted one of delay, bits"),
        ({"n": 6, "scale": "bits"}, r"a power of two with scale='bits'"),
    ],
)
def test_senseless_tasks_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        CopyingMemory(**{"m": 3, "n": 4, "delay": 5, **options})


@pytest.mark.parametrize("bits", [7, 0, -2])
def test_bits_that_no_number_of_symbols_has_are_refused(bits: int) -> None:
    with pytest.raises(ArgumentError, match="a multiple of 2, the bits of one of 4 symbols"):
        CopyingMemory(m=3, n=4, delay=5, scale="bits").harder(bits)
