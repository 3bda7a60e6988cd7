"""A training step computes what the loop written by hand computes, to the bit."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import statewise
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.train import CaptureError, StepPlan, TrainingStep
from train.playing import OPTIMIZERS, Tagger, batches, by_hand, carried, squared

EVERY_OPTIMIZER = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())


def twins(**options: Any) -> tuple[Tagger, Tagger]:
    """Two models with the same weights."""
    torch.manual_seed(5)
    model = Tagger(**options)
    return model, copy.deepcopy(model)


def assert_same_model(one: nn.Module, other: nn.Module) -> None:
    for (name, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(a, b), name


@EVERY_OPTIMIZER
@pytest.mark.parametrize("clip", [None, 0.05, 1e6])
@pytest.mark.parametrize("graph", ["auto", False])
def test_steps_equal_the_loop_by_hand(make: Any, clip: float | None, graph: Any) -> None:
    mine, theirs = twins()
    optimizer = make(mine.parameters())
    step = TrainingStep(mine, squared, optimizer, clip=clip, graph=graph)
    other = make(theirs.parameters())
    losses = [step(x, y).item() for x, y in batches(5)]
    assert losses == by_hand(theirs, other, batches(5), clip=clip)
    assert_same_model(mine, theirs)
    for a, b in zip(optimizer.state.values(), other.state.values(), strict=True):
        assert all(torch.equal(a[name], b[name]) for name in b)


def test_clipping_changes_the_result() -> None:
    mine, theirs = twins()
    step = TrainingStep(mine, squared, torch.optim.SGD(mine.parameters(), lr=0.1), clip=0.01)
    step(*batches(1)[0])
    total = torch.stack([parameter.grad.norm() for parameter in mine.parameters() if parameter.grad is not None]).norm()
    assert total.item() == pytest.approx(0.01, rel=1e-3)
    by_hand(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1), batches(1))
    assert not torch.equal(mine.out.weight, theirs.out.weight)


def test_dropout_draws_what_the_loop_by_hand_draws() -> None:
    mine, theirs = twins(dropout=0.5)
    step = TrainingStep(mine, squared, torch.optim.Adam(mine.parameters()))
    torch.manual_seed(3)
    losses = [step(x, y).item() for x, y in batches(4)]
    torch.manual_seed(3)
    assert losses == by_hand(theirs, torch.optim.Adam(theirs.parameters()), batches(4))


def test_a_scheduler_takes_effect() -> None:
    mine, theirs = twins()
    optimizer, other = torch.optim.Adam(mine.parameters(), lr=0.1), torch.optim.Adam(theirs.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = TrainingStep(mine, squared, optimizer)
    for x, y in batches(4):
        step(x, y)
        schedule.step()
    schedule = torch.optim.lr_scheduler.ExponentialLR(other, 0.5)
    by_hand(theirs, other, batches(4), between=lambda _: schedule.step())
    assert_same_model(mine, theirs)


def test_the_loss_is_detached_and_each_call_has_its_own() -> None:
    mine, _ = twins()
    step = TrainingStep(mine, squared, torch.optim.SGD(mine.parameters(), lr=0.1))
    first, second = (step(x, y) for x, y in batches(2))
    assert not first.requires_grad
    assert first.shape == ()
    assert first.item() != second.item()


def test_a_state_is_carried_from_call_to_call() -> None:
    mine, theirs = twins()
    step = TrainingStep(mine, carried, torch.optim.SGD(mine.parameters(), lr=0.1))
    state, losses = None, []
    for x, y in batches(4):
        loss, state = step(x, y, state)
        losses.append(loss.item())
        assert not state.requires_grad
    other, state = torch.optim.SGD(theirs.parameters(), lr=0.1), None
    for number, (x, y) in enumerate(batches(4)):
        other.zero_grad()
        loss, state = carried(theirs, x, y, state)
        loss.backward()
        other.step()
        state = state.detach()
        assert losses[number] == loss.item()


def test_a_layer_of_statewise_trains_with_a_carried_tuple() -> None:
    model = statewise.LSTM(3, 5, transforms=statewise.Noise("gaussian", 0.1))

    def loss(model: nn.Module, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        out, state = model(x, state)
        return out.square().mean(), state

    step = TrainingStep(model, loss, torch.optim.SGD(model.parameters(), lr=0.5))
    x, state, losses = torch.randn(6, 4, 3), None, []
    for _ in range(20):
        value, state = step(x, state)
        losses.append(value.item())
    assert isinstance(state, tuple)
    assert losses[-1] < losses[0]


def test_what_else_the_loss_returns_comes_back_in_its_structure() -> None:
    model = nn.Linear(2, 1)

    def loss(model: nn.Module, pair: dict[str, Tensor]) -> tuple[Tensor, dict[str, Any]]:
        out = model(pair["x"])
        return (out - pair["y"]).square().sum(), {"out": out, "none": None, "list": [out.mean()]}

    step = TrainingStep(model, loss, torch.optim.SGD(model.parameters(), lr=0.1))
    value, extra = step({"x": torch.ones(3, 2), "y": torch.zeros(3, 1)})
    assert value.shape == ()
    assert list(extra) == ["out", "none", "list"]
    assert extra["out"].shape == (3, 1)
    assert not extra["out"].requires_grad
    assert not extra["list"][0].requires_grad
    assert extra["none"] is None


def test_a_parameter_without_a_gradient_is_left_alone() -> None:
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "unused": nn.Linear(2, 1)})
    before = copy.deepcopy(model["unused"].state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    step = TrainingStep(model, lambda model, x: model["used"](x).square().mean(), optimizer)
    step(torch.ones(3, 2))
    step(torch.ones(3, 2))
    assert all(torch.equal(before[name], value) for name, value in model["unused"].state_dict().items())
    assert all(parameter.grad is None for parameter in model["unused"].parameters())


def test_gradients_do_not_pile_up_where_the_optimiser_does_not_reach() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(second.parameters(), lr=0.0)
    step = TrainingStep(nn.Sequential(first, second), lambda model, x: model(x).sum(), optimizer)
    grads = []
    for _ in range(2):
        step(torch.ones(3, 2))
        assert first.weight.grad is not None
        grads.append(first.weight.grad.clone())
    assert torch.equal(*grads)


def test_the_optimiser_may_move_more_than_the_model() -> None:
    model, temperature = nn.Linear(2, 1), nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([*model.parameters(), temperature], lr=0.1)
    step = TrainingStep(model, lambda model, x: (model(x) * temperature - 3).square().mean(), optimizer, clip=1.0)
    step(torch.ones(3, 2))
    assert temperature.item() != 1


def test_under_autocast_the_forward_pass_alone_is_converted() -> None:
    mine, theirs = twins()
    optimizer = torch.optim.SGD(mine.out.parameters(), 0.1)
    step = TrainingStep(mine.out, lambda model, x: model(x).square().mean(), optimizer)
    x = torch.randn(7, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # around all, while by hand it must be around the forward pass
        losses = [step(x).item() for _ in range(3)]
    other = torch.optim.SGD(theirs.out.parameters(), 0.1)
    for loss in losses:
        other.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = theirs.out(x).square().mean()
        value.backward()
        other.step()
        assert loss == value.item()
    assert torch.equal(mine.out.weight, theirs.out.weight)
    assert len(set(losses)) == 3


def test_under_autocast_no_weight_is_older_than_the_step_and_the_backward_pass_is_not_converted() -> None:
    model, seen = nn.Linear(2, 1, bias=False), []

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = model(x).float().sum()
        out.register_hook(lambda grad: seen.append(torch.is_autocast_enabled("cpu")))
        return out

    step = TrainingStep(model, loss, torch.optim.SGD(model.parameters(), 0.1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.ones(2))  # which keeps the converted weight until the region ends
        model.weight.data.fill_(3.0)
        assert step(torch.ones(2)).item() == 6
        assert torch.is_autocast_enabled("cpu")
    assert seen == [False]


def test_the_plan_says_that_nothing_is_captured_on_a_cpu_and_nobody_is_warned() -> None:
    model = nn.Linear(2, 1)
    step = TrainingStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), lr=0.1))
    assert step.plan() == StepPlan(captured=False, why_not="the step has not been called yet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(torch.ones(2))
    assert step.plan() == StepPlan(captured=False, why_not="the model is on cpu")
    step.graph = False
    step(torch.ones(2))
    assert str(step.plan()) == "eager; not captured because graph=False"
    step.reset()


def test_who_insists_on_a_graph_gets_an_error_and_the_model_as_it_was() -> None:
    model = nn.Linear(2, 1)
    before = model.weight.clone()
    step = TrainingStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), 0.1), graph=True)
    with pytest.raises(CaptureError, match="the model is on cpu, wanted one that can be"):
        step(torch.ones(2))
    assert torch.equal(model.weight, before)
    assert model.weight.grad is None


@pytest.mark.usefixtures("as_users_have_it")
class TestRefusals:
    @pytest.mark.parametrize(
        ("argument", "got", "path"),
        [
            ((torch.ones(2), 0.5), "float", "[1]"),
            ((torch.ones(2), {"a": [torch.ones(1), "b"]}), "str", "[1]['a'][1]"),
            ((True,), "bool", "[0]"),
        ],
    )
    def test_an_argument_that_is_no_tensor_is_refused(self, argument: Any, got: str, path: str) -> None:
        model = nn.Linear(2, 1)
        step = TrainingStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), lr=0.1))
        with pytest.raises(DtypeError, match="Close over it") as raised:
            step(*argument)
        assert (raised.value.got, raised.value.where) == (got, f"TrainingStep argument {path}")

    @pytest.mark.parametrize(
        ("returned", "kind", "told"),
        [
            (1.0, DtypeError, "float from the loss"),
            (torch.ones(3), ShapeError, "shape (3,) from the loss"),
            ((torch.ones(()), 3), DtypeError, "int"),
            ((torch.ones(()), {"a": 3.0}), DtypeError, "second result['a']"),
            ((torch.ones(()), None, None), DtypeError, "tuple from the loss"),
        ],
    )
    def test_a_loss_that_returns_something_else_is_refused(self, returned: Any, kind: Any, told: str) -> None:
        model = nn.Linear(2, 1)
        step = TrainingStep(model, lambda *_: returned, torch.optim.SGD(model.parameters(), lr=0.1))
        with pytest.raises(kind) as raised:
            step(torch.ones(2))
        assert told in str(raised.value)

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            *[("clip", value) for value in (0, -1.0, float("nan"), float("inf"), "1", True)],
            *[("graph", value) for value in ("yes", None, 2)],
            *[(name, value) for name in ("warmup", "keep") for value in (0, -1, 1.5, True)],
        ],
    )
    def test_a_setting_outside_its_domain_is_refused(self, option: str, value: Any) -> None:
        model = nn.Linear(2, 1)
        with pytest.raises(ArgumentError, match=f"TrainingStep.{option}"):
            TrainingStep(model, squared, torch.optim.SGD(model.parameters(), lr=0.1), **{option: value})

    @pytest.mark.parametrize("name", ["model", "loss", "optimizer"])
    def test_a_part_of_another_class_is_refused(self, name: str) -> None:
        model: Any = nn.Linear(2, 1)
        parts: dict[str, Any] = {"model": model, "loss": squared, "optimizer": torch.optim.SGD(model.parameters(), 0.1)}
        with pytest.raises(DtypeError, match=f"TrainingStep.{name}: got int"):
            TrainingStep(**{**parts, name: 3})

    def test_an_optimiser_with_a_closure_is_refused(self) -> None:
        model = nn.Linear(2, 1)
        with pytest.raises(ArgumentError, match="LBFGS"):
            TrainingStep(model, squared, torch.optim.LBFGS(model.parameters()))


def test_an_error_of_the_loss_is_its_own_and_nothing_has_moved() -> None:
    model = nn.Linear(2, 1)
    before = model.weight.clone()
    step = TrainingStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        step(torch.ones(5, 7))
    assert torch.equal(model.weight, before)


class TestGradientsThatOverflow:
    @staticmethod
    def step(skipped: torch.Tensor | None, clip: float | None) -> tuple[nn.Linear, TrainingStep]:
        model = nn.Linear(2, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return model, TrainingStep(model, lambda model, x: model(x).sum(), optimizer, clip=clip, skipped=skipped)

    @pytest.mark.parametrize("clip", [None, 1.0])
    @pytest.mark.parametrize("bad", [float("inf"), float("nan")])
    def test_they_are_counted_and_move_nothing(self, clip: float | None, bad: float) -> None:
        skipped = torch.zeros((), dtype=torch.int64)
        model, step = self.step(skipped, clip)
        before = model.weight.detach().clone()
        step(torch.tensor([[bad, 1.0]]))
        assert torch.equal(model.weight, before)
        assert int(skipped) == 1
        step(torch.tensor([[3.0, 4.0]]))
        assert int(skipped) == 1
        gradient = torch.tensor([[3.0, 4.0]]) / (1.0 if clip is None else 5.0)
        torch.testing.assert_close(model.weight, before - 0.1 * gradient)

    def test_without_a_count_they_are_used_as_by_hand(self) -> None:
        model, step = self.step(None, None)
        step(torch.tensor([[float("nan"), 1.0]]))
        assert model.weight.isnan().any()
