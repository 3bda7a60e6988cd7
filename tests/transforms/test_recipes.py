"""Every law by counting: the distribution of its numbers, and that all who make them make the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from statewise.native import NativeStatus, load_native, operators
from statewise.transforms import Randomness, Stream, gammas, streams
from statewise.transforms.counter import exp, exponentials, log, pairs_of_halves, words
from statewise.transforms.gammas import Shape, betas
from statewise.transforms.laws import LAWS, Law
from statewise.transforms.recipes import _PAIRS, Kind, Recipe, numbers

CPU = torch.device("cpu")
RECIPES = {
    "uniform": Recipe.of(Kind.UNIFORM),
    "normal": Recipe.of(Kind.NORMAL, scale=1.7, shift=-0.3),
    "bernoulli": Recipe.bernoulli(0.3, scale=1 / 0.3, shift=-1.0),
    "laplace": Recipe.of(Kind.LAPLACE, scale=0.4, shift=1.0),
    "logistic": Recipe.of(Kind.LOGISTIC, scale=0.4),
    "gumbel": Recipe.of(Kind.GUMBEL, scale=-0.4, shift=0.1),
    "gamma of 1": Recipe.gamma(1.0, scale=0.7),
    "gamma of 2": Recipe.gamma(2.0, shift=1.0),
    "gamma of 0.1": Recipe.gamma(0.1, scale=0.3),
    "gamma of a million": Recipe.gamma(1e6, scale=1e-3),
    "beta of 0.1 and 2": Recipe.beta(0.1, 2.0, scale=-3.0, shift=1.0),
    "beta of 0.5 and 0.7": Recipe.beta(0.5, 0.7),
    "beta of 2 and 3": Recipe.beta(2.0, 3.0),
}
KNOWN = {
    "uniform": [0.19452053308486938, 0.2421015501022339, 0.8976595997810364],
    "normal": [-1.7003052234649658, 2.431217670440674, 2.43902587890625],
    "bernoulli": [2.3333332538604736, 2.3333332538604736, -1.0],
    "laplace": [0.34511297941207886, 1.567359209060669, 0.9568142890930176],
    "logistic": [-0.8912175297737122, 0.7930067777633667, -0.08215991407632828],
    "gumbel": [-0.8118561506271362, 0.398967981338501, -0.10719937831163406],
    "gamma of 1": [-0.05974210426211357, -0.27248936891555786, 0.29649871587753296],
    "gamma of 2": [1.0435343980789185, 0.577273964881897, 1.7521499395370483],
    "gamma of 0.1": [-0.02863895706832409, 0.00013232044875621796, -0.02999528869986534],
    "gamma of a million": [0.2720150053501129, -0.07085119187831879, 0.7046130299568176],
    "beta of 0.1 and 2": [0.995292067527771, 0.7483202219009399, 0.9999284744262695],
    "beta of 0.5 and 0.7": [0.33151736855506897, 0.571544885635376, 0.4437521994113922],
    "beta of 2 and 3": [0.3299623131752014, 0.4503389298915863, 0.6771363019943237],
}
EVERY_RECIPE = pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
EVERY_LAW = pytest.mark.parametrize("noise", LAWS.values(), ids=list(LAWS))
SEEDS = st.integers(0, 2**63 - 1)
# From the smallest that is asked for to the largest; a test of moments is a test of the gamma variable's rejections.
SHAPES = (0.05, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 7.5, 300.0, 1e6, 2.0**30)


def stream(seed: int = 5) -> Stream:
    return Randomness(torch.Generator().manual_seed(seed)).stream(0)


def drawn(recipe: Recipe, steps: int = 500, size: int = 800, seed: int = 5) -> Tensor:
    return stream(seed).draw(torch.empty(steps, size), recipe).double()


def assert_moments(sample: Tensor, mean: float, variance: float, excess: float) -> None:
    """Within five standard errors, from the closed-form variance and kurtosis."""
    count = sample.numel()
    assert abs(sample.mean().item() - mean) < 5 * math.sqrt(variance / count)
    spread = (sample - mean).square().mean().item()
    assert abs(spread - variance) < 5 * variance * math.sqrt((excess + 2) / count)


def assert_distribution(
    sample: Tensor, cdf: Callable[[Tensor], Tensor], low: float = -math.inf, high: float = math.inf
) -> None:
    """Kolmogorov's largest distance between two bounds; a correct law exceeds it once in a million seeds."""
    ordered = sample.flatten().double().sort().values
    count = ordered.numel()
    inside = (ordered > low) & (ordered < high)
    rank = torch.arange(count + 1, dtype=torch.float64) / count
    share, below, above = cdf(ordered[inside]), rank[:-1][inside], rank[1:][inside]
    distance = torch.maximum((share - below).abs(), (share - above).abs()).max().item()
    assert inside.double().mean() > 0.7
    assert distance < math.sqrt(math.log(2e6) / 2 / count)


