"""The order in which transforms act is the documented one, and it matters."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from contracts.passes import Case, FreshInputs, assert_close, run
from contracts.transforms import build
from statewise import (
    Centroids,
    InputDropout,
    Noise,
    OutputDropout,
    RecurrentDropout,
    ThroughTimeMix,
    Zoneout,
)
from statewise.errors import ArgumentError

NOISE, CENTROIDS, ZONEOUT = Noise("gaussian", 0.5, placement="recurrent"), Centroids(3, temperature=0.5), Zoneout(0.4)


def attract(layer: Any, state: Tensor) -> Tensor:
    centroids: Tensor = layer.centroids_l0
    return torch.softmax(state @ centroids.T / 0.5, dim=1) @ centroids


def elman(layer: Any, x: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(x @ layer.weight_ih_l0.T + layer.bias_ih_l0 + h @ layer.weight_hh_l0.T + layer.bias_hh_l0)


class TestOrder(FreshInputs):
    @pytest.mark.parametrize("form", ["loop", "native"])
    def test_transforms_of_the_state_act_in_the_order_given(self, form: str, seed: int) -> None:
        """Noise then centroids, and centroids then noise, each as a loop written by hand; and they differ."""
        case = Case(seed=seed)
        found = []
        for chain in ((NOISE, CENTROIDS), (CENTROIDS, NOISE)):
            layer = build("tanh", case, chain)
            x, (h,) = case.leaves(has_memory=False)
            draws, h, expected = layer.draw(x, generator=case.generator("draws")), h[0], []
            factors = draws.tensors[chain.index(NOISE), 0, 0][0]
            for step, factor in zip(x, factors, strict=True):
                h = elman(layer, step, h)
                h = attract(layer, h * factor) if chain[0] is NOISE else attract(layer, h) * factor
                expected.append(h)
            found.append(run(layer, case, form=form, draws=draws).values["output"])
            assert_close(found[-1], torch.stack(expected), "output")
        assert not torch.allclose(found[0], found[1])

    @pytest.mark.parametrize("form", ["loop", "native"])
    def test_zoneout_keeps_the_state_that_was_fed_back(self, form: str, seed: int) -> None:
        """Its old value is the one after all transforms of the step before, wherever it stands among them."""
        case = Case(seed=seed)
        for chain in ((ZONEOUT, NOISE), (NOISE, ZONEOUT)):
            layer = build("tanh", case, chain)
            x, (h,) = case.leaves(has_memory=False)
            draws, h, expected = layer.draw(x, generator=case.generator("draws")), h[0], []
            factors, keep = draws.tensors[chain.index(NOISE), 0, 0][0], draws.tensors[chain.index(ZONEOUT), 0, 0][0]
            for step, factor, kept in zip(x, factors, keep, strict=True):
                u = elman(layer, step, h)
                h = (kept * h + (1 - kept) * u) * factor if chain[0] is ZONEOUT else kept * h + (1 - kept) * u * factor
                expected.append(h)
            assert_close(run(layer, case, form=form, draws=draws).values["output"], torch.stack(expected), "output")

    @pytest.mark.parametrize("form", ["loop", "native"])
    def test_places_come_in_the_order_of_time_whatever_the_order_given(self, form: str, seed: int) -> None:
        """Inputs, gate masks, cell, state, outputs."""
        case = Case(seed=seed)
        chain = (OutputDropout(0.3), NOISE, RecurrentDropout(0.3), InputDropout(0.3), CENTROIDS)
        layer = build("tanh", case, chain)
        x, (h,) = case.leaves(has_memory=False)
        draws, h, expected = layer.draw(x, generator=case.generator("draws")), h[0], []
        outward, factor, inward = (draws.tensors[place, 0, 0][0] for place in (0, 1, 3))
        mask = draws.tensors[2, 0, 0][1]
        for t, step in enumerate(x):
            h = attract(layer, elman(layer, step * inward[t], h * mask[t]) * factor[t])
            expected.append(h * outward[t])
        done = run(layer, case, form=form, draws=draws)
        assert_close(done.values["output"], torch.stack(expected), "output")
        assert_close(done.values["final state"][0], h, "final state")

    def test_transforms_of_the_output_act_in_the_order_given(self, seed: int) -> None:
        case = Case(seed=seed)
        shift, factor = (
            Noise("gaussian", 0.5, mode="additive", placement="outputs"),
            Noise("beta", 0.1, placement="last"),
        )
        clean = run(build("tanh", case), case).values["output"]
        for chain in ((shift, factor), (factor, shift)):
            layer = build("tanh", case, chain)
            draws = layer.draw(case.leaves(has_memory=False)[0], generator=case.generator("draws"))
            added, by = draws.tensors[chain.index(shift), 0, 0][0], draws.tensors[chain.index(factor), 0, 0][0]
            expected = (clean + added) * by if chain[0] is shift else clean * by + added
            assert_close(run(layer, case, draws=draws).values["output"], expected, "output")

    def test_what_leaves_a_layer_enters_the_next(self, seed: int) -> None:
        """The upper of two layers runs on the disturbed output of the lower one."""
        case = Case(layers=2, seed=seed)
        layer: Any = build("tanh", case, (Noise("gaussian", 0.5, placement="outputs", layers=(0,)),))
        x, states = case.leaves(has_memory=False)
        draws, h = layer.draw(x, generator=case.generator("draws")), states[0].unbind()
        lower, upper, expected = h[0], h[1], []
        for step, factor in zip(x, draws.tensors[0, 0, 0][0], strict=True):
            lower = elman(layer, step, lower)
            inner = (lower * factor) @ layer.weight_ih_l1.T + layer.bias_ih_l1
            upper = torch.tanh(inner + upper @ layer.weight_hh_l1.T + layer.bias_hh_l1)
            expected.append(upper)
        assert_close(run(layer, case, draws=draws).values["output"], torch.stack(expected), "output")


def test_mixing_after_a_transform_of_the_state_is_refused() -> None:
    with pytest.raises(ArgumentError, match="ThroughTimeMix before all transforms of the state"):
        build("tanh", Case(), (ZONEOUT, ThroughTimeMix()))


@pytest.mark.parametrize("twice", [RecurrentDropout(0.2), ThroughTimeMix()], ids=lambda t: type(t).__name__)
def test_what_can_act_only_once_is_refused_twice(twice: RecurrentDropout | ThroughTimeMix) -> None:
    with pytest.raises(ArgumentError, match="twice"):
        build("tanh", Case(), (twice, twice))
