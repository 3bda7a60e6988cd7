"""One input as the network reads it: at each token the probabilities of the centroids, the state and the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from statewise.automata.captions import symbol_text
from statewise.automata.seen import Network, check_layer
from statewise.models.words import Words

START = "START"


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """The inside of a network along one input, the start token first if there is one.

    Args:
        tokens: the text of each step, for the axis of a figure.
        states: that are fed back.
        probabilities: of the centroids; None for a layer without.
        cells: the memories; None for cells without.
    """

    tokens: tuple[str, ...]
    states: Float[np.ndarray, "steps hidden"] = field(repr=False)
    probabilities: Float[np.ndarray, "steps k"] | None = field(repr=False)
    cells: Float[np.ndarray, "steps hidden"] | None = field(repr=False)

    @property
    def path(self) -> tuple[int, ...]:
        """The likeliest centroid at each step; empty for a layer without centroids."""
        return () if self.probabilities is None else tuple(map(int, self.probabilities.argmax(1)))


def read(
    model: Network, word: Sequence[str] | Sequence[int] | Float[Tensor, "steps features"], *, layer: int = 0
) -> Reading:
    """Follow the network along one input.

    Args:
        model: any classifier.
        word: a text, which counts as its characters, symbols, token ids; or for a model of numbers a tensor of steps.
        layer: which.

    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(hidden=4, centroids=(3,)).build(tokens=2, classes=2, symbols=("a", "b"))
    >>> reading = read(model, "abba")
    >>> reading.tokens, reading.probabilities.shape
    (('START', 'a', 'b', 'b', 'a'), (5, 3))
    """
    check_layer(model, layer, centroids=False)
    device = next(model.parameters()).device
    if isinstance(word, Tensor):
        inputs, texts = word[None].to(device), [str(step) for step in range(len(word))]
    else:
        ids = Words.of([word], tokens=model.tokens or 0, symbols=model.symbols, where="read").ids
        inputs = torch.from_numpy(ids)[None].to(device)
        texts = [symbol_text(model.symbols[token]) if model.symbols else str(token) for token in ids]
    trace = model.states(inputs, collect=("states", "probabilities", "cells"))
    if trace.has_start:
        texts = [START, *texts]
    return Reading(
        tokens=tuple(texts),
        states=_array(trace.states[layer]),
        probabilities=None if not trace.probabilities else _maybe(trace.probabilities[layer]),
        cells=_array(trace.cells[layer]) if trace.cells else None,
    )


def _maybe(value: Tensor | None) -> Float[np.ndarray, "steps width"] | None:
    return None if value is None else _array(value)


def _array(value: Tensor) -> Float[np.ndarray, "steps width"]:
    array: Float[np.ndarray, "steps width"] = value[0].double().cpu().numpy()
    return array
