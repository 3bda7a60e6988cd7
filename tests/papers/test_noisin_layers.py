"""Known answers for noise on the states of whole layers (Dieng et al. 2018, "Noisin")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, softplus
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from statewise import (
    GRU,
    LSTM,
    MGU,
    RAC,
    RNN,
    CompoundingNoiseWarning,
    Draws,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    OrthogonalRNN,
    OutputDropout,
    RecurrentDropout,
    RecurrentLayer,
    Zoneout,
)
from statewise.transforms.laws import LAWS
from support import CPU_ENGINES, doubles, fill, tolerance, weight

PLACEMENTS = ("recurrent", "outputs", "last")
SIGMAS = 5
DOUBLE = torch.float64


def masks(units: int) -> Tensor:
    """Every multiplier of so many units under Bernoulli(1/2) noise, one a row; all rows are equally likely."""
    return torch.tensor(list(itertools.product((0.0, 2.0), repeat=units)), dtype=DOUBLE)


def scalar_lstm(engine: str, **options: Any) -> LSTM:
    layer = LSTM(1, 1, bias=False, dtype=DOUBLE, engine=engine, **options)
    fill(layer, weight_ih_l0=1.0, weight_hh_l0=1.0)
    return layer


# The tiny network G: a tanh RNN over four symbols, with the output matrix V.
SYMBOLS = (0, 2, 1, 3, 1)
INPUTS = one_hot(torch.tensor(SYMBOLS[:-1]), 4).to(DOUBLE).unsqueeze(1)
V = torch.sin(4 * torch.arange(3, dtype=DOUBLE)[:, None] + torch.arange(4, dtype=DOUBLE) + 1)

# E[z_2] - h_2 under recurrent Normal(0, 1/2) noise, by quadrature; a Monte Carlo estimate gave (-0.048, 0.004, 0.018).
WEAK_BIAS = torch.tensor([-0.04836537, 0.00409931, 0.01739353], dtype=DOUBLE)


def tiny_network(engine: str = "auto", **options: Any) -> RNN:
    layer = RNN(4, 3, bias=False, dtype=DOUBLE, engine=engine, **options)
    row, unit = torch.arange(4, dtype=DOUBLE)[:, None], torch.arange(3, dtype=DOUBLE)
    # The paper multiplies by transposed matrices, torch does not.
    fill(layer, weight_ih_l0=torch.cos(1 + 3 * row + unit).T, weight_hh_l0=0.8 * torch.sin(2 + 3 * row[:3] + unit).T)
    return layer


def losses(states: Tensor, targets: tuple[int, ...] = SYMBOLS[1:]) -> Tensor:
    """The negative log-likelihood of every step, shape (steps, rows)."""
    scores = states @ V
    wanted = torch.tensor(targets)[:, None].expand(scores.shape[:2])
    return scores.logsumexp(2) - scores.gather(2, wanted.unsqueeze(2)).squeeze(2)


def normal_nodes(units: int, *, count: int = 24) -> tuple[Tensor, Tensor]:
    """Points and weights whose sums are expectations over independent standard normal numbers."""
    points, shares = np.polynomial.hermite_e.hermegauss(count)
    grid = torch.cartesian_prod(*[torch.from_numpy(points)] * units)
    products = torch.cartesian_prod(*[torch.from_numpy(shares / shares.sum())] * units).prod(1)
    return grid, products


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_the_tiny_network_has_the_printed_states_and_risk(engine: str) -> None:
    states, _ = tiny_network(engine)(INPUTS)
    torch.testing.assert_close(states[0, 0], doubles(0.493217, -0.393679, -0.757359), rtol=0, atol=5e-7)
    torch.testing.assert_close(states[3, 0], doubles(-0.683916, 0.122243, 0.748351), rtol=0, atol=5e-7)
    assert losses(states).sum().item() == pytest.approx(5.1626420814, abs=5e-11)


@pytest.mark.parametrize(
    ("mode", "gamma", "excess"),
    [
        ("multiplicative", 0.5, 0.15641233),
        ("multiplicative", 0.2, 0.02541279),
        ("multiplicative", 0.1, 0.00636762),
        ("additive", 0.1, 0.02434570),
    ],
)
def test_strong_noise_has_the_printed_excess_whatever_the_targets(mode: str, gamma: float, excess: float) -> None:
    """The layer runs on the nodes of a quadrature instead of random draws, so the expectation is exact."""
    points, shares = normal_nodes(3)
    layer = tiny_network(transforms=Noise("gaussian", gamma, mode=mode, placement="last"))
    drawn = gamma * points + (mode == "multiplicative")
    noisy, _ = layer(INPUTS.expand(-1, len(points), -1), draws=Draws({(0, 0, 0): (drawn.expand(4, -1, -1),)}))
    clean, _ = tiny_network()(INPUTS)
    for targets in (SYMBOLS[1:], (1, 1, 1, 1)):
        found = (losses(noisy, targets) @ shares - losses(clean, targets)[:, 0]).sum()
        assert found.item() == pytest.approx(excess, abs=5.1e-9)


def test_weak_noise_moves_the_mean_of_the_second_state_by_the_printed_bias() -> None:
    """``E[z_2] = E[f(x_1, z_1)]``, as the second multiplier is independent of the first and has mean 1."""
    points, shares = normal_nodes(3)
    layer = tiny_network(transforms=Noise("gaussian", 0.5, placement="recurrent"))
    drawn = torch.stack((1 + 0.5 * points, torch.ones_like(points)))
    noisy, _ = layer(INPUTS[:2].expand(-1, len(points), -1), draws=Draws({(0, 0, 0): (drawn,)}))
    clean, _ = tiny_network()(INPUTS[:2])
    bias = torch.einsum("n,tnh->th", shares, noisy) - clean[:, 0]
    torch.testing.assert_close(bias[0], torch.zeros(3, dtype=DOUBLE), rtol=0, atol=1e-12)
    torch.testing.assert_close(bias[1], WEAK_BIAS, rtol=0, atol=5e-9)


def test_weak_noise_as_the_layer_draws_it_has_the_printed_biases_and_excess(generator: torch.Generator) -> None:
    rows = 400_000
    layer = tiny_network(transforms=Noise("gaussian", 0.5, placement="recurrent"))
    with torch.no_grad():
        noisy, _ = layer(INPUTS.expand(-1, rows, -1), generator=generator)
        clean, _ = tiny_network()(INPUTS)
    bias, error = (noisy - clean).mean(1), noisy.std(1) / math.sqrt(rows)
    assert (bias[0].abs() < SIGMAS * error[0]).all()
    assert ((bias[1] - WEAK_BIAS).abs() < SIGMAS * error[1]).all()
    assert bias[1, 0].abs() > 20 * error[1, 0]
    total = (losses(noisy) - losses(clean)).sum(0)
    assert abs(total.mean().item() - 0.1809) < 4 * math.hypot(0.0005, total.std().item() / math.sqrt(rows))
    for symbol, printed in enumerate((0.030, 0.002, 0.030, 0.087)):
        last = (losses(noisy, (symbol,) * 4) - losses(clean, (symbol,) * 4))[3]
        assert abs(last.mean().item() - printed) < 0.001 + 4 * last.std().item() / math.sqrt(rows)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_the_weak_excess_can_be_negative_and_the_strong_one_cannot(engine: str) -> None:
    """``h_t = tanh(1 - 2 h_{t-1})`` under every mask of Bernoulli(1/2), with a Bernoulli likelihood."""
    every, excess = masks(2).T.unsqueeze(2), {}
    for placement in ("recurrent", "last"):
        noise = Noise("bernoulli", 0.5, placement=placement)
        layer = RNN(1, 1, bias=False, dtype=DOUBLE, engine=engine, transforms=noise)
        fill(layer, weight_ih_l0=1.0, weight_hh_l0=-2.0)
        inputs = torch.ones(2, 4, 1, dtype=DOUBLE)
        noisy = layer(inputs, draws=Draws({(0, 0, 0): (every,)}))[0][1]
        clean = layer(inputs, draws=Draws())[0][1, 0]
        excess[placement] = [
            ((softplus(noisy) - noisy * x).mean() - (softplus(clean) - clean * x)).item() for x in (0, 1)
        ]
        assert clean.item() == pytest.approx(-0.4801570094, abs=5e-11)
        mean = -0.1027838002 if placement == "recurrent" else -0.4801570094
        assert noisy.mean().item() == pytest.approx(mean, abs=5e-11)
    assert excess["recurrent"] == pytest.approx([0.3288083393, -0.0485648700], abs=5e-11)
    assert excess["last"] == pytest.approx([0.0270040622, 0.0270040622], abs=5e-11)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_the_scalar_noisy_lstm_with_multipliers_one_and_a_half_and_one_half(engine: str) -> None:
    """The memory is never multiplied, and what is not fed back leaves a clean state behind."""
    inputs, drawn = torch.ones(2, 1, 1, dtype=DOUBLE), Draws({(0, 0, 0): (doubles(1.5, 0.5).reshape(2, 1, 1),)})
    for placement, memory_2, output_2 in (
        ("recurrent", 1.21461480, 0.34592945),
        ("outputs", 1.14444616, 0.32526761),
        ("last", 1.14444616, 0.32526761),
    ):
        layer = scalar_lstm(engine, transforms=Noise("gaussian", 0.5, placement=placement))
        output, (state, memory), seen = layer(inputs, draws=drawn, collect=("states", "cells"))
        assert output.flatten().tolist() == pytest.approx([0.55440953, output_2], abs=5.1e-9)
        assert seen.cells[0].flatten().tolist() == pytest.approx([0.55676994, memory_2], abs=5.1e-9)
        fed_back = 0.55440953 if placement == "recurrent" else 0.36960635
        assert seen.states[0][0].item() == pytest.approx(fed_back, abs=5e-9)
        assert memory.item() == seen.cells[0][1].item()
        assert state.item() == (output[1] if placement == "recurrent" else output[1] / 0.5).item()


def grads(layer: nn.Module, inputs: Tensor) -> list[Tensor]:
    """Output, final state and memory, and the gradients of inputs and plain weights for one fixed loss."""
    inputs = inputs.clone().requires_grad_()
    output, (state, memory) = layer(inputs)
    ((output**2).sum() + state.sum() + memory.sum()).backward()
    found = [parameter.grad for parameter in layer.parameters()]
    return [
        output.detach(),
        state.detach(),
        memory.detach(),
        *(grad for grad in (inputs.grad, *found) if grad is not None),
    ]


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("law", LAWS)
def test_zero_noise_is_the_plain_lstm_and_eval_mode_is_zero_noise_bit_for_bit(
    law: str, placement: str, engine: str, generator: torch.Generator
) -> None:
    inputs = torch.randn(5, 3, 2, generator=generator, dtype=DOUBLE)
    plain = nn.LSTM(2, 4, num_layers=2, dtype=DOUBLE)
    for mode in ("multiplicative", "additive"):
        silent, loud = (
            LSTM(
                2,
                4,
                num_layers=2,
                dtype=DOUBLE,
                engine=engine,
                transforms=Noise(law, gamma, mode=mode, placement=placement),
            )
            for gamma in (1.0 if law == "bernoulli" else 0.0, 0.7)
        )
        silent.load_state_dict(plain.state_dict())
        loud.load_state_dict(plain.state_dict())
        plain.zero_grad()
        found = grads(silent, inputs)
        assert len(found) == 3 + 1 + 8
        for ours, theirs in zip(found, grads(plain, inputs), strict=True):
            torch.testing.assert_close(ours, theirs, **tolerance(DOUBLE))
        for ours, theirs in zip(grads(loud.eval(), inputs), found, strict=True):
            assert torch.equal(ours, theirs)
        disturbed, _ = loud.train()(inputs, generator=generator)
        assert (disturbed - found[0]).abs().max() > 0.01


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_strong_unbiasedness_holds_at_every_step_and_the_carried_state_is_clean(
    engine: str, generator: torch.Generator
) -> None:
    """``E[z_t] = h_t`` over all 16 masks of two units in two steps, in the top layer of a stack."""
    noise = Noise("bernoulli", 0.5, placement="last")
    layer = LSTM(3, 2, num_layers=2, dtype=DOUBLE, engine=engine, transforms=noise, generator=generator)
    inputs = torch.randn(2, 1, 3, generator=generator, dtype=DOUBLE)
    drawn = Draws({(0, 1, 0): (masks(4).T.reshape(2, 2, 16).transpose(1, 2),)})
    noisy, (state, memory) = layer(inputs.expand(-1, 16, -1), draws=drawn)
    clean, (clean_state, clean_memory) = layer.eval()(inputs)
    torch.testing.assert_close(noisy.mean(1), clean[:, 0], **tolerance(DOUBLE))
    torch.testing.assert_close(state, clean_state.expand_as(state), **tolerance(DOUBLE))
    torch.testing.assert_close(memory, clean_memory.expand_as(memory), **tolerance(DOUBLE))
    # Var z = v h^2, and v = (1 - gamma) / gamma = 1 here.
    torch.testing.assert_close(noisy.var(1, correction=0), clean[:, 0].square(), **tolerance(DOUBLE))


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_weak_unbiasedness_holds_layer_by_layer_and_not_across_layers(engine: str, generator: torch.Generator) -> None:
    """Given its own input and state a layer's mean is its clean transition; given the clean network's it is not."""
    noise = Noise("bernoulli", 0.5, placement="recurrent")
    layer = LSTM(3, 2, num_layers=2, dtype=DOUBLE, engine=engine, transforms=noise, generator=generator)
    fill(layer, weight_ih_l1=3 * torch.eye(8, 2, dtype=DOUBLE) + 2, bias_ih_l1=0.5)
    inputs = torch.randn(1, 1, 3, generator=generator, dtype=DOUBLE)
    start = torch.randn(2, 1, 2, generator=generator, dtype=DOUBLE)
    every = masks(4).unsqueeze(0)
    drawn = Draws({(0, 0, 0): (every[..., :2],), (0, 1, 0): (every[..., 2:],)})
    hx = (start.expand(-1, 16, -1).contiguous(), start.expand(-1, 16, -1).contiguous())
    _, (states, _) = layer(inputs.expand(-1, 16, -1), hx, draws=drawn)
    first, second = nn.LSTMCell(3, 2, dtype=DOUBLE), nn.LSTMCell(2, 2, dtype=DOUBLE)
    for cell, index in ((first, 0), (second, 1)):
        cell.load_state_dict(
            {name: weight(layer, f"{name}_l{index}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        )
    expected, _ = first(inputs[0], (start[0], start[0]))
    torch.testing.assert_close(states[0].mean(0), expected[0], **tolerance(DOUBLE))
    # The rows come in groups of four that share the first layer's mask, hence the second layer's input.
    of_group = states[1].unflatten(0, (4, 4)).mean(1)
    expected_of_group, _ = second(states[0][::4], (start[1].expand(4, -1), start[1].expand(4, -1)))
    torch.testing.assert_close(of_group, expected_of_group, **tolerance(DOUBLE))
    clean, _ = second(expected, (start[1], start[1]))
    assert (states[1].mean(0) - clean[0]).abs().max() > 1e-3


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_carried_state_continues_a_sequence_exactly(
    placement: str, engine: str, generator: torch.Generator
) -> None:
    """(z_T, c_T) for recurrent noise, else (h_T, c_T): neither noised twice nor too little."""
    layer = LSTM(
        3, 4, num_layers=2, dtype=DOUBLE, engine=engine, transforms=Noise("gaussian", 0.8, placement=placement)
    )
    inputs = torch.randn(6, 2, 3, generator=generator, dtype=DOUBLE)
    draws = layer.draw(inputs, generator=generator)
    whole, end = layer(inputs, draws=draws)
    parts, state = [], None
    for part in (slice(0, 2), slice(2, 6)):
        of_part = Draws({key: tuple(tensor[part] for tensor in tensors) for key, tensors in draws.tensors.items()})
        output, state = layer(inputs[part], state, draws=of_part)
        parts.append(output)
    assert state is not None
    torch.testing.assert_close(torch.cat(parts), whole, **tolerance(DOUBLE))
    torch.testing.assert_close(state, end, **tolerance(DOUBLE))


def test_one_unit_of_strength_for_all_laws() -> None:
    assert Noise.from_std("bernoulli", 1.1).gamma == pytest.approx(0.4524886878, abs=5e-11)
    assert Noise.from_std("beta", 0.5).gamma == Noise.from_std("chi-square", 0.5).gamma == 0.25
    for law in LAWS:
        for std in (0.0, 0.3, 1.1):
            assert Noise.from_std(law, std).std == pytest.approx(std, abs=1e-15)


@pytest.mark.parametrize("mode", ["multiplicative", "additive"])
@pytest.mark.parametrize("law", LAWS)
def test_what_a_layer_draws_has_the_laws_mean_and_variance(law: str, mode: str, generator: torch.Generator) -> None:
    """Mean one for multipliers and zero for shifts, the variance of Table 2, in every step and unit alike."""
    layer = LSTM(1, 5, transforms=Noise(law, 0.4, mode=mode))
    ((drawn,),) = layer.draw(torch.zeros(8, 5000, 1), generator=generator).tensors.values()
    noise, variance = drawn.double() - float(mode == "multiplicative"), LAWS[law].variance(0.4, 2.0)
    assert noise.shape == (8, 5000, 5)
    of_place = noise.mean(1) / math.sqrt(variance / 5000)
    assert of_place.abs().max() < SIGMAS
    error = variance * math.sqrt((LAWS[law].excess_kurtosis(0.4, 2.0) + 2) / noise.numel())
    assert abs(noise.square().mean().item() - variance) < SIGMAS * error


def test_noise_is_independent_over_steps_units_rows_layers_and_directions(generator: torch.Generator) -> None:
    """Products of two different numbers have mean zero: neighbours in time, unit and batch, and other streams."""
    layer = LSTM(1, 6, num_layers=2, bidirectional=True, transforms=Noise("gaussian", 1.0))
    drawn = [
        tensor.double() - 1 for (tensor,) in layer.draw(torch.zeros(24, 2000, 1), generator=generator).tensors.values()
    ]
    assert len(drawn) == 4
    pairs = [(noise[lag:], noise[:-lag]) for noise in drawn for lag in range(1, 10)]
    pairs += [(noise[..., 1:], noise[..., :-1]) for noise in drawn] + [(noise[:, 1:], noise[:, :-1]) for noise in drawn]
    pairs += itertools.combinations(drawn, 2)
    for one, other in pairs:
        assert abs((one * other).mean().item()) < SIGMAS / math.sqrt(one.numel())


TRANSFORMS = [
    Noise("gaussian", 0.5, placement="recurrent"),
    Noise("gamma", 0.5, placement="outputs"),
    Zoneout(0.3, memory=0.2),
    InputDropout(0.5),
    OutputDropout(0.5),
    LockedDropout(0.5),
    LockedInputDropout(0.5),
    RecurrentDropout(0.4, input_p=0.5, share_gates=False),
]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda transform: type(transform).__name__)
def test_what_a_step_draws_depends_neither_on_the_length_nor_on_padding(transform: Any) -> None:
    layer = LSTM(3, 4, num_layers=2, dtype=DOUBLE, transforms=transform)
    inputs, lengths = torch.randn(7, 3, 3, dtype=DOUBLE), torch.tensor([2, 7, 5])

    def run(data: Any, seed: int = 11) -> Any:
        return layer(data, generator=torch.Generator().manual_seed(seed))[0]

    whole = run(inputs)
    assert torch.equal(whole, run(inputs))
    assert not torch.equal(whole, run(inputs, seed=12))
    torch.testing.assert_close(run(inputs[:4]), whole[:4], **tolerance(DOUBLE))
    longer = torch.cat((inputs, torch.zeros(3, 3, 3, dtype=DOUBLE)))
    torch.testing.assert_close(run(longer)[:7], whole, **tolerance(DOUBLE))
    packed, _ = pad_packed_sequence(run(pack_padded_sequence(inputs, lengths, enforce_sorted=False)))
    valid = torch.arange(7)[:, None] < lengths
    torch.testing.assert_close(packed[valid], whole[valid], **tolerance(DOUBLE))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (GRU, {}),
        (GRU, {"reset_before": True}),
        (MGU, {}),
        (RAC, {}),
        (OrthogonalRNN, {}),
        (RNN, {"nonlinearity": "identity"}),
    ],
)
def test_noise_is_not_fed_back_along_a_linear_path_unless_asked_with_a_warning(
    kind: Callable[..., RecurrentLayer], options: dict[str, Any]
) -> None:
    (noise,) = kind(2, 3, transforms=Noise("gaussian", 0.5), **options).transforms
    assert isinstance(noise, Noise)
    assert noise.placement == "outputs"
    with pytest.warns(CompoundingNoiseWarning, match=r"\(1 \+ v\)\^t"):
        kind(2, 3, transforms=Noise("gaussian", 0.5, placement="recurrent"), **options)


@pytest.mark.parametrize("kind", [RNN, LSTM])
def test_a_squashing_cell_gets_the_papers_placement(kind: Callable[..., RecurrentLayer]) -> None:
    (noise,) = kind(2, 3, transforms=Noise("gaussian", 0.5)).transforms
    assert isinstance(noise, Noise)
    assert noise.placement == "recurrent"


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_noise_fed_back_along_a_linear_path_compounds_as_one_plus_v_to_the_t(engine: str) -> None:
    """``h_t = h_{t-1} m_t`` under all 32 masks of Bernoulli(1/2), v = 1: variance ``2^t - 1`` about the mean 1."""
    with pytest.warns(CompoundingNoiseWarning):
        layer = RNN(1, 1, nonlinearity="identity", bias=False, dtype=DOUBLE, engine=engine,
                    transforms=Noise("bernoulli", 0.5, placement="recurrent"))  # fmt: skip
    fill(layer, weight_ih_l0=0.0, weight_hh_l0=1.0)
    start = torch.ones(1, 32, 1, dtype=DOUBLE)
    output, _ = layer(torch.zeros(5, 32, 1, dtype=DOUBLE), start, draws=Draws({(0, 0, 0): (masks(5).T.unsqueeze(2),)}))
    assert output.mean((1, 2)).tolist() == [1.0] * 5
    assert output.squeeze(2).var(1, correction=0).tolist() == pytest.approx([1, 3, 7, 15, 31], rel=1e-14)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_no_gradient_reaches_the_noise_and_the_multiplier_passes_the_states_gradient(
    engine: str, generator: torch.Generator
) -> None:
    layer = LSTM(3, 4, dtype=DOUBLE, engine=engine, transforms=Noise("laplace", 0.6, placement="outputs"))
    inputs = torch.randn(4, 2, 3, generator=generator, dtype=DOUBLE, requires_grad=True)
    draws = layer.draw(inputs, generator=generator)
    ((multiplier,),) = draws.tensors.values()
    assert not multiplier.requires_grad
    (through_noise,) = torch.autograd.grad(layer(inputs, draws=draws)[0].sum(), inputs)
    (by_hand,) = torch.autograd.grad((layer.eval()(inputs)[0] * multiplier).sum(), inputs)
    torch.testing.assert_close(through_noise, by_hand, **tolerance(DOUBLE))
