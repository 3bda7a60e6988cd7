"""The classifier of steps: what it computes at each of them, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.models import StepClassifier, StepConfig
from support import tolerance

DOUBLE = torch.float64
CELLS = ("gru", "lstm", "peephole", "rnn", "mgu", "rac")
IDS, LENGTHS = torch.tensor([[0, 1, 2, 2], [1, 0, 0, 1], [2, 0, 1, 0]]), torch.tensor([4, 0, 2])


def built(**settings: Any) -> StepClassifier:
    own: dict[str, Any] = {"hidden": 5, "centroids": (3,), "temperature": 0.5}
    config = StepConfig(**own | settings)
    model = config.build(tokens=3, classes=4, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "weight_ph" in name:
                parameter.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(1))
    return model


def by_hand(model: StepClassifier) -> Tensor:
    """One step after the other through the layer itself: h_t after the centroids, u_t before them."""
    assert model.embedding is not None
    state, logits = None, []
    for x in model.embedding(IDS.T):
        bare, _ = model.layer.plain_step(x, state)
        output, state = model.layer(x.unsqueeze(0), state)
        logits.append(model.head(bare if model.config.readout == "u" else output[0]))
    return torch.stack(logits, dim=1)


@pytest.mark.parametrize("readout", ["h", "u"])
@pytest.mark.parametrize("cell", CELLS)
def test_every_step_is_read_before_or_after_the_centroids_in_value_and_gradients(cell: str, readout: str) -> None:
    model = built(cell=cell, readout=readout)
    found, wanted = model(IDS), by_hand(model)
    assert found.shape == (3, 4, 4)
    torch.testing.assert_close(found, wanted, **tolerance(DOUBLE))
    factors = torch.linspace(-1, 2, found.numel(), dtype=DOUBLE).view_as(found)
    at = list(model.parameters())
    ours, theirs = (torch.autograd.grad((each * factors).sum(), at) for each in (found, wanted))
    torch.testing.assert_close(ours, theirs, **tolerance(DOUBLE))


@pytest.mark.parametrize("readout", ["h", "u"])
@pytest.mark.parametrize("name", ["embedding_dropout", "dropout"])
def test_what_is_dropped_is_drawn_from_the_generator_and_nothing_at_rest(name: str, readout: str) -> None:
    model, plain = built(readout=readout, **{name: 0.5}), built(readout=readout)
    before = torch.get_rng_state()
    one, same, *others = (model(IDS, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, *range(2, 20)))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one, same)
    assert not all(torch.equal(one, other) for other in others)
    assert torch.equal(model.eval()(IDS), plain(IDS))


@pytest.mark.parametrize("token", range(3))
def test_every_token_may_fall_out(token: int) -> None:
    model, silent = built(embedding_dropout=0.5), built()
    assert silent.embedding is not None
    with torch.no_grad():
        silent.embedding.weight.zero_()
    ids = torch.full((1, 3), token)
    found = [model(ids, generator=torch.Generator().manual_seed(seed)) for seed in range(20)]
    assert 0 < sum(torch.equal(each, silent(ids)) for each in found) < 20


def test_the_two_readouts_differ_only_where_there_are_centroids() -> None:
    h, u = built(readout="h"), built(readout="u")
    assert not torch.allclose(h(IDS), u(IDS))
    torch.testing.assert_close(built(centroids=(), readout="h")(IDS), built(centroids=(), readout="u")(IDS))


def test_several_layers_and_features_are_read_too() -> None:
    model = StepConfig(cell="lstm", hidden=5, layers=2, centroids=(3, 2)).build(features=2, classes=4)
    assert model(torch.randn(3, 6, 2)).shape == (3, 6, 4)


@pytest.mark.parametrize("readout", ["h", "u"])
@pytest.mark.parametrize("pad", [0, -1, 10**6])
def test_what_lies_beyond_an_end_changes_nothing_and_its_logits_are_zero(readout: str, pad: int) -> None:
    model = built(cell="peephole", readout=readout)
    ids = IDS.clone()
    beyond = torch.arange(4) >= LENGTHS.unsqueeze(1)
    ids[beyond] = pad
    found = model(ids, LENGTHS)
    assert not found[beyond].any()
    torch.testing.assert_close(found[~beyond], model(IDS)[~beyond], **tolerance(DOUBLE))


def test_one_step_no_step_and_an_empty_batch_are_legal() -> None:
    for readout in ("h", "u"):
        model = built(readout=readout)
        torch.testing.assert_close(model(IDS[:, :1]), model(IDS)[:, :1], **tolerance(DOUBLE))
        assert model(IDS[:0]).shape == (0, 4, 4)
        assert model(IDS[:, :0]).shape == (3, 0, 4)


def test_retuning_changes_the_config_with_the_layer() -> None:
    model = built(transition="noisy")
    model.retune(noise=0.5)
    assert model.config.noise == 0.5
    assert "noise=0.5" in str(model.layer.transforms)


def test_noise_is_drawn_from_the_generator_in_training_alone() -> None:
    model = built(transition="noisy", noise=1.0).train()
    one, same, other = (model(IDS, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    model.eval()
    assert torch.equal(model(IDS), model(IDS))


def test_what_makes_no_classifier_or_no_sequence_is_refused() -> None:
    with pytest.raises(ArgumentError, match='Give readout="h"'):
        StepConfig(layers=2, readout="u")
    with pytest.raises(ArgumentError, match=r"StepConfig\.readout"):
        StepConfig(readout="u_end")
    with pytest.raises(ArgumentError, match="neither tokens nor features"):
        StepConfig().build(classes=2)
    with pytest.raises(ArgumentError, match=r"StepClassifier inputs\[0, 2\]: got token 7"):
        built()(torch.tensor([[0, 1, 7]]))
    with pytest.raises(LengthError, match=r"StepClassifier lengths\[1\]: got 9"):
        built()(IDS, torch.tensor([1, 9, 1]))
    with pytest.raises(ShapeError, match=r"\(batch, steps\)"):
        built()(IDS[0], LENGTHS[:1])
