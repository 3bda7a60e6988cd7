"""What each centroid stands for: the words, or the parts of a picture, at which the network moves to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int

from statewise.automata.seen import Labelled, Network, check_layer, number_of_centroids, symbols_of, watch
from statewise.errors import ArgumentError


@runtime_checkable
class Pictures(Labelled, Protocol):
    """Pictures read pixel by pixel, such as ``statewise.data.Images``."""

    @property
    def height(self) -> int:
        """Rows of a picture."""

    @property
    def width(self) -> int:
        """Columns of a picture."""

    @property
    def permutation(self) -> Any:
        """The pixel that each step reads; None for row by row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WordPrototypes:
    """Mean transition probabilities by word, over all its occurrences and over those of each class.

    Args:
        symbols: the words.
        classes: the names of the classes.
        counts: (classes, words), how often each word occurred.
        sums: (classes, words, k), the sums of the probabilities there.
        min_count: occurrences that a word needs to be listed.
        top: how many words a list has.
    """

    symbols: tuple[str, ...]
    classes: tuple[str, ...]
    counts: Int[np.ndarray, "classes words"]
    sums: Float[np.ndarray, "classes words k"] = field(repr=False)
    min_count: int
    top: int

    def means(self, label: int | None = None) -> Float[np.ndarray, "words k"]:
        """The mean probabilities of each word; they sum to 1, or are NaN for a word that did not occur.

        Args:
            label: only occurrences in sequences of this class.
        """
        sums, counts = self._parts(label)
        with np.errstate(invalid="ignore"):
            means: Float[np.ndarray, "words k"] = sums / counts[:, None]
        return means

    def words(self, centroid: int, label: int | None = None) -> list[tuple[str, float, int]]:
        """The words with the highest mean probability of a centroid, with it and their counts.

        Args:
            centroid: which.
            label: only occurrences in sequences of this class.
        """
        k = self.sums.shape[2]
        if not 0 <= centroid < k:
            raise ArgumentError(where="WordPrototypes.words centroid", got=centroid, wanted=f"one from 0 to {k - 1}")
        counts = self._parts(label)[1]
        means = self.means(label)[:, centroid]
        kept = np.flatnonzero(counts >= max(self.min_count, 1))
        order = kept[np.lexsort((kept, -means[kept]))][: self.top]
        return [(self.symbols[word], float(means[word]), int(counts[word])) for word in order]

    def table(self, label: int | None = None) -> list[tuple[str, str]]:
        """A row for each centroid: its number and its words with their means, as the paper's tables 8 and 13.

        Args:
            label: only occurrences in sequences of this class.
        """
        lists = [self.words(centroid, label) for centroid in range(self.sums.shape[2])]
        return [(str(i), " ".join(f"{word} ({mean:.3g})" for word, mean, _ in some)) for i, some in enumerate(lists)]

    def _parts(self, label: int | None) -> tuple[np.ndarray, np.ndarray]:
        if label is None:
            return self.sums.sum(0), self.counts.sum(0)
        if not 0 <= label < len(self.counts):
            raise ArgumentError(where="label", got=label, wanted=f"a class from 0 to {len(self.counts) - 1}")
        return self.sums[label], self.counts[label]


@dataclass(frozen=True, kw_only=True, eq=False)
class PixelPrototypes:
    """Mean transition probabilities by class and pixel.

    Args:
        maps: (classes, k, height, width); over k they sum to 1; NaN for a class without pictures.
        counts: pictures of each class.
        classes: their names.
    """

    maps: Float[np.ndarray, "classes k height width"] = field(repr=False)
    counts: Int[np.ndarray, " classes"]
    classes: tuple[str, ...]


