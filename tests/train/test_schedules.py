"""Rates fall and runs end when the validation losses say so."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from torch import nn

from statewise.errors import ArgumentError
from statewise.train.choose_optimizer import build_optimizer
from statewise.train.rmsprop_tf import RMSpropTF
from statewise.train.schedules import Divide, EarlyStopping

LOSSES = (120, 110, 112, 109, 111, 110, 108)
TRACES: dict[Any, tuple[float, ...]] = {
    "best": (30, 30, 25, 25, 20.833333, 17.361111, 17.361111),
    "previous": (30, 30, 25, 25, 20.833333, 20.833333, 20.833333),
}


def optimizer(lr: Any = 30.0) -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)


def through_json(state: dict[str, Any]) -> Any:
    return json.loads(json.dumps(state, allow_nan=False))


@pytest.mark.parametrize("versus", list(TRACES))
@pytest.mark.parametrize("lr", [30.0, torch.tensor(30.0, dtype=torch.float64)], ids=["number", "tensor"])
@pytest.mark.parametrize("resumed", [False, True])
def test_the_rates_of_the_specification(versus: Any, lr: Any, resumed: bool) -> None:
    moving = optimizer(lr.clone() if isinstance(lr, torch.Tensor) else lr)
    rule, rates, first = Divide(versus=versus), [], moving.param_groups[0]["lr"]
    for loss in LOSSES:
        if resumed:
            state, rule = through_json(rule.state()), Divide(versus=versus)
            rule.load_state(state)
        rule.observe(loss, moving)
        rates.append(float(moving.param_groups[0]["lr"]))
    assert rates == pytest.approx(TRACES[versus])
    # A graph reads the tensor where it lies.
    assert not isinstance(lr, torch.Tensor) or moving.param_groups[0]["lr"] is first


def test_a_tensor_that_groups_share_is_divided_once() -> None:
    rate = torch.tensor(2.0)
    groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": rate} for _ in range(2)]
    moving = torch.optim.SGD(groups, lr=rate)
    for group in moving.param_groups:
        group["lr"] = rate
    rule = Divide(2.0)
    assert not rule.observe(1.0, moving)
    assert rule.observe(math.nan, moving)
    assert rate.item() == 1.0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"factor": 1}, r"Divide\.factor: got 1, wanted a number > 1"),
        ({"factor": math.nan}, r"Divide\.factor: got nan"),
        ({"versus": "worst"}, r'Divide\.versus: got worst, wanted "best" or "previous"'),
    ],
)
def test_a_senseless_rule_is_refused(options: Any, text: str, as_users_have_it: None) -> None:
    with pytest.raises(ArgumentError, match=text):
        Divide(**options)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_run_ends_when_its_patience_does(resumed: bool) -> None:
    stopping = EarlyStopping(patience=3)
    stops, improved = [], []
    for loss in (5.0, 4.0, 4.0, math.nan, 3.0, 3.5, math.inf, 3.0):
        stops.append(stopping.observe(loss))
        improved.append(stopping.improved)
        if resumed:
            state, stopping = through_json(stopping.state()), EarlyStopping(patience=3)
            stopping.load_state(state)
    assert stops == [False] * 7 + [True]
    assert improved == [True, True, False, False, True, False, False, False]
    assert (stopping.best, stopping.best_at) == (3.0, 5)


def test_an_improvement_must_exceed_the_margin() -> None:
    stopping = EarlyStopping(patience=2, margin=0.1)
    assert [stopping.observe(loss) for loss in (5.0, 4.95, 4.8, 4.75, 4.7)] == [False] * 4 + [True]


@pytest.mark.parametrize("options", [{"patience": 0}, {"patience": True}, {"patience": 1, "margin": -1.0}])
def test_senseless_patience_is_refused(options: Any, as_users_have_it: None) -> None:
    with pytest.raises(ArgumentError, match=r"EarlyStopping\.(patience|margin): got"):
        EarlyStopping(**options)


class TestOptimizers:
    @pytest.mark.parametrize(
        ("name", "torchs"),
        [
            ("sgd", torch.optim.SGD),
            ("adam", torch.optim.Adam),
            ("rmsprop", torch.optim.RMSprop),
            ("rmsprop-tf", RMSpropTF),
        ],
    )
    def test_they_are_known_ones_with_coupled_decay(self, name: Any, torchs: Any) -> None:
        ours, theirs = nn.Parameter(torch.tensor([1.0, -2.0])), nn.Parameter(torch.tensor([1.0, -2.0]))
        mine = build_optimizer(name, [ours], lr=0.1, weight_decay=0.5)
        other = torchs([theirs], lr=0.1)
        for _ in range(3):
            ours.grad = torch.tensor([0.3, 0.1])
            theirs.grad = torch.tensor([0.3, 0.1]) + 0.5 * theirs.detach()
            mine.step()
            other.step()
        torch.testing.assert_close(ours, theirs)

    def test_a_tied_parameter_is_moved_and_decays_once(self) -> None:
        weight = nn.Parameter(torch.ones(1))
        moving = build_optimizer("sgd", [weight, weight], lr=1.0, weight_decay=0.25)
        weight.grad = torch.zeros(1)
        moving.step()
        assert weight.item() == 0.75

    def test_what_is_not_trained_is_left_out(self) -> None:
        fixed, moved = nn.Parameter(torch.ones(1), requires_grad=False), nn.Parameter(torch.ones(1))
        assert build_optimizer("adam", [fixed, moved], lr=1.0).param_groups[0]["params"] == [moved]
        with pytest.raises(ArgumentError, match=r"build_optimizer\.parameters: got none"):
            build_optimizer("adam", [fixed], lr=1.0)

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"name": "lion"}, r"build_optimizer\.name: got lion, wanted 'sgd', 'adam', 'rmsprop' or 'rmsprop-tf'"),
            ({"name": "sgd", "lr": -1.0}, r"build_optimizer\.lr: got -1\.0"),
            ({"name": "sgd", "weight_decay": math.nan}, r"build_optimizer\.weight_decay: got nan"),
            ({"name": "adam", "momentum": 0.9}, r"got 0\.9, wanted 0 with adam\. Its momentum is betas\[0\]\."),
        ],
    )
    def test_a_senseless_choice_is_refused(self, options: Any, text: str, as_users_have_it: None) -> None:
        with pytest.raises(ArgumentError, match=text):
            build_optimizer(parameters=[nn.Parameter(torch.ones(1))], **{"lr": 1.0, **options})

    @pytest.mark.gpu
    def test_on_a_device_sgd_is_fused(self) -> None:
        moving = build_optimizer("sgd", [nn.Parameter(torch.ones(1, device="cuda"))], lr=1.0)
        assert moving.param_groups[0]["fused"]
