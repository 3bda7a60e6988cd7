"""Numbers that are a function of seed and place."""

from __future__ import annotations

import math
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import grad, vmap

from statewise.native import load_native, operators
from statewise.transforms import (
    Centroids,
    InputDropout,
    LockedDropout,
    Noise,
    OutputDropout,
    Randomness,
    RecurrentDropout,
    Sizes,
    Transform,
    Zoneout,
    streams,
)
from statewise.transforms.counter import mixed_seed, seed_of, words
from statewise.transforms.laws import LAWS
from statewise.transforms.recipes import Kind, Recipe, numbers

CPU = torch.device("cpu")
SEEDS = st.integers(0, 2**63 - 1)
MASK = 2**64 - 1
NORMAL, UNIFORM = Recipe.of(Kind.NORMAL), Recipe.of(Kind.UNIFORM)
COUNTED: list[Transform] = [
    *(Noise(law, 0.3) for law in LAWS),
    Noise("gamma", 0.3, 0.5, mode="additive"),
    InputDropout(0.4),
    OutputDropout(0.3),
    LockedDropout(0.5),
    Zoneout(0.2, memory=0.4),
    RecurrentDropout(0.3, input_p=0.2),
    Centroids(3, transition="noisy", noise=0.7),
]


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
    for place, found in enumerate(numbers(NORMAL, seed, 1, size, CPU)[0].tolist()):
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
    operators.fill_counted(out, seed, *Recipe.of(Kind.NORMAL, scale=0.37, shift=1.0))
    assert torch.equal(out, numbers(NORMAL, seed, steps, size, CPU).mul_(0.37).add_(1.0))
    operators.fill_counted(out, seed, *UNIFORM)
    assert torch.equal(out, numbers(UNIFORM, seed, steps, size, CPU))


def test_a_stream_is_the_same_with_and_without_the_kernel_and_in_either_precision(generator: torch.Generator) -> None:
    stream = Randomness(generator).stream(1, 2, 3)
    with_kernel = stream.normal(torch.empty(4, 3, 17), mean=0.5, std=2.0)
    with patch.object(streams, "load_native", return_value=type("Absent", (), {"available": False})):
        without = stream.normal(torch.empty(4, 3, 17), mean=0.5, std=2.0)
    wide = stream.normal(torch.empty(4, 3, 17, dtype=torch.float64), mean=0.5, std=2.0)
    assert torch.equal(with_kernel, without)
    assert torch.equal(with_kernel.double(), wide)


def test_normal_numbers_have_the_moments_and_tails_of_the_law() -> None:
    sample = numbers(NORMAL, 2026, 1000, 4001, CPU).double()
    count = sample.numel()
    for power, (moment, variance) in {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}.items():
        assert abs(float((sample**power).mean()) - moment) < 5 * math.sqrt(variance / count)
    for bound in (0.5, 1.0, 2.0, 3.0, 4.0):
        share, expected = float((sample > bound).double().mean()), 0.5 * math.erfc(bound / math.sqrt(2))
        assert abs(share - expected) < 5 * math.sqrt(expected / count)


def test_uniform_numbers_fill_the_interval_evenly() -> None:
    sample = numbers(UNIFORM, 7, 1000, 1001, CPU)
    assert 0 <= float(sample.min())
    assert float(sample.max()) < 1
    counts = torch.histc(sample, bins=64, min=0, max=1).double()
    expected = sample.numel() / 64
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 63 + 5 * math.sqrt(2 * 63)


def test_neighbours_in_time_place_and_key_are_uncorrelated(generator: torch.Generator) -> None:
    root = Randomness(generator)
    one, other = (root.stream(0, key).normal(torch.empty(500, 800), mean=0.0, std=1.0) for key in (0, 1))
    pairs = {"key": (one, other), "time": (one[1:], one[:-1]), "place": (one[:, 1:], one[:, :-1])}
    pairs["halves"] = (one[:, :400], one[:, 400:])
    for name, (a, b) in pairs.items():
        assert abs(float((a * b).double().mean())) < 5 / math.sqrt(a.numel()), name


def test_the_numbers_of_a_seed_stay_what_they_are() -> None:
    """Written down once: published results must be repeatable with later versions."""
    stream = Randomness(torch.Generator().manual_seed(3)).stream(0, 1, 2)
    normal = [0.4763776361942291, 0.36736640334129333, -0.12598849833011627, 0.4460648000240326, -1.9176870584487915]
    uniform = [0.8081926703453064, 0.1486380696296692, 0.604482889175415, 0.19132453203201294, 0.045392513275146484]
    assert mixed_seed(int(stream.randomness.root), stream.key) == 278817501604292925
    assert stream.normal(torch.empty(1, 5), mean=0.0, std=1.0)[0].tolist() == normal
    assert stream.uniform(torch.empty(1, 5))[0].tolist() == uniform


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_noise_of_centroids_has_the_moments_of_its_factor_times_a_gumbel_law(dtype: torch.dtype) -> None:
    stream = Randomness(torch.Generator().manual_seed(3)).stream(0)
    transform = Centroids(100, transition="noisy", noise=0.7)
    (noise,) = transform.draw(Sizes(100, 40, 5, 7, 4, dtype, CPU), stream, training=True) or ()
    assert noise.dtype == dtype
    variance = 0.7**2 * math.pi**2 / 6
    assert float(noise.mean()) == pytest.approx(0.7 * 0.5772156649, abs=5 * math.sqrt(variance / noise.numel()))
    # The fourth central moment of a Gumbel law is 5.4 times its squared variance.
    assert float(noise.var()) == pytest.approx(variance, abs=5 * variance * math.sqrt(4.4 / noise.numel()))


