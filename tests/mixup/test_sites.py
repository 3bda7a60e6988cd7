"""The three places of mixing: each keeps the contract, with layers of statewise, of torch, and of one's own."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import statewise
from contracts.mixups import CLASSES, DOUBLE, EXACT, HIDDEN, WIDTH, Bunch, MixupContract
from contracts.passes import few_examples, seeds
from statewise import GRU, LSTM, RNN, Noise, OrthogonalRNN
from statewise.errors import ArgumentError, DtypeError
from statewise.kernels import load_triton
from statewise.mixup import Constant, InputMixup, MarkovBeta, Mixup, PreOutputMixup, ThroughTimeMixup
from statewise.mixup.lengths import POLICIES
from statewise.mixup.pooling import pool_steps
from support import fill, forbidden_to_wait

ALL = [InputMixup(), PreOutputMixup(), ThroughTimeMixup()]
each = pytest.mark.parametrize("mix", ALL, ids=lambda mix: mix.site)


class TestInputMixup(MixupContract):
    kind = InputMixup


class TestInputMixupOfTorch(MixupContract):
    kind = InputMixup
    torchs = True


class TestPreOutputMixup(MixupContract):
    kind = PreOutputMixup


class TestPreOutputMixupOfTorch(MixupContract):
    kind = PreOutputMixup
    torchs = True


class TestThroughTimeMixup(MixupContract):
    kind = ThroughTimeMixup


class Smoothed(nn.Module):
    """A module of one's own with a state of its own shape."""

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        rows = x.cumsum(0) + (0 if state is None else state)
        return rows, {"last": rows[-1]}


def test_a_module_of_ones_own_is_mixed_too(generator: torch.Generator) -> None:
    x = torch.randn(4, 3, 2, generator=generator)
    for mix in (InputMixup(), PreOutputMixup()):
        output, pairs = mix(Smoothed(), x, generator=generator)
        torch.testing.assert_close(output, pairs.mix(x).cumsum(0))  # it is linear, and the coefficients constant


def test_sequences_that_all_end_early_are_no_packed_ones(generator: torch.Generator) -> None:
    x = torch.randn(5, 3, 2, generator=generator)
    x[4] = torch.nan
    for mix in (InputMixup(), PreOutputMixup()):
        output, pairs = mix(Smoothed(), x, lengths=[4, 4, 4], generator=generator)
        torch.testing.assert_close(output[:4], pairs.mix(x)[:4].cumsum(0))
        assert not output[4].any()


def test_a_module_without_a_state_is_refused() -> None:
    with pytest.raises(DtypeError, match=r"Linear: got a result of type Tensor, wanted a module that gives \(output"):
        InputMixup()(nn.Linear(2, 3), torch.zeros(4, 3, 2))


def test_torchs_layers_cannot_mix_through_time_and_the_remedy_helps(generator: torch.Generator) -> None:
    layer, x = nn.LSTM(WIDTH, HIDDEN), torch.randn(4, 3, WIDTH, generator=generator)
    with pytest.raises(DtypeError, match=r"got torch.nn.modules.rnn.LSTM, wanted .*statewise\.upgrade"):
        ThroughTimeMixup()(layer, x)
    output, _ = ThroughTimeMixup(process=Constant(1.0))(statewise.upgrade(layer), x)
    torch.testing.assert_close(output, layer(x)[0])


@each
def test_other_regularizers_of_a_layer_act_beside_it(mix: Mixup, generator: torch.Generator) -> None:
    layer = LSTM(WIDTH, HIDDEN, transforms=Noise("gaussian", 0.5))
    x = torch.randn(4, 3, WIDTH, generator=generator)
    pairs = mix.draw([4, 4, 4], generator=generator)
    first, second = (mix(layer, x, pairs=pairs)[0] for _ in range(2))
    assert not torch.equal(first, second)
    assert first.isfinite().all()


@each
def test_a_layer_with_a_beginning_of_its_own_keeps_it(mix: Mixup, generator: torch.Generator) -> None:
    layer = OrthogonalRNN(WIDTH, HIDDEN)
    output, _ = mix(layer, torch.randn(4, 3, WIDTH, generator=generator), generator=generator)
    assert output.shape == (4, 3, HIDDEN)


