"""What centroids stand for: words and pixels, along one input and on average."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from statewise.automata import image_maps, pixel_prototypes, read, word_prototypes
from statewise.automata.prototypes import WordPrototypes
from statewise.data import Images, Sequences
from statewise.errors import ArgumentError, DtypeError
from statewise.models import ClassifierConfig, SequenceClassifier, Trace

WORDS = ["good film", "bad film", "good good actor", "bad", "", "actor film good"]


def reviews() -> Sequences:
    return Sequences.from_words([word.split() for word in WORDS], [1, 0, 1, 0, 0, 1], classes=("no", "yes"))


def network(sequences: Sequences, **settings: Any) -> SequenceClassifier:
    config = ClassifierConfig(**{"hidden": 6, "centroids": (3,), **settings})
    generator = torch.Generator().manual_seed(0)
    symbols = sequences.symbols
    return config.build(tokens=len(symbols), classes=2, symbols=symbols, generator=generator)


def test_the_means_of_a_word_are_those_of_its_occurrences_one_by_one() -> None:
    data = reviews()
    model = network(data)
    found = word_prototypes(model, data, batch=2, min_count=1)
    seen: dict[str, list[np.ndarray]] = {}
    for word in WORDS:
        reading = read(model, word.split())
        assert reading.probabilities is not None
        for token, alpha in zip(reading.tokens[1:], reading.probabilities[1:], strict=True):
            seen.setdefault(token, []).append(alpha)
    for number, symbol in enumerate(data.symbols):
        np.testing.assert_allclose(found.means()[number], np.mean(seen[symbol], 0), atol=1e-6)
        assert found.counts.sum(0)[number] == len(seen[symbol])


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_the_means_of_every_word_sum_to_one_whatever_the_padding(batch: int) -> None:
    data = reviews()
    found = word_prototypes(network(data), data, batch=batch, min_count=1)
    np.testing.assert_allclose(found.means().sum(1), 1, atol=1e-5)
    assert found.counts.sum() == data.lengths.sum()


class TwoCentroids:
    """A network whose probabilities are the tokens' own: 0.25 t for the first centroid."""

    tokens, symbols, features = 4, None, None
    config = SimpleNamespace(layers=1)

    def parameters(self) -> Any:
        return iter([torch.zeros(1)])

    def centroids_of(self, layer: int) -> Any:
        return None, torch.zeros(2, 1)

    def states(self, inputs: Tensor, lengths: Tensor, *, collect: Any) -> Trace:
        first = torch.cat([torch.full((len(inputs), 1), 0.9), inputs * 0.25], 1)
        alpha = torch.stack([first, 1 - first], -1)
        return Trace(lengths=lengths + 1, has_start=True, probabilities=(alpha,))


@pytest.mark.usefixtures("as_users_have_it")
def test_hand_made_probabilities_give_hand_made_means_and_the_start_is_left_out() -> None:
    data = Sequences.from_words([["0", "3"], ["2"], ["3", "3"]], [0, 1, 1], symbols="0123", classes=("a", "b"))
    found = word_prototypes(TwoCentroids(), data, min_count=1)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.means()[[0, 2, 3]], np.array([[0, 1], [0.5, 0.5], [0.75, 0.25]]))
    assert np.isnan(found.means()[1]).all()
    assert found.counts.tolist() == [[1, 0, 0, 1], [0, 0, 1, 2]]
    assert found.words(0) == [("3", 0.75, 3), ("2", 0.5, 1), ("0", 0.0, 1)]
    assert found.words(0, label=0) == [("3", 0.75, 1), ("0", 0.0, 1)]


@given(st.integers(1, 6), st.integers(1, 4))
def test_lists_hold_only_words_that_occurred_often_enough_highest_first(min_count: int, top: int) -> None:
    rng = np.random.default_rng(min_count * 10 + top)
    counts = rng.integers(0, 8, (2, 9))
    sums = rng.random((2, 9, 3)) * counts[..., None]
    found = WordPrototypes(
        symbols=tuple("abcdefghi"), classes=("x", "y"), counts=counts, sums=sums, min_count=min_count, top=top
    )
    listed = found.words(1)
    assert len(listed) == min(top, int((counts.sum(0) >= min_count).sum()))
    assert all(count >= min_count for _, _, count in listed)
    means = [mean for _, mean, _ in listed]
    assert means == sorted(means, reverse=True)
    assert [row[0] for row in found.table()] == ["0", "1", "2"]


def images(permute: bool) -> Images:
    rng = np.random.default_rng(0)
    plain = Images(
        values=rng.integers(0, 256, (7, 6)), labels=np.array([0, 1, 1, 0, 1, 0, 0]), classes=("a", "b", "none"),
        height=2, width=3,
    )  # fmt: skip
    return plain.permuted(seed=1) if permute else plain


def pixel_network() -> SequenceClassifier:
    config = ClassifierConfig(cell="peephole", hidden=5, centroids=(4,), readout="hc")
    return config.build(features=1, classes=3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("permute", [False, True])
def test_pixel_maps_are_the_means_of_the_maps_of_the_pictures_of_a_class(permute: bool) -> None:
    data, model = images(permute), pixel_network()
    found = pixel_prototypes(model, data, batch=3)
    pictures, maps = image_maps(model, data, np.arange(7))
    np.testing.assert_allclose(pictures * 255, data.pictures(), atol=1e-4)
    assert found.maps.shape == (3, 4, 2, 3)
    for label in (0, 1):
        np.testing.assert_allclose(found.maps[label], maps[data.labels == label].mean(0), atol=1e-6)
    np.testing.assert_allclose(found.maps[:2].sum(1), 1, atol=1e-5)
    assert np.isnan(found.maps[2]).all()
    assert found.counts.tolist() == [4, 3, 0]


def test_the_permutation_is_undone_in_the_maps() -> None:
    data, model = images(permute=True), pixel_network()
    trace = model.states(data.padded([0])[0], None, collect=("probabilities",))
    alpha = trace.probabilities[0]
    assert alpha is not None
    assert data.permutation is not None
    _, maps = image_maps(model, data, [0])
    for step, pixel in enumerate(data.permutation):
        np.testing.assert_allclose(maps[0, :, pixel // 3, pixel % 3], alpha[0, step], atol=1e-6)


def test_a_reading_shows_the_start_and_every_token() -> None:
    data = reviews()
    reading = read(network(data, cell="lstm"), ["good", "film"])
    assert reading.tokens == ("START", "good", "film")
    assert reading.cells is not None
    assert reading.states.shape == reading.cells.shape == (3, 6)
    assert len(reading.path) == 3
    assert read(network(data, centroids=()), ["good"]).path == ()
    assert read(network(data), []).tokens == ("START",)


def test_models_without_centroids_and_models_of_numbers_are_refused() -> None:
    data = reviews()
    with pytest.raises(ArgumentError, match="no centroids in layer 0"):
        word_prototypes(network(data, centroids=()), data)
    with pytest.raises(DtypeError, match="a model of tokens"):
        word_prototypes(pixel_network(), data)
    with pytest.raises(ArgumentError, match="a layer from 0 to 0"):
        word_prototypes(network(data), data, layer=1)
    with pytest.raises(ArgumentError, match="min_count"):
        word_prototypes(network(data), data, min_count=0)