def gamma_cdf(shape: float) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.special.gammainc(torch.full_like(x, shape), x.clamp(min=0))


def beta_cdf(first: float, second: float) -> Callable[[Tensor], Tensor]:
    """By the trapezium rule in the log odds, where the density falls exponentially."""
    odds = torch.arange(-600, 600, 0.01, dtype=torch.float64)
    sigmoid = torch.nn.functional.logsigmoid
    density = (first * sigmoid(odds) + second * sigmoid(-odds)).exp()
    total = torch.cumulative_trapezoid(density, dx=0.01)
    total = total / total[-1]

    def cdf(x: Tensor) -> Tensor:
        place = ((torch.logit(x).clamp(-590, 590) + 600) / 0.01) - 1
        below = place.floor().long()
        return torch.lerp(total[below], total[below + 1], place - below)

    return cdf


# --- the same numbers, whoever makes them


@pytest.mark.skipif(not load_native().available, reason="needs the kernel")
@EVERY_RECIPE
@given(seed=SEEDS, steps=st.integers(1, 4), size=st.integers(1, 90) | st.integers(1000, 1100))
def test_the_kernel_gives_the_bits_of_the_formulas(recipe: Recipe, seed: int, steps: int, size: int) -> None:
    out = torch.empty(steps, size)
    operators.fill_counted(out, seed, *recipe)
    assert torch.equal(out, numbers(recipe, seed, steps, size, CPU))


@pytest.mark.skipif(not load_native().available, reason="needs the kernel")
@given(
    seed=SEEDS,
    first=st.floats(1e-3, 1e4) | st.floats(0, 1e300),
    second=st.floats(1e-3, 1e4) | st.floats(0, 1e300),
    kind=st.sampled_from(["gamma", "beta"]),
)
def test_the_kernel_gives_the_bits_of_the_formulas_for_every_shape(
    seed: int, first: float, second: float, kind: str
) -> None:
    recipe = Recipe.gamma(first) if kind == "gamma" else Recipe.beta(first, second)
    out = torch.empty(3, 37)
    operators.fill_counted(out, seed, *recipe)
    assert torch.equal(out, numbers(recipe, seed, 3, 37, CPU))


@pytest.mark.skipif(not load_native().available, reason="needs the kernel")
def test_the_kernel_refuses_a_law_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="knows no law 8"):
        operators.fill_counted(torch.empty(1, 2), 1, 8, 1.0, 0.0, 0, [])


@EVERY_RECIPE
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_a_stream_draws_the_same_without_the_kernel_and_rounds_it_to_any_dtype(
    recipe: Recipe, dtype: torch.dtype
) -> None:
    narrow = stream().draw(torch.empty(3, 5, 7), recipe)
    absent = NativeStatus(available=False, reason="left out by a test")
    for status in (load_native(), absent):
        with patch.object(streams, "load_native", return_value=status):
            assert torch.equal(stream().draw(torch.empty(3, 5, 7, dtype=dtype), recipe), narrow.to(dtype))


@EVERY_RECIPE
def test_a_tensor_with_gaps_is_filled_as_one_without(recipe: Recipe) -> None:
    out = torch.zeros(3, 4, 5).transpose(1, 2)
    assert stream().draw(out, recipe) is out
    assert torch.equal(out, stream().draw(torch.empty(3, 5, 4), recipe))


@EVERY_RECIPE
def test_a_longer_sequence_begins_like_a_shorter_one(recipe: Recipe) -> None:
    assert torch.equal(drawn(recipe, 9, 33)[:4], drawn(recipe, 4, 33))


@pytest.mark.parametrize("name", ["gamma of 1", "gamma of 0.1", "beta of 0.5 and 0.7"])
def test_all_rounds_at_once_are_the_rounds_of_those_that_were_rejected(name: str) -> None:
    """The former is for a device without Triton, where the host would wait to know how many are left."""
    expected = numbers(RECIPES[name], 11, 20, 501, CPU)
    with patch.object(gammas, "_may_be_counted", return_value=False):
        assert torch.equal(numbers(RECIPES[name], 11, 20, 501, CPU), expected)