def word_prototypes(
    model: Network, sequences: Labelled, *, layer: int = 0, min_count: int = 5, top: int = 10, batch: int = 256
) -> WordPrototypes:
    """Average the transition probabilities at each word, as the paper's tables 8 and 13 do.

    ``P_i(w)`` is the mean of ``alpha_{t,i}`` over all steps t at which w is read, and ``sum_i P_i(w) = 1``
    (Wang & Niepert 2019, supplement G.2). The start token is no word. Only sums are kept.

    Args:
        model: of tokens, with centroids.
        sequences: that it reads.
        layer: whose centroids.
        min_count: occurrences that a word needs to be listed: rare words would head every list by chance.
        top: how many words a list has.
        batch: sequences at once.
    """
    for name, value in (("min_count", min_count), ("top", top)):
        if value < 1:
            raise ArgumentError(where=f"word_prototypes.{name}", got=value, wanted="at least 1")
    symbols, classes = symbols_of(model, sequences), sequences.classes
    k = number_of_centroids(model, layer)
    sums = torch.zeros(len(classes) * len(symbols), k, dtype=torch.float64)
    counts = torch.zeros(len(classes) * len(symbols), dtype=torch.int64)
    for seen in watch(model, sequences, collect=("probabilities",), layer=layer, batch=batch):
        assert seen.probabilities is not None
        places = (seen.labels[:, None] * len(symbols) + seen.inputs)[seen.inside].cpu()
        sums.index_add_(0, places, seen.probabilities[seen.inside].double().cpu())
        counts += torch.bincount(places, minlength=len(counts))
    return WordPrototypes(
        symbols=symbols,
        classes=tuple(classes),
        counts=counts.view(len(classes), -1).numpy(),
        sums=sums.view(len(classes), len(symbols), k).numpy(),
        min_count=min_count,
        top=top,
    )


def pixel_prototypes(model: Network, images: Pictures, *, layer: int = 0, batch: int = 64) -> PixelPrototypes:
    """Average the transition probabilities at each pixel over the pictures of a class, as the paper's figures 7 and 17.

    ``M_{y,i}(t)`` is the mean of ``alpha_{t,i}`` over the pictures of class y (Wang & Niepert 2019, supplement G.3),
    with the pixels back in their places if they were read in another order.

    Args:
        model: of numbers, with centroids.
        images: that it reads.
        layer: whose centroids.
        batch: pictures at once.
    """
    _check_pixels(images)
    classes, k = images.classes, number_of_centroids(model, layer)
    sums = torch.zeros(len(classes), images.height * images.width, k, dtype=torch.float64)
    counts = torch.zeros(len(classes), dtype=torch.int64)
    for seen in watch(model, images, collect=("probabilities",), layer=layer, batch=batch):
        assert seen.probabilities is not None
        labels = seen.labels.cpu()
        sums.index_add_(0, labels, seen.probabilities.double().cpu())
        counts += torch.bincount(labels, minlength=len(counts))
    maps = _maps(sums.numpy(), images)
    with np.errstate(invalid="ignore"):
        maps = maps / counts.numpy()[:, None, None, None]
    return PixelPrototypes(maps=maps, counts=counts.numpy(), classes=tuple(classes))


def image_maps(
    model: Network, images: Pictures, indices: Any, *, layer: int = 0
) -> tuple[Float[np.ndarray, "images height width"], Float[np.ndarray, "images k height width"]]:
    """Some pictures and, for each centroid, where on them the network moves to it: the paper's figure 18.

    Args:
        model: of numbers, with centroids.
        images: among which they are.
        indices: which.
        layer: whose centroids.
    """
    _check_pixels(images)
    inputs, lengths, _ = images.padded(indices)
    check_layer(model, layer, centroids=True)
    trace = model.states(inputs.to(next(model.parameters()).device), lengths, collect=("probabilities",))
    probabilities = trace.probabilities[layer]
    assert probabilities is not None
    pictures = _maps(inputs.double().cpu().numpy()[..., :1], images)[:, 0]
    return pictures, _maps(probabilities.double().cpu().numpy(), images)


def _check_pixels(images: Pictures) -> None:
    """Refuse pictures that are read row by row: there a centroid belongs to a row, and to no pixel of it."""
    if getattr(images, "by", "pixels") != "pixels":
        raise ArgumentError(where="images", got=f"pictures read by {images.by}", wanted="pictures read pixel by pixel")  # type: ignore[attr-defined]


def _maps(values: Float[np.ndarray, "rows steps k"], images: Pictures) -> Float[np.ndarray, "rows k height width"]:
    """Steps back in the places of their pixels."""
    placed = values
    if images.permutation is not None:
        placed = np.empty_like(values)
        placed[:, np.asarray(images.permutation)] = values
    rows, _, k = values.shape
    return np.ascontiguousarray(placed.transpose(0, 2, 1)).reshape(rows, k, images.height, images.width)
