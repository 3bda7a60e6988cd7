"""Numbers that are a function of seed and place."""

from __future__ import annotations

import math
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.native import load_native
from statewise.transforms import Randomness, streams
from statewise.transforms.counter import normals, uniforms, words

CPU = torch.device("cpu")
SEEDS = st.integers(0, 2**63 - 1)
MASK = 2**64 - 1


def splitmix(seed: int, index: int) -> int:
    """SplitMix64 in plain integers."""
    x = (seed + index * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


@given(seed=SEEDS)
def test_words_are_splitmix64_of_seed_and_index(seed: int) -> None:
    found = words(seed, 3, 4, CPU).flatten().tolist()
    assert [word & MASK for word in found] == [splitmix(seed, index) for index in range(12)]


def test_the_published_first_numbers_of_splitmix64_appear() -> None:
    # Seed 1234567, as printed by the reference implementation, whose first output is of index 1.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [word & MASK for word in words(1234567, 1, 4, CPU)[0, 1:].tolist()] == published


@given(seed=SEEDS, size=st.integers(1, 70))
def test_a_normal_number_is_box_and_muller_of_its_word(seed: int, size: int) -> None:
    half = (size + 1) // 2
    for place, found in enumerate(normals(seed, 1, size, CPU)[0].tolist()):
        word = splitmix(seed, place % half)
        radius = math.sqrt(-2 * math.log(((word >> 33) + 1) * 2.0**-31))
        quadrant, fraction = word >> 24 & 3, ((word & 0xFFFFFF) + 0.5) * 2.0**-24
        angle = math.pi / 2 * (quadrant + fraction - 0.5)
        expected = radius * (math.cos(angle) if place < half else math.sin(angle))
        assert found == pytest.approx(expected, rel=3e-6, abs=3e-6)


@pytest.mark.skipif(not load_native().available, reason="needs the kernel")
@given(seed=SEEDS, steps=st.integers(1, 5), size=st.integers(1, 100))
def test_the_kernel_gives_the_same_bits(seed: int, steps: int, size: int) -> None:
    out = torch.empty(steps, size)
    torch.ops.statewise_native.fill_counted(out, seed, True, 1.0, 0.37)
    assert torch.equal(out, normals(seed, steps, size, CPU).mul_(0.37).add_(1.0))
    torch.ops.statewise_native.fill_counted(out, seed, False, 0.0, 1.0)
    assert torch.equal(out, uniforms(seed, steps, size, CPU))


def test_a_stream_is_the_same_with_and_without_the_kernel_and_in_either_precision(generator: torch.Generator) -> None:
    stream = Randomness(generator).stream(1, 2, 3)
    with_kernel = stream.normal(torch.empty(4, 3, 17), mean=0.5, std=2.0)
    with patch.object(streams, "load_native", return_value=type("Absent", (), {"available": False})):
        without = stream.normal(torch.empty(4, 3, 17), mean=0.5, std=2.0)
    wide = stream.normal(torch.empty(4, 3, 17, dtype=torch.float64), mean=0.5, std=2.0)
    assert torch.equal(with_kernel, without)
    assert torch.equal(with_kernel.double(), wide)


def test_normal_numbers_have_the_moments_and_tails_of_the_law() -> None:
    numbers = normals(2026, 1000, 4001, CPU).double()
    count = numbers.numel()
    for power, (moment, variance) in {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}.items():
        assert abs(float((numbers**power).mean()) - moment) < 5 * math.sqrt(variance / count)
    for bound in (0.5, 1.0, 2.0, 3.0, 4.0):
        share, expected = float((numbers > bound).double().mean()), 0.5 * math.erfc(bound / math.sqrt(2))
        assert abs(share - expected) < 5 * math.sqrt(expected / count)


def test_uniform_numbers_fill_the_interval_evenly() -> None:
    numbers = uniforms(7, 1000, 1001, CPU)
    assert 0 <= float(numbers.min())
    assert float(numbers.max()) < 1
    counts = torch.histc(numbers, bins=64, min=0, max=1).double()
    expected = numbers.numel() / 64
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 63 + 5 * math.sqrt(2 * 63)


def test_neighbours_in_time_place_and_key_are_uncorrelated(generator: torch.Generator) -> None:
    root = Randomness(generator)
    one, other = (root.stream(0, key).normal(torch.empty(500, 800), mean=0.0, std=1.0) for key in (0, 1))
    pairs = {"key": (one, other), "time": (one[1:], one[:-1]), "place": (one[:, 1:], one[:, :-1])}
    pairs["halves"] = (one[:, :400], one[:, 400:])
    for name, (a, b) in pairs.items():
        assert abs(float((a * b).double().mean())) < 5 / math.sqrt(a.numel()), name
