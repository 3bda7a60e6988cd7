"""Counted numbers made on the device: the bits of the formulas in torch, without waiting, and anew in every replay."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import few_examples
from statewise.kernels import load_triton
from statewise.transforms import (
    Centroids,
    LockedDropout,
    Noise,
    OutputDropout,
    Randomness,
    RecurrentDropout,
    Sizes,
    Transform,
    Zoneout,
)
from statewise.transforms.counter import seed_of
from statewise.transforms.gammas import ROUNDS
from statewise.transforms.laws import LAWS
from statewise.transforms.recipes import Kind, Recipe, numbers

pytestmark = pytest.mark.skipif(not load_triton().available, reason=load_triton().reason)

DEVICE = torch.device(load_triton().device)  # the CPU where Triton is interpreted, for want of an accelerator
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
BITS = {torch.float32: torch.int32, torch.float64: torch.int64, torch.bfloat16: torch.int16, torch.float16: torch.int16}
SHAPES = [(5, 7), (1, 1), (3, 2), (2, 3, 17), (33, 64), (4, 511), (2, 1024), (3, 1537)]
KEYS = [(0, 1, 2, 3, 2**32), (2,), (0, 1, 2, 3), (6, 5, 4, 3, 2, 1)]
UNIFORM, NORMAL = Recipe.of(Kind.UNIFORM), Recipe.of(Kind.NORMAL)
RECIPES = {
    "uniform": UNIFORM,
    "normal": Recipe.of(Kind.NORMAL, scale=1.7, shift=0.3),
    "bernoulli": Recipe.bernoulli(0.3, scale=1 / 0.3, shift=-1.0),
    "laplace": Recipe.of(Kind.LAPLACE, scale=0.4, shift=1.0),
    "logistic": Recipe.of(Kind.LOGISTIC, scale=0.4),
    "gumbel": Recipe.of(Kind.GUMBEL, scale=-0.4, shift=0.1),
    "gamma of 2": Recipe.gamma(2.0, shift=1.0),
    "gamma of 0.1": Recipe.gamma(0.1, scale=0.3),
    "beta of 0.1 and 2": Recipe.beta(0.1, 2.0, scale=-3.0, shift=1.0),
    "beta of 2 and 3": Recipe.beta(2.0, 3.0),
}
EXTREMES = (0.0, 5e-324, 1e-40, 1e38, 1e300)  # of a shape
WITHOUT_REJECTION = [recipe for recipe in RECIPES.values() if not recipe.shapes]
PARTS = st.integers(0, 40) | st.integers(2**31 - 2, 2**32 + 2)
MASK = 2**64 - 1
COUNTED: list[Transform] = [
    *(Noise(law, 0.3) for law in LAWS),
    Noise("gaussian", 2.0, mode="additive"),
    Noise("gamma", 0.3, 0.5, mode="additive"),
    OutputDropout(0.3),
    LockedDropout(0.5),
    Zoneout(0.2, memory=0.4),
    RecurrentDropout(0.3, input_p=0.2),
    Centroids(3, transition="noisy", noise=0.7),
]


def filled(shape: tuple[int, ...], dtype: torch.dtype, root: int, key: tuple[int, ...], recipe: Recipe) -> Tensor:
    """What the kernel fills in."""
    from statewise.kernels.fill import fill_counted

    out = torch.full(shape, 9.0, dtype=dtype, device=DEVICE)
    assert fill_counted(out, torch.tensor(root, device=DEVICE), key, **recipe._asdict()) is out
    return out


def expected(shape: tuple[int, ...], dtype: torch.dtype, root: int, key: tuple[int, ...], recipe: Recipe) -> Tensor:
    """The same by the formulas in torch."""
    sizes = (int(seed_of(torch.tensor(root), key)), shape[0], torch.Size(shape[1:]).numel(), torch.device("cpu"))
    return numbers(recipe, *sizes).to(dtype).view(shape).to(DEVICE)


def assert_same_bits(found: Tensor, wanted: Tensor) -> None:
    assert found.dtype == wanted.dtype
    assert torch.equal(found.contiguous().view(BITS[found.dtype]), wanted.contiguous().view(BITS[wanted.dtype]))


def first_is_quick(values: Iterable[Any], quick: int = 1) -> list[Any]:
    """Parameters of which all but the first few are for `make test-all`: the interpreter is slow."""
    return [pytest.param(value, marks=[pytest.mark.slow] * (place >= quick)) for place, value in enumerate(values)]


def diagonal(rows: Mapping[str, Any], columns: Sequence[Any], quick: int = 1) -> list[Any]:
    """Pairs of which a quick run has some of each row, all columns among them; the others are slow."""
    return [
        pytest.param(
            row, column, marks=[pytest.mark.slow] * ((at - place) % len(columns) >= quick), id=f"{column}-{name}"
        )
        for place, (name, row) in enumerate(rows.items())
        for at, column in enumerate(columns)
    ]


@pytest.mark.parametrize(("recipe", "shape"), diagonal(RECIPES, SHAPES, 2))
def test_the_kernel_gives_the_bits_of_the_formulas(shape: tuple[int, ...], recipe: Recipe) -> None:
    call = (shape, torch.float32, 2**61 + 12345, (3, 1, 0, 1), recipe)
    assert_same_bits(filled(*call), expected(*call))


@pytest.mark.parametrize(("recipe", "dtype"), diagonal(RECIPES, DTYPES))
def test_the_kernel_rounds_as_torch_does(dtype: torch.dtype, recipe: Recipe) -> None:
    call = ((3, 301), dtype, 2**61 + 12345, (3, 1, 0, 1), recipe)
    assert_same_bits(filled(*call), expected(*call))


@few_examples
@given(
    first=st.floats(1e-3, 1e4) | st.sampled_from(EXTREMES),
    second=st.floats(1e-3, 1e4) | st.sampled_from(EXTREMES),
    beta=st.booleans(),
    root=st.integers(0, 2**62 - 1),
)
def test_every_shape_of_gamma_variables_gives_the_same_bits(first: float, second: float, beta: bool, root: int) -> None:
    recipe = Recipe.beta(first, second) if beta else Recipe.gamma(first)
    call = ((2, 67), torch.float32, root, (1,), recipe)
    assert_same_bits(filled(*call), expected(*call))


@pytest.mark.parametrize("probability", [2.0**-32, 1e-9, 0.5, 1 - 2.0**-32, 1.0])
def test_a_bernoulli_law_is_cut_at_the_same_place(probability: float) -> None:
    call = ((40, 500), torch.float32, 17, (1,), Recipe.bernoulli(probability))
    assert_same_bits(filled(*call), expected(*call))


def test_a_law_of_the_kernel_is_the_law_of_that_number() -> None:
    from statewise.kernels import fill

    for kind in Kind:
        assert getattr(fill, f"_{kind.name}").value == kind
    assert {Kind.GAMMA, Kind.BETA} == set(fill.REJECTED)
    assert ROUNDS == fill._ROUNDS.value


@given(root=st.integers(0, 2**62 - 1), key=st.lists(PARTS, max_size=4).map(tuple), size=st.integers(1, 99))
def test_every_key_is_mixed_on_the_device_as_on_the_host(root: int, key: tuple[int, ...], size: int) -> None:
    for recipe in (NORMAL, UNIFORM, Recipe.gamma(0.5)):
        call = ((3, size), torch.float32, root, key, recipe)
        assert_same_bits(filled(*call), expected(*call))


@given(
    mean=st.floats(-10, 10).map(lambda mean: mean + 0.0),
    std=st.floats(0, 10),
    dtype=st.sampled_from(DTYPES),
    root=st.integers(0, 2**62 - 1),
)
def test_every_mean_and_spread_is_rounded_alike(mean: float, std: float, dtype: torch.dtype, root: int) -> None:
    for kind in (Kind.NORMAL, Kind.LAPLACE):
        call = ((2, 31), dtype, root, (1,), Recipe.of(kind, scale=std, shift=mean))
        assert_same_bits(filled(*call), expected(*call))


def test_a_long_tensor_in_half_precision_is_rounded_to_even() -> None:
    """Long enough for ties, and for carries into the exponent."""
    shape = (1, 100_000)
    exact, bfloat = (expected(shape, dtype, 5, (0,), UNIFORM) for dtype in (torch.float32, torch.bfloat16))
    assert bool((exact.view(torch.int32) & 0xFFFF == 0x8000).any())
    assert bool((bfloat == 1).any())
    assert_same_bits(filled(shape, torch.bfloat16, 5, (0,), UNIFORM), bfloat)
    assert_same_bits(filled(shape, torch.float16, 5, (0,), UNIFORM), expected(shape, torch.float16, 5, (0,), UNIFORM))


def unscrambled(value: int) -> int:
    """The number that SplitMix64's last steps turn into a value."""

    def unshifted(number: int, bits: int) -> int:
        found = number
        for _ in range(64 // bits + 1):
            found = number ^ (found >> bits)
        return found

    value = unshifted(value, 31) * pow(0x94D049BB133111EB, -1, 2**64) & MASK
    value = unshifted(value, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK
    return unshifted(value, 30)


@pytest.mark.parametrize(
    "high", first_is_quick([0, 2**31 - 1, 1, 2**30 - 1, 2**30, 0x5A827999, 0x5A82799A, 2**31 - 200], 2)
)
@pytest.mark.parametrize("angle", first_is_quick([0xFFFFFF, 0, 1, 0x7FFFFF, 0x800000]))
def test_the_ends_of_the_radius_and_of_the_angle_are_the_same(high: int, angle: int) -> None:
    """A root is made for each word of interest: the largest and smallest radius, and each quadrant's ends."""
    for quadrant in range(4):
        words = (high << 33 | middle << 26 | quadrant << 24 | angle for middle in range(128))
        word, seed = next((word, unscrambled(word)) for word in words if unscrambled(word) < 2**63)
        root = (unscrambled(2 * seed) - 0x9E3779B97F4A7C15 & MASK) ^ 1  # the key's part 0 is mixed in as 1
        root -= 2**64 * (root >= 2**63)
        assert int(seed_of(torch.tensor(root), (0,))) == seed
        call = ((1, 2), torch.float32, root, (0,))
        for recipe in WITHOUT_REJECTION:
            assert_same_bits(filled(*call, recipe), expected(*call, recipe))
        assert filled(*call, UNIFORM)[0, 0].item() == (word >> 40) * 2.0**-24


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_nothing_is_written_past_the_end(recipe: Recipe) -> None:
    from statewise.kernels.fill import fill_counted

    room = torch.full((3 * 7 + 600,), 9.0, device=DEVICE)
    fill_counted(
        room[300 : 300 + 21].view(3, 7), torch.tensor(4, device=DEVICE), (0,), **recipe._replace(shift=0.0)._asdict()
    )
    assert bool((room[:300] == 9).all())
    assert bool((room[321:] == 9).all())
    assert bool((room[300:321] < 9).all())


COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from statewise.kernels.fill import LAUNCH, LAUNCH_REJECTED, NARROW, REJECTED, WORDS, WORDS_REJECTED, _fill

kinds = {"root": "*i64", **dict.fromkeys(("part_0", "part_1", "part_2", "part_3", "bound"), "i64")}
kinds |= dict.fromkeys(("scale", "shift", "d", "c", "inverse", "other_d", "other_c", "other_inverse"), "fp32")
for law in map(int, sys.argv[1:]):
    words, launch = (WORDS_REJECTED, LAUNCH_REJECTED) if law in REJECTED else (WORDS, LAUNCH)
    for out, columns in (("*fp32", words), ("*bf16", NARROW), ("*fp64", words), ("*fp16", words)):
        fixed = {"LAW": law, "ROWS": words // columns, "COLUMNS": columns}
        known = kinds | {"out": out} | dict.fromkeys(fixed, "constexpr")
        signature = {name: known.get(name, "i32") for name in _fill.arg_names}
        source = triton.compiler.ASTSource(fn=_fill, signature=signature, constexprs=fixed)
        print(triton.compile(source, target=GPUTarget("cuda", 90, 32), options=launch).asm["ptx"])
        print("END OF LAW")
"""


@pytest.mark.parametrize("laws", first_is_quick([(Kind.NORMAL, Kind.GAMMA), tuple(Kind)]), ids=len)
def test_the_compiler_takes_every_law_and_fuses_no_product_with_a_sum(laws: tuple[Kind, ...]) -> None:
    """In a process of its own, since the interpreter has taken this one's; for want of a device nothing runs."""
    plain = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", COMPILE, *(str(int(law)) for law in laws)]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled = done.stdout.split("END OF LAW")[:-1]
    assert len(compiled) == len(laws) * 4
    for place, code in enumerate(compiled):
        assert "mul.rn.f32" in code
        # Bare ones may be fused by the assembler, and approximate ones have other bits.
        unlike = re.search(r"(fma|mul|add|sub|div)\.f32|fma\.rn\.f|\.ftz|\.approx|div\.full", code)
        assert not unlike, laws[place // 4].name
    of = dict(zip(laws, compiled[::4], strict=True))
    assert all("sqrt.rn.f32" in of[kind] for kind in (Kind.NORMAL, Kind.GAMMA, Kind.BETA) if kind in of)
    assert all("div.rn.f32" in of[kind] for kind in (Kind.LOGISTIC, Kind.BETA) if kind in of)


def known(root: int) -> tuple[Randomness, Randomness]:
    """The same randomness with its root on the device and on the host."""
    device, host = Randomness(), Randomness()
    device._root, host._root = torch.tensor(root, device=DEVICE), root
    return device, host


@pytest.mark.parametrize(("key", "dtype"), diagonal({str(key): key for key in KEYS}, DTYPES))
def test_a_stream_draws_the_same_from_a_root_on_the_device(key: tuple[int, ...], dtype: torch.dtype) -> None:
    device, host = (randomness.stream(*key) for randomness in known(2**60 + 77))
    out = torch.empty(4, 3, 5, dtype=dtype)
    normal = device.normal(out.to(DEVICE), mean=1.0, std=0.5)
    assert_same_bits(normal, host.normal(out.clone(), mean=1.0, std=0.5).to(DEVICE))
    assert_same_bits(device.uniform(out.to(DEVICE)), host.uniform(out.clone()).to(DEVICE))
    for recipe in RECIPES.values():
        assert_same_bits(device.draw(out.to(DEVICE), recipe), host.draw(out.clone(), recipe).to(DEVICE))


def test_a_tensor_with_gaps_is_filled_as_one_without() -> None:
    device, host = (randomness.stream(1, 2) for randomness in known(99))
    out = torch.zeros(4, 6, 5, device=DEVICE).transpose(1, 2)
    assert device.uniform(out) is out
    assert torch.equal(out, host.uniform(torch.empty(4, 5, 6)).to(DEVICE))


def test_without_triton_the_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from statewise.transforms import streams

    device, _ = (randomness.stream(1, 2, 3) for randomness in known(99))
    found = [device.draw(torch.empty(4, 33, device=DEVICE), recipe) for recipe in RECIPES.values()]
    absent = type("Absent", (), {"available": False, "device": "cuda"})
    monkeypatch.setattr(streams, "load_triton", lambda: absent)
    for recipe, wanted in zip(RECIPES.values(), found, strict=True):
        assert_same_bits(device.draw(torch.empty(4, 33, device=DEVICE), recipe), wanted)


# --- on an accelerator


def sizes() -> Sizes:
    return Sizes(5, 3, 6, 8, 4, torch.float32, torch.device("cuda", 0))


def drawn(transform: Transform, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
    stream = Randomness(generator, device=torch.device("cuda", 0)).stream(0, 1, 0)
    tensors = transform.draw(sizes(), stream, training=True)
    assert tensors
    return tensors


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Every wait of the host for the device is an error."""
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@pytest.mark.usefixtures("no_waiting")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("transform", COUNTED, ids=repr)
def test_the_host_does_not_wait_for_a_draw(transform: Transform) -> None:
    assert all(tensor.is_cuda for tensor in drawn(transform))


@pytest.mark.gpu
@pytest.mark.parametrize("transform", COUNTED, ids=repr)
def test_the_device_draws_what_the_host_draws_from_the_same_root(transform: Transform) -> None:
    found = drawn(transform, torch.Generator("cuda").manual_seed(3))
    host = Randomness()
    host._root = int(torch.randint(2**62, (), generator=torch.Generator("cuda").manual_seed(3), device="cuda"))
    wanted = transform.draw(sizes()._replace(device=torch.device("cpu")), host.stream(0, 1, 0), training=True)
    for one, other in zip(found, wanted or (), strict=True):
        assert torch.equal(one.cpu(), other)


@pytest.mark.gpu
def test_without_a_generator_the_global_one_of_the_device_is_used() -> None:
    torch.cuda.manual_seed(11)
    first, second = drawn(COUNTED[0]), drawn(COUNTED[0])
    torch.cuda.manual_seed(11)
    again = drawn(COUNTED[0])
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], second[0])


@pytest.mark.gpu
@pytest.mark.parametrize("transform", COUNTED, ids=repr)
def test_a_captured_graph_draws_anew_in_every_replay(transform: Transform) -> None:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        drawn(transform)  # kernels are compiled before the capture
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensors = drawn(transform)
    replays = []
    for _ in range(3):
        graph.replay()
        replays.append(torch.cat([tensor.flatten() for tensor in tensors]))
    assert not any(torch.equal(replays[i], replays[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    torch.cuda.manual_seed(5)
    graph.replay()
    replayed = [tensor.clone() for tensor in tensors]
    torch.cuda.manual_seed(5)
    assert all(torch.equal(one, other) for one, other in zip(replayed, drawn(transform), strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("transform", COUNTED, ids=repr)
def test_replicas_under_vmap_draw_differently_on_the_device(transform: Transform) -> None:
    tensors = torch.func.vmap(lambda _: drawn(transform), randomness="different")(torch.zeros(3, device="cuda"))
    assert all(not torch.equal(tensor[0], tensor[1]) for tensor in tensors)