@EVERY_RECIPE
def test_neighbours_in_time_place_and_half_are_uncorrelated(recipe: Recipe) -> None:
    sample = drawn(recipe)
    sample = sample - sample.mean()
    pairs = {"time": (sample[1:], sample[:-1]), "place": (sample[:, 1:], sample[:, :-1])}
    pairs["halves"] = (sample[:, :400], sample[:, 400:])
    for name, (one, other) in pairs.items():
        product = one * other
        assert abs(product.mean().item()) < 5 * product.std().item() / math.sqrt(product.numel()), name


@EVERY_RECIPE
def test_streams_are_uncorrelated(recipe: Recipe) -> None:
    one, other = (drawn(recipe, seed=seed) for seed in (5, 6))
    product = (one - one.mean()) * (other - other.mean())
    assert abs(product.mean().item()) < 5 * product.std().item() / math.sqrt(product.numel())


def test_the_numbers_of_a_seed_stay_what_they_are() -> None:
    """Written down once: published results must be repeatable with later versions."""
    found = {name: drawn(recipe, 1, 3, seed=3)[0].tolist() for name, recipe in RECIPES.items()}
    assert found == KNOWN


# --- the distributions


@EVERY_LAW
@pytest.mark.parametrize("gamma", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_every_law_has_its_mean_and_variance(noise: Law, gamma: float, alpha: float) -> None:
    sample = drawn(noise.recipe(gamma, alpha, mean=1.0))
    assert_moments(sample, 1.0, noise.variance(gamma, alpha), noise.excess_kurtosis(gamma, alpha))


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_numbers_have_their_moments_at_every_shape(shape: float) -> None:
    assert_moments(drawn(Recipe.gamma(shape, scale=1 / math.sqrt(shape))), 0.0, 1.0, 6 / shape)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape <= 300])
def test_gamma_numbers_have_their_distribution_at_every_shape(shape: float) -> None:
    """Down to where float32 ends, which one in a hundred passes at the smallest shape."""
    raw = drawn(Recipe.gamma(shape)._replace(shift=0.0))
    assert_distribution(raw if shape < 1 else raw + shape, gamma_cdf(shape), low=1e-30 if shape < 1 else 0.0)


@pytest.mark.parametrize(("first", "second"), [(0.1, 2.0), (0.1, 0.1), (0.5, 0.7), (1.0, 1.0), (2.0, 3.0), (0.9, 40.0)])
def test_beta_numbers_have_their_distribution(first: float, second: float) -> None:
    """Up to where float32 has no digits left next to 1."""
    assert_distribution(drawn(Recipe.beta(first, second)), beta_cdf(first, second), low=1e-30, high=1 - 1e-5)


@pytest.mark.parametrize(
    ("kind", "cdf"),
    [
        (Kind.UNIFORM, lambda x: x),
        (Kind.NORMAL, torch.special.ndtr),
        (Kind.LAPLACE, lambda x: 0.5 + 0.5 * x.sign() * -torch.expm1(-x.abs())),
        (Kind.LOGISTIC, torch.sigmoid),
        (Kind.GUMBEL, lambda x: torch.exp(-torch.exp(-x))),
    ],
    ids=["uniform", "normal", "laplace", "logistic", "gumbel"],
)
def test_the_laws_in_standard_form_have_their_distribution(kind: Kind, cdf: Callable[[Tensor], Tensor]) -> None:
    assert_distribution(drawn(Recipe.of(kind)), cdf)


@pytest.mark.parametrize(("kind", "both"), [(Kind.LAPLACE, True), (Kind.LOGISTIC, True), (Kind.GUMBEL, False)], ids=str)
def test_the_tails_have_their_probability(kind: Kind, both: bool) -> None:
    sample = drawn(Recipe.of(kind), 2000, 4001)
    for bound in (6.0, 9.0, 11.0):
        tail = {Kind.LAPLACE: 0.5 * math.exp(-bound), Kind.LOGISTIC: 1 / (1 + math.exp(bound))}
        expected = tail.get(kind, -math.expm1(-math.exp(-bound)))
        for side in (sample, -sample) if both else (sample,):
            share = (side > bound).double().mean().item()
            assert abs(share - expected) < 5 * math.sqrt(expected / sample.numel())
    if not both:  # the lower tail of the Gumbel law is doubly exponential
        expected = math.exp(-math.exp(2.4))
        assert abs((sample < -2.4).double().mean().item() - expected) < 5 * math.sqrt(expected / sample.numel())


@pytest.mark.parametrize("probability", [1e-4, 0.3, 0.5, 0.999])
def test_bernoulli_numbers_have_their_frequency(probability: float) -> None:
    sample = drawn(Recipe.bernoulli(probability))
    assert sample.unique().tolist() == [0.0, 1.0]
    assert_moments(sample, probability, probability * (1 - probability), 1 / probability / (1 - probability))


