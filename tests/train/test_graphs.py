"""When a step is captured, replayed, captured anew, or refused; with a stand-in for the device's graphs."""

from __future__ import annotations

import copy
import gc
import random
import warnings
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statewise.train import CaptureError, CaptureWarning, StepPlan, TrainingStep, graphs
from statewise.train.obstacles import obstacle
from support import tolerance
from train.playing import OPTIMIZERS, StandIn, Tagger, batches, by_hand, carried, squared, stand_in

NAMES = (torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax, torch.optim.Adadelta)
MORE: dict[str, Any] = OPTIMIZERS | {kind.__name__: lambda p, kind=kind: kind(p, lr=0.01) for kind in NAMES}
CAPTURED = StepPlan(captured=True)


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> list[StandIn]:
    return stand_in(monkeypatch)


def twins(**options: Any) -> tuple[Tagger, Tagger]:
    torch.manual_seed(5)
    model = Tagger(**options)
    return model, copy.deepcopy(model)


def assert_close_models(one: nn.Module, other: nn.Module) -> None:
    for (name, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        torch.testing.assert_close(a, b, **tolerance(a.dtype), msg=name)


@pytest.mark.parametrize("make", MORE.values(), ids=MORE.keys())
@pytest.mark.parametrize("clip", [None, 0.05])
def test_replays_equal_the_loop_by_hand(make: Any, clip: float | None, recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    optimizer, other = make(mine.parameters()), make(theirs.parameters())
    step = TrainingStep(mine, squared, optimizer, clip=clip)
    losses, plans = [], []
    for x, y in batches(8):
        losses.append(step(x, y))
        plans.append(step.plan().captured)
    assert plans == [False] * 3 + [True] * 5
    assert (recorders[0].rehearsals, len(recorders[0].recordings)) == (3, 1)
    expected = by_hand(theirs, other, batches(8), clip=clip)
    torch.testing.assert_close(torch.stack(losses), torch.tensor(expected), **tolerance(torch.float32))
    assert_close_models(mine, theirs)
    kept = {name: value for name, value in optimizer.param_groups[0].items() if name != "params"}
    assert kept == {name: value for name, value in other.param_groups[0].items() if name != "params"}


@pytest.mark.parametrize("name", [name for name in MORE if name not in ("sgd", "sgd with momentum")])
def test_a_changed_learning_rate_takes_effect_without_another_capture(name: str, recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    optimizer, other = MORE[name](mine.parameters()), MORE[name](theirs.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = TrainingStep(mine, squared, optimizer)
    for x, y in batches(9):
        step(x, y)
        schedule.step()
    assert step.plan() == CAPTURED
    assert len(recorders[0].recordings) == 1
    assert isinstance(optimizer.param_groups[0]["lr"], float)
    slower = torch.optim.lr_scheduler.ExponentialLR(other, 0.5)
    by_hand(theirs, other, batches(9), between=lambda _: slower.step())
    assert_close_models(mine, theirs)


def test_the_dial_of_a_learning_rate_matters(recorders: list[StandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: without the dial's turning the replay goes on with the rate of the capture."""
    monkeypatch.setattr("statewise.train.optimizers.GraphOptimizer.refresh", _refresh_once)
    mine, theirs = twins()
    optimizer, other = torch.optim.Adam(mine.parameters(), 0.1), torch.optim.Adam(theirs.parameters(), 0.1)
    step = TrainingStep(mine, squared, optimizer, warmup=1)

    def stop(optimizer: torch.optim.Optimizer, number: int) -> None:
        optimizer.param_groups[0]["lr"] = 0.0 if number >= 2 else 0.1

    for number, (x, y) in enumerate(batches(6)):
        step(x, y)
        stop(optimizer, number)
    assert step.plan() == CAPTURED
    by_hand(theirs, other, batches(6), between=lambda number: stop(other, number))
    assert not torch.allclose(mine.out.weight, theirs.out.weight, atol=1e-3)


def _refresh_once(self: Any) -> None:
    if not self._rates:
        self._rates[0] = torch.tensor(self.optimizer.param_groups[0]["lr"])


def test_sgd_is_captured_anew_when_its_learning_rate_changes(recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    optimizer, other = OPTIMIZERS["sgd"](mine.parameters()), OPTIMIZERS["sgd"](theirs.parameters())
    step = TrainingStep(mine, squared, optimizer, warmup=2)

    def halve(optimizer: torch.optim.Optimizer, number: int) -> None:
        if number == 4:
            optimizer.param_groups[0]["lr"] *= 0.5

    plans = []
    for number, (x, y) in enumerate(batches(10)):
        step(x, y)
        plans.append(step.plan())
        halve(optimizer, number)
    assert [plan.captured for plan in plans] == [False] * 2 + [True] * 3 + [False] * 2 + [True] * 3
    assert plans[5].why_not.endswith("'lr' of parameter group 0 has changed")
    assert [played.dropped for played in recorders[0].recordings] == [True, False]
    by_hand(theirs, other, batches(10), between=lambda number: halve(other, number))
    assert_close_models(mine, theirs)


@pytest.mark.parametrize("name", ["betas", "weight_decay", "eps"])
def test_another_number_of_a_group_is_seen(name: str, recorders: list[StandIn]) -> None:
    mine, _ = twins()
    optimizer = torch.optim.Adam(mine.parameters())
    step = TrainingStep(mine, squared, optimizer, warmup=1)
    (x, y), *_ = batches(1)
    for _ in range(3):
        step(x, y)
    assert step.plan() == CAPTURED
    optimizer.param_groups[0][name] = (0.5, 0.9) if name == "betas" else 0.1
    step(x, y)
    assert name in step.plan().why_not


def test_each_signature_has_a_graph_of_its_own_and_all_share_memory(recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    step = TrainingStep(mine, squared, torch.optim.SGD(mine.parameters(), lr=0.1), warmup=1)
    data = [batch for pair in zip(batches(5), batches(5, rows=2), strict=True) for batch in pair]
    for x, y in data:
        step(x, y)
    assert len(recorders[0].recordings) == 2
    assert recorders[0].pools == [None, "pool 1"]
    by_hand(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1), data)
    assert_close_models(mine, theirs)


def test_the_graph_that_was_not_used_for_longest_goes(recorders: list[StandIn]) -> None:
    model = nn.Linear(2, 1)
    step = TrainingStep(
        model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), lr=0.1), warmup=1, keep=2
    )

    def call(rows: int, times: int = 1) -> bool:
        for _ in range(times):
            step(torch.ones(rows, 2))
        return step.plan().captured

    assert call(1, 2)
    assert call(2, 2)
    assert call(1)  # now 2 is the older one
    assert call(3, 2)
    assert [played.dropped for played in recorders[0].recordings] == [False, True, False]
    assert call(1)
    assert not call(2)


def test_calls_that_never_repeat_leave_little_behind_and_are_told_of_once(recorders: list[StandIn]) -> None:
    model = nn.Linear(2, 1)
    step = TrainingStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), lr=0.1), keep=1)
    with pytest.warns(CaptureWarning, match="batches of few shapes") as heard:
        [step(torch.ones(rows, 2)) for rows in range(1, graphs.PATIENCE + 20)]
    assert len(heard) == 1
    assert len(step._graphs._kinds) <= 8
    assert not recorders[0].recordings


def test_train_and_eval_have_graphs_of_their_own(recorders: list[StandIn]) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    step = TrainingStep(model, lambda model, x: model(x).square().sum(), optimizer, warmup=1)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]])
    training = [step(x).item() for _ in range(3)]
    assert step.plan() == CAPTURED
    model[1].eval()
    evaluating = step(x).item()
    assert not step.plan().captured
    assert evaluating != pytest.approx(training[-1])
    assert step(x).item() == evaluating
    model.train()
    assert step(x).item() == pytest.approx(training[-1])
    assert step.plan() == CAPTURED
    assert len(recorders[0].recordings) == 2


