"""A classifier of sequences on mixed pairs, against the formula of each place written out for one pair."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.mixup import InputMixup, Pairs, PreOutputMixup, ThroughTimeMixup
from statewise.models import ClassifierConfig, SequenceClassifier
from support import tolerance

IDS, LENGTHS = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]]), torch.tensor([4, 0, 3])
LABELS = torch.tensor([0, 1, 1])
SITES = ("input", "pre_output", "through_time")
PLACES = {"input": InputMixup, "pre_output": PreOutputMixup, "through_time": ThroughTimeMixup}


def built(**settings: Any) -> SequenceClassifier:
    own: dict[str, Any] = {"hidden": 4, "embedding": 3, "cell": "lstm", "readout": "hc"}
    features = settings.pop("features", None)
    inputs: dict[str, Any] = {"tokens": 2} if features is None else {"features": features}
    config = ClassifierConfig(**own | settings)
    return config.build(**inputs, classes=2, generator=torch.Generator().manual_seed(0)).double().train()


def paired(model: SequenceClassifier, site: str, policy: str, first: list[int], second: list[int]) -> Pairs:
    own = model.walked(IDS, LENGTHS)
    drawn = torch.rand(5, len(first), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    members: dict[str, Any] = {"first": torch.tensor(first), "second": torch.tensor(second), "lengths": own}
    layer = 0 if site == "through_time" else None
    return Pairs.of(drawn, **members, policy=policy, site=site, layer=layer, dtype=torch.float64)


def vectors(model: SequenceClassifier, row: int, steps: int) -> Tensor:
    """What the layers walk through for a sequence, START first, as nothing beyond its end."""
    assert model.embedding is not None
    own = torch.cat((torch.tensor([model.start_id]), IDS[row, : LENGTHS[row]]))
    rows: Tensor = model.embedding(own)
    return torch.cat((rows, rows.new_zeros(steps, rows.shape[1])))[:steps]


def by_formula(model: SequenceClassifier, pairs: Pairs, pair: int, site: str) -> Tensor:
    """The logits of one pair, step by step by the layer's own single steps."""
    length = int(pairs.lengths[pair])
    lam, members = pairs.exact[:length, pair], (int(pairs.first[pair]), int(pairs.second[pair]))
    x, other = (vectors(model, row, length) for row in members)
    if site == "pre_output":
        kept = [int(side[pair]) for side in pairs.member_lengths]
        states = [model.layer(each[:n].unsqueeze(1))[1] for each, n in zip((x, other), kept, strict=True)]
        read = [model._read_out(state, 1) for state in states]
        mean = lam.mean()
        return model.head(mean * read[0] + (1 - mean) * read[1]).squeeze(0)  # type: ignore[no-any-return]
    state = None
    for step in range(length):
        if site == "input":
            _, state = model.layer.plain_step((lam[step] * x[step] + (1 - lam[step]) * other[step])[None], state)
        else:
            ends = [model.layer.plain_step(each[step][None], state)[1] for each in (x, other)]
            state = tuple(lam[step] * a + (1 - lam[step]) * b for a, b in zip(*ends, strict=True))
    assert state is not None
    return model.head(model._read_out(state, 1)).squeeze(0)  # type: ignore[no-any-return]


@pytest.mark.parametrize("policy", ["handover", "zero", "truncate"])
@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("readout", ["hc", "u_end"])
def test_every_place_is_its_formula(site: str, policy: str, readout: str) -> None:
    model = built(readout=readout)
    pairs = paired(model, site, policy, [0, 1, 2, 0], [2, 0, 1, 0])
    logits = model(IDS, LENGTHS, pairs=pairs)
    for pair in range(4):
        torch.testing.assert_close(logits[pair], by_formula(model, pairs, pair, site), **tolerance(torch.float64))


@pytest.mark.parametrize("site", SITES)
def test_a_sequence_paired_with_itself_is_plain(site: str) -> None:
    model = built(cell="gru", readout="u_end", layers=2)
    pairs = paired(model, site, "handover", [0, 1, 2], [0, 1, 2])
    torch.testing.assert_close(model(IDS, LENGTHS, pairs=pairs), model(IDS, LENGTHS), **tolerance(torch.float64))


@pytest.mark.parametrize("site", SITES)
def test_members_exchanged_change_nothing(site: str) -> None:
    model = built()
    pairs = paired(model, site, "handover", [0, 1, 2], [1, 2, 0])
    both = [each.classification(model(IDS, LENGTHS, pairs=each), LABELS) for each in (pairs, pairs.exchanged())]
    torch.testing.assert_close(*both, **tolerance(torch.float64))


@pytest.mark.parametrize("site", SITES)
def test_features_are_mixed_as_embeddings_are(site: str) -> None:
    model, tokens = built(features=3, readout="h", cell="gru"), built(readout="h", cell="gru", start_token=False)
    model.load_state_dict({name: each for name, each in tokens.state_dict().items() if "embedding" not in name})
    assert tokens.embedding is not None
    full = torch.tensor([4, 4, 4])
    pairs = PLACES[site](alpha=1.0, rho=0.5).draw(full, dtype=torch.float64)
    ours, theirs = model(tokens.embedding(IDS), pairs=pairs), tokens(IDS, pairs=pairs)
    torch.testing.assert_close(ours, theirs, **tolerance(torch.float64))


@pytest.mark.parametrize("site", SITES)
def test_regularizers_act_beside_mixing_and_gradients_reach_all_weights(site: str) -> None:
    noise: dict[str, Any] = {"state_noise": "gaussian", "gamma": 0.3}
    model = built(
        cell="gru", readout="u_end", centroids=(3,), dropout=0.3, locked=True, embedding_dropout=0.1, zoneout=0.1,
        weight_drop=0.2, recurrent_dropout=0.1, **noise,
    )  # fmt: skip
    pairs = paired(model, site, "handover", [0, 1, 2], [1, 2, 0])
    torch.manual_seed(0)
    first = model(IDS, LENGTHS, pairs=pairs)
    second = model(IDS, LENGTHS, pairs=pairs)
    assert not torch.equal(first, second)
    pairs.classification(first + second, LABELS).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.abs().sum() > 0), name


def test_pairs_of_another_batch_and_pairs_in_eval_mode_are_refused() -> None:
    model = built()
    pairs = paired(model, "input", "handover", [0, 1, 2], [1, 2, 0])
    with pytest.raises(ShapeError, match="drawn for this batch"):
        model(IDS, torch.tensor([4, 1, 3]), pairs=pairs)
    with pytest.raises(ArgumentError, match="eval mode"):
        model.eval()(IDS, LENGTHS, pairs=pairs)


def test_how_far_the_layers_walk_counts_the_start() -> None:
    assert built().walked(IDS, LENGTHS).tolist() == [5, 1, 4]
    assert built().walked(IDS).tolist() == [5, 5, 5]
    assert built(start_token=False).walked(IDS).tolist() == [4, 4, 4]
