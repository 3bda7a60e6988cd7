"""The class of convolutional networks: its constants hold for every pair of members, and are attained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import seeds
from statewise import ConvReadout, ConvRNN, Noise
from statewise.bounds.conv import ConvClass
from statewise.bounds.profile import Profile
from statewise.errors import ArgumentError, AssumptionError
from statewise.weights import cayley_orthogonal, weight_drop

DOUBLE = torch.float64
PAIRS = 40  # in an example; 25 examples make a thousand


@dataclass(frozen=True)
class Nets:
    """Many networks, each with its banks of filters as columns, (pairs, taps, channels)."""

    U: Tensor
    V: Tensor
    W: Tensor

    def run(self, x: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        """The states of all steps, (steps, pairs, size), and the last logits, by the paper's formulas."""
        h, states, taps = torch.zeros_like(x[0]), [], self.U.shape[1]
        for row in x:
            inner = convolve(self.U, h) + convolve(self.W, row)
            h = torch.nn.functional.pad(torch.tanh(inner), ((taps - 1) // 2, taps // 2))
            states.append(h)
        pooled = [block.mean(1) for block in convolve(self.V, h).tensor_split(classes, 1)]
        return torch.stack(states), torch.stack(pooled, 1)

    def apart(self, other: Nets, *, tight: bool) -> dict[str, Tensor]:
        """How far each bank is from the other's, in the norm of the constants."""
        gaps = {name: getattr(self, name) - getattr(other, name) for name in "UVW"}
        if tight:
            return {name: gap.mean(2).abs().sum(1) for name, gap in gaps.items()}
        return {name: gap.square().sum((1, 2)).sqrt() for name, gap in gaps.items()}


def convolve(banks: Tensor, x: Tensor) -> Tensor:
    """All channels of a valid convolution, then their average."""
    return torch.einsum("pnt,ptc->pnc", x.unfold(1, banks.shape[1], 1), banks).mean(2)


def draw_pair(source: torch.Generator, taps: int) -> tuple[Nets, Nets]:
    """Members that are far apart, near, or differ in one bank, in equal parts."""
    entries = taps * (taps - 1) // 2
    ones, others = {}, {}
    for place, name in enumerate("UVW"):
        signs = 1.0 - 2 * torch.randint(2, (PAIRS, taps), generator=source).to(DOUBLE)
        theta, fresh = torch.randn(2, PAIRS, entries, generator=source, dtype=DOUBLE)
        # The first third is drawn anew, the second moved a little, and of the third one bank is drawn anew.
        kind = torch.arange(PAIRS) % 9
        moved = torch.where((kind < 3)[:, None], fresh, theta + 0.01 * fresh)
        moved = torch.where(((kind >= 6) & (kind - 6 != place))[:, None], theta, moved)
        flipped = torch.where((kind == 6 + place)[:, None], -signs, signs)
        ones[name] = cayley_orthogonal(theta, signs) / math.sqrt(taps)
        others[name] = cayley_orthogonal(moved, flipped) / math.sqrt(taps)
    return Nets(**ones), Nets(**others)


def draw_inputs(source: torch.Generator, net: ConvClass) -> Tensor:
    """Of length B_x: random, constant, and as small as 1/1000 of it, in equal parts."""
    x = torch.randn(net.steps, PAIRS, net.size, generator=source, dtype=DOUBLE)
    kind = torch.arange(PAIRS) % 4
    x = torch.where((kind == 1)[:, None], x[:1], x)
    x = torch.where((kind == 2)[:, None], torch.ones((), dtype=DOUBLE), x)
    x = x / x.norm(dim=2, keepdim=True) * net.input_bound
    return torch.where((kind == 3)[:, None], 0.001 * x, x)


@st.composite
def classes_of_networks(draw: st.DrawFn) -> ConvClass:
    size = draw(st.integers(2, 10))
    taps = draw(st.integers(1, size - 1))
    return ConvClass(
        size=size,
        filter_size=taps,
        classes=draw(st.integers(2, size - taps + 1)),
        steps=draw(st.integers(1, 30)),
        input_bound=draw(st.sampled_from([0.01, 0.3, 1.0, 5.0])),
    )


def worst_ratio(net: ConvClass, profile: Profile, seed: int, *, tight: bool) -> float:
    """The largest ‖y - y'‖ of any pair, as a share of what the constants allow."""
    source = torch.Generator().manual_seed(seed)
    one, other = draw_pair(source, net.filter_size)
    x = draw_inputs(source, net)
    moved = (one.run(x, net.classes)[1] - other.run(x, net.classes)[1]).norm(dim=1)
    gaps = one.apart(other, tight=tight)
    allowed = sum((math.exp(block.log_lipschitz) * gaps[block.name] for block in profile.blocks), torch.zeros(()))
    return float((moved / allowed).nan_to_num().max())


class TestTheConstantsHold:
    @given(net=classes_of_networks(), seed=seeds)
    def test_of_the_paper(self, net: ConvClass, seed: int) -> None:
        assert worst_ratio(net, net.paper(), seed, tight=False) <= 1 + 1e-9

    @given(net=classes_of_networks(), seed=seeds)
    def test_of_the_mean_filters(self, net: ConvClass, seed: int) -> None:
        assert worst_ratio(net, net.tight(), seed, tight=True) <= 1 + 1e-9

    @given(net=classes_of_networks(), seed=seeds)
    def test_no_state_and_no_output_is_longer_than_they_say(self, net: ConvClass, seed: int) -> None:
        source = torch.Generator().manual_seed(seed)
        nets, x = draw_pair(source, net.filter_size)[0], draw_inputs(source, net)
        states, logits = nets.run(x, net.classes)
        for profile in (net.paper(), net.tight()):
            assert states[-1].norm(dim=1).max() <= math.exp(profile.log_hidden) * (1 + 1e-9)
            assert logits.norm(dim=1).max() <= math.exp(profile.log_output) * (1 + 1e-9)
            # η_s does not fall with s, so that η_t bounds all earlier ones.
            assert states.norm(dim=2).max() <= math.exp(profile.log_hidden) * (1 + 1e-9)

    def test_the_networks_of_these_tests_are_the_layers(self) -> None:
        layer, readout = ConvRNN(8, 3, dtype=DOUBLE), ConvReadout(8, 3, 2, dtype=DOUBLE)
        U, W = layer.filters("weight_hh_l0"), layer.filters("weight_ih_l0")
        x = torch.randn(5, 1, 8, dtype=DOUBLE)
        states, logits = Nets(U=U, V=readout.filters(), W=W).run(x, 2)
        torch.testing.assert_close(layer(x)[0], states)
        torch.testing.assert_close(readout(layer(x)[0][-1]), logits)


@pytest.mark.parametrize(("moved", "steps"), [("U", 2), ("V", 7), ("W", 7)])
def test_the_tight_constants_are_attained(moved: str, steps: int) -> None:
    """By filters of one tap, +1 and -1, on inputs so small that tanh is the identity."""
    net = ConvClass(size=4, filter_size=1, classes=4, steps=steps, input_bound=1e-4)
    one = {name: torch.ones(1, 1, 1, dtype=DOUBLE) for name in "UVW"}
    other = one | {moved: -one[moved]}
    x = torch.full((steps, 1, 4), 0.5e-4, dtype=DOUBLE)
    gap = (Nets(**one).run(x, 4)[1] - Nets(**other).run(x, 4)[1]).norm()
    constants = {block.name: math.exp(block.log_lipschitz) for block in net.tight().blocks}
    assert float(gap) == pytest.approx(2 * constants[moved], rel=1e-6)


class TestLongSequences:
    @pytest.mark.parametrize("taps", [1, 3, 16])
    def test_five_thousand_steps_are_finite(self, taps: int) -> None:
        net = ConvClass(size=32, filter_size=taps, classes=10, steps=5000, input_bound=3.0)
        for profile in (net.paper(), net.tight()):
            assert all(math.isfinite(block.log_lipschitz) for block in profile.blocks)
            assert 0 < profile.cover_nats(math.log(0.1)) < math.inf

    def test_only_the_papers_constants_grow_with_the_steps(self) -> None:
        short, long = (
            ConvClass(size=16, filter_size=3, classes=2, steps=steps, input_bound=1.0) for steps in (100, 5000)
        )
        assert long.tight().cover_nats(-2.0) == pytest.approx(short.tight().cover_nats(-2.0), rel=1e-12)
        assert long.paper().cover_nats(-2.0) > short.paper().cover_nats(-2.0) + 50

    def test_one_step_does_not_feel_the_recurrent_filters(self) -> None:
        tight = ConvClass(size=6, filter_size=3, classes=2, steps=1, input_bound=1.0).tight()
        assert tight.blocks[0].log_lipschitz == -math.inf
        assert tight.nats(-2.0)["U"] == 0

    @given(net=classes_of_networks())
    def test_more_of_anything_never_makes_the_class_smaller(self, net: ConvClass) -> None:
        sizes = {"size": net.size, "filter_size": net.filter_size, "classes": net.classes}
        more = (
            ConvClass(**sizes, steps=net.steps + 1, input_bound=net.input_bound),
            ConvClass(**sizes, steps=net.steps, input_bound=2 * net.input_bound),
            ConvClass(**{**sizes, "size": net.size + 3}, steps=net.steps, input_bound=net.input_bound),
        )
        for larger in more:
            for kind in ("paper", "tight"):
                few, many = (getattr(each, kind)() for each in (net, larger))
                assert many.cover_nats(-2.0) >= few.cover_nats(-2.0) * (1 - 1e-12)
                assert many.log_output >= few.log_output - 1e-12


class TestRefusals:
    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"filter_size": 9}, "ConvClass.filter_size: got 9, wanted a whole number from 1 to 8"),
            ({"classes": 7}, "ConvClass.classes: got 7, wanted a whole number from 1 to 6"),
            ({"classes": 1}, "ConvClass.classes: got 1, wanted at least 2"),
            ({"steps": 0}, "ConvClass.steps: got 0"),
            ({"input_bound": 0.0}, "ConvClass.input_bound: got 0.0"),
            ({"input_bound": math.inf}, "ConvClass.input_bound: got inf"),
            ({"input_bound": math.nan}, "ConvClass.input_bound: got nan"),
        ],
    )
    def test_a_class_that_cannot_be(self, wrong: dict[str, Any], words: str) -> None:
        sizes: dict[str, Any] = {"size": 8, "filter_size": 3, "classes": 2, "steps": 5, "input_bound": 1.0}
        with pytest.raises(ArgumentError, match=words):
            ConvClass(**{**sizes, **wrong})

    @pytest.mark.parametrize(
        ("layer", "readout", "words"),
        [
            (lambda: ConvRNN(8, 3, 2), lambda: ConvReadout(8, 3, 2), "got 2 layers"),
            (lambda: ConvRNN(8, 3, bidirectional=True), lambda: ConvReadout(8, 3, 2), "a bidirectional layer"),
            (lambda: ConvRNN(8, 3, transforms=Noise("gaussian", 0.1)), lambda: ConvReadout(8, 3, 2), "transforms"),
            (lambda: ConvRNN(8, 3), lambda: ConvReadout(8, 2, 2), r"\(8, 2\) on a layer of \(8, 3\)"),
            (lambda: weight_drop(ConvRNN(8, 3), "weight_hh_l0"), lambda: ConvReadout(8, 3, 2), "more than filters"),
        ],
    )
    def test_a_network_that_is_not_in_the_class(self, layer: Any, readout: Any, words: str) -> None:
        with pytest.raises(AssumptionError, match=words):
            ConvClass.of(layer(), readout(), steps=5, input_bound=1.0)

    def test_a_network_that_is(self) -> None:
        found = ConvClass.of(ConvRNN(8, 3), ConvReadout(8, 3, 2), steps=5, input_bound=1.0)
        assert found == ConvClass(size=8, filter_size=3, classes=2, steps=5, input_bound=1.0)
