"""A run that came to nothing is stopped, with a name for what went wrong; no other run is."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from statewise.errors import ArgumentError, DivergedError, NonFiniteError
from statewise.train.watch import Watch, culprits
from support import forbidden_to_wait


def feed(watch: Watch, losses: Any, **options: Any) -> None:
    for loss in losses:
        watch.step(torch.as_tensor(loss), **options)


def broken_model() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    grad = model[1].weight.grad
    assert isinstance(grad, torch.Tensor)
    grad[0, 0] = math.nan
    return model


class TestLossesThatAreNotFinite:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("every", [1, 4])
    def test_the_step_is_named_however_late_the_look(self, bad: float, every: int) -> None:
        watch = Watch(every=every)
        with pytest.raises(
            DivergedError, match=rf"training, step 6: got a loss of {bad}, wanted a finite loss"
        ) as caught:
            feed(watch, [1.0] * 5 + [bad] + [1.0] * 2)
        assert (caught.value.step, caught.value.culprit) == (6, "loss")

    def test_the_host_looks_only_every_so_many_steps(self) -> None:
        watch = Watch(every=3)
        feed(watch, [math.nan, 1.0])
        with pytest.raises(DivergedError, match="step 1"):
            watch.look()

    def test_the_culprit_is_the_first_tensor_by_name_with_its_share(self) -> None:
        with pytest.raises(DivergedError) as caught:
            feed(Watch(every=1), [math.nan], model=broken_model(), checkpoint="runs/a/resume.safetensors")
        error = caught.value
        assert (error.culprit, error.fraction) == ("the gradient of 1.weight", 0.5)
        assert error.checkpoint == "runs/a/resume.safetensors"
        assert str(error) == (
            "training, step 1: got a loss of nan; tensors that are not finite: the gradient of 1.weight (50 % of it), "
            "wanted a finite loss. Begin a new run with a lower learning rate (lr=, --lr) or a gradient clipped at a "
            "smaller norm (clip=, --clip), and check the data for extreme values. The last good weights are in "
            "runs/a/resume.safetensors."
        )
        assert isinstance(error, NonFiniteError)

    def test_the_error_keeps_its_parts_between_processes(self) -> None:
        with pytest.raises(DivergedError) as caught:
            feed(Watch(every=1), [math.nan], model=broken_model(), checkpoint="here")
        arrived = pickle.loads(pickle.dumps(caught.value))
        assert (arrived.step, arrived.culprit, arrived.fraction) == (1, "the gradient of 1.weight", 0.5)
        assert (arrived.checkpoint, str(arrived)) == ("here", str(caught.value))

    def test_states_have_names_too(self) -> None:
        state = ({"h": torch.zeros(2)}, [torch.ones(1), torch.tensor([math.inf, 0, 0, 0])])
        with pytest.raises(DivergedError, match=r"the state \[1\]\[1\] \(25 % of it\)"):
            feed(Watch(every=2), [1.0, math.nan], states=state)

    def test_parameters_and_buffers_are_searched_after_gradients(self) -> None:
        model = nn.BatchNorm1d(2)
        assert isinstance(model.running_mean, torch.Tensor)
        model.running_mean[0] = math.inf
        model.bias.data.fill_(math.nan)
        with pytest.raises(DivergedError, match=r"the parameter bias \(100 % of it\) and 1 more") as caught:
            feed(Watch(every=2), [1.0, math.nan], model=model)
        assert caught.value.remedy.endswith("looked at every 2 steps, so another may have been the first to go.")

    def test_a_look_finds_tensors_that_went_after_the_last_loss(self) -> None:
        model, watch = nn.Linear(2, 2), Watch()
        feed(watch, [1.0])
        watch.look(model=model)
        model.weight.data[0] = math.nan
        with pytest.raises(DivergedError, match=r"the parameter weight .* wanted finite parameters and states"):
            watch.look(model=model)

    def test_no_resume_point_is_made_of_a_run_that_is_lost(self) -> None:
        model, watch = nn.Linear(2, 2), Watch()
        feed(watch, [1.0], model=model)
        assert watch.state()["seen"] == 1
        model.bias.data[0] = math.inf
        with pytest.raises(DivergedError, match=r"the parameter bias \(50 % of it\)"):
            watch.state()

    def test_tensors_of_whole_numbers_and_empty_ones_are_finite(self) -> None:
        assert culprits({"count": torch.tensor(3), "state": torch.zeros(2, dtype=torch.uint8)}) == {}
        Watch().look(states=(torch.zeros(0), torch.tensor(3), None))


class TestLossesThatRise:
    def test_a_loss_above_the_start_for_long_ends_the_run(self) -> None:
        watch = Watch(every=10, window=20, patience=2)
        first = torch.linspace(9.2, 7.2, 20).tolist()
        with pytest.raises(DivergedError) as caught:
            feed(watch, first + [5.0] * 100 + [11.4] * 100, checkpoint="here")
        assert caught.value.step == 160  # two whole windows after the rise at 120
        assert str(caught.value).startswith(
            "training, step 160: got a mean loss of 11.4, above 11.2 for 40 steps, wanted not more than at the start, "
            "when losses were 7.2 to 9.2."
        )
        assert caught.value.remedy.startswith("Begin a new run with a lower learning rate (lr=, --lr)")
        assert caught.value.remedy.endswith("The last good weights are in here.")

    def test_a_spike_that_passes_does_not(self) -> None:
        watch = Watch(every=10, window=20, patience=2)
        feed(watch, [*torch.linspace(9.2, 7.2, 20).tolist(), *[5.0] * 20, *[50.0] * 20, *[5.0] * 20, *[50.0] * 20])

    def test_a_rise_that_is_planned_is_let_pass(self) -> None:
        feed(Watch(every=10, window=10, patience=1, diverged=None), [1.0] * 10 + [1e30] * 50)

    def test_ordinary_noise_never_fires(self, generator: torch.Generator) -> None:
        """No learning at all, and tails as heavy as a Student of three degrees of freedom: 400 runs, 2,000 steps."""
        normal = torch.randn(400, 2000, 4, generator=generator)
        losses = 5 + normal[..., 0] / normal[..., 1:].square().mean(-1).sqrt()
        for run in losses.tolist():
            watch = Watch(every=2000, diverged=0.0)
            watch._buffer, watch._waiting = torch.tensor(run), 2000
            watch.look()
            assert watch.seen == 2000

    @pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-6, -3.0), (1e6, 50.0)])
    def test_the_rule_has_no_unit(self, scale: float, shift: float) -> None:
        first, later = torch.linspace(2, 1, 10, dtype=torch.float64), torch.full((40,), 3.5, dtype=torch.float64)
        watch = Watch(every=10, window=10, patience=2)
        with pytest.raises(DivergedError, match="step 30"):
            feed(watch, torch.cat([first, later]) * scale + shift)

    def test_a_loss_that_never_moves_never_fires(self) -> None:
        feed(Watch(every=10, window=10, patience=1, diverged=0.0), [0.1] * 200)

    def test_a_run_that_goes_on_stops_at_the_same_step(self) -> None:
        losses = [*torch.linspace(9.2, 7.2, 20).tolist(), *[12.0] * 100]
        watch = Watch(every=7, window=20, patience=3)
        for first in range(0, 72, 9):
            feed(watch, losses[first : first + 9])
            state, watch = json.loads(json.dumps(watch.state())), Watch(every=7, window=20, patience=3)
            watch.load_state(state)
        with pytest.raises(DivergedError, match=r"step 80: got a mean loss of 12, above 11.2 for 60 steps"):
            feed(watch, losses[72:])


@pytest.mark.parametrize(
    "options", [{"every": 0}, {"window": 0}, {"patience": 1.5}, {"diverged": -1.0}, {"diverged": math.nan}]
)
def test_senseless_settings_are_refused(options: Any, as_users_have_it: None) -> None:
    with pytest.raises(ArgumentError, match=rf"Watch\.{next(iter(options))}: got"):
        Watch(**options)


@pytest.mark.gpu
def test_on_a_device_a_step_does_not_wait() -> None:
    watch, loss = Watch(every=5), torch.ones((), device="cuda")
    with forbidden_to_wait():
        for _ in range(4):
            watch.step(loss)
