"""What ``statewise.cite`` says of every part of the library."""

from __future__ import annotations

import inspect
import re
from importlib import resources
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import statewise
from statewise import cells, layers, transforms, weights
from statewise.citations import _SOURCES, _keys, cite, entries_by_key
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig, LanguageModelConfig, Lexicon, TaggerConfig
from statewise.train import ClassifierSettings, TaggerSettings
from statewise.transforms import Sizes, StateChange, Stream

LAYERS = [
    thing
    for name in layers.__all__
    if inspect.isclass(thing := getattr(layers, name))
    and issubclass(thing, layers.RecurrentLayer | layers.SingleStep)
    and thing not in (layers.RecurrentLayer, layers.SingleStep)
]


def keys(bibtex: str) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),", bibtex, flags=re.MULTILINE)


def public(module: Any, base: type) -> list[Any]:
    """The concrete public classes of a room that descend from a base."""
    found = [getattr(module, name) for name in module.__all__]
    return [
        thing for thing in found if inspect.isclass(thing) and issubclass(thing, base) and not inspect.isabstract(thing)
    ]


def test_every_entry_is_well_formed_and_its_key_is_unique() -> None:
    source = resources.files("statewise").joinpath("papers.bib").read_text(encoding="utf-8")
    assert keys(source) == sorted(set(keys(source))) == list(entries_by_key())
    for key, entry in entries_by_key().items():
        depth = 0
        for character in entry:
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0, key
        assert depth == 0, key
        fields = dict(re.findall(r"^  (\w+) *= \{(.*?)\},$", entry, flags=re.MULTILINE | re.DOTALL))
        assert {"author", "title", "year"} <= fields.keys(), key
        assert all(re.search(r",\s", author) for author in re.split(r"\s+and\s+", fields["author"])), key
        year = re.search(r"\d{4}", key)
        assert year is not None
        assert year.group() == fields["year"], key
        assert key.startswith(fields["author"].split(",")[0].split()[-1].lower()), key


def test_every_key_in_use_has_an_entry_and_every_entry_is_in_use() -> None:
    used = {key for found in _SOURCES.values() for key in found}
    assert used == entries_by_key().keys()


@pytest.mark.parametrize("cell", public(cells, cells.Cell), ids=lambda kind: kind.__name__)
def test_every_public_cell_has_a_paper(cell: Any) -> None:
    assert keys(cite(cell))


@pytest.mark.parametrize("transform", public(transforms, transforms.Transform), ids=lambda kind: kind.__name__)
def test_every_public_transform_has_a_paper(transform: Any) -> None:
    assert keys(cite(transform))


@pytest.mark.parametrize(
    "constraint",
    public(weights, nn.Module) + public(weights, torch.optim.Optimizer),
    ids=lambda kind: kind.__name__,
)
def test_every_public_parametrization_and_optimiser_has_a_paper(constraint: Any) -> None:
    assert keys(cite(constraint))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda kind: kind.__name__)
def test_every_public_layer_has_a_paper(layer: Any) -> None:
    assert keys(cite(layer(3, 2)))


def test_the_families_are_found_at_all() -> None:
    """An empty list of members would make the tests above say nothing."""
    assert len(LAYERS) >= 16
    assert len(public(cells, cells.Cell)) >= 8
    assert len(public(transforms, transforms.Transform)) >= 9
    assert weights.StiefelSGD in public(weights, torch.optim.Optimizer)
    assert weights.WeightDrop in public(weights, nn.Module)


def test_a_layer_is_cited_with_its_cell_and_all_its_transforms() -> None:
    layer = statewise.LSTM(2, 3, transforms=[statewise.Noise("gaussian", 0.5), statewise.Centroids(4)])
    assert keys(cite(layer)) == ["dieng2018noisin", "hochreiter1997long", "wang2019state"]


def test_a_plain_layer_is_cited_with_its_cell_alone() -> None:
    assert keys(cite(statewise.LSTM(2, 3))) == ["hochreiter1997long"]


def test_parametrizations_of_any_module_are_found() -> None:
    model = nn.Sequential(weights.weight_drop(nn.LSTM(2, 3), "weight_hh_l0"), nn.Linear(3, 2))
    assert keys(cite(model)) == ["hochreiter1997long", "merity2018regularizing", "wan2013regularization"]
    assert "helfrich2018orthogonal" in keys(
        cite(weights.scaled_cayley(statewise.GRU(2, 4), "weight_hh_l0", gatewise=True))
    )