@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("both_ways", [False, True])
def test_through_time_layers_below_run_on_each_and_those_above_on_the_mixture(
    where: int, both_ways: bool, generator: torch.Generator
) -> None:
    """At any depth, with unequal lengths and as many pairs as one likes."""
    stack = GRU(WIDTH, HIDDEN, num_layers=3, bidirectional=both_ways, dtype=DOUBLE)
    single = []
    for index in range(3):
        width = WIDTH if index == 0 else HIDDEN * (1 + both_ways)
        layer = GRU(width, HIDDEN, bidirectional=both_ways, dtype=DOUBLE)
        layer.load_state_dict(
            {
                name.replace(f"_l{index}", "_l0"): value
                for name, value in stack.state_dict().items()
                if f"_l{index}" in name
            }
        )
        single.append(layer)
    x, lengths = torch.randn(5, 4, WIDTH, generator=generator, dtype=DOUBLE), torch.tensor([5, 3, 4, 2])
    mix = ThroughTimeMixup(alpha=0.5, rho=0.5, pairing="double", layer=where)
    output, pairs = mix(stack, x, lengths=lengths, generator=generator)
    assert pairs.layer == where
    rows = x
    for layer in single[:where]:
        rows = InputMixup()(layer.eval(), rows, lengths=lengths)[0]
    rows, _ = ThroughTimeMixup()(single[where], rows, lengths=lengths, pairs=replace(pairs, layer=0))
    for layer in single[where + 1 :]:
        rows = InputMixup()(layer.eval(), rows, lengths=pairs.lengths)[0]
    torch.testing.assert_close(output[: len(rows)], rows, **EXACT)


def test_a_random_layer_is_drawn_for_every_batch_from_the_generator(generator: torch.Generator) -> None:
    stack, x = GRU(WIDTH, HIDDEN, num_layers=3), torch.randn(4, 3, WIDTH, generator=generator)
    mix = ThroughTimeMixup(layer="random")
    found = [mix(stack, x, generator=generator)[1].layer for _ in range(40)]
    assert set(found) == {0, 1, 2}
    again = torch.Generator().manual_seed(3)
    layers = [mix.draw([4, 4], generator=again, layers=3).layer for _ in range(5)]
    again.manual_seed(3)
    assert [mix.draw([4, 4], generator=again, layers=3).layer for _ in range(5)] == layers


@pytest.mark.parametrize("layer", [-1, "top", True])
def test_an_impossible_layer_is_refused(layer: Any) -> None:
    with pytest.raises(ArgumentError, match=r"ThroughTimeMixup\.layer"):
        ThroughTimeMixup(layer=layer)


def test_a_layer_beyond_the_stack_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"ThroughTimeMixup\.layer: got 2, wanted a layer from 0 to 1"):
        ThroughTimeMixup(layer=2)(GRU(WIDTH, HIDDEN, num_layers=2), torch.zeros(4, 3, WIDTH))


@each
@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_initial_states_are_mixed_by_the_first_coefficient_but_before_the_output(
    mix: Mixup, kind: Any, generator: torch.Generator
) -> None:
    layer, x = kind(WIDTH, HIDDEN, dtype=DOUBLE), torch.randn(4, 3, WIDTH, generator=generator, dtype=DOUBLE)
    starts = torch.randn(2, 1, 3, HIDDEN, generator=generator, dtype=DOUBLE)
    hx = (starts[0], starts[1]) if kind is LSTM else starts[0]
    output, pairs = mix(layer, x, hx, generator=generator)
    if mix.site == "pre_output":
        torch.testing.assert_close(output, pairs.mix(layer(x, hx)[0]), **EXACT)
        return
    share = pairs.coefficients[0].unsqueeze(1)
    mixed = [share * part[:, pairs.first] + (1 - share) * part[:, pairs.second] for part in starts]
    shared = tuple(mixed) if kind is LSTM else mixed[0]
    if mix.site == "input":
        torch.testing.assert_close(output, layer(pairs.mix(x), shared)[0], **EXACT)
    else:
        one = [layer(x[:1, side], shared)[1] for side in (pairs.first, pairs.second)]
        first = [part[0] if kind is LSTM else part for part in one]
        torch.testing.assert_close(output[:1], share * first[0] + (1 - share) * first[1], **EXACT)


