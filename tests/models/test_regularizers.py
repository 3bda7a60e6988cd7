"""Every regularizer of the line-up in every kind of model: where it acts, that evaluation is without it, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from statewise import Centroids, LockedDropout, LockedInputDropout, Noise, OutputDropout, RecurrentDropout, Zoneout
from statewise.errors import ArgumentError
from statewise.layers import RecurrentLayer
from statewise.models import ClassifierConfig, LanguageModelConfig, Lexicon, TaggerConfig
from statewise.models.encoded import Encoded
from statewise.models.recurrent_config import RecurrentConfig
from statewise.models.regularizers import zoneout_of
from statewise.models.steps import StepConfig
from statewise.weights import WeightDrop, weight_drop_masks

IDS, LENGTHS = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]]), torch.tensor([4, 1, 3])
LEXICON = Lexicon.of([["Anna", "saw", "Otto"]], tags=("O", "B-PER"))
SENTENCES = Encoded(LEXICON, [["Anna", "saw", "Otto"], ["Otto"], ["Anna", "saw"]])
TAGS = torch.tensor([[1, 1, 1], [0, -100, 0], [1, -100, -100]])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def classified(**settings: Any) -> nn.Module:
    return ClassifierConfig(hidden=5, embedding=4, **settings).build(tokens=2, classes=2, generator=seeded())


def stepped(**settings: Any) -> nn.Module:
    return StepConfig(hidden=5, embedding=4, **settings).build(tokens=2, classes=2, generator=seeded())


def tagged(**settings: Any) -> nn.Module:
    own: dict[str, Any] = {"hidden": 5, "words": 4, "characters": 0, "dropout": 0.0, "word_dropout": 0.0}
    return TaggerConfig(**own | settings).build(LEXICON, generator=seeded())


def modelled(**settings: Any) -> nn.Module:
    return LanguageModelConfig(hidden=(5,), **settings).build(7, generator=seeded())


def loss_of(model: Any) -> Tensor:
    """A loss of a model on a little batch, whatever it is."""
    if isinstance(getattr(model, "config", None), TaggerConfig):
        loss: Tensor = model.loss(model.batch(SENTENCES, np.arange(3)), TAGS)
    elif hasattr(model, "words"):
        loss = model.loss(IDS.T[:-1], IDS.T[1:]).total
    else:
        logits = model(IDS, LENGTHS)
        # The last token of each sequence, or the token of each step.
        targets = torch.tensor([0, 1, 1]) if logits.ndim == 2 else IDS
        loss = nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
    return loss


def layer_of(model: Any) -> RecurrentLayer:
    layer = model.layers[0] if hasattr(model, "layers") else model.layer
    assert isinstance(layer, RecurrentLayer)
    return layer


MAKERS: dict[str, Callable[..., nn.Module]] = {"classify": classified, "steps": stepped, "tag": tagged, "lm": modelled}
SETTINGS: dict[str, dict[str, Any]] = {
    "zoneout": {"zoneout": 0.3},
    "weight drop": {"weight_drop": 0.4},
    "recurrent dropout": {"recurrent_dropout": 0.4},
    "noise": {"noise": "gaussian", "gamma": 0.5},
    "centroids": {"centroids": 3, "temperature": 0.5},
    "dropout": {"dropout": 0.4, "locked": False},
    "locked dropout": {"dropout": 0.4, "locked": True, "recurrent_dropout": 0.2},
    "all": {
        "zoneout": 0.3,
        "weight_drop": 0.4,
        "recurrent_dropout": 0.4,
        "noise": "gaussian",
        "gamma": 0.5,
        "centroids": 3,
        "dropout": 0.4,
        "locked": True,
    },
}


def settings_for(kind: str, name: str, cell: str) -> dict[str, Any]:
    """The settings by the names that a kind of model has for them."""
    own = {"cell": cell, **SETTINGS[name]}
    if kind == "lm" and "noise" in own and cell == "gru":
        own["placement"] = "outputs"  # a language model is told; the others place it by themselves
    if kind in ("classify", "steps"):
        own |= {"state_noise": own.pop("noise")} if "noise" in own else {}
        own |= {"centroids": (own["centroids"],)} if "centroids" in own else {}
    if kind == "lm" and "dropout" in own:
        own |= {"output_dropout": own.pop("dropout")}
    return own


BOTH = pytest.mark.parametrize("name", SETTINGS)
KINDS = pytest.mark.parametrize("kind", MAKERS)
RANDOM = [name for name in SETTINGS if name != "centroids"]


@KINDS
@BOTH
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_evaluation_draws_nothing_and_gives_the_same_twice(kind: str, name: str, cell: str) -> None:
    model = MAKERS[kind](**settings_for(kind, name, cell)).eval()
    before = torch.get_rng_state()
    first, second = loss_of(model), loss_of(model)
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


@KINDS
@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_training_depends_on_what_is_drawn(kind: str, name: str, cell: str) -> None:
    """None of them is idle: not noise that a GRU does not feed back, where the head reads the state."""
    model = MAKERS[kind](**settings_for(kind, name, cell)).train()
    losses = []
    for seed in range(3):
        torch.manual_seed(seed)
        losses.append(float(loss_of(model).detach()))
    assert len(set(losses)) == 3
    torch.manual_seed(0)
    assert float(loss_of(model).detach()) == losses[0]


@KINDS
@BOTH
def test_gradients_reach_every_parameter(kind: str, name: str) -> None:
    model = MAKERS[kind](**settings_for(kind, name, "gru")).train()
    loss_of(model).backward()
    for called, parameter in model.named_parameters():
        if kind == "tag" and called == "words.weight":
            continue  # rows of words that do not occur
        assert parameter.grad is not None, called
        assert bool(parameter.grad.isfinite().all()), called
        assert bool(parameter.grad.abs().sum() > 0), called


@KINDS
@BOTH
def test_a_few_updates_make_the_loss_smaller(kind: str, name: str) -> None:
    model = MAKERS[kind](**settings_for(kind, name, "gru"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    before = float(loss_of(model.eval()).detach())
    model.train()
    for _ in range(25):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    assert float(loss_of(model.eval()).detach()) < 0.95 * before


@KINDS
def test_the_transforms_are_those_that_are_named_in_the_order_noise_zoneout_centroids(kind: str) -> None:
    layer = layer_of(MAKERS[kind](**settings_for(kind, "all", "lstm")))
    assert layer.transforms == (
        Noise("gaussian", 0.5, placement="recurrent"),
        Zoneout(0.3, memory=0.3),
        Centroids(3) if kind in ("tag", "lm") else Centroids(3, noise=0.0),
        RecurrentDropout(0.4, locked=True),
    )


@KINDS
def test_weight_drop_is_on_every_recurrent_matrix_and_on_no_other(kind: str) -> None:
    stack: dict[str, Any] = {"hidden": (5, 5)} if kind == "lm" else {"hidden": 5, "layers": 2}
    config = {"classify": ClassifierConfig, "steps": StepConfig, "tag": TaggerConfig, "lm": LanguageModelConfig}[kind]
    made: Any = config(weight_drop=0.4, **stack)
    sizes = {"lm": (7,), "tag": (LEXICON,)}.get(kind, ())
    model = made.build(*sizes, **({} if sizes else {"tokens": 2, "classes": 2}))
    layer = layer_of(model)
    sides = ("", "_reverse")[: layer.num_directions]
    wanted = {f"weight_hh_l{index}{side}" for index in range(2) for side in sides}
    drops = [path for path, part in model.named_modules() if isinstance(part, WeightDrop)]
    assert {path.split(".")[-2] for path in drops} == wanted
    assert len(drops) == len(wanted)
    loss_of(model.train())
    for mask in weight_drop_masks(model).values():
        assert {round(float(value), 4) for value in mask.unique()} == {0.0, round(1 / 0.6, 4)}


@pytest.mark.parametrize("cell", ["lstm", "peephole", "gru", "rnn", "mgu", "rac", "multiplicative"])
@KINDS
def test_zoneout_keeps_the_memory_of_a_cell_that_has_one(kind: str, cell: str) -> None:
    layer = layer_of(MAKERS[kind](cell=cell, zoneout=0.2))
    assert layer.transforms == (Zoneout(0.2, memory=0.2 if cell in ("lstm", "peephole") else 0.0),)
    assert layer.cell.has_memory == (cell in ("lstm", "peephole"))


def test_the_memory_of_a_language_model_may_be_kept_more_or_less_than_its_state() -> None:
    assert layer_of(modelled(zoneout=0.1, zoneout_memory=0.5)).transforms == (Zoneout(0.1, memory=0.5),)
    assert layer_of(modelled(zoneout_memory=0.5)).transforms == (Zoneout(0.0, memory=0.5),)
    assert layer_of(modelled(zoneout=0.1, zoneout_memory=0.0)).transforms == (Zoneout(0.1),)


@pytest.mark.parametrize("kind", ["classify", "steps"])
def test_noise_that_is_not_fed_back_acts_between_layers_and_on_what_is_read(kind: str) -> None:
    noise: dict[str, Any] = {"state_noise": "gaussian", "gamma": 0.5, "layers": 2}
    linear: Any = MAKERS[kind](cell="gru", **noise)
    assert linear.layer.transforms == (Noise("gaussian", 0.5, placement="outputs", layers=(0,)),)
    assert linear.outside == (Noise("gaussian", 0.5, placement="last"),)
    squashed: Any = MAKERS[kind](cell="lstm", **noise)
    assert squashed.layer.transforms == (Noise("gaussian", 0.5, placement="recurrent"),)
    assert squashed.outside == ()


def test_noise_on_what_is_read_is_unbiased(generator: torch.Generator) -> None:
    model: Any = classified(cell="gru", state_noise="gaussian", gamma=0.5)
    read = torch.rand(20_000, 5, generator=generator)
    disturbed = model.train()._disturbed(read, generator)
    torch.testing.assert_close(disturbed.mean(0), read.mean(0), rtol=0.03, atol=0.0)
    spread = (disturbed / read - 1).std()
    torch.testing.assert_close(spread, torch.tensor(0.5), rtol=0.02, atol=0.0)


class TestLocked:
    def test_one_mask_a_sequence_enters_the_layers_packed_or_not(self) -> None:
        model: Any = classified(dropout=0.5, locked=True).train()
        with torch.no_grad():
            model.embedding.weight.fill_(1.0)
        for lengths in (LENGTHS, None):
            laid = model._lay_out(IDS, lengths)
            entering = model._entering(laid, seeded(1))
            padded = entering if isinstance(entering, Tensor) else nn.utils.rnn.pad_packed_sequence(entering)[0]
            own = torch.full((3,), 5) if lengths is None else lengths + 1
            for row, length in enumerate(own.tolist()):
                steps = padded[:length, row]
                assert bool((steps == steps[0]).all())
            assert {*padded[0].unique().tolist()} == {0.0, 2.0}
            assert len(padded[0].unique(dim=0)) > 1

    def test_unlocked_dropout_has_a_mask_a_step(self) -> None:
        model: Any = classified(dropout=0.5).train()
        with torch.no_grad():
            model.embedding.weight.fill_(1.0)
        padded = model._entering(model._lay_out(IDS, None), seeded(1))
        assert not bool((padded[1:] == padded[0]).all())

    def test_one_mask_a_sequence_leaves_the_layers_of_steps(self) -> None:
        model: Any = stepped(dropout=0.5, locked=True).train()
        read = model._disturbed(torch.ones(6, 3, 5), seeded())
        assert bool((read == read[0]).all())
        assert {*read.unique().tolist()} == {0.0, 2.0}

    @pytest.mark.parametrize("locked", [True, False])
    def test_a_taggers_masks_are_a_sentences_or_a_words(self, locked: bool) -> None:
        model: Any = tagged(dropout=0.5, locked=locked, recurrent_dropout=0.2).train()
        dropped = model._dropped(torch.ones(6, 3, 5), seeded())
        assert bool((dropped == dropped[0]).all()) == locked
        assert model.layer.transforms == (RecurrentDropout(0.2, locked=locked),)

    def test_an_empty_batch_of_steps_is_dropped_too(self) -> None:
        model: Any = stepped(dropout=0.5, locked=True, state_noise="gaussian", gamma=0.5).train()
        assert model(torch.zeros(0, 4, dtype=torch.long)).shape == (0, 4, 2)
        assert model(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0, 2)


REFUSED: list[tuple[type, dict[str, Any], str]] = [
    (RecurrentConfig, {"gamma": 0.5}, "gamma"),
    (RecurrentConfig, {"state_noise": "gaussian"}, "gamma"),
    (RecurrentConfig, {"locked": True}, "locked"),
    (RecurrentConfig, {"zoneout": 1.0}, "zoneout"),
    (RecurrentConfig, {"weight_drop": -0.1}, "weight_drop"),
    (RecurrentConfig, {"recurrent_dropout": 1.5}, "recurrent_dropout"),
    (ClassifierConfig, {"state_noise": "white", "gamma": 1.0}, "Noise.law"),
    (TaggerConfig, {"temperature": 0.5}, "temperature"),
    (TaggerConfig, {"locked": False, "dropout": 0.0}, "locked"),
    (TaggerConfig, {"noise": "gaussian"}, "gamma"),
    (TaggerConfig, {"weight_drop": 1.0}, "weight_drop"),
    (TaggerConfig, {"centroids": 0}, "Centroids"),
    (LanguageModelConfig, {"zoneout": -0.1}, "zoneout"),
    (LanguageModelConfig, {"zoneout_memory": 1.5}, "zoneout_memory"),
    (LanguageModelConfig, {"zoneout_memory": 0.1, "cell": "gru"}, "zoneout_memory"),
    (LanguageModelConfig, {"temperature": 0.5}, "temperature"),
]


@pytest.mark.parametrize(("kind", "given", "where"), REFUSED)
def test_what_means_nothing_is_refused_with_its_name(kind: type, given: dict[str, Any], where: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        kind(**given)
    assert where in refused.value.where


def test_nothing_is_made_of_zeros() -> None:
    assert zoneout_of(0.0, cell="lstm", where="x") == []
    plain: Any = classified()
    assert plain.layer.transforms == ()
    assert plain.outside == ()
    assert not hasattr(plain.layer, "parametrizations")


def test_the_dropout_outside_the_layers_is_told() -> None:
    locked: Any = classified(dropout=0.2, locked=True)
    free: Any = classified(dropout=0.2)
    assert (locked.outside, free.outside) == ((LockedDropout(0.2),), (OutputDropout(0.2),))


def test_a_language_models_own_dropouts_keep_their_places_beside_zoneout() -> None:
    layer = layer_of(modelled(input_dropout=0.1, zoneout=0.2, locked=True, recurrent_dropout=0.3))
    assert layer.transforms == (
        LockedInputDropout(0.1, layers=(0,)),
        Zoneout(0.2, memory=0.2),
        RecurrentDropout(0.3, locked=True),
    )
