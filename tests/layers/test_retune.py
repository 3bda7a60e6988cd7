"""``layer.retune`` changes the settings of a layer's transforms and keeps what was learnt."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from statewise import (
    GRU,
    LSTM,
    Centroids,
    CompoundingNoiseWarning,
    Noise,
    OutputDropout,
    ThroughTimeMix,
    Transform,
    Zoneout,
)
from statewise.errors import ArgumentError
from statewise.transforms import StateTransform

INPUT, HIDDEN = 3, 5


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(4, 2, INPUT, generator=generator)


def test_a_setting_changes_and_the_next_pass_obeys_it(x: Tensor) -> None:
    layer = LSTM(INPUT, HIDDEN, transforms=Noise("gaussian", 0.5))
    layer.retune(Noise, gamma=0.0)
    assert layer.transforms == (Noise("gaussian", 0.0, placement="recurrent"),)
    torch.testing.assert_close(layer(x)[0], layer.eval()(x)[0], rtol=0, atol=0)


def test_a_retuned_layer_equals_one_built_so(x: Tensor) -> None:
    settings: dict[str, Any] = {"temperature": 0.3, "similarity": "euclidean", "transition": "st_argmax"}
    layer, built = (
        LSTM(INPUT, HIDDEN, transforms=Centroids(4)),
        LSTM(INPUT, HIDDEN, transforms=Centroids(4, **settings)),
    )
    built.load_state_dict(layer.state_dict())
    assert not torch.equal(layer(x)[0], built(x)[0])
    layer.retune(Centroids, **settings)
    torch.testing.assert_close(layer(x)[0], built(x)[0], rtol=0, atol=0)


def test_what_was_learnt_is_the_very_same_parameter() -> None:
    layer = LSTM(INPUT, HIDDEN, 2, transforms=Centroids(4))
    before = dict(layer.named_parameters())
    layer.retune(Centroids, temperature=0.1)
    assert all(parameter is before[name] for name, parameter in layer.named_parameters())
    assert before.keys() == dict(layer.named_parameters()).keys()


def test_the_other_transforms_and_their_order_stay() -> None:
    layer = LSTM(INPUT, HIDDEN, transforms=[Zoneout(0.1), Centroids(4), OutputDropout(0.2)])
    layer.retune(Centroids, temperature=0.1)
    assert layer.transforms == (Zoneout(0.1), Centroids(4, temperature=0.1), OutputDropout(0.2))


def test_all_of_a_kind_are_changed_and_a_base_class_means_all_its_kinds() -> None:
    layer = LSTM(
        INPUT, HIDDEN, 2, transforms=[Zoneout(0.1, layers=(0,)), Zoneout(0.2, layers=(1,)), OutputDropout(0.3)]
    )
    layer.retune(Zoneout, p=0.4)
    assert layer.transforms[:2] == (Zoneout(0.4, layers=(0,)), Zoneout(0.4, layers=(1,)))
    every_state_transform: Any = StateTransform
    layer.retune(every_state_transform, layers=(1,))
    assert layer.transforms == (Zoneout(0.4, layers=(1,)), Zoneout(0.4, layers=(1,)), OutputDropout(0.3))


def test_a_placement_that_was_settled_for_the_cell_stays_settled() -> None:
    layer = GRU(INPUT, HIDDEN, transforms=Noise("gaussian", 0.5))
    layer.retune(Noise, gamma=0.1)
    assert layer.transforms == (Noise("gaussian", 0.1, placement="outputs"),)


def test_noise_that_compounds_is_warned_of_again() -> None:
    layer = GRU(INPUT, HIDDEN, transforms=Noise("gaussian", 0.5))
    with pytest.warns(CompoundingNoiseWarning, match="passes its state on linearly"):
        layer.retune(Noise, placement="recurrent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.retune(Noise, gamma=0.0)


class TestRefusals:
    @pytest.mark.parametrize("kind", [Noise, ThroughTimeMix, StateTransform])
    def test_an_absent_transform_is_refused_with_those_present(self, kind: type[Transform]) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=OutputDropout(0.1))
        wanted = rf"statewise\.LSTM\.retune: got {kind.__name__}, wanted one of \['OutputDropout'\]"
        with pytest.raises(ArgumentError, match=wanted):
            layer.retune(kind, layers=None)

    def test_a_layer_without_transforms_has_nothing_to_retune(self) -> None:
        with pytest.raises(ArgumentError, match=r"got Noise, wanted one of \[\]"):
            LSTM(INPUT, HIDDEN).retune(Noise, gamma=0.1)

    @pytest.mark.parametrize("settings", [{"k": 5}, {"layers": (0,)}], ids=str)
    def test_a_setting_that_would_change_a_shape_is_refused(self, settings: dict[str, Any]) -> None:
        layer = LSTM(INPUT, HIDDEN, 2, transforms=Centroids(4))
        with pytest.raises(ArgumentError, match=r"keep the shape.*Build a new layer"):
            layer.retune(Centroids, **settings)
        assert layer.transforms == (Centroids(4),)

    def test_a_value_out_of_range_is_refused_and_the_layer_stays_as_it_was(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=Centroids(4))
        expected = layer(x)[0]
        with pytest.raises(ArgumentError, match="temperature: got -1"):
            layer.retune(Centroids, temperature=-1)
        assert layer.transforms == (Centroids(4),)
        torch.testing.assert_close(layer(x)[0], expected, rtol=0, atol=0)

    def test_an_unknown_setting_is_refused_with_the_known_ones(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=Zoneout(0.1))
        with pytest.raises(ArgumentError, match=r"got settings \['q'\], wanted some of layers, memory, p"):
            layer.retune(Zoneout, q=0.2)

    def test_a_layer_out_of_range_is_refused(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=Zoneout(0.1))
        with pytest.raises(ArgumentError, match=r"Zoneout\.layers: got \(3,\), wanted layers from 0 to 0"):
            layer.retune(Zoneout, layers=(3,))


class TestDropoutBetweenLayers:
    def test_it_can_be_set_like_torchs(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, 2, dropout=0.5)
        layer.dropout = 0.0
        torch.testing.assert_close(layer(x)[0], layer.eval()(x)[0], rtol=0, atol=0)
        layer.train().dropout = 0.9
        assert not torch.equal(layer(x)[0], layer.eval()(x)[0])

    def test_a_value_out_of_range_is_refused_at_the_next_pass(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, 2)
        layer.dropout = 1.5
        with pytest.raises(ArgumentError, match=r"got 1\.5"):
            layer(x)