# --- a root that is a tensor


def with_root(root: int | Tensor) -> Randomness:
    randomness = Randomness()
    randomness._root = root
    return randomness


@given(root=st.integers(0, 2**62 - 1), key=st.lists(st.integers(0, 2**33), max_size=6).map(tuple))
def test_a_key_is_mixed_into_a_tensor_as_into_an_int(root: int, key: tuple[int, ...]) -> None:
    assert int(seed_of(torch.tensor(root), key)) == mixed_seed(root, key)
    found = with_root(root).stream(*key).uniform(torch.empty(3, 8))
    assert torch.equal(found, numbers(UNIFORM, seed_of(torch.tensor(root), key), 3, 8, CPU))


@given(seed=SEEDS, steps=st.integers(1, 4), size=st.integers(1, 40))
def test_a_seed_in_a_tensor_gives_the_bits_of_the_seed(seed: int, steps: int, size: int) -> None:
    for recipe in (NORMAL, UNIFORM):
        found = numbers(recipe, torch.tensor(seed), steps, size, CPU)
        assert torch.equal(found, numbers(recipe, seed, steps, size, CPU))


def draw(transform: Transform, randomness: Randomness, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """What a transform draws; sizes are odd, so that a word's second number is left over."""
    drawn = transform.draw(Sizes(5, 3, 5, 7, 4, dtype, CPU), randomness.stream(0, 1, 0), training=True)
    assert drawn
    return drawn


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("transform", COUNTED, ids=repr)
def test_each_replica_under_vmap_draws_from_a_root_of_its_own(transform: Transform, dtype: torch.dtype) -> None:
    def root() -> Tensor:
        return torch.randint(2**62, (), generator=source)

    source = torch.Generator().manual_seed(8)
    roots = vmap(lambda _: root(), randomness="different")(torch.zeros(3))
    source = torch.Generator().manual_seed(8)
    drawn = vmap(lambda _: draw(transform, Randomness(source), dtype), randomness="different")(torch.zeros(3))
    assert len(set(roots.tolist())) == 3
    for replica, number in enumerate(roots.tolist()):
        for found, wanted in zip(drawn, draw(transform, with_root(number), dtype), strict=True):
            assert torch.equal(found[replica], wanted)


@pytest.mark.parametrize("transform", COUNTED, ids=repr)
def test_replicas_under_vmap_draw_the_same_if_asked_to_and_what_one_draws_alone(transform: Transform) -> None:
    source = torch.Generator().manual_seed(8)
    drawn = vmap(lambda _: draw(transform, Randomness(source)), randomness="same")(torch.zeros(2))
    alone = draw(transform, Randomness(torch.Generator().manual_seed(8)))
    for found, wanted in zip(drawn, alone, strict=True):
        assert torch.equal(found, torch.stack((wanted, wanted)))


@pytest.mark.parametrize("transform", COUNTED[:2], ids=repr)
def test_drawing_inside_a_gradient_changes_no_number(transform: Transform) -> None:
    def loss(x: Tensor) -> Tensor:
        return (x * draw(transform, Randomness(torch.Generator().manual_seed(8)))[0]).sum()

    alone = draw(transform, Randomness(torch.Generator().manual_seed(8)))[0]
    assert torch.equal(grad(loss)(torch.ones(alone.shape)), alone)


@pytest.mark.parametrize("transform", COUNTED[:8], ids=repr)
def test_replicas_of_replicas_draw_from_roots_of_their_own(transform: Transform) -> None:
    one = vmap(lambda _: draw(transform, Randomness())[0], randomness="different")
    drawn = vmap(one, randomness="different")(torch.zeros(2, 3)).flatten(0, 1)
    assert all(not torch.equal(drawn[i], drawn[j]) for i in range(6) for j in range(i))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_a_root_that_was_taken_before_gives_all_replicas_the_same(randomness: str) -> None:
    known = with_root(77)
    drawn = vmap(lambda x: x * draw(COUNTED[0], known)[0], randomness=randomness)(torch.ones(2))
    alone = draw(COUNTED[0], with_root(77))[0]
    assert torch.equal(drawn, torch.stack((alone, alone)))


def test_a_tensor_of_replicas_is_filled_for_each() -> None:
    """Made like the inputs, it has a replica for each already."""
    drawn = vmap(lambda x: Randomness().stream(0).uniform(x.new_empty(2, 5)).mul_(2), randomness="different")
    first, second = drawn(torch.zeros(2))
    assert not torch.equal(first, second)
    assert bool((first < 2).all())


def test_the_device_of_a_pass_without_numbers_takes_nothing_from_a_generator() -> None:
    state = torch.random.get_rng_state()
    stream = Randomness(device=torch.device("meta")).stream(0)
    assert stream.uniform(torch.empty(3, 4, device="meta")).is_meta
    assert stream.draw(torch.empty(3, 4, device="meta"), Recipe.gamma(0.5)).is_meta
    assert torch.equal(torch.random.get_rng_state(), state)
