"""RMSprop in the convention of TensorFlow 1."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError
from statewise.train.rmsprop_tf import RMSpropTF, rmsprop_tf_

DOUBLE = torch.float64


def gradients(steps: int, seed: int) -> list[float]:
    return torch.randn(steps, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE).tolist()


def by_hand(start: float, slopes: list[float], *, lr: float, decay: float, momentum: float, epsilon: float) -> float:
    """One number, as TensorFlow's documentation has it."""
    square, moment = 1.0, 0.0
    for slope in slopes:
        square = decay * square + (1 - decay) * slope * slope
        moment = momentum * moment + lr * slope / math.sqrt(square + epsilon)
        start -= moment
    return start


def move(optimizer: torch.optim.Optimizer, parameter: nn.Parameter, slopes: list[float]) -> None:
    for slope in slopes:
        parameter.grad = torch.full_like(parameter, slope)
        optimizer.step()


@given(
    steps=st.integers(1, 6),
    seed=st.integers(0, 999),
    decay=st.sampled_from([0.0, 0.9, 0.99]),
    momentum=st.sampled_from([0.0, 0.5]),
    epsilon=st.sampled_from([1e-10, 0.1]),
)
def test_it_moves_a_weight_as_the_formula_does(
    steps: int, seed: int, decay: float, momentum: float, epsilon: float
) -> None:
    weight, slopes = nn.Parameter(torch.tensor([0.3, 0.3], dtype=DOUBLE)), gradients(steps, seed)
    options = {"lr": 0.05, "decay": decay, "momentum": momentum, "epsilon": epsilon}
    move(RMSpropTF([weight], **options), weight, slopes)
    expected = by_hand(0.3, slopes, **options)
    assert weight.tolist() == pytest.approx([expected] * 2, rel=1e-12)


def test_the_function_moves_each_network_at_its_own_rate() -> None:
    slopes, rates = gradients(5, 3), torch.tensor([0.1, 0.0, 0.02], dtype=DOUBLE)
    weights, square = torch.full((3, 4, 2), 0.3, dtype=DOUBLE), torch.ones(3, 4, 2, dtype=DOUBLE)
    for slope in slopes:
        rmsprop_tf_(weights, torch.full_like(weights, slope), square, lr=rates.view(3, 1, 1))
    for network, rate in zip(weights, rates.tolist(), strict=True):
        expected = by_hand(0.3, slopes, lr=rate, decay=0.9, momentum=0.0, epsilon=1e-10)
        assert network.flatten().tolist() == pytest.approx([expected] * 8, rel=1e-12)


def test_groups_have_settings_of_their_own_and_what_has_no_gradient_stays() -> None:
    one, two, three = (nn.Parameter(torch.zeros(1, dtype=DOUBLE)) for _ in range(3))
    groups: list[dict[str, Any]] = [{"params": [one, three]}, {"params": [two], "lr": 1e-2, "decay": 0.5}]
    optimizer = RMSpropTF(groups, lr=1e-3)
    one.grad, two.grad = (torch.ones(1, dtype=DOUBLE) for _ in range(2))
    optimizer.step()
    assert one.item() == pytest.approx(by_hand(0.0, [1.0], lr=1e-3, decay=0.9, momentum=0, epsilon=1e-10))
    assert two.item() == pytest.approx(by_hand(0.0, [1.0], lr=1e-2, decay=0.5, momentum=0, epsilon=1e-10))
    assert three.item() == 0
    assert three not in optimizer.state


def test_a_rate_may_be_a_tensor_that_is_turned() -> None:
    plain, turned = (nn.Parameter(torch.zeros(2, dtype=DOUBLE)) for _ in range(2))
    rate = torch.tensor(0.1, dtype=DOUBLE)
    first, second = RMSpropTF([plain], lr=0.1), RMSpropTF([turned], lr=rate)
    move(first, plain, [0.5])
    move(second, turned, [0.5])
    first.param_groups[0]["lr"] = 0.01
    rate.fill_(0.01)
    move(first, plain, [0.7])
    move(second, turned, [0.7])
    assert torch.equal(plain, turned)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_its_state_can_be_saved_and_loaded(momentum: float) -> None:
    weight = nn.Parameter(torch.zeros(3))
    optimizer = RMSpropTF([weight], lr=0.1, momentum=momentum)
    move(optimizer, weight, [0.3, -0.2])
    twin = nn.Parameter(weight.detach().clone())
    other = RMSpropTF([twin], lr=0.7)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    move(optimizer, weight, [0.5, 0.1])
    move(other, twin, [0.5, 0.1])
    assert torch.equal(weight, twin)


def test_a_closure_is_called_with_gradients() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer = RMSpropTF([weight], lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 1.0
    assert weight.item() < 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lr": -1.0}, "lr: got -1"),
        ({"lr": torch.ones(2)}, r"lr: got a tensor of shape \(2,\), .* rmsprop_tf_ takes one rate for each"),
        ({"decay": 1.0}, "decay: got 1"),
        ({"momentum": -0.1}, "momentum: got -0.1"),
        ({"epsilon": math.nan}, "epsilon: got nan"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"initial_accumulator": -1.0}, "initial_accumulator"),
    ],
)
def test_senseless_settings_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=rf"RMSpropTF\.{text}"):
        RMSpropTF([nn.Parameter(torch.ones(1))], **options)


def test_sparse_gradients_are_refused() -> None:
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(DtypeError, match="got a sparse gradient, wanted dense ones"):
        RMSpropTF(table.parameters()).step()


@pytest.mark.gpu
def test_a_captured_step_follows_a_rate_on_the_device() -> None:
    weight, rate = nn.Parameter(torch.zeros(4, device="cuda")), torch.tensor(0.1, device="cuda")
    weight.grad = torch.full((4,), 0.5, device="cuda")
    optimizer = RMSpropTF([weight], lr=rate, momentum=0.5)
    optimizer.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    weight.detach().zero_()
    for state in optimizer.state.values():
        state["square_avg"].fill_(1)
        state["momentum_buffer"].zero_()
    expected = nn.Parameter(torch.zeros(4, device="cuda"))
    other = RMSpropTF([expected], lr=0.1, momentum=0.5)
    for value in (0.1, 0.1, 0.01):
        rate.fill_(value)
        graph.replay()
        other.param_groups[0]["lr"] = value
        move(other, expected, [0.5])
    found: Tensor = weight.detach()
    torch.testing.assert_close(found, expected.detach(), rtol=1e-6, atol=1e-7)
