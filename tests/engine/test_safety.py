"""What contradicts itself is refused before the kernel reads it, and the walk by columns equals the loop."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import statewise
from statewise import LSTM, Centroids, Draws, Noise, Pairing, ThroughTimeMix, Zoneout
from statewise.engine import project
from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.native import load_native
from statewise.transforms import StateChange, StateTransform
from support import threads

pytestmark = pytest.mark.usefixtures("as_users_have_it")


@pytest.mark.parametrize("sizes", [[2, 3], [3, 2], [5, 0], [3, -1, 3], []])
def test_a_packed_sequence_that_contradicts_itself_is_refused(sizes: list[int]) -> None:
    packed = PackedSequence(torch.randn(4, 3), torch.tensor(sizes, dtype=torch.int64))
    with pytest.raises(LengthError, match="batch_sizes"):
        LSTM(3, 8)(packed)


@pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"])
def test_a_weight_of_another_shape_is_refused(name: str) -> None:
    layer = LSTM(3, 8)
    weights = {**dict(layer.named_parameters()), name: torch.randn_like(layer.get_parameter(name)[:8])}
    with pytest.raises(ShapeError, match="LSTM"):
        torch.func.functional_call(layer, weights, (torch.randn(2, 2, 3),))
    pairing = Pairing(torch.tensor([1, 0]), torch.tensor([0.3, 0.8]), layer=0)
    with pytest.raises((ShapeError, RuntimeError)):
        torch.func.functional_call(layer, weights, (torch.randn(2, 2, 3),), {"pairing": pairing})


@pytest.mark.parametrize(
    ("weight", "bias"),
    [((5, 3), None), ((5, 4), (4,)), ((5, 4), (6,))],
)
def test_a_product_that_does_not_fit_is_refused(weight: tuple[int, ...], bias: tuple[int, ...] | None) -> None:
    with pytest.raises(RuntimeError):
        project(torch.randn(7, 4), torch.randn(weight), None if bias is None else torch.randn(bias))


def test_a_product_of_two_dtypes_is_refused() -> None:
    with pytest.raises(RuntimeError, match="dtype"):
        project(torch.randn(7, 4), torch.randn(5, 4, dtype=torch.float64), None)


@pytest.mark.parametrize(
    ("transform", "shapes"),
    [
        (Zoneout(0.5, memory=0.5), [(6, 4, 8), (1, 4, 8)]),
        (Zoneout(0.5, memory=0.5), [(1, 4, 8), (6, 4, 8)]),
        (Zoneout(0.5, memory=0.5), [(1, 4, 8), (1, 4, 8)]),
        (Centroids(5, transition="noisy"), [(1, 4, 5)]),
        (Noise("gaussian", 0.5), [(1, 4, 8)]),
    ],
)
@pytest.mark.parametrize("lengths", [None, [6, 2, 5, 1]])
def test_draws_that_are_constant_in_time_equal_the_loop(
    transform: Any, shapes: list[tuple[int, ...]], lengths: list[int] | None
) -> None:
    layer, x = LSTM(3, 8, transforms=transform), torch.randn(6, 4, 3)
    given = x if lengths is None else pack_padded_sequence(x, lengths, enforce_sorted=False)
    draws = Draws({(0, 0, 0): tuple(torch.rand(shape) for shape in shapes)})
    fast = layer(given, draws=draws)[1][0]
    layer.engine = "reference"
    torch.testing.assert_close(fast, layer(given, draws=draws)[1][0])


def test_each_of_two_transforms_of_one_kind_has_its_weights_checked() -> None:
    layer = LSTM(3, 8, transforms=[Centroids(40), Centroids(6)])
    weights = {**dict(layer.named_parameters()), "centroids_l0": torch.randn(2, 8)}
    assert tuple(layer.get_parameter("centroids_l0").shape) == (40, 8)
    for engine in ("auto", "reference"):
        layer.engine = engine
        with pytest.raises(ShapeError, match=r"centroids.*state_dict"):
            torch.func.functional_call(layer, weights, (torch.randn(2, 2, 3),))


@dataclass(frozen=True)
class Bend(StateTransform):
    """Two learnt tensors of different shapes."""

    def parameter_shapes(self, hidden: int) -> dict[str, tuple[int, ...]]:
        return {"slope": (hidden,), "turn": (hidden, hidden)}

    def draw(self, sizes: Any, stream: Any, *, training: bool) -> tuple[Tensor, ...]:
        return ()

    def forward(self, state: Tensor, memory: Any, previous: Any, draws: Any, parameters: Any) -> StateChange:
        return StateChange(state * parameters[0] + state @ parameters[1], memory)


def test_a_transform_of_ones_own_may_learn_several_tensors() -> None:
    layer = LSTM(3, 4, transforms=Bend())
    assert layer(torch.randn(2, 2, 3))[0].shape == (2, 2, 4)


def test_a_noise_that_was_pickled_before_it_had_a_recipe_draws() -> None:
    noise = Noise("gaussian", 0.5, placement="recurrent")
    state = {name: value for name, value in vars(noise).items() if name != "_recipe"}
    old = Noise.__new__(Noise)
    old.__setstate__(state)
    assert old == noise == pickle.loads(pickle.dumps(noise))
    assert LSTM(3, 4, transforms=old)(torch.randn(2, 2, 3))[0].shape == (2, 2, 4)


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(ShapeError, match="1 tensors for Zoneout, wanted 2"):
        LSTM(3, 8, transforms=Zoneout(0.5))(torch.randn(6, 4, 3), draws=Draws({(0, 0, 0): (torch.ones(6, 4, 8),)}))


def test_draws_of_another_stack_are_refused() -> None:
    noise, x = Noise("gaussian", 0.5), torch.randn(6, 4, 3)
    with pytest.raises(ArgumentError, match=r"1 layer\(s\).*wanted.*2 layer\(s\)"):
        LSTM(3, 8, 2, transforms=noise)(x, draws=LSTM(3, 8, transforms=noise).draw(x))


def test_a_coefficient_that_wants_a_gradient_gets_it() -> None:
    layer, x = LSTM(3, 8, transforms=ThroughTimeMix()), torch.randn(6, 4, 3)
    found = []
    for engine in ("auto", "reference"):
        layer.engine = engine
        weight = torch.full((4,), 0.7, requires_grad=True)
        layer(x, pairing=Pairing(torch.arange(4).flip(0), weight))[0].square().sum().backward()
        found.append(weight.grad)
    assert isinstance(found[1], Tensor)
    torch.testing.assert_close(found[0], found[1])


def test_a_draw_changed_before_the_backward_pass_is_noticed() -> None:
    layer, x = LSTM(3, 8, transforms=Noise("gaussian", 0.5)), torch.randn(6, 4, 3)
    draws = layer.draw(x)
    loss = layer(x, draws=draws)[0].square().sum()
    draws.tensors[0, 0, 0][0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.fixture
def three_threads() -> Iterator[None]:
    with threads(3):
        yield


LAYERS = ("RNN", "MGU", "GRU", "LSTM", "PeepholeLSTM", "RAC")


# Few sequences, or recurrent weights beyond a core's cache: the threads share columns and wait for each other.
@pytest.mark.skipif(not load_native().available, reason="needs the kernel")
@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("batch", "hidden"), [(1, 20), (2, 33), (7, 20), (13, 330)])
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.filterwarnings("ignore::statewise.CompoundingNoiseWarning")
def test_threads_that_share_columns_give_what_the_loop_gives(
    kind: str, batch: int, hidden: int, generator: torch.Generator
) -> None:
    chain = (Noise("gaussian", 0.2, placement="recurrent"), Centroids(4), Zoneout(0.2, memory=0.1))
    options = {"bidirectional": True, "transforms": chain, "dtype": torch.float64, "generator": generator}
    layer = getattr(statewise, kind)(3, hidden, **options)
    x = torch.randn(5, batch, 3, dtype=torch.float64, generator=generator)
    packed = pack_padded_sequence(x, [1 + row % 5 for row in range(batch)], enforce_sorted=False)
    draws = layer.draw(packed, generator=generator)
    found = []
    for engine in ("cpu", "reference"):
        layer.engine = engine
        output = layer(packed, draws=draws)[0].data
        found.append((output, *torch.autograd.grad(output.square().sum(), list(nn.Module.parameters(layer)))))
    for fast, truth in zip(*found, strict=True):
        torch.testing.assert_close(fast, truth, rtol=1e-10, atol=1e-10)