def test_autocast_has_a_graph_of_its_own(recorders: list[StandIn]) -> None:
    model = nn.Linear(5, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    step = TrainingStep(model, lambda model, x: model(x).float().square().mean(), optimizer, warmup=1)
    x = torch.randn(4, 5)
    plain = [step(x).item() for _ in range(3)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = [step(x).item() for _ in range(3)]
    assert len(recorders[0].recordings) == 2
    assert plain[0] == plain[2] != half[0] == half[2]
    assert step(x).item() == plain[0]


def test_arguments_are_copied_and_results_are_copies(recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    step = TrainingStep(mine, carried, torch.optim.SGD(mine.parameters(), lr=0.1), warmup=1)
    state, losses, states = torch.zeros(4, 5), [], []
    for x, y in batches(6):
        loss, state = step(x, y, state)
        losses.append(loss)
        states.append(state)
        x.zero_()
    other, expected = torch.optim.SGD(theirs.parameters(), lr=0.1), torch.zeros(4, 5)
    for number, (x, y) in enumerate(batches(6)):
        other.zero_grad()
        loss, expected = carried(theirs, x, y, expected)
        loss.backward()
        other.step()
        expected = expected.detach()
        torch.testing.assert_close(losses[number], loss.detach())
        torch.testing.assert_close(states[number], expected)
    assert step.plan() == CAPTURED


def test_a_structure_with_none_is_another_kind(recorders: list[StandIn]) -> None:
    mine, _ = twins()
    step = TrainingStep(mine, carried, torch.optim.SGD(mine.parameters(), lr=0.1), warmup=1)
    (x, y), *_ = batches(1)
    for state in (None, None, torch.zeros(4, 5), torch.zeros(4, 5)):
        step(x, y, state)
    assert step.plan() == CAPTURED
    assert len(recorders[0].recordings) == 2


def test_gradients_are_there_after_a_replay_even_if_they_were_cleared(recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    optimizer = torch.optim.SGD(mine.parameters(), lr=0.1)
    step = TrainingStep(mine, squared, optimizer, warmup=1)
    for x, y in batches(4):
        step(x, y)
        optimizer.zero_grad()
    (x, y), *_ = batches(1)
    theirs.load_state_dict(mine.state_dict())
    step(x, y)
    squared(theirs, x, y).backward()
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


class TestReplacedMemory:
    """What a graph reads by its address may be exchanged between two calls."""

    def captured(self, **options: Any) -> tuple[Tagger, torch.optim.Optimizer, TrainingStep]:
        mine, _ = twins(**options)
        optimizer = torch.optim.Adam(mine.parameters(), lr=0.01)
        step = TrainingStep(mine, squared, optimizer, warmup=1)
        for x, y in batches(3):
            step(x, y)
        assert step.plan() == CAPTURED
        return mine, optimizer, step

    def follow(self, mine: Tagger, optimizer: torch.optim.Optimizer, step: TrainingStep) -> None:
        """From here on the step equals the loop by hand."""
        theirs = copy.deepcopy(mine)
        other = torch.optim.Adam(theirs.parameters(), lr=0.01)
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for x, y in batches(4, seed=1):
            step(x, y)
        by_hand(theirs, other, batches(4, seed=1))
        assert_close_models(mine, theirs)
        assert step.plan() == CAPTURED

    def test_loading_into_the_model_needs_no_other_graph(self, recorders: list[StandIn]) -> None:
        mine, optimizer, step = self.captured()
        mine.load_state_dict({name: value * 0.5 for name, value in mine.state_dict().items()})
        self.follow(mine, optimizer, step)
        assert len(recorders[0].recordings) == 1

    def test_parameters_that_moved_are_found(self, recorders: list[StandIn]) -> None:
        mine, optimizer, step = self.captured()
        for parameter in mine.parameters():
            parameter.data = parameter.data.clone()
        self.follow(mine, optimizer, step)
        assert len(recorders[0].recordings) == 2

    def test_a_loaded_state_of_the_optimiser_is_found(self, recorders: list[StandIn]) -> None:
        mine, optimizer, step = self.captured()
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        self.follow(mine, optimizer, step)
        assert len(recorders[0].recordings) == 2

    def test_a_parameter_that_is_frozen_is_found(self, recorders: list[StandIn]) -> None:
        mine, _, step = self.captured()
        mine.out.weight.requires_grad_(False)
        before = mine.out.weight.clone()
        for x, y in batches(3):
            step(x, y)
        assert torch.equal(mine.out.weight, before)
        assert step.plan() == CAPTURED
        assert len(recorders[0].recordings) == 2

    def test_a_group_that_is_added_is_found(self, recorders: list[StandIn]) -> None:
        _, optimizer, step = self.captured()
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
        step(*batches(1)[0])
        assert not step.plan().captured


class Mean(nn.Module):
    """Keeps a running mean, and puts a new tensor in place of its buffer each time."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return ((x - self.mean) * self.weight).square().sum()


def test_a_buffer_that_the_step_replaces_is_carried(recorders: list[StandIn]) -> None:
    mine, theirs = Mean(), Mean()
    step = TrainingStep(mine, lambda model, x: model(x), torch.optim.SGD(mine.parameters(), 0.01), warmup=1)
    other = torch.optim.SGD(theirs.parameters(), 0.01)
    for number in range(8):
        x = torch.full((3, 2), float(number))
        if number == 5:  # a call outside, which puts yet another tensor there
            mine(x), theirs(x)
        loss = step(x)
        other.zero_grad()
        expected = theirs(x)
        expected.backward()
        other.step()
        torch.testing.assert_close(loss, expected.detach())
        torch.testing.assert_close(mine.mean, theirs.mean)
    assert step.plan() == CAPTURED
    assert len(recorders[0].recordings) == 1


def test_a_buffer_of_another_kind_needs_another_graph(recorders: list[StandIn]) -> None:
    model = Mean()
    step = TrainingStep(model, lambda model, x: model(x), torch.optim.SGD(model.parameters(), 0.01), warmup=1)
    for _ in range(3):
        step(torch.ones(3, 2))
    model.mean = torch.zeros(2, dtype=torch.float64)
    step(torch.ones(3, 2))
    assert step.plan().why_not.endswith("the buffers of the model have changed")


class Hidden(nn.Module):
    """Carries its state in an attribute."""

    def __init__(self, *, listed: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.hidden: Any = [torch.zeros(2)] if listed else torch.zeros(2)

    def forward(self, x: Tensor) -> Tensor:
        listed = isinstance(self.hidden, list)
        hidden = torch.tanh(self.weight * x + (self.hidden[0] if listed else self.hidden))
        if listed:
            self.hidden[0] = hidden.detach()
        else:
            self.hidden = hidden.detach()
        return hidden.square().sum()


def counts(module: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = module(x)
    return out.square().mean()


class TestRefusals:
    """What a graph would silently freeze is not captured; the step goes on eagerly, with the right numbers."""

    def train(self, make: Any, loss: Any, optimizer: Any, told: str) -> None:
        torch.manual_seed(0)
        mine = make()
        theirs = copy.deepcopy(mine)
        step = TrainingStep(mine, loss, optimizer(mine.parameters()), warmup=1)
        torch.manual_seed(1)
        with pytest.warns(CaptureWarning) as heard:
            losses = [step(torch.full((3, 2), number / 4)).item() for number in range(5)]
        assert len(heard) == 1
        assert told in str(heard[0].message)
        assert told in step.plan().why_not
        other = optimizer(theirs.parameters())
        torch.manual_seed(1)
        for number, expected in enumerate(losses):
            other.zero_grad()
            value = loss(theirs, torch.full((3, 2), number / 4))
            value.backward()
            other.step()
            assert value.item() == pytest.approx(expected, rel=1e-5)
        assert_close_models(mine, theirs)

    def test_random_numbers_of_the_host(self, recorders: list[StandIn]) -> None:
        self.train(
            lambda: nn.Sequential(nn.Dropout(), nn.Linear(2, 1)),
            counts,
            OPTIMIZERS["sgd"],
            "random numbers on the host",
        )
        assert recorders[0].recordings[0].dropped

    @pytest.mark.parametrize("listed", [False, True])
    def test_a_state_in_an_attribute(self, listed: bool, recorders: list[StandIn]) -> None:
        self.train(lambda: Hidden(listed=listed), counts, OPTIMIZERS["sgd"], "Hidden sets its attribute 'hidden'")
        assert recorders[0].recordings[0].dropped

    def test_an_optimiser_that_counts_on_the_host(self, recorders: list[StandIn]) -> None:
        self.train(lambda: nn.Linear(2, 1), counts, Counting, "Counting counts on the host")
        assert recorders[0].recordings[0].dropped

    def test_a_wait_for_the_device(self, recorders: list[StandIn], monkeypatch: pytest.MonkeyPatch) -> None:
        def waiting(*arguments: Any) -> StandIn:
            made = StandIn(*arguments)
            made.waits = ["model.py, line 7"]
            return made

        monkeypatch.setattr(graphs, "Recorder", waiting)
        self.train(lambda: nn.Linear(2, 1), counts, OPTIMIZERS["adam"], "(model.py, line 7)")
        assert not recorders[0].recordings
        assert not recorders[0].optimizer.prepared

    def test_a_capture_that_fails(self, recorders: list[StandIn], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(graphs, "Recorder", failing(RuntimeError("operation not permitted\nmore")))
        self.train(lambda: nn.Linear(2, 1), counts, OPTIMIZERS["adam"], "(RuntimeError: operation not permitted)")
        assert not recorders[0].optimizer.prepared


class Counting(torch.optim.Optimizer):
    """Steps less and less, by a count that Python keeps."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                state["count"] = state.get("count", 0) + 1
                parameter.sub_(parameter.grad, alpha=0.1 / state["count"])


def failing(error: BaseException) -> Any:
    def make(*arguments: Any) -> StandIn:
        made = StandIn(*arguments)
        made.failure = error
        return made

    return make


@pytest.mark.usefixtures("as_users_have_it")  # the run-time check takes random numbers of Python's
@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["sgd with momentum", "adam"])
def test_after_a_failed_capture_all_is_as_it_was(
    error: BaseException, name: str, recorders: list[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "Recorder", failing(error))
    model = nn.Sequential(nn.Dropout(0.5), Mean(), Hidden())
    model[1].register_parameter("other", nn.Parameter(torch.ones(3)))

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        random.random()
        out: Tensor = model(x)
        return out

    optimizer = OPTIMIZERS[name](model.parameters())
    step = TrainingStep(model, loss, optimizer, graph=True, warmup=1)
    x = torch.ones(3, 2)
    step(x)
    grads = [parameter.grad for parameter in model.parameters()]
    numbers = {"model": copy.deepcopy(model.state_dict()), "optimiser": copy.deepcopy(optimizer.state_dict())}
    hidden, mean, generators = model[2].hidden, model[1].mean, (torch.get_rng_state(), random.getstate())
    with pytest.raises(CaptureError if isinstance(error, RuntimeError) else KeyboardInterrupt):
        step(x)
    assert torch.equal(torch.get_rng_state(), generators[0])
    assert random.getstate() == generators[1]
    assert all(parameter.grad is grad for parameter, grad in zip(model.parameters(), grads, strict=True))
    assert model[2].hidden is hidden
    assert model[1].mean is mean
    assert all(torch.equal(value, numbers["model"][key]) for key, value in model.state_dict().items())
    now = optimizer.state_dict()
    assert now["param_groups"] == numbers["optimiser"]["param_groups"]
    assert now["state"].keys() == numbers["optimiser"]["state"].keys()
    for key, state in now["state"].items():
        assert all(torch.equal(value, numbers["optimiser"]["state"][key][name]) for name, value in state.items())


def test_a_refused_kind_leaves_the_graphs_of_others(recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    step = TrainingStep(mine, squared, torch.optim.Adam(mine.parameters()), warmup=1)
    for x, y in batches(3):
        step(x, y)
    recorders[0].failure = RuntimeError("no")
    with pytest.warns(CaptureWarning, match="no"):
        [step(x, y) for x, y in batches(3, rows=2)]
    assert not step.plan().captured
    for x, y in batches(2, seed=1):
        step(x, y)
    assert step.plan() == CAPTURED
    data = [*batches(3), *batches(3, rows=2), *batches(2, seed=1)]
    by_hand(theirs, torch.optim.Adam(theirs.parameters()), data)
    assert_close_models(mine, theirs)


def test_an_eager_call_beside_graphs_has_the_learning_rate_of_now(recorders: list[StandIn]) -> None:
    mine, theirs = twins()
    optimizer, other = torch.optim.Adam(mine.parameters(), 0.1), torch.optim.Adam(theirs.parameters(), 0.1)
    step = TrainingStep(mine, squared, optimizer, warmup=1)
    for x, y in batches(3):
        step(x, y)
    step.graph, optimizer.param_groups[0]["lr"] = False, 0.001
    step(*batches(1)[0])
    by_hand(theirs, other, batches(3))
    other.param_groups[0]["lr"] = 0.001
    by_hand(theirs, other, batches(1))
    assert_close_models(mine, theirs)


def test_reset_forgets_graphs_and_refusals(recorders: list[StandIn]) -> None:
    factor = [1.0]
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    step = TrainingStep(model, lambda model, x: factor[0] * model(x).square().sum(), optimizer, warmup=1)
    x = torch.ones(3, 2)
    for _ in range(3):
        step(x)
    recorders[0].failure = RuntimeError("no")
    with pytest.warns(CaptureWarning):
        [step(x[:2]) for _ in range(3)]
    step.reset()
    recorders[0].failure = None
    assert all(played.dropped for played in recorders[0].recordings)
    for rows in (3, 3, 2, 2):
        step(x[:rows])
    assert step.plan() == CAPTURED


def test_a_step_goes_without_the_help_of_the_collector(recorders: list[StandIn]) -> None:
    model = nn.Linear(2, 1)
    step = TrainingStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), 0.1), warmup=1)
    for _ in range(3):
        step(torch.ones(2))
    watched = weakref.ref(step)
    gc.disable()  # a graph that waits for the collector could be destroyed in the middle of another capture
    try:
        del step
        assert watched() is None
    finally:
        gc.enable()


def test_a_loss_on_another_device_is_refused(recorders: list[StandIn]) -> None:
    model = nn.Linear(2, 1)

    def loss(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        return model(x).sum(), torch.zeros(2, device="meta")

    step = TrainingStep(model, loss, torch.optim.SGD(model.parameters(), 0.1), warmup=1)
    step(torch.ones(2))
    with pytest.warns(CaptureWarning, match="returns a tensor on meta"):
        step(torch.ones(2))
    assert recorders[0].recordings[0].dropped


class TestObstacles:
    """What can be seen before anything is tried; meta tensors take the place of a device's."""

    def told(self, *arguments: Tensor, model: nn.Module | None = None) -> str:
        from statewise.train.exchange import Batch

        model = model or nn.Linear(2, 1)
        found = obstacle(model, list(model.parameters()), Batch.read(arguments))
        return "" if found is None else found.reason

    def test_the_model_is_on_no_cuda_device(self) -> None:
        assert self.told(torch.ones(2)) == "the model is on cpu"
        assert self.told(model=nn.Linear(2, 1, device="meta")) == "the model is on meta"


def test_the_fallback_does_not_warn_again_nor_elsewhere(recorders: list[StandIn]) -> None:
    model = nn.Sequential(nn.Dropout(), nn.Linear(2, 1))
    step = TrainingStep(model, counts, torch.optim.SGD(model.parameters(), 0.1), warmup=1)
    step(torch.ones(3, 2))
    with pytest.warns(CaptureWarning):
        step(torch.ones(3, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(torch.ones(3, 2))
        step(torch.ones(2, 2)), step(torch.ones(2, 2))


def test_only_while_graphs_live_an_eager_step_finds_the_optimiser_capturable(recorders: list[StandIn]) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    seen: list[bool] = []
    optimizer.register_step_pre_hook(lambda optimizer, *_: seen.append(optimizer.param_groups[0]["capturable"]))
    step = TrainingStep(model, counts, optimizer, graph=False, warmup=1)
    step(torch.ones(3, 2))
    step.graph = "auto"
    step(torch.ones(3, 2))
    step.graph = False
    step(torch.ones(3, 2))
    step.reset()
    step(torch.ones(3, 2))
    assert seen == [False, True, True, False]
    assert optimizer.param_groups[0]["capturable"] is False
