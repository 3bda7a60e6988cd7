"""Known answers for dropout in whole layers: the dropout-LSTM of Dieng et al. 2018 and the system of its Table 5."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statewise import (
    LSTM,
    RNN,
    Draws,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    RecurrentDropout,
    embedding_dropout,
)
from statewise.errors import ArgumentError
from statewise.weights import weight_drop
from support import CPU_ENGINES, doubles, fill, tolerance, weight

ENGINES = CPU_ENGINES
SIGMAS = 5
DOUBLE = torch.float64


def masks(units: int) -> Tensor:
    """Every multiplier of so many units under Bernoulli(1/2) noise, one a row; all rows are equally likely."""
    return torch.tensor(list(itertools.product((0.0, 2.0), repeat=units)), dtype=DOUBLE)


def scalar_lstm(engine: str, **options: Any) -> LSTM:
    layer = LSTM(1, 1, bias=False, dtype=DOUBLE, engine=engine, **options)
    fill(layer, weight_ih_l0=1.0, weight_hh_l0=1.0)
    return layer


@pytest.mark.parametrize("engine", ENGINES)
def test_the_scalar_lstm_and_zaremba_dropout_on_its_input(engine: str) -> None:
    """Dropped, kept and doubled, and not masked at all."""
    layer = scalar_lstm(engine, transforms=InputDropout(0.5))
    half = torch.full((1, 3, 1), 0.5, dtype=DOUBLE)
    drawn = Draws({(0, 0, 0): (doubles(1, 0, 2).reshape(1, 3, 1),)})
    output, (_, memory) = layer(torch.ones(1, 3, 1, dtype=DOUBLE), (half, half), draws=drawn)
    torch.testing.assert_close(
        output.flatten(), doubles(0.6682531514, 0.3337946052, 0.8128427401), rtol=0, atol=5.1e-11
    )
    assert memory[0, 0].item() == pytest.approx(1.1488133474, abs=5e-11)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mask_on", ["input", "projection"])
@pytest.mark.parametrize(
    ("shared", "p", "mean"), [(True, 0.0, 0.5733186726), (False, 0.0, 0.5558696254), (False, 0.5, 0.5181999653)]
)
def test_means_over_all_masks_of_the_dropout_lstm(
    engine: str, mask_on: str, shared: bool, p: float, mean: float, generator: torch.Generator
) -> None:
    """One mask shared by the gates, four masks on the input term, and all eight, enumerated."""
    dropout = RecurrentDropout(p, input_p=0.5, mask_on=mask_on, share_gates=shared)
    # The kernel has no code for masks of each gate on the state.
    layer = scalar_lstm(engine if shared or not p else "reference", transforms=dropout)
    gates = 1 if shared else 4
    every = masks(gates + gates * (p > 0)).unsqueeze(0)
    inputs = torch.ones(1, every.shape[1], 1, dtype=DOUBLE)
    drawn = (every[..., :gates], every[..., gates:])
    own = layer.draw(inputs, generator=generator).tensors[0, 0, 0]
    assert [tensor.shape for tensor in own] == [tensor.shape for tensor in drawn]
    assert all(set(tensor.unique().tolist()) <= {0.0, 2.0} for tensor in own)
    half = torch.full((1, every.shape[1], 1), 0.5, dtype=DOUBLE)
    output, _ = layer(inputs, (half, half), draws=Draws({(0, 0, 0): drawn}))
    assert output.mean().item() == pytest.approx(mean, abs=5e-11)


@pytest.mark.parametrize("engine", ENGINES)
def test_dropout_before_a_sigmoid_is_biased_and_noise_after_it_is_not(engine: str) -> None:
    inputs = torch.full((1, 2, 1), 2.0, dtype=DOUBLE)
    drawn = Draws({(0, 0, 0): (doubles(0, 2).reshape(1, 2, 1),)})
    means = []
    for transform in (InputDropout(0.5), Noise("bernoulli", 0.5)):
        layer = RNN(1, 1, nonlinearity="sigmoid", bias=False, dtype=DOUBLE, engine=engine, transforms=transform)
        fill(layer, weight_ih_l0=1.0)
        means.append(layer(inputs, draws=drawn)[0].mean().item())
    assert means == pytest.approx([0.741007, 0.880797], abs=5e-7)


def test_bernoulli_noise_on_outputs_is_dropout_between_layers(generator: torch.Generator) -> None:
    """Below the top layer, ``outputs`` noise with keep probability gamma has dropout's mean and variance."""
    rows, gamma = 100_000, 0.7
    plain = nn.LSTM(2, 3, num_layers=2, dropout=1 - gamma)
    noisy = LSTM(2, 3, num_layers=2, transforms=Noise("bernoulli", gamma, placement="outputs", layers=(0,)))
    ours = LSTM(2, 3, num_layers=2, dropout=1 - gamma, generator=generator)
    inputs = torch.randn(2, 1, 2, generator=generator).expand(-1, rows, -1)
    noisy.load_state_dict(ours.state_dict())
    plain.load_state_dict(ours.state_dict())
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(1)
        theirs = plain(inputs)[0].double()
        for layer in (noisy, ours):
            sample = layer(inputs, generator=generator)[0].double()
            for power in (1, 2):  # the second about the common mean: the variance
                a, b = ((x - (power - 1) * theirs.mean(1, keepdim=True)) ** power for x in (sample, theirs))
                error = ((a.var(1) + b.var(1)) / rows).sqrt()
                assert (error > 0).all()
                assert ((a.mean(1) - b.mean(1)).abs() < SIGMAS * error).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_weight_drop_masks_the_recurrent_matrix_once_a_forward_and_not_in_eval(
    engine: str, generator: torch.Generator
) -> None:
    layer = weight_drop(LSTM(3, 4, dtype=DOUBLE, engine=engine, generator=generator), "weight_hh_l0", p=0.25)
    inputs, plain = torch.randn(6, 2, 3, generator=generator, dtype=DOUBLE), nn.LSTM(3, 4, dtype=DOUBLE)
    raw = layer.get_parameter("parametrizations.weight_hh_l0.original")
    seen = []
    for _ in range(2):
        output, _ = layer(inputs, generator=generator)
        dropped = weight(layer, "weight_hh_l0").detach()
        mask = dropped / raw.detach()
        torch.testing.assert_close(mask[mask != 0], torch.full_like(mask[mask != 0], 1 / 0.75), **tolerance(DOUBLE))
        assert 0 < (mask == 0).sum() < 32
        state = {name: weight(layer, name).detach() for name in ("weight_ih_l0", "bias_ih_l0", "bias_hh_l0")}
        plain.load_state_dict(state | {"weight_hh_l0": dropped})
        expected, _ = plain(inputs)
        torch.testing.assert_close(output, expected, **tolerance(DOUBLE))
        seen.append(mask)
    assert not torch.equal(*seen)
    output.sum().backward()
    plain.zero_grad()
    expected.sum().backward()
    effective = plain.get_parameter("weight_hh_l0").grad
    assert raw.grad is not None
    assert effective is not None
    torch.testing.assert_close(raw.grad, effective * seen[-1], **tolerance(DOUBLE))
    layer.eval()
    plain.load_state_dict(state | {"weight_hh_l0": raw.detach()})
    torch.testing.assert_close(layer(inputs)[0], plain(inputs)[0], **tolerance(DOUBLE))


