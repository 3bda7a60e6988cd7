"""Known answers for whole state-regularized models (Wang & Niepert 2019, "State-Regularized RNNs")."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from statewise import RecurrentLayer
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig, LanguageModelConfig, SequenceClassifier
from support import tolerance, weight

DOUBLE = torch.float64
CELLS = ("gru", "lstm", "peephole", "rnn", "mgu", "rac")
SEEDS = st.integers(0, 2**32 - 1)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def built(*, tokens: int = 3, seed: int = 0, scale: float = 1.0, **settings: Any) -> SequenceClassifier:
    """A small model in double precision, whose weights of all kinds differ from zero."""
    own: dict[str, Any] = {"hidden": 4, "embedding": 3}
    config = ClassifierConfig(**own | settings)
    model = config.build(tokens=tokens, classes=2, generator=seeded(seed)).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "weight_ph" in name or "bias" in name:
                parameter.uniform_(-0.7, 0.7, generator=seeded(seed + 1))
            parameter.mul_(scale)
    return model


def cell(kind: str, model: SequenceClassifier, layer: int, x: Tensor, h: Tensor, c: Tensor, *, first: bool) -> Any:
    """The equations of section 2.1 of the paper and of the other cells, written out."""

    def of(name: str) -> Tensor:
        return weight(model.layer, f"{name}_l{layer}")

    if kind == "rac":
        return (x @ of("weight_ih").T) * (1.0 if first else h @ of("weight_hh").T), c
    inputs, recurrent = x @ of("weight_ih").T + of("bias_ih"), h @ of("weight_hh").T + of("bias_hh")
    match kind:
        case "rnn":
            return torch.tanh(inputs + recurrent), c
        case "gru":
            (ir, iz, im), (hr, hz, hm) = inputs.chunk(3, 1), recurrent.chunk(3, 1)
            z = torch.sigmoid(iz + hz)
            return (1 - z) * torch.tanh(im + torch.sigmoid(ir + hr) * hm) + z * h, c
        case "mgu":
            d = h.shape[1]
            r = torch.sigmoid(inputs[:, :d] + recurrent[:, :d])
            candidate = inputs[:, d:] + (r * h) @ of("weight_hh")[d:].T + of("bias_hh")[d:]
            return (1 - r) * h + r * torch.tanh(candidate), c
    i, f, g, o = (inputs + recurrent).chunk(4, 1)
    p_i, p_f, p_o = of("weight_ph") if kind == "peephole" else torch.zeros(3, h.shape[1], dtype=h.dtype)
    new = torch.sigmoid(f + p_f * c) * c + torch.sigmoid(i + p_i * c) * torch.tanh(g)
    return torch.sigmoid(o + p_o * new) * torch.tanh(new), new


def component(model: SequenceClassifier, layer: int, u: Tensor) -> Tensor:
    """Equations 2-4 and 6."""
    found = model.centroids_of(layer)
    if found is None:
        return u
    settings, centroids = found
    difference = u.unsqueeze(1) - centroids
    similarity = {
        "dot": lambda: u @ centroids.T,
        "euclidean": lambda: -(difference**2).sum(2).sqrt(),
        "sqeuclidean": lambda: -(difference**2).sum(2),
    }[settings.similarity]()
    weights = torch.exp(similarity / settings.temperature)
    return (weights / weights.sum(1, keepdim=True)) @ centroids


def by_hand(model: SequenceClassifier, words: list[list[int]]) -> Tensor:
    """Algorithm A1 word by word: START and the letters with the component, END without it in all layers."""
    assert model.embedding is not None
    logits = []
    for word in words:
        d, layers = model.config.hidden, model.config.layers
        h = [torch.zeros(1, d, dtype=DOUBLE) for _ in range(layers)]
        c = [torch.zeros(1, d, dtype=DOUBLE) for _ in range(layers)]
        for step, token in enumerate([model.start_id, *word, model.end_id]):
            x = model.embedding.weight[token].unsqueeze(0)
            for layer in range(layers):
                u, c[layer] = cell(model.config.cell, model, layer, x, h[layer], c[layer], first=step == 0)
                x = h[layer] = u if token == model.end_id else component(model, layer, u)
        logits.append(x @ model.head.weight.T + model.head.bias)
    return torch.cat(logits)


def padded(words: list[list[int]], *, pad: int = 0) -> tuple[Tensor, Tensor]:
    longest = max(map(len, words))
    rows = [word + [pad] * (longest - len(word)) for word in words]
    return torch.tensor(rows, dtype=torch.long).reshape(len(words), longest), torch.tensor(
        [len(word) for word in words]
    )


WORDS = [[0, 2, 1, 1], [], [2], [1, 0, 2, 2, 0, 1]]


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("cell_kind", CELLS)
def test_a_model_is_algorithm_a1_in_value_and_in_all_gradients(cell_kind: str, similarity: str) -> None:
    model = built(cell=cell_kind, layers=2, centroids=(3, 2), similarity=similarity, temperature=0.7)
    found, wanted = model(*padded(WORDS)), by_hand(model, WORDS)
    torch.testing.assert_close(found, wanted, **tolerance(DOUBLE))
    factors = torch.linspace(-1, 2, found.numel(), dtype=DOUBLE).view_as(found)
    at = list(model.parameters())
    ours, theirs = (torch.autograd.grad((each * factors).sum(), at) for each in (found, wanted))
    torch.testing.assert_close(ours, theirs, **tolerance(DOUBLE))
    assert all(bool(grad.abs().max() > 0) for grad in theirs), "every parameter, START and END included, counts"


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell_kind", CELLS)
def test_without_centroids_a_model_is_the_plain_network_k10(cell_kind: str, layers: int) -> None:
    model = built(cell=cell_kind, layers=layers)
    torch.testing.assert_close(model(*padded(WORDS)), by_hand(model, WORDS), **tolerance(DOUBLE))


def test_with_peepholes_of_zero_the_classifier_is_the_lstm_one_k10() -> None:
    ours, other = (built(cell=kind, centroids=(3,)) for kind in ("peephole", "lstm"))
    other.load_state_dict({name: value for name, value in ours.state_dict().items() if "weight_ph" not in name})
    assert not torch.allclose(ours(*padded(WORDS)), other(*padded(WORDS)))
    with torch.no_grad():
        ours.layer.get_parameter("weight_ph_l0").zero_()
    torch.testing.assert_close(ours(*padded(WORDS)), other(*padded(WORDS)), **tolerance(DOUBLE))
    fresh = ClassifierConfig(cell="peephole").build(tokens=2, classes=2)
    assert not weight(fresh.layer, "weight_ph_l0").any(), "as they are at the start"


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    cell_kind=st.sampled_from(CELLS),
    layers=st.integers(1, 2),
    readout=st.sampled_from(["u_end", "h", "c", "hc"]),
    pad=st.sampled_from([0, 2, -1, 10**6]),
    seed=SEEDS,
)
def test_a_batch_of_mixed_lengths_is_its_rows_one_by_one_whatever_the_padding_k19(
    lengths: list[int], cell_kind: str, layers: int, readout: str, pad: int, seed: int
) -> None:
    if "c" in readout and cell_kind not in ("lstm", "peephole"):
        readout = "h"
    model = built(cell=cell_kind, layers=layers, centroids=(3,), readout=readout, seed=seed % 1000)
    words = [torch.randint(3, (length,), generator=seeded(seed + i)).tolist() for i, length in enumerate(lengths)]
    together = model(*padded(words, pad=pad))
    apart = torch.cat([model(torch.tensor([word], dtype=torch.long)) for word in words])
    torch.testing.assert_close(together, apart, **tolerance(DOUBLE))


@pytest.mark.parametrize("cell_kind", CELLS)
def test_the_end_token_skips_the_component_in_all_layers(cell_kind: str) -> None:
    model = built(cell=cell_kind, layers=2, centroids=(3, 2), start_token=False, readout="u_end")
    assert model.embedding is not None
    ids = torch.tensor([[0, 1], [2, 2]])
    _, state = model.layer(model.embedding(ids.T))
    end = model.embedding.weight[model.end_id].expand(2, -1)
    output, _ = model.layer.plain_step(end, state)
    torch.testing.assert_close(model(ids), output @ model.head.weight.T + model.head.bias, **tolerance(DOUBLE))
    model.retune(temperature=0.01)  # what happens at END alone does not depend on the centroids' settings ...
    assert torch.equal(model.layer.plain_step(end, state)[0], output)
    in_the_component, _ = model.layer(end.unsqueeze(0), state)
    assert not torch.allclose(in_the_component[0], output), "... and would, if the component acted"


@pytest.mark.parametrize("cell_kind", ["gru", "rnn"])
def test_with_one_centroid_every_word_gets_the_same_answer_k5(cell_kind: str) -> None:
    model = built(cell=cell_kind, layers=2, centroids=(1,), scale=2.0)
    logits = model(*padded(WORDS))
    torch.testing.assert_close(logits, logits[:1].expand_as(logits), **tolerance(DOUBLE))


def table_of(model: SequenceClassifier) -> tuple[dict[Any, Any], tuple[int, ...], dict[Any, int]]:
    """Algorithm A5 by hand: reachable tuples of centroids, their successors, the start, and the class of each."""
    assert model.embedding is not None
    layers, found = model.config.layers, [model.centroids_of(layer) for layer in range(model.config.layers)]

    def step(places: tuple[int, ...] | None, token: int) -> tuple[Any, Tensor]:
        x, after = model.embedding.weight[token].unsqueeze(0), []  # type: ignore[union-attr]
        u = x
        for layer in range(layers):
            settings, centroids = found[layer]  # type: ignore[misc]
            h = torch.zeros(1, 4, dtype=DOUBLE) if places is None else centroids[places[layer]].unsqueeze(0)
            u, _ = cell(model.config.cell, model, layer, x, h, h, first=places is None)
            after.append(int(settings.logits(u, centroids).argmax()))
            x = u if token == model.end_id else centroids[after[-1]].unsqueeze(0)
        return tuple(after), u

    start = step(None, model.start_id)[0]
    delta, classes, waiting = {}, {}, [start]
    while waiting:
        places = waiting.pop()
        if places in classes:
            continue
        u = step(places, model.end_id)[1]
        classes[places] = int((u @ model.head.weight.T + model.head.bias).argmax())
        for token in range(3):
            delta[places, token] = step(places, token)[0]
            waiting.append(delta[places, token])
    return delta, start, classes


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell_kind", ["gru", "rnn", "mgu", "rac"])
def test_the_argmax_network_is_the_finite_table_on_all_short_words_k17(cell_kind: str, layers: int) -> None:
    most, classes_met = 0, set[int]()
    for seed in range(6):
        model = built(cell=cell_kind, layers=layers, centroids=(5, 4)[:layers], seed=seed, scale=4.0)
        delta, place, classes = table_of(model)
        words = [word for length in range(7) for word in itertools.product(range(3), repeat=length)]
        wanted = []
        for word in words:
            here = place
            for token in word:
                here = delta[here, token]
            wanted.append(classes[here])
        assert model.with_transition("argmax").classify(words).tolist() == wanted
        most, classes_met = max(most, len(classes)), classes_met | set(wanted)
    assert most >= 3, "several states are reachable, else the test is empty"
    assert classes_met == {0, 1}


@pytest.mark.parametrize("cell_kind", ["gru", "peephole"])
def test_straight_through_is_argmax_forwards_and_the_mixture_backwards_k20(cell_kind: str) -> None:
    model = built(cell=cell_kind, centroids=(4,), start_token=False, readout="h", scale=2.0)
    ids = torch.tensor([[0], [1], [2]])
    through, hard, soft = (model.with_transition(each) for each in ("st_argmax", "argmax", "mixture"))
    assert torch.equal(through(ids), hard(ids)), "bit for bit"
    at = [parameter for name, parameter in model.named_parameters() if name == "layer.weight_ih_l0"]
    # In one step the gradient of what lies before alpha is the mixture's, as the head is linear.
    ours, theirs = (torch.autograd.grad(each(ids)[:, 0].sum(), at)[0] for each in (through, soft))
    torch.testing.assert_close(ours, theirs, **tolerance(DOUBLE))
    assert bool(ours.abs().max() > 0)
    through_choices = torch.autograd.grad(hard(ids).sum(), at, allow_unused=True, materialize_grads=True)[0]
    assert not bool(through_choices.any()), "no gradient passes a choice"


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameters_are_as_many_as_the_paper_counts_k23() -> None:
    def count(**settings: Any) -> int:
        return parameters(ClassifierConfig(hidden=16, layers=2, **settings).build(tokens=5, classes=2))

    assert count(cell="lstm", centroids=(7,)) - count(cell="lstm") == 2 * 7 * 16
    assert count(cell="gru", centroids=(7, 0)) - count(cell="gru") == 7 * 16
    assert count(cell="peephole") - count(cell="lstm") == 2 * 3 * 16


def test_the_language_model_of_table_11_has_the_published_size_k23() -> None:
    with torch.device("meta"):
        sizes = [
            parameters(LanguageModelConfig(hidden=(300,), tied=False, centroids=k).build(77_000)) for k in (None, 1000)
        ]
    second_bias = 4 * 300  # torch's LSTM has two biases where the paper counts one
    assert [size - second_bias for size in sizes] == [46_998_200, 47_298_200]


def test_the_language_model_moves_among_centroids_after_its_noise() -> None:
    config = LanguageModelConfig(hidden=(6, 5), noise="gaussian", gamma=2.0, centroids=1, temperature=0.5)
    model = config.build(11).train()
    for layer in model.layers:
        assert isinstance(layer, RecurrentLayer)
        output, _ = layer(torch.randn(4, 3, layer.input_size))
        centroid = weight(layer, "centroids_l0")[0]
        torch.testing.assert_close(output, centroid.expand_as(output), **tolerance(torch.float32))
        assert [type(each).__name__ for each in layer.transforms] == ["Noise", "Centroids"]
        assert "temperature=0.5" in str(layer.transforms[1])


def test_centroids_that_make_no_language_model_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"0\.5 without centroids"):
        LanguageModelConfig(temperature=0.5)
    with pytest.raises(ArgumentError, match=r"LanguageModelConfig\.centroids: got 0"):
        LanguageModelConfig(centroids=0)
    with pytest.raises(ArgumentError, match="argmax"):
        LanguageModelConfig(centroids=3, temperature=0.0)