class TestPooling:
    """One label a sequence: Remark 1, and what it leaves open."""

    @pytest.mark.parametrize("pool", ["last", "mean", "max"])
    def test_before_the_output_each_member_is_pooled_then_mixed_by_the_mean(
        self, pool: str, generator: torch.Generator
    ) -> None:
        layer, x = GRU(WIDTH, HIDDEN, dtype=DOUBLE), torch.randn(5, 4, WIDTH, generator=generator, dtype=DOUBLE)
        lengths = [5, 2, 4, 1]
        features, pairs = PreOutputMixup(rho=0.5).pooled(layer, x, lengths=lengths, pool=pool, generator=generator)
        for place, (one, other) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
            own, its = (pooled(layer(x[: lengths[row], row])[0], pool) for row in (one, other))
            share = pairs.mean_coefficient[place]
            torch.testing.assert_close(features[place], share * own + (1 - share) * its, **EXACT)

    @pytest.mark.parametrize("pool", ["last", "mean", "max"])
    def test_where_pairs_end_early_so_do_their_members(self, pool: str, generator: torch.Generator) -> None:
        layer, x = GRU(WIDTH, HIDDEN, dtype=DOUBLE), torch.randn(5, 2, WIDTH, generator=generator, dtype=DOUBLE)
        mix = PreOutputMixup(lengths="truncate", pairing="derange")
        features, pairs = mix.pooled(layer, x, lengths=[5, 2], pool=pool, generator=generator)
        own, its = (pooled(layer(x[:2, row])[0], pool) for row in (0, 1))
        share = pairs.mean_coefficient[0]
        torch.testing.assert_close(features[0], share * own + (1 - share) * its, **EXACT)

    @few_examples
    @given(seed=seeds, both_ways=st.booleans())
    def test_for_a_constant_coefficient_and_equal_lengths_all_readings_agree(self, seed: int, both_ways: bool) -> None:
        bunch = Bunch((4, 4, 4), seed % 2**30, "GRU", both_ways)
        layer, x, mix = bunch.build(GRU), bunch.inputs(), PreOutputMixup(alpha=0.5)
        pairs = mix.draw(bunch.lengths, generator=bunch.source(), dtype=DOUBLE)
        first, _ = mix.pooled(layer, x, pool="mean", pairs=pairs)
        second, _ = mix.pooled(layer, x, pool="mean", order="mix_then_pool", pairs=pairs)
        torch.testing.assert_close(first, second, **EXACT)
        last, _ = mix.pooled(layer, x, pool="last", pairs=pairs)
        output = mix(layer, x, pairs=pairs)[0]
        torch.testing.assert_close(last, pool_steps(output, pairs.lengths, "last", bidirectional=both_ways), **EXACT)

    @pytest.mark.parametrize("pool", ["last", "max"])
    def test_pooling_after_mixing_is_undefined_for_all_but_the_mean(self, pool: str) -> None:
        with pytest.raises(ArgumentError, match=f"got pool='{pool}' of outputs that are mixed, wanted pool='mean'"):
            PreOutputMixup().pooled(GRU(WIDTH, HIDDEN), torch.zeros(4, 3, WIDTH), pool=pool, order="mix_then_pool")

    @pytest.mark.parametrize("mix", [InputMixup(rho=0.3), ThroughTimeMixup(rho=0.3)], ids=lambda mix: mix.site)
    def test_elsewhere_the_mixed_run_is_read_as_usual(self, mix: Mixup, generator: torch.Generator) -> None:
        layer, x = GRU(WIDTH, HIDDEN), torch.randn(5, 4, WIDTH, generator=generator)
        features, pairs = mix.pooled(layer, x, lengths=[5, 2, 4, 1], generator=generator)
        output, _ = mix(layer, x, lengths=[5, 2, 4, 1], pairs=pairs)
        rows = [output[length - 1, place] for place, length in enumerate(pairs.lengths.tolist())]
        torch.testing.assert_close(features, torch.stack(rows))
        head = torch.randn(HIDDEN, CLASSES, generator=generator)
        assert pairs.classification(features @ head, torch.tensor([0, 1, 2, 3])).isfinite()

    @each
    def test_in_eval_mode_a_sequence_is_pooled_alone(self, mix: Mixup, generator: torch.Generator) -> None:
        layer, x = GRU(WIDTH, HIDDEN, bidirectional=True).eval(), torch.randn(5, 2, WIDTH, generator=generator)
        features, pairs = mix.pooled(layer, x, lengths=[5, 3])
        _, last = layer(x[:3, 1:])
        torch.testing.assert_close(features[1], last[:, 0].flatten())
        assert pairs.mean_coefficient.tolist() == [1, 1]


