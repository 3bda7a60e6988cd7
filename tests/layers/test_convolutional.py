"""The convolutional network is the convolution that its paper writes, and its filters stay orthogonal."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, vmap

import statewise
from contracts.members import Member, Weights
from contracts.passes import EVERY_FORM, Case, Pass, assert_same, cases, few_examples, insist, run, seeds, some_examples
from statewise import ConvReadout, ConvRNN, Noise, RNNCell
from statewise.errors import ArgumentError, ShapeError, UnknownArgumentError
from statewise.weights.filters import filters_of, orthogonal_filters, set_filters_

DOUBLE = torch.float64


def convolve(banks: Tensor, x: Tensor) -> Tensor:
    """``I∘x`` of one vector, or the sum over several side by side: channels averaged, zeros put around."""
    taps = banks.shape[1]
    found = []
    for bank, part in zip(banks, x.chunk(len(banks)), strict=True):
        channels = F.conv1d(part[None, None], bank.T[:, None])[0]
        found.append(F.pad(channels.mean(0), ((taps - 1) // 2, taps // 2)))
    return torch.stack(found).sum(0)


def by_convolution(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
    return torch.tanh(convolve(p.W, x) + convolve(p.U, h)), None


class Banks:
    """A layer that shows its filter banks where others show their matrices."""

    def __init__(self, layer: ConvRNN) -> None:
        self.layer = layer

    def __getattr__(self, name: str) -> Any:
        return self.layer.filters(name) if name.startswith("weight_") else getattr(self.layer, name)


def build(case: Case, filter_size: int, **options: Any) -> ConvRNN:
    form: dict[str, Any] = {"batch_first": case.batch_first, "bidirectional": case.bidirectional, "dtype": case.dtype}
    source = case.generator("weights")
    return ConvRNN(case.hidden, filter_size, case.layers, **form, **options, generator=source)


class Convolutional(Member):
    """As the contract of layers sees it, but that its truth is given filter banks in the place of matrices."""

    def _start(self, layer: Any, slot: int, p: Weights) -> list[Tensor | None]:
        return [p.U.new_zeros(layer.size), None]


def by_hand(layer: ConvRNN, case: Case) -> Pass:
    shown: Any = Banks(layer)
    return Convolutional(ConvRNN, RNNCell, by_convolution, takes_bias=False).by_hand(shown, case)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Case, int]:
    case = draw(cases())
    return replace(case, inputs=case.hidden), draw(st.integers(1, min(case.hidden, 5)))


class TestValues:
    @EVERY_FORM
    @some_examples
    @given(drawn=convolutions())
    def test_outputs_states_and_all_gradients_are_those_of_conv1d(self, form: str, drawn: tuple[Case, int]) -> None:
        case, taps = drawn
        layer = build(case, taps)
        assert_same(run(layer, case, form=form), by_hand(layer, case))

    @pytest.mark.parametrize("form", ["loop", "native"])
    def test_gradcheck(self, form: str) -> None:
        case = Case(steps=2, batch=2, inputs=5, hidden=5, layers=2, bidirectional=True)
        layer = build(case, 3)
        x, states = case.leaves(has_memory=False)
        with insist(layer, form):
            assert torch.autograd.gradcheck(
                lambda x, h, *_: layer(x, h), (x, *states, *layer.parameters()), fast_mode=True
            )

    @pytest.mark.parametrize(("taps", "before", "after"), [(1, 0, 0), (2, 0, 1), (3, 1, 1), (4, 1, 2), (7, 3, 3)])
    def test_the_entries_that_no_whole_filter_reaches_are_zero(self, taps: int, before: int, after: int) -> None:
        output, _ = ConvRNN(8, taps)(torch.randn(4, 2, 8))
        zero = (output == 0).all(0).all(0).tolist()
        assert zero == [True] * before + [False] * (8 - before - after) + [True] * after

    @few_examples
    @given(seed=seeds, taps=st.integers(1, 6))
    def test_a_step_brings_two_states_nearer_by_the_root_of_the_filter_size(self, seed: int, taps: int) -> None:
        source = torch.Generator().manual_seed(seed)
        layer = ConvRNN(9, taps, dtype=DOUBLE, generator=source)
        x, one, other = (torch.randn(1, 20, 9, generator=source, dtype=DOUBLE) for _ in range(3))
        with torch.no_grad():
            apart = (layer(x, one)[0] - layer(x, other)[0]).norm(dim=2)
        assert (apart <= (one - other).norm(dim=2) / math.sqrt(taps) * (1 + 1e-12)).all()

    def test_transforms_act_on_its_state(self) -> None:
        layer = ConvRNN(6, 3, transforms=Noise("gaussian", 0.5))
        x = torch.randn(3, 2, 6)
        assert not torch.equal(layer(x)[0], layer(x)[0])
        assert torch.equal(layer.eval()(x)[0], layer(x)[0])

    def test_many_networks_run_as_one(self) -> None:
        nets = [ConvRNN(6, 3, dtype=DOUBLE, engine="reference") for _ in range(3)]
        held = {name: torch.stack([net.state_dict()[name] for net in nets]) for name in nets[0].state_dict()}
        x = torch.randn(4, 2, 6, dtype=DOUBLE)
        together = vmap(lambda each: functional_call(nets[0], each, (x,))[0])(held)
        torch.testing.assert_close(together, torch.stack([net(x)[0] for net in nets]))


class TestFilters:
    @pytest.mark.parametrize("dtype", [DOUBLE, torch.float32], ids=str)
    @pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
    def test_every_optimiser_keeps_them_orthogonal(self, kind: str, dtype: torch.dtype) -> None:
        layer, readout = ConvRNN(7, 4, 2, bidirectional=True, dtype=dtype), ConvReadout(7, 4, 3, dtype=dtype)
        net = nn.ModuleList([layer, readout])
        before = copy.deepcopy(net.state_dict())
        optimizer = getattr(torch.optim, kind)(net.parameters(), lr=0.3)
        for _ in range(5):
            optimizer.zero_grad()
            forwards, backwards = layer(torch.randn(3, 4, 7, dtype=dtype))[0].chunk(2, dim=2)
            (readout(forwards + backwards) - 1).square().sum().backward()
            optimizer.step()
        after = net.state_dict()
        assert {name for name in before if not torch.equal(before[name], after[name])} == {
            name for name, _ in net.named_parameters()
        }
        close = 1e-14 if dtype == DOUBLE else 1e-6
        ends = [f"_l{place}{side}" for place in range(2) for side in ("", "_reverse")]
        banks = [layer.filters(f"weight_{kind}{end}") for kind in ("ih", "hh") for end in ends]
        assert [len(bank) for bank in banks] == [1, 1, 2, 2, 1, 1, 1, 1]
        for bank in torch.cat([*banks, readout.filters()]).double():
            for product in (bank.T @ bank, bank @ bank.T):
                torch.testing.assert_close(4 * product, torch.eye(4, dtype=DOUBLE), rtol=0, atol=close)
            assert bank.mean(1).norm().item() == pytest.approx(1 / 4, abs=close)

    def test_a_state_dict_brings_the_filters_along_with_their_signs(self) -> None:
        """Signs are drawn too, so that two networks with one theta may differ."""
        layer, other = ConvRNN(7, 3, 2), ConvRNN(7, 3, 2)
        assert not torch.equal(other.weight_hh_l0, layer.weight_hh_l0)
        other.load_state_dict(layer.state_dict())
        x = torch.randn(4, 2, 7)
        assert torch.equal(other(x)[0], layer(x)[0])
        assert torch.equal(copy.deepcopy(layer)(x)[0], layer(x)[0])

    @few_examples
    @given(seed=seeds, taps=st.integers(1, 6))
    def test_given_filters_come_back(self, seed: int, taps: int) -> None:
        source = torch.Generator().manual_seed(seed)
        layer = ConvRNN(7, taps, dtype=DOUBLE)
        random = torch.linalg.qr(torch.randn(1, taps, taps, generator=source, dtype=DOUBLE))[0] / math.sqrt(taps)
        set_filters_(layer, "weight_ih_l0", random)
        torch.testing.assert_close(layer.filters("weight_ih_l0"), random, rtol=0, atol=1e-13)
        theta = layer.get_parameter("parametrizations.weight_ih_l0.original")
        assert (theta.abs() <= 1 + 1e-6).all()

    @pytest.mark.parametrize("outputs", [None, 1, 2, 3])
    @pytest.mark.parametrize("taps", [1, 2, 3, 5])
    def test_a_matrix_of_filters_can_be_assigned(self, taps: int, outputs: int | None) -> None:
        """Many banks have the same mean filter; one of them is found."""
        lower, upper = (linear(taps, outputs) for _ in range(2))
        for weight in (upper.weight.detach(), lower.weight.detach()):
            if taps > 1:
                lower.weight = weight.clone()
                torch.testing.assert_close(lower.weight, weight, rtol=0, atol=1e-13)

    def test_any_other_matrix_is_refused(self) -> None:
        layer = ConvRNN(6, 3)
        good = layer.weight_hh_l0.detach().clone()
        for bad in (torch.eye(6), 1.01 * good, good + 0.01 * torch.eye(6), good * torch.nan):
            with pytest.raises(ArgumentError, match=r"OrthogonalFilters weight.*3 taps of length 1/3"):
                layer.weight_hh_l0 = bad
        opposite = orthogonal_filters(nn.Linear(6, 6, bias=False), "weight", size=6, filter_size=3)
        with pytest.raises(ArgumentError, match=r"taps opposite to the signs.*set_filters_"):
            opposite.weight = -opposite.weight.detach()

    def test_filters_that_are_not_orthogonal_are_refused(self, as_users_have_it: None) -> None:
        layer = ConvRNN(6, 3)
        with pytest.raises(ArgumentError, match="orthogonal matrix"):
            set_filters_(layer, "weight_hh_l0", torch.eye(3).unsqueeze(0))
        with pytest.raises(ShapeError, match=r"\(1, 3, 3\): banks, taps, channels"):
            set_filters_(layer, "weight_hh_l0", torch.eye(3))
        with pytest.raises(ArgumentError, match="a weight without filters"):
            filters_of(statewise.RNN(6, 6), "weight_hh_l0")

    def test_a_seed_repeats_them_and_resetting_draws_others(self) -> None:
        first, again = (ConvRNN(6, 3, 2, generator=torch.Generator().manual_seed(5)) for _ in range(2))
        assert torch.equal(first.weight_ih_l1, again.weight_ih_l1)  # type: ignore[arg-type]
        again.reset_parameters(torch.Generator().manual_seed(6))
        assert not torch.equal(first.weight_hh_l0, again.weight_hh_l0)
        again.reset_parameters(torch.Generator().manual_seed(5))
        assert torch.equal(first.weight_hh_l0, again.weight_hh_l0)

    def test_mean_filters_start_uniform_on_their_sphere(self) -> None:
        """Each coordinate of a point on the unit sphere has the mean 0 and the variance 1/k."""
        layer, source = ConvRNN(4, 4, dtype=DOUBLE), torch.Generator().manual_seed(0)
        points = []
        for _ in range(150):
            layer.reset_parameters(source)
            points += [4 * layer.filters(name)[0].mean(1).detach() for name in ("weight_ih_l0", "weight_hh_l0")]
        drawn = torch.stack(points)
        assert drawn.mean(0).abs().max() < 4 * math.sqrt(1 / 4 / 300)
        assert (drawn.square().mean(0) - 1 / 4).abs().max() < 0.07


def linear(taps: int, outputs: int | None) -> Any:
    module = nn.Linear(7, outputs or 7, bias=False, dtype=DOUBLE)
    orthogonal_filters(module, "weight", size=7, filter_size=taps, outputs=outputs)
    turned = torch.randn(module.get_parameter("parametrizations.weight.original").shape, dtype=DOUBLE)
    with torch.no_grad():
        module.get_parameter("parametrizations.weight.original").copy_(0.5 * turned)
    return module


class TestReadout:
    @few_examples
    @given(seed=seeds, size=st.integers(1, 12), data=st.data())
    def test_it_pools_a_convolution_in_blocks_as_equal_as_can_be(self, seed: int, size: int, data: Any) -> None:
        taps = data.draw(st.integers(1, size))
        classes = data.draw(st.integers(1, size - taps + 1))
        source = torch.Generator().manual_seed(seed)
        readout = ConvReadout(size, taps, classes, dtype=DOUBLE, generator=source)
        states = torch.randn(3, size, generator=source, dtype=DOUBLE, requires_grad=True)
        places = F.conv1d(states[:, None], readout.filters()[0].T[:, None]).mean(1)
        rest, block = places.shape[1] % classes, places.shape[1] // classes
        lengths = [block + 1] * rest + [block] * (classes - rest)
        expected = torch.stack([part.mean(1) for part in places.split(lengths, 1)], 1)
        logits = readout(states)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-13)
        assert (logits.norm(dim=1) <= states.norm(dim=1) / math.sqrt(taps) * (1 + 1e-12)).all()
        weights = torch.randn(logits.shape, generator=source, dtype=DOUBLE)
        leaves = [states, *readout.parameters()]
        ours, theirs = (torch.autograd.grad((y * weights).sum(), leaves) for y in (logits, expected))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)

    def test_states_of_another_size_are_refused(self) -> None:
        with pytest.raises(ShapeError, match=r"statewise.ConvReadout states: got \(2, 5\), wanted \(..., 6\)"):
            ConvReadout(6, 3, 2)(torch.zeros(2, 5))


class TestSizes:
    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: ConvRNN(2, 3), "ConvRNN.filter_size: got 3, wanted a whole number from 1 to 2"),
            (lambda: ConvRNN(4, 0), "ConvRNN.filter_size: got 0"),
            (lambda: ConvRNN(4, True), "ConvRNN.filter_size: got True"),
            (lambda: ConvRNN(0, 1), "ConvRNN.size: got 0"),
            (lambda: ConvRNN(4, 2, 0), "ConvRNN.num_layers: got 0"),
            (lambda: ConvReadout(6, 3, 5), "ConvReadout.classes: got 5, wanted a whole number from 1 to 4"),
            (lambda: ConvReadout(6, 7, 1), "ConvReadout.filter_size: got 7"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, make: Any, words: str, as_users_have_it: None) -> None:
        with pytest.raises(ArgumentError, match=words):
            make()

    @pytest.mark.parametrize("name", ["bias", "nonlinearity", "hidden_size"])
    def test_it_takes_no_bias_and_no_other_activation(self, name: str) -> None:
        options: dict[str, Any] = {name: 1}
        with pytest.raises(UnknownArgumentError, match=name):
            ConvRNN(4, 2, **options)

    def test_it_can_be_made_on_the_meta_device(self) -> None:
        net = nn.ModuleList([ConvRNN(6, 3, device="meta"), ConvReadout(6, 3, 2, device="meta")])
        assert all(tensor.is_meta for tensor in (*net.parameters(), *net.buffers()))
        again = net.to_empty(device="cpu")
        again.load_state_dict(nn.ModuleList([ConvRNN(6, 3), ConvReadout(6, 3, 2)]).state_dict())
        assert again[1](again[0](torch.zeros(2, 1, 6))[0]).shape == (2, 1, 2)

    def test_it_says_what_it_is(self) -> None:
        assert "(6, 6, bias=False, filter_size=3" in repr(ConvRNN(6, 3)).replace("\n  ", "")
        assert "6, 3, 2" in repr(ConvReadout(6, 3, 2))