def test_embedding_dropout_drops_whole_words_everywhere(generator: torch.Generator) -> None:
    table = nn.Embedding(500, 4)
    words = torch.randint(500, (40, 50), generator=generator)
    looked_up = embedding_dropout(table, words, p=0.1, training=True, generator=generator)
    factor = looked_up.detach() / table.weight.detach()[words]
    of_word = torch.full((500,), math.nan)
    of_word[words] = factor[..., 0]
    used = ~of_word.isnan()
    torch.testing.assert_close(factor, of_word[words].unsqueeze(-1).expand_as(factor))
    kept = of_word[used] != 0
    torch.testing.assert_close(of_word[used][kept], torch.full((int(kept.sum()),), 1 / 0.9))
    count = int(used.sum())
    assert abs(count - int(kept.sum()) - 0.1 * count) < SIGMAS * math.sqrt(0.09 * count)
    looked_up.sum().backward()
    assert table.weight.grad is not None
    gone = used.clone()
    gone[used] = ~kept
    assert (table.weight.grad[gone] == 0).all()
    assert torch.equal(embedding_dropout(table, words, p=0.1, training=False), table(words))


def test_the_last_rows_of_an_embedding_can_be_kept(generator: torch.Generator) -> None:
    table = nn.Embedding(500, 4)
    looked_up = embedding_dropout(table, torch.arange(500), p=0.9, training=True, kept=400, generator=generator)
    assert torch.equal(looked_up[100:], table.weight[100:])
    assert 70 <= int((looked_up[:100] == 0).all(1).sum()) <= 99
    for wrong in (501, -1):
        with pytest.raises(ArgumentError, match=rf"kept: got {wrong}, wanted a whole number from 0 to 500"):
            embedding_dropout(table, torch.arange(500), p=0.9, training=True, kept=wrong)