def test_a_probability_is_finer_than_a_uniform_number_of_24_bits() -> None:
    """A small probability of keeping is not rounded to a multiple of 2^-24, which would bias the noise."""
    assert Recipe.bernoulli(1e-9).bound == 4
    assert Recipe.bernoulli(1e-30).bound == 0
    assert Recipe.bernoulli(1 - 1e-16).bound == 2**32
    assert bool((drawn(Recipe.bernoulli(1 - 1e-16)) == 1).all())
    assert abs(Recipe.bernoulli(1e-4).bound / 2**32 / 1e-4 - 1) < 1e-5


# --- the ends


@pytest.mark.parametrize("kind", _PAIRS, ids=str)
def test_the_smallest_and_the_largest_words_give_finite_numbers(kind: Kind) -> None:
    corners = torch.tensor([0, -1, 1, -2, 1 << 32, -1 << 32, 2**63 - 1, -(2**63), (1 << 33) - 1, -1 ^ 1 ^ 1 << 32])
    made = _PAIRS[kind](corners)
    assert bool(made.isfinite().all())
    limits = {Kind.LAPLACE: (21.4, 21.5), Kind.LOGISTIC: (22.1, 22.2), Kind.GUMBEL: (22.1, 22.2)}
    if kind in limits:
        low, high = limits[kind]
        assert low < made.max().item() < high
        assert made.min().item() == pytest.approx(-math.log(22.18) if kind == Kind.GUMBEL else -made.max().item(), 1e-3)


def test_exponential_numbers_keep_their_digits_near_0() -> None:
    halves = pairs_of_halves(words(3, 1, 200_000, CPU)).flatten()
    p = ((halves >> 1).double() + 1) / 2**32
    exact = torch.where((halves & 1) == 1, -torch.log1p(-p), -torch.log(p))
    torch.testing.assert_close(exponentials(halves).double(), exact, rtol=3e-7, atol=0)
    tiny = torch.arange(1, 4000, 2)  # the least p, on the side where E is near 0
    torch.testing.assert_close(
        exponentials(tiny).double(), -torch.log1p(-((tiny >> 1).double() + 1) / 2**32), rtol=3e-7, atol=0
    )


@given(st.floats(2.0**-100, 2.0**100, width=32))
def test_the_logarithm_is_accurate(u: float) -> None:
    assert log(torch.tensor([u])).item() == pytest.approx(math.log(u), rel=2e-7, abs=1e-7)


@given(st.floats(-87.0, 0.0, width=32))
def test_the_exponential_is_accurate(x: float) -> None:
    assert exp(torch.tensor([x])).item() == pytest.approx(math.exp(x), rel=3e-7)


def test_a_beta_number_of_two_tiny_shapes_is_one_of_its_ends() -> None:
    """The quotient of two gamma variables would be 0 / 0."""
    sample = betas(3, Shape.of(1e-3), Shape.of(3e-3), 100, 1000, CPU)
    assert sample.mean().item() == pytest.approx(0.25, abs=5 * math.sqrt(0.1875 / 1e5))
    assert ((sample > 0.01) & (sample < 0.99)).double().mean().item() < 0.02


def test_rejected_for_good_a_gamma_number_is_the_one_of_x_0() -> None:
    """That takes more rounds than will ever be seen, so all proposals are refused here."""

    def refused(self: object, turn: int, places: Tensor) -> tuple[Tensor, Tensor]:
        turns.append(turn)
        return torch.full((2, len(places)), 0.5), torch.zeros(2, len(places), dtype=torch.bool)

    turns: list[int] = []
    with patch.object(gammas._Variable, "_proposals", new=refused):
        found = numbers(Recipe.gamma(2.0), 1, 3, 5, CPU)
    assert turns == list(range(16))
    assert torch.equal(found, torch.full((3, 5), -1 / 3))


def test_a_number_does_not_depend_on_how_often_its_neighbours_were_rejected() -> None:
    """Each place takes its own words of a round."""
    recipe = Recipe.gamma(1.0)
    wide = drawn(recipe, 1, 2000)
    first, other = (wide[0, start : start + 500] for start in (0, 1000))
    narrow = drawn(recipe, 1, 1000)
    assert torch.equal(narrow[0, :500], first)
    assert torch.equal(narrow[0, 500:], other)


@EVERY_LAW
def test_silence_is_the_mean_itself(noise: Law) -> None:
    silent = 1.0 if noise.name == "bernoulli" else 0.0
    assert bool((drawn(noise.recipe(silent, mean=1.0), 2, 3) == 1.0).all())
