"""The mean of the iterates is what it says, costs nothing it should not, and begins when the test says so."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from statewise.errors import ArgumentError, ShapeError
from statewise.train.averaging import Averaging, NonMonotone
from support import forbidden_to_wait


def walk(parameters: list[nn.Parameter], generator: torch.Generator) -> None:
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter))


def pair(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    return [nn.Parameter(torch.zeros(3, 2, dtype=dtype)), nn.Parameter(torch.zeros(5, dtype=dtype))]


def copies(parameters: list[nn.Parameter]) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in parameters]


class TestAveraging:
    def test_the_trace_of_the_specification_counts_the_first_iterate(self) -> None:
        weight = nn.Parameter(torch.ones(1, dtype=torch.float64))
        averaging, optimizer = Averaging([weight]), torch.optim.SGD([weight], lr=1.0)
        averaging.start()
        means = []
        for lr in (1.0, 0.5, 2.0, 1.0):  # iterates 0.9, 0.85, 0.65, 0.55: each rate acts at once
            optimizer.param_groups[0]["lr"] = lr
            weight.grad = torch.full_like(weight, 0.1)
            optimizer.step()
            averaging.update()
            with averaging.swapped():
                means.append(weight.item())
        assert means == pytest.approx([0.9, 0.875, 0.8, 0.7375])

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_it_is_the_mean_of_all_iterates_since_the_start(
        self, dtype: torch.dtype, generator: torch.Generator
    ) -> None:
        parameters = pair(dtype)
        averaging = Averaging(parameters)
        walk(parameters, generator)
        averaging.update()  # before the start: does not count
        averaging.start()
        iterates = []
        for _ in range(50):
            walk(parameters, generator)
            averaging.update()
            iterates.append(copies(parameters))
        with averaging.swapped():
            for index, parameter in enumerate(parameters):
                mean = torch.stack([iterate[index].double() for iterate in iterates]).mean(0)
                torch.testing.assert_close(parameter.detach(), mean.to(dtype))
        assert averaging.count == 50

    def test_a_second_start_forgets_the_first(self) -> None:
        weight = nn.Parameter(torch.full((2,), math.nan))
        averaging = Averaging([weight])
        averaging.start()
        averaging.update()
        averaging.start()
        weight.data.fill_(3.0)
        averaging.update()
        with averaging.swapped():
            assert weight.tolist() == [3.0, 3.0]

    def test_before_an_iterate_the_region_changes_nothing(self) -> None:
        weight = nn.Parameter(torch.tensor([1.0]))
        averaging = Averaging([weight])
        with averaging.swapped():
            assert weight.item() == 1.0
        averaging.start()
        with averaging.swapped():
            assert weight.item() == 1.0

    @pytest.mark.parametrize("fails", [False, True])
    def test_raw_iterates_come_back_bit_for_bit_and_stay_where_they_are(
        self, fails: bool, generator: torch.Generator
    ) -> None:
        parameters = pair()
        averaging = Averaging(parameters)
        averaging.start()
        for _ in range(3):
            walk(parameters, generator)
            averaging.update()
        parameters[1].data[:2] = torch.tensor([-0.0, math.nan])
        before, places = copies(parameters), [each.data_ptr() for each in parameters]
        try:
            with averaging.swapped():
                assert not torch.equal(parameters[0], before[0])
                parameters[0].data.zero_()
                if fails:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        for now, then in zip(parameters, before, strict=True):
            assert torch.equal(now.detach().view(torch.int32), then.view(torch.int32))
        assert [each.data_ptr() for each in parameters] == places
        averaging.update()  # and the averaging goes on

    def test_a_tied_parameter_counts_once(self) -> None:
        weight = nn.Parameter(torch.zeros(2))
        averaging = Averaging([weight, weight])
        averaging.start()
        averaging.update()
        assert set(averaging.state()) == {"count", "0"}

    def test_a_run_that_goes_on_from_its_state_ends_with_the_same_bits(self, generator: torch.Generator) -> None:
        parameters = pair()
        averaging = Averaging(parameters)
        averaging.start()
        walk(parameters, generator)
        averaging.update()
        state = {name: tensor.clone() for name, tensor in averaging.state().items()}
        others = [nn.Parameter(each.detach().clone()) for each in parameters]
        again = Averaging(others)
        again.load_state(state)
        for run in ((parameters, averaging), (others, again)):
            seeded = torch.Generator().manual_seed(3)
            for _ in range(5):
                walk(run[0], seeded)
                run[1].update()
        with averaging.swapped(), again.swapped():
            assert all(torch.equal(one, other) for one, other in zip(parameters, others, strict=True))

    @pytest.mark.parametrize("started", [False, True])
    def test_the_state_says_whether_it_has_begun(self, started: bool) -> None:
        weight = nn.Parameter(torch.zeros(2))
        averaging, again = Averaging([weight]), Averaging([weight])
        if started:
            averaging.start()
        again.load_state(averaging.state())
        assert (again.started, again.count) == (started, 0)

    def test_the_state_of_another_model_is_refused(self) -> None:
        averaging = Averaging([nn.Parameter(torch.zeros(2))])
        averaging.start()
        averaging.update()
        with pytest.raises(ShapeError, match=r"got means of shapes \[\(2,\)\], wanted those .* \[\(3,\)\]"):
            Averaging([nn.Parameter(torch.zeros(3))]).load_state(averaging.state())

    def test_the_mean_is_not_averaged_into_itself(self) -> None:
        averaging = Averaging([nn.Parameter(torch.zeros(2))])
        averaging.start()
        averaging.update()
        with averaging.swapped(), pytest.raises(ArgumentError, match=r"got parameters that hold the mean"):
            averaging.update()

    def test_without_parameters_there_is_nothing_to_average(self) -> None:
        with pytest.raises(ArgumentError, match=r"Averaging\.parameters: got none"):
            Averaging([])

    @pytest.mark.gpu
    def test_on_a_device_nothing_waits(self, generator: torch.Generator) -> None:
        parameters = [nn.Parameter(torch.randn(64, 64, generator=generator).cuda()) for _ in range(3)]
        averaging = Averaging(parameters)
        averaging.start()
        torch.cuda.synchronize()
        with forbidden_to_wait():
            for _ in range(3):
                averaging.update()
            with averaging.swapped():
                pass


def by_definition(losses: list[float], n: int) -> list[bool]:
    return [
        len(losses[:index]) > n and loss > min(losses[:index][:-n], default=math.inf)
        for index, loss in enumerate(losses)
    ]


class TestNonMonotone:
    def test_the_trace_of_the_specification_fires_at_epoch_twelve(self) -> None:
        test = NonMonotone(n=5)
        losses = [10, 9, 8, 7, 6, 5.5, 5.6, 5.7, 5.8, 5.9, 6.0, 6.1]
        assert [test.observe(loss) for loss in losses] == [False] * 11 + [True]
        assert test.fired == 12
        test.observe(1.0)
        assert test.fired == 12

    @given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 6))
    def test_it_is_the_definition_and_goes_on_from_its_state(self, values: list[int], n: int) -> None:
        losses = [float(value) for value in values]
        test = NonMonotone(n)
        fired = []
        for loss in losses:
            fired.append(test.observe(loss))
            state = json.loads(json.dumps(test.state(), allow_nan=False))
            test = NonMonotone(n)
            test.load_state(state)
        assert fired == by_definition(losses, n)
        assert test.fired == (fired.index(True) + 1 if any(fired) else None)

    def test_nan_is_the_worst_of_losses(self) -> None:
        test = NonMonotone(n=1)
        assert [test.observe(loss) for loss in (math.nan, 2.0, 1.0, math.nan)] == [False, False, False, True]

    @pytest.mark.parametrize("n", [0, -1, 2.5, True])
    def test_a_senseless_n_is_refused(self, n: Any, as_users_have_it: None) -> None:
        with pytest.raises(ArgumentError, match=r"NonMonotone\.n: got .*, wanted a whole number >= 1"):
            NonMonotone(n)
