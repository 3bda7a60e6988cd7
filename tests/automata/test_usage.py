"""How centroids are used, and whether states drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from statewise.automata import drift, read, usage, word_prototypes
from statewise.automata.usage import Usage
from statewise.data import Sequences
from statewise.errors import ArgumentError, LengthError
from statewise.models import ClassifierConfig, SequenceClassifier

WORDS = ["abba", "", "a", "bbbbbb", "ab"]


def data() -> Sequences:
    return Sequences.from_words(WORDS, [0, 1, 0, 1, 0], symbols="ab")


def network(**settings: Any) -> SequenceClassifier:
    config = ClassifierConfig(**{"hidden": 6, "centroids": (4,), **settings})
    return config.build(tokens=2, classes=2, symbols=("a", "b"), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_usage_equals_the_means_over_all_words_read_one_by_one(batch: int) -> None:
    model = network()
    rows = np.concatenate([read(model, word).probabilities[1:] for word in WORDS])  # type: ignore[index]
    found = usage(model, data(), batch=batch)
    assert found.steps == len(rows) == 13
    np.testing.assert_allclose(found.means, rows.mean(0), atol=1e-6)
    np.testing.assert_allclose(found.ranked, -np.sort(-rows, 1).mean(0), atol=1e-6)
    np.testing.assert_allclose(found.shares, np.bincount(rows.argmax(1), minlength=4) / 13)
    assert found.dead == tuple(np.flatnonzero(found.shares == 0))


@pytest.mark.parametrize(("symbols", "told"), [("ba", "'b' as symbol 0"), ("abc", "'c' as symbol 2"), ("a", "only 1")])
def test_words_that_are_numbered_otherwise_than_the_model_does_are_refused(symbols: str, told: str) -> None:
    words = Sequences.from_words(["a", "aa"], [0, 1], symbols=symbols)
    for look in (usage, drift, word_prototypes):
        with pytest.raises(ArgumentError, match=rf"sequences\.symbols: got ({told}|3, wanted at most).*"):
            look(network(), words)
    with pytest.raises(ArgumentError, match=r"symbols=model\.symbols"):
        usage(network(), words)


def test_the_effective_number_is_k_for_even_use_and_one_for_a_single_centroid() -> None:
    even, single = np.full(5, 0.2), np.eye(5)[2]
    assert Usage(steps=1, shares=even, means=even, ranked=even).effective == pytest.approx(5)
    only = Usage(steps=1, shares=single, means=single, ranked=single)
    assert only.effective == pytest.approx(1)
    assert only.carrying() == (2,)
    assert only.dead == (0, 1, 3, 4)
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        only.carrying(2.0)


@pytest.mark.parametrize("batch", [1, 100])
def test_drift_equals_the_sizes_of_the_states_read_one_by_one(batch: int) -> None:
    model = network(cell="lstm")
    sizes = [np.abs(read(model, word).states[1:]).max(1, initial=0) for word in WORDS]
    found = drift(model, data(), batch=batch)
    for step in range(6):
        here = [size[step] for size in sizes if len(size) > step]
        assert found.counts[step] == len(here)
        assert found.largest[step] == pytest.approx(max(here), abs=1e-6)
        assert found.means[step] == pytest.approx(np.mean(here), abs=1e-6)
    assert drift(model, data(), what="cells").largest.shape == (6,)


def test_the_slope_of_states_on_centroids_is_small_and_bounded_by_their_size() -> None:
    model = network()
    long = Sequences.from_words(["ab" * 200], [0], symbols="ab")
    found = drift(model, long)
    _, centroids = model.centroids_of(0)  # type: ignore[misc]
    assert found.largest.max() <= float(centroids.detach().abs().max()) + 1e-6
    assert abs(found.slope) < 1e-4


def test_the_slope_is_that_of_a_line() -> None:
    from statewise.automata.usage import _slope

    assert _slope(np.array([1.0, 3.0, 5.0]), np.array([5, 2, 1])) == pytest.approx(2)
    assert _slope(np.array([1.0]), np.array([5])) == 0


def test_bad_input_is_named() -> None:
    empty = Sequences.from_words([""], [0], symbols="ab")
    with pytest.raises(LengthError, match="no symbols"):
        usage(network(), empty)
    with pytest.raises(LengthError, match="no symbols"):
        drift(network(), empty)
    with pytest.raises(ArgumentError, match="no memory"):
        drift(network(), data(), what="cells")
    with pytest.raises(ArgumentError, match="'states' or 'cells'"):
        drift(network(), data(), what="gates")
    with pytest.raises(ArgumentError, match="no centroids"):
        usage(network(centroids=()), data())
    with pytest.raises(ArgumentError, match="at least 1 sequence"):
        usage(network(), data(), batch=0)
