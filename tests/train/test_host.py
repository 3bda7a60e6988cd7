"""What Python does in a step is seen, and put back."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from statewise.errors import ShapeError
from statewise.train.host import HostState

CPU = torch.device("cpu")


def model_with_buffers() -> nn.Module:
    model = nn.Module()
    model.register_buffer("mean", torch.zeros(2))
    model.register_buffer("none", None)
    return model


def host_of(model: nn.Module, **options: Any) -> HostState:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], **options)
    return HostState(model, optimizer, [], CPU)


def test_what_took_the_place_of_a_buffer_is_written_into_it() -> None:
    model = model_with_buffers()
    before: Any = model.mean
    host = host_of(model)
    model.mean = torch.ones(2)
    host.keep_buffers()
    assert model.mean is before
    assert before.tolist() == [1, 1]


@pytest.mark.parametrize("other", [torch.ones(3), torch.ones(2, dtype=torch.int64), None])
def test_a_buffer_that_becomes_another_kind_of_tensor_is_refused(other: Any) -> None:
    model = model_with_buffers()
    host = host_of(model)
    model.mean = other
    with pytest.raises(ShapeError, match=r"Module.mean: got another tensor"):
        host.keep_buffers()


def test_a_buffer_that_appears_is_refused() -> None:
    model = model_with_buffers()
    host = host_of(model)
    model.none = torch.ones(2)
    with pytest.raises(ShapeError, match=r"Module.none"):
        host.keep_buffers()


def test_buffers_and_attributes_are_put_back() -> None:
    model: Any = model_with_buffers()
    model.state, model.pair, model.number = torch.zeros(1), [torch.zeros(1), torch.ones(1)], 3
    kept = model.mean, model.state, list(model.pair)
    host = host_of(model)
    model.mean, model.state, model.pair[0], model.new = (torch.ones(2) for _ in range(4))
    host.restore()
    assert model.mean is kept[0]
    assert model.state is kept[1]
    assert all(a is b for a, b in zip(model.pair, kept[2], strict=True))
    assert not hasattr(model, "new")
    assert host.frozen() is None


@pytest.mark.parametrize("change", ["replace", "inside", "new"])
def test_a_tensor_that_a_module_sets_is_seen(change: str) -> None:
    model: Any = nn.Module()
    model.pair = (torch.zeros(1), [torch.zeros(1)])
    host = host_of(model)
    assert host.frozen() is None
    if change == "replace":
        model.pair = (torch.zeros(1), model.pair[1])
    elif change == "inside":
        model.pair = (model.pair[0], [torch.zeros(1)])
    else:
        model.other = torch.zeros(1)
    refusal = host.frozen()
    assert refusal is not None
    assert "Module sets its attribute" in refusal.reason


def test_writing_into_an_attribute_is_allowed() -> None:
    model: Any = nn.Module()
    model.state = torch.zeros(1)
    host = host_of(model)
    model.state.add_(1)
    assert host.frozen() is None


@pytest.mark.parametrize("change", ["number", "tensor", "written", "appears"])
def test_a_count_of_the_optimiser_is_seen_and_put_back(change: str) -> None:
    one, other = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([one, other])
    tensor = torch.zeros(())
    optimizer.state[one] = {"number": 1, "tensor": tensor}
    host = HostState(nn.Module(), optimizer, [], CPU)
    assert host.frozen() is None
    if change == "number":
        optimizer.state[one]["number"] += 1
    elif change == "tensor":
        optimizer.state[one]["tensor"] = torch.zeros(())
    elif change == "written":
        tensor.add_(1)
    else:
        optimizer.state[other]["number"] = 0
    refusal = host.frozen()
    assert refusal is not None
    assert refusal.reason == "SGD counts on the host, which a graph would not do again"
    host.restore()
    assert list(optimizer.state) == [one]
    assert optimizer.state[one] == {"number": 1, "tensor": tensor}
    assert optimizer.state[one]["tensor"] is tensor
    assert tensor.item() == 0