@pytest.mark.skipif(not load_triton().available, reason=load_triton().reason)
def test_half_precision_of_a_layer_does_not_round_the_coefficients_on_their_way_to_the_kernels() -> None:
    """2 lambda - 1 of lambda = 0.501, which half precision would take for 0.5."""
    where = "cpu" if load_triton().interpreted else "cuda"
    layer = RNN(1, 1, nonlinearity="identity", bias=False, dtype=torch.bfloat16, engine="triton", device=where)
    fill(layer, weight_ih_l0=torch.ones(1, 1), weight_hh_l0=torch.zeros(1, 1))
    mix = ThroughTimeMixup(process=Constant(0.501), pairing="derange")
    x = torch.tensor([[[1.0], [-1.0]]], dtype=torch.bfloat16, device=where)
    output, _ = mix(layer, x.expand(2, -1, -1), x)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output[:, 0].flatten().cpu().float(), torch.full((2,), 0.002), rtol=0.01, atol=0)


@pytest.mark.gpu
@each
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("both_ways", [False, True])
def test_on_a_device_it_computes_the_same(mix: Mixup, policy: str, both_ways: bool) -> None:
    """In single precision, with pairs drawn on the CPU from the same seed."""
    bunch, mix = Bunch((5, 2, 4, 1), 7, "LSTM", both_ways), replace(mix, rho=0.5, lengths=policy)
    lengths, tags = torch.tensor(bunch.lengths), bunch.labels()
    found = []
    for device in ("cpu", "cuda"):
        layer, head = bunch.build(LSTM).float().to(device), bunch.head().float().to(device)
        x = bunch.inputs(junk=torch.nan).float().to(device)
        output, pairs = mix(layer, x, lengths=lengths, generator=bunch.source())
        loss = pairs.cross_entropy(output @ head, tags.to(device))
        grads = torch.autograd.grad(loss, list(layer.parameters()))
        found.append([part.detach().cpu() for part in (output, loss, *grads)])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@each
def test_on_a_device_nothing_waits(mix: Mixup) -> None:
    """With sequences of one length; torch itself waits where it packs others."""
    layer, head = LSTM(WIDTH, HIDDEN, device="cuda"), nn.Linear(HIDDEN, CLASSES, device="cuda")
    x, tags = torch.randn(6, 8, WIDTH, device="cuda"), torch.zeros(6, 8, dtype=torch.long, device="cuda")
    for region in (nullcontext, forbidden_to_wait):
        with region():
            output, pairs = mix(layer, x)
            pairs.cross_entropy(head(output), tags).backward()


def pooled(rows: Tensor, pool: str) -> Tensor:
    return {"last": rows[-1], "mean": rows.mean(0), "max": rows.amax(0)}[pool]


def test_another_process_takes_the_place_of_alpha_and_rho(generator: torch.Generator) -> None:
    assert InputMixup(alpha=0.5, rho=0.1).coefficients == MarkovBeta(0.5, 0.1)
    mix = InputMixup(process=Constant(0.25))
    assert (mix.draw([3, 2], generator=generator).coefficients[0] == 0.25).all()


@pytest.mark.usefixtures("as_users_have_it")
def test_what_is_no_process_is_refused() -> None:
    wrong: Any = 0.5
    with pytest.raises(DtypeError, match=r"InputMixup\.process: got float"):
        InputMixup(process=wrong)
