"""A forecaster: the same as a plain loop of torch, whatever the lengths, and ways to go on that follow its laws."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError, LengthError, NonFiniteError, ShapeError
from statewise.heads import Normal
from statewise.heads.gaussian import LEAST
from statewise.models import ForecastConfig, Forecaster
from support import tolerance

MEAN, DEVIATION = [10.0, -3.0], [2.0, 0.5]


def forecaster(cell: str = "gru", *, around: str = "last", layers: int = 1, seed: int = 0) -> Forecaster:
    config = ForecastConfig(cell=cell, hidden=5, layers=layers, around=around)
    generator = torch.Generator().manual_seed(seed)
    return config.build(features=2, mean=MEAN, deviation=DEVIATION, generator=generator).double()


def values(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(*shape, 2, generator=generator, dtype=torch.float64) * 2 + 5


def plain(model: Forecaster, sequence: Tensor) -> Normal:
    """One sequence by torch's own layer, step by step, in standardised units."""
    kind = nn.LSTM if model.config.cell == "lstm" else nn.GRU
    layer = kind(2, 5, model.config.layers).double()
    layer.load_state_dict(model.layer.state_dict())
    scaled = (sequence - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
    state, means, deviations = None, [], []
    for step in scaled.double():
        output, state = layer(step.view(1, 1, 2), state)
        scores = output[0, 0] @ model.head.weight.T + model.head.bias
        means.append(scores[:2] + (step if model.config.around == "last" else 0))
        deviations.append(torch.log1p((scores[2:] + math.log(math.e - 1)).exp()) + LEAST)
    return Normal(torch.stack(means), torch.stack(deviations))


@pytest.mark.parametrize("around", ["last", "mean"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_laws_and_gradients_are_those_of_a_plain_loop_for_every_length(
    cell: str, around: str, generator: torch.Generator
) -> None:
    model, lengths = forecaster(cell, around=around, layers=2), [4, 1, 6]
    batch = values(3, 6, generator=generator)
    padded = batch.clone()
    for row, length in enumerate(lengths):
        padded[row, length:] = 1e6  # what stands beyond an end is never looked at
    found = model(padded, torch.tensor(lengths))
    loss, truth = torch.zeros(()).double(), torch.zeros(()).double()
    for row, length in enumerate(lengths):
        single = plain(model, batch[row, :length])
        for mine, theirs in zip(found, single, strict=True):
            torch.testing.assert_close(mine[row, :length], theirs, **tolerance(torch.float64))
        target = batch[row, :length].flip(0)
        loss = loss - Normal(*(part[row, :length] for part in found)).log_prob(target).sum()
        by_hand = single.deviation.log() + ((target - single.mean) / single.deviation).square() / 2
        truth = truth + (by_hand + 0.5 * math.log(2 * math.pi)).sum()
    torch.testing.assert_close(loss, truth, **tolerance(torch.float64))
    head = [model.head.weight, model.head.bias]
    for one, other in zip(torch.autograd.grad(loss, head), torch.autograd.grad(truth, head), strict=True):
        torch.testing.assert_close(one, other, **tolerance(torch.float64))


def test_recurrent_gradients_are_those_of_torch(generator: torch.Generator) -> None:
    model = forecaster("gru", around="mean")
    layer = nn.GRU(2, 5).double()
    layer.load_state_dict(model.layer.state_dict())
    batch = values(3, 7, generator=generator)
    weight = torch.randn(3, 7, 2, generator=generator, dtype=torch.float64)
    mine = torch.autograd.grad((model(batch).mean * weight).sum(), list(model.layer.parameters()))
    scaled = (batch - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
    output, _ = layer(scaled.transpose(0, 1))
    means = (output @ model.head.weight.T + model.head.bias)[..., :2].transpose(0, 1)
    names = dict(layer.named_parameters())
    truth = torch.autograd.grad((means * weight).sum(), [names[name] for name, _ in model.layer.named_parameters()])
    for one, other in zip(mine, truth, strict=True):
        torch.testing.assert_close(one, other, **tolerance(torch.float64))


def test_sequences_that_are_all_shorter_than_the_batch_have_laws_of_its_width(generator: torch.Generator) -> None:
    model, batch = forecaster(), values(2, 5, generator=generator)
    found = model(batch, torch.tensor([3, 3]))
    assert found.mean.shape == (2, 5, 2)
    torch.testing.assert_close(found.mean[:, :3], model(batch[:, :3]).mean)


def test_a_forecast_in_units_is_the_law_shifted_and_scaled(generator: torch.Generator) -> None:
    model, batch = forecaster(), values(2, 5, generator=generator)
    law, told = model(batch), model.predict(batch)
    torch.testing.assert_close(told.mean, law.mean * torch.tensor(DEVIATION) + torch.tensor(MEAN))
    torch.testing.assert_close(told.deviation, law.deviation * torch.tensor(DEVIATION))
    assert not told.mean.requires_grad
    assert model.training, "its mode is left as it was"


def test_the_untrained_mean_around_the_last_value_is_near_it(generator: torch.Generator) -> None:
    batch = values(1, 8, generator=generator)
    model = forecaster()
    with torch.no_grad():
        model.head.weight.zero_()
    torch.testing.assert_close(model.predict(batch).mean, batch)


def test_the_first_step_of_the_ways_to_go_on_has_the_exact_law(generator: torch.Generator) -> None:
    model, sequence = forecaster("lstm"), values(9, generator=generator)
    law = model.predict(sequence.unsqueeze(0))
    paths = model.forecast(sequence, steps=2, samples=4000, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(paths.mean[0], law.mean[0, -1])
    torch.testing.assert_close(paths.deviation[0], law.deviation[0, -1])
    within = 5 * law.deviation[0, -1] / 4000**0.5
    assert bool(((paths.values[:, 0].mean(0) - law.mean[0, -1]).abs() < within).all())
    below = (paths.values[:, 0] < paths.quantile(0.9)[0]).double().mean(0)
    assert below.tolist() == pytest.approx([0.9, 0.9], abs=0.03)


def test_each_way_to_go_on_is_read_again(generator: torch.Generator) -> None:
    """The second step of a way has the law that the model gives after the sequence and the first step of the way."""
    model, sequence = forecaster(), values(6, generator=generator)
    with torch.no_grad():
        model.head.weight[2:] = 0
        model.head.bias[2:] = -50  # all but certain: the deviation is the least one
    paths = model.forecast(sequence, steps=3, samples=3, generator=torch.Generator().manual_seed(0))
    for way in paths.values:
        longer = torch.cat((sequence, way[:-1]))
        means = model.predict(longer.unsqueeze(0)).mean[0, -3:]
        assert bool(((way - means).abs() <= 6 * LEAST * torch.tensor(DEVIATION)).all())


def test_ways_to_go_on_depend_on_the_generator_alone(generator: torch.Generator) -> None:
    model, sequence = forecaster(), values(6, generator=generator)
    ways = [model.forecast(sequence, steps=4, samples=2, generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert torch.equal(ways[0].values, ways[1].values)
    assert not torch.equal(ways[0].values, ways[2].values)


def test_the_scale_is_kept_with_the_weights() -> None:
    model = forecaster()
    other = ForecastConfig(cell="gru", hidden=5).build(features=2).double()
    other.load_state_dict(model.state_dict())
    assert other.scale_mean.tolist() == MEAN
    assert other.scale_deviation.tolist() == DEVIATION


def test_what_makes_no_forecast_is_refused(generator: torch.Generator) -> None:
    model = forecaster()
    for error, arguments in (
        (ShapeError, (torch.zeros(4, 3).double(), 1)),
        (LengthError, (torch.zeros(0, 2).double(), 1)),
        (ArgumentError, (torch.zeros(4, 2).double(), 0)),
        (NonFiniteError, (torch.full((4, 2), torch.nan).double(), 1)),
    ):
        with pytest.raises(error):
            model.forecast(arguments[0], steps=arguments[1])
    with pytest.raises(ArgumentError, match=r"Paths\.quantile"):
        model.forecast(torch.zeros(4, 2).double(), steps=1).quantile(1.0)
    with pytest.raises(ArgumentError, match="around"):
        ForecastConfig(around="zero")
    with pytest.raises(ArgumentError, match="features"):
        ForecastConfig().build(features=0)
    for mean, deviation in (([0.0], [1.0, 1.0]), ([0.0, 0.0], [1.0, 0.0])):
        with pytest.raises(ArgumentError, match="standardise"):
            ForecastConfig().build(features=2, mean=mean, deviation=deviation)
    with pytest.raises(ShapeError):
        model(torch.zeros(1, 4, 3).double())
