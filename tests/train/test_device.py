"""On a CUDA device: captured steps equal eager ones, and a failed capture leaves no trace."""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import statewise
from statewise.train import CaptureError, CaptureWarning, StepPlan, TrainingStep
from statewise.weights import weight_drop
from support import forbidden_to_wait, tolerance
from train.playing import OPTIMIZERS, Tagger, batches, by_hand, carried, squared

pytestmark = pytest.mark.gpu
CAPTURED = StepPlan(captured=True)
FLOAT = tolerance(torch.float32)
MORE: dict[str, Any] = OPTIMIZERS | {
    "capturable adam": lambda p: torch.optim.Adam(p, lr=0.02, capturable=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
}


def twins(**options: Any) -> tuple[Tagger, Tagger]:
    torch.manual_seed(5)
    model = Tagger(**options).cuda()
    return model, copy.deepcopy(model)


def data(count: int, **options: Any) -> list[tuple[Tensor, Tensor]]:
    return batches(count, device="cuda", **options)


def expected(model: nn.Module, optimizer: torch.optim.Optimizer, *arguments: Any, **options: Any) -> Tensor:
    """The losses of the loop by hand; torch warns of capturable optimisers that are not captured."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*capturable=True")
        return torch.tensor(by_hand(model, optimizer, *arguments, **options))


def assert_close_models(one: nn.Module, other: nn.Module) -> None:
    for (name, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        torch.testing.assert_close(a, b, **FLOAT, msg=f"{name} differs")


@pytest.mark.parametrize("make", MORE.values(), ids=MORE.keys())
@pytest.mark.parametrize("clip", [None, 0.05])
def test_five_captured_steps_equal_five_eager_ones_with_dropout(make: Any, clip: float | None) -> None:
    mine, theirs = twins(dropout=0.3)
    optimizer, other = make(mine.parameters()), make(theirs.parameters())
    step = TrainingStep(mine, squared, optimizer, clip=clip, graph=True)
    torch.manual_seed(3)
    losses, plans = [], []
    for x, y in data(8):
        losses.append(step(x, y))
        plans.append(step.plan().captured)
    after = torch.cuda.get_rng_state()
    assert plans == [False] * 3 + [True] * 5
    torch.manual_seed(3)
    torch.testing.assert_close(torch.stack(losses).cpu(), expected(theirs, other, data(8), clip=clip), **FLOAT)
    assert_close_models(mine, theirs)
    assert torch.equal(after, torch.cuda.get_rng_state())
    for name in ("lr", "capturable", "fused"):
        assert optimizer.param_groups[0].get(name) == other.param_groups[0].get(name)


@pytest.mark.parametrize(
    "name", ["adam", "adamw", "rmsprop", "rmsprop-tf", "fused adam", "fused sgd", "nadam", "radam", "adamax"]
)
def test_a_learning_rate_that_changes_with_each_step_is_followed_by_one_graph(name: str) -> None:
    mine, theirs = twins()
    optimizer, other = MORE[name](mine.parameters()), MORE[name](theirs.parameters())
    schedule, slower = (torch.optim.lr_scheduler.ExponentialLR(each, 0.7) for each in (optimizer, other))
    step = TrainingStep(mine, squared, optimizer, graph=True, warmup=2)
    plans = []
    for x, y in data(8):
        step(x, y)
        schedule.step()
        plans.append(step.plan().captured)
    assert plans == [False] * 2 + [True] * 6
    expected(theirs, other, data(8), between=lambda _: slower.step())
    assert_close_models(mine, theirs)


def test_sgd_whose_learning_rate_changes_is_captured_anew() -> None:
    mine, theirs = twins()
    optimizer, other = OPTIMIZERS["sgd"](mine.parameters()), OPTIMIZERS["sgd"](theirs.parameters())
    step = TrainingStep(mine, squared, optimizer, graph=True, warmup=1)

    def halve(optimizer: torch.optim.Optimizer, number: int) -> None:
        if number == 3:
            optimizer.param_groups[0]["lr"] *= 0.1

    plans = []
    for number, (x, y) in enumerate(data(8)):
        step(x, y)
        halve(optimizer, number)
        plans.append(step.plan().captured)
    assert plans == [False, True, True, True, False, True, True, True]
    expected(theirs, other, data(8), between=lambda number: halve(other, number))
    assert_close_models(mine, theirs)


def test_random_numbers_are_drawn_anew_on_each_replay() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 8)).cuda()
    step = TrainingStep(model, lambda model, x: model(x).square().mean(), torch.optim.SGD(model.parameters(), 0.0))
    x = torch.ones(16, 64, device="cuda")
    losses = [step(x).item() for _ in range(8)]
    assert step.plan() == CAPTURED
    assert len(set(losses)) == 8


def test_the_noise_of_a_layer_is_drawn_anew_on_each_replay() -> None:
    model = statewise.LSTM(3, 8, transforms=statewise.Noise("gaussian", 0.5), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = TrainingStep(model, lambda model, x: model(x)[0].square().mean(), optimizer, graph=True)
    x = torch.randn(7, 4, 3, device="cuda")
    losses = [step(x).item() for _ in range(8)]
    assert step.plan() == CAPTURED
    assert len(set(losses)) == 8


def test_a_layer_of_statewise_equals_its_eager_steps_noise_included() -> None:
    torch.manual_seed(0)
    mine = statewise.LSTM(3, 8, transforms=statewise.Noise("gaussian", 0.5), device="cuda")
    theirs = copy.deepcopy(mine)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = model(x)[0]
        return (out - 1).square().mean()

    step = TrainingStep(mine, loss, torch.optim.Adam(mine.parameters(), 0.01), clip=0.25, graph=True)
    x = torch.randn(7, 4, 3, device="cuda")
    torch.manual_seed(1)
    losses = torch.stack([step(x) for _ in range(8)])
    eager = TrainingStep(theirs, loss, torch.optim.Adam(theirs.parameters(), 0.01), clip=0.25, graph=False)
    torch.manual_seed(1)
    torch.testing.assert_close(losses, torch.stack([eager(x) for _ in range(8)]), **FLOAT)
    assert_close_models(mine, theirs)


def test_the_masks_of_weight_drop_are_drawn_anew_and_can_be_read() -> None:
    model = weight_drop(statewise.LSTM(3, 8, device="cuda"), "weight_hh_l0", p=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = TrainingStep(model, lambda model, x: model(x)[0].square().mean(), optimizer, graph=True)
    x, masks, losses = torch.randn(7, 4, 3, device="cuda"), [], []
    for _ in range(8):
        losses.append(step(x).item())
        masks.append(next(iter(statewise.weights.weight_drop_masks(model).values())).clone())
    assert step.plan() == CAPTURED
    assert len(set(losses)) == 8
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise(masks))
    model.eval()
    assert torch.equal(step(x), step(x))


def test_a_carried_state_and_kept_results_are_right() -> None:
    mine, theirs = twins()
    step = TrainingStep(mine, carried, torch.optim.SGD(mine.parameters(), lr=0.1), graph=True, warmup=2)
    state, kept = torch.zeros(4, 5, device="cuda"), []
    for x, y in data(7):
        loss, state = step(x, y, state)
        kept.append((loss, state))
    other, again = torch.optim.SGD(theirs.parameters(), lr=0.1), torch.zeros(4, 5, device="cuda")
    for (x, y), (loss, state) in zip(data(7), kept, strict=True):
        other.zero_grad()
        value, again = carried(theirs, x, y, again)
        value.backward()
        other.step()
        again = again.detach()
        torch.testing.assert_close(loss, value.detach(), **FLOAT)
        torch.testing.assert_close(state, again, **FLOAT)


def test_shapes_in_any_order_share_memory_without_harm() -> None:
    mine, theirs = twins(dropout=0.2)
    optimizer = torch.optim.Adam(mine.parameters(), 0.01)
    step = TrainingStep(mine, squared, optimizer, clip=1.0, graph=True, warmup=1, keep=3)
    rows = (4, 2, 7, 4, 4, 7, 2, 3, 4, 3, 2, 7)
    mixed = [pair for seed, count in enumerate(rows) for pair in data(1, rows=count, seed=seed)]
    torch.manual_seed(1)
    losses = torch.stack([step(x, y) for x, y in mixed])
    torch.manual_seed(1)
    torch.testing.assert_close(
        losses.cpu(), expected(theirs, torch.optim.Adam(theirs.parameters(), 0.01), mixed, clip=1.0), **FLOAT
    )
    assert_close_models(mine, theirs)


def test_autocast_is_captured() -> None:
    torch.manual_seed(0)
    mine = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).cuda()
    theirs = copy.deepcopy(mine)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = model(x)
        return out.float().square().mean()

    step = TrainingStep(mine, loss, torch.optim.SGD(mine.parameters(), 0.1), graph=True, warmup=2)
    x, other = torch.randn(5, 8, device="cuda"), torch.optim.SGD(theirs.parameters(), 0.1)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        losses = [step(x) for _ in range(6)]
    assert step.plan() == CAPTURED
    for found in losses:
        other.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            value = loss(theirs, x)
        value.backward()
        other.step()
        torch.testing.assert_close(found, value.detach(), **FLOAT)
    assert losses[-1] < losses[0]


def test_a_replay_waits_for_nothing() -> None:
    mine, _ = twins(dropout=0.2)
    optimizer = torch.optim.Adam(mine.parameters())
    step = TrainingStep(mine, squared, optimizer, clip=1.0, graph=True, warmup=1)
    (x, y), *_ = data(1)
    for _ in range(3):
        step(x, y)
    with forbidden_to_wait():
        optimizer.param_groups[0]["lr"] = 0.5
        step(x, y)
    assert step.plan() == CAPTURED


def assert_the_device_works() -> None:
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.rand(5, device="cuda").sum().item() > 0
    torch.cuda.empty_cache()
    mine, theirs = twins(dropout=0.3)
    step = TrainingStep(mine, squared, torch.optim.Adam(mine.parameters(), 0.02), graph=True, warmup=1)
    torch.manual_seed(3)
    losses = torch.stack([step(x, y) for x, y in data(4)])
    assert step.plan() == CAPTURED
    torch.manual_seed(3)
    torch.testing.assert_close(
        losses.cpu(), expected(theirs, torch.optim.Adam(theirs.parameters(), 0.02), data(4)), **FLOAT
    )


class OddError(Exception):
    """Something that only happens in a capture."""


def waits(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    value = squared(model, x, y)
    assert value.item() < 1e6
    return value


def waits_in_a_capture(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    value = squared(model, x, y)
    if torch.cuda.is_current_stream_capturing():
        value.item()
    return value


def waits_in_the_backward_pass_of_a_capture(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    value = squared(model, x, y)
    if torch.cuda.is_current_stream_capturing():
        value.register_hook(lambda grad: grad * grad.item())
    return value


def raises_in_a_capture(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    value = squared(model, x, y)
    if torch.cuda.is_current_stream_capturing():
        raise OddError("not now")
    return value


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (waits, "the host waits for the device"),
        (waits_in_a_capture, "the capture failed"),
        (waits_in_the_backward_pass_of_a_capture, "the capture failed"),
        (raises_in_a_capture, "OddError: not now"),
    ],
)
@pytest.mark.parametrize("name", ["sgd with momentum", "adam"])
def test_a_step_that_cannot_be_captured_goes_on_eagerly(loss: Any, told: str, name: str) -> None:
    mine, theirs = twins(dropout=0.3)
    optimizer, other = OPTIMIZERS[name](mine.parameters()), OPTIMIZERS[name](theirs.parameters())
    step = TrainingStep(mine, loss, optimizer, warmup=2)
    torch.manual_seed(3)
    with pytest.warns(CaptureWarning, match=told) as heard:
        losses = torch.stack([step(x, y) for x, y in data(6)])
    assert len(heard) == 1
    assert told in step.plan().why_not
    torch.manual_seed(3)
    torch.testing.assert_close(losses.cpu(), expected(theirs, other, data(6)), **FLOAT)
    assert_close_models(mine, theirs)
    steps = [state["step"] for state in optimizer.state.values() if "step" in state]
    assert all(count.device.type == "cpu" for count in steps)
    assert_the_device_works()


@pytest.mark.parametrize("loss", [waits_in_a_capture, raises_in_a_capture])
def test_who_insists_gets_an_error_and_all_as_it_was(loss: Any) -> None:
    mine, _ = twins(dropout=0.3)
    optimizer = torch.optim.Adam(mine.parameters())
    step = TrainingStep(mine, loss, optimizer, graph=True, warmup=1)
    (x, y), *_ = data(1)
    step(x, y)
    weights, moments = copy.deepcopy(mine.state_dict()), copy.deepcopy(optimizer.state_dict())
    grads, generator = [parameter.grad for parameter in mine.parameters()], torch.cuda.get_rng_state()
    with pytest.raises(CaptureError):
        step(x, y)
    assert torch.equal(generator, torch.cuda.get_rng_state())
    assert all(parameter.grad is grad for parameter, grad in zip(mine.parameters(), grads, strict=True))
    assert all(torch.equal(value, weights[name]) for name, value in mine.state_dict().items())
    for key, state in optimizer.state_dict()["state"].items():
        assert all(torch.equal(value.cpu(), moments["state"][key][name].cpu()) for name, value in state.items())
    assert_the_device_works()


def test_a_graph_made_before_a_failed_capture_still_draws_anew() -> None:
    """Not the numbers of an eager run from there on: torch moves the generator when a capture fails."""
    mine, _ = twins(dropout=0.3)
    step = TrainingStep(mine, squared, torch.optim.SGD(mine.parameters(), 0.0), graph=True, warmup=1)
    for x, y in data(3):
        step(x, y)
    model, _ = twins()
    failing = TrainingStep(model, waits_in_a_capture, torch.optim.SGD(model.parameters(), 0.1), warmup=1)
    with pytest.warns(CaptureWarning):
        [failing(x, y) for x, y in data(2)]
    x, y = data(1)[0]
    losses = torch.stack([step(x, y) for _ in range(4)])
    assert step.plan() == CAPTURED
    assert losses.isfinite().all()
    assert len(losses.unique()) == 4


def test_an_argument_on_the_host_is_told_of() -> None:
    model = nn.Linear(3, 1).cuda()
    step = TrainingStep(model, lambda model, x: model(x.cuda()).sum(), torch.optim.SGD(model.parameters(), 0.1))
    with pytest.warns(CaptureWarning, match="an argument is on cpu and the model on cuda:0"):
        step(torch.ones(3))


def test_an_argument_that_requires_a_gradient_gets_it() -> None:
    model = nn.Linear(3, 1).cuda()
    step = TrainingStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), 0.1))
    x = torch.ones(3, device="cuda", requires_grad=True)
    with pytest.warns(CaptureWarning, match="requires a gradient"):
        step(x)
    assert x.grad is not None


def test_warnings_of_the_loss_are_heard_while_waits_are_looked_for() -> None:
    model = nn.Linear(3, 1).cuda()

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        warnings.warn("mine", UserWarning, stacklevel=1)
        out: Tensor = model(x)
        return out.sum()

    step = TrainingStep(model, loss, torch.optim.SGD(model.parameters(), 0.1), warmup=1)
    with pytest.warns(UserWarning, match="mine"):
        step(torch.ones(3, device="cuda"))


def test_checkpoints_of_the_optimiser_go_back_and_forth() -> None:
    mine, theirs = twins()
    optimizer, other = torch.optim.Adam(mine.parameters(), 0.02), torch.optim.Adam(theirs.parameters(), 0.02)
    step = TrainingStep(mine, squared, optimizer, graph=True, warmup=2)
    for x, y in data(4):
        step(x, y)
    theirs.load_state_dict(mine.state_dict())
    other.load_state_dict(optimizer.state_dict())
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for x, y in data(5, seed=1):
        step(x, y)
    assert step.plan() == CAPTURED
    expected(theirs, other, data(5, seed=1))
    assert_close_models(mine, theirs)