@pytest.mark.parametrize("engine", ENGINES)
def test_locked_dropout_is_constant_in_time_and_fresh_for_each_row_and_call(
    engine: str, generator: torch.Generator
) -> None:
    inputs = torch.randn(5, 8, 6, generator=generator, dtype=DOUBLE)
    for transform in (LockedDropout(0.4), LockedInputDropout(0.4)):
        layer = RNN(6, 6, nonlinearity="identity", bias=False, dtype=DOUBLE, engine=engine, transforms=transform)
        fill(layer, weight_ih_l0=torch.eye(6, dtype=DOUBLE), weight_hh_l0=0.0)
        factor = layer(inputs, generator=generator)[0] / inputs
        torch.testing.assert_close(factor, factor[:1].expand_as(factor), **tolerance(DOUBLE))
        assert all(value == 0 or value == pytest.approx(1 / 0.6) for value in factor[0].unique().tolist())
        assert len(factor[0].round(decimals=3).unique(dim=0)) > 1
        assert not torch.equal(factor, layer(inputs, generator=generator)[0] / inputs)
        assert torch.equal(layer.eval()(inputs)[0], inputs)


@pytest.mark.parametrize("mask_on", ["input", "projection"])
@pytest.mark.parametrize("locked", [False, True])
def test_all_eight_masks_act_as_the_general_form_says(mask_on: str, locked: bool, generator: torch.Generator) -> None:
    """``W_g (x * e) + U_g (h * e')``, or ``(W_g x) * e + (U_g h) * e'``, for each gate g with masks of its own."""
    dropout = RecurrentDropout(0.4, input_p=0.5, mask_on=mask_on, share_gates=False, locked=locked)
    layer = LSTM(3, 4, dtype=DOUBLE, transforms=dropout, generator=generator)
    inputs = torch.randn(5, 2, 3, generator=generator, dtype=DOUBLE)
    draws = layer.draw(inputs, generator=generator)
    for_input, for_state = draws.tensors[0, 0, 0]
    steps = 1 if locked else 5
    assert for_input.shape == (steps, 2, 4 * (3 if mask_on == "input" else 4))
    assert for_state.shape == (steps, 2, 4 * 4)
    state = memory = torch.zeros(2, 4, dtype=DOUBLE)
    for step, x in enumerate(inputs):
        terms = []
        for value, masks_of, kind in ((x, for_input, "ih"), (state, for_state, "hh")):
            of_gates = zip(
                masks_of[0 if locked else step].chunk(4, 1), weight(layer, f"weight_{kind}_l0").chunk(4), strict=True
            )
            gates = [(value * e) @ w.T if mask_on == "input" else (value @ w.T) * e for e, w in of_gates]
            terms.append(torch.cat(gates, 1) + weight(layer, f"bias_{kind}_l0"))
        i, f, g, o = (terms[0] + terms[1]).chunk(4, 1)
        memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
        state = o.sigmoid() * memory.tanh()
    output, (end, end_memory) = layer(inputs, draws=draws)
    torch.testing.assert_close(output[-1], state, **tolerance(DOUBLE))
    torch.testing.assert_close(end[0], state, **tolerance(DOUBLE))
    torch.testing.assert_close(end_memory[0], memory, **tolerance(DOUBLE))