def test_dropout_between_layers_is_cited_where_it_acts() -> None:
    assert "zaremba2014recurrent" in keys(cite(statewise.GRU(2, 3, num_layers=2, dropout=0.5)))
    assert "zaremba2014recurrent" not in keys(cite(statewise.GRU(2, 3, num_layers=2)))


def test_settings_decide_where_they_come_from_another_paper() -> None:
    assert "arjovsky2016unitary" in keys(cite(statewise.RNN(2, 3, nonlinearity="modrelu")))
    assert keys(cite(statewise.RNN(2, 3))) == ["elman1990finding"]
    assert "gal2016theoretically" in keys(cite(statewise.RecurrentDropout(0.5, locked=True)))
    assert "gal2016theoretically" not in keys(cite(statewise.RecurrentDropout(0.5)))
    assert keys(cite(statewise.GRU(2, 3, reset_before=True))) == ["cho2014learning"]


def test_the_multiplicative_network_is_cited_with_the_paper_that_has_it() -> None:
    for part in (statewise.MultiplicativeRNN(2, 3), statewise.MultiplicativeRNNCell(2, 3), cells.MultiplicativeRNNCell):
        assert keys(cite(part)) == ["sutskever2011generating"]


def test_the_convolutional_network_is_cited_with_the_paper_of_its_bound() -> None:
    papers = ["chen2019generalization", "helfrich2018orthogonal", "ziv2019depth"]
    assert keys(cite(statewise.ConvReadout(6, 3, 2))) == papers
    assert keys(cite(statewise.ConvRNN(6, 3))) == sorted([*papers, "elman1990finding"])


def test_the_order_is_that_of_the_keys_whatever_the_order_of_the_model() -> None:
    parts = [statewise.Zoneout(0.1), statewise.Noise("gaussian", 0.5), statewise.Centroids(4)]
    forward, backward = statewise.GRU(2, 3, transforms=parts), statewise.GRU(2, 3, transforms=parts[::-1])
    assert cite(forward) == cite(backward)
    assert keys(cite(forward)) == sorted(set(keys(cite(forward))))


def test_functions_are_cited_too() -> None:
    assert keys(cite(statewise.embedding_dropout)) == ["gal2016theoretically", "merity2018regularizing"]


class OwnTransform(transforms.StateTransform):
    """A transform that a user might write."""

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        return ()

    def forward(self, state: Any, memory: Any, previous: Any, draws: Any, parameters: Any) -> StateChange:
        return StateChange(state, memory)


def test_a_transform_of_the_users_own_is_named_in_a_comment() -> None:
    found = cite(statewise.LSTM(2, 3, transforms=OwnTransform()))
    assert keys(found) == ["hochreiter1997long"]
    assert found.endswith("\n% OwnTransform: no paper is known here.")


class LouderNoise(statewise.Noise):
    """A variation of a transform that has a paper."""


def test_a_subclass_has_the_papers_of_its_base() -> None:
    assert keys(cite(LouderNoise("gaussian", 3.0))) == ["dieng2018noisin"]


@pytest.mark.parametrize("used", [3, "LSTM", None, nn.Linear(2, 2), statewise.LSTM, OwnTransform()], ids=str)
def test_what_has_no_paper_is_refused_by_name(used: Any) -> None:
    with pytest.raises(ArgumentError, match=r"cite: got \w+, for which no paper is known, wanted"):
        cite(used)
    assert _keys(used) is None


def test_what_acts_outside_the_layers_and_in_training_is_cited_too() -> None:
    classifier = ClassifierConfig(
        hidden=4, zoneout=0.1, weight_drop=0.1, dropout=0.1, locked=True, state_noise="gaussian", gamma=0.5
    ).build(tokens=2, classes=2)
    found = keys(cite(classifier, ClassifierSettings(mixup="input")))
    wanted = {"krueger2017zoneout", "wan2013regularization", "gal2016theoretically", "dieng2018noisin"}
    assert wanted | {"karamzade2020regularizing"} <= set(found)
    assert "karamzade2020regularizing" not in keys(cite(classifier, ClassifierSettings()))
    plain = keys(cite(ClassifierConfig(hidden=4).build(tokens=2, classes=2)))
    assert not wanted & set(plain)
    model = LanguageModelConfig(hidden=(4,), noise="gaussian", gamma=0.5, placement="last", embedding_dropout=0.1)
    assert {"dieng2018noisin", "gal2016theoretically"} <= set(keys(cite(model.build(5))))
    tagger = TaggerConfig(hidden=4, locked=False).build(Lexicon.of([["a"]], tags=("O", "B-X")))
    assert "zaremba2014recurrent" in keys(cite(tagger))
    assert "karamzade2020regularizing" in keys(cite(tagger, TaggerSettings(mixup="pre-output")))
