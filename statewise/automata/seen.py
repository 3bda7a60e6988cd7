"""What a network shows of its inside over many sequences, batch by batch: nothing is kept but what the reader keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError
from statewise.models import SequenceClassifier, Trace

Network = SequenceClassifier


@runtime_checkable
class Labelled(Protocol):
    """Sequences with a class each, such as ``statewise.data.Sequences`` and ``statewise.data.Images``."""

    @property
    def labels(self) -> Any:
        """The class of each sequence."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""

    def __len__(self) -> int: ...

    def padded(self, indices: Any) -> tuple[Tensor, Tensor | None, Tensor]:
        """Inputs, lengths (None where all are full) and labels of some of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """One batch, the start token left out: the first step is the first of the sequence.

    Args:
        inputs: token ids (batch, steps), or numbers (batch, steps, features).
        labels: the class of each sequence.
        inside: which steps belong to their sequence.
        probabilities: of the centroids; None if they were not asked for.
        states: that are fed back; None likewise.
        cells: the memories; None likewise.
        before: the memory before each step; None likewise.
    """

    inputs: Tensor
    labels: Int[Tensor, " batch"]
    inside: Bool[Tensor, "batch steps"]
    probabilities: Float[Tensor, "batch steps k"] | None = None
    states: Float[Tensor, "batch steps hidden"] | None = None
    cells: Float[Tensor, "batch steps hidden"] | None = None
    before: Float[Tensor, "batch steps hidden"] | None = None


def watch(
    model: Network, sequences: Labelled, *, collect: Iterable[str], layer: int = 0, batch: int = 256
) -> Iterator[Seen]:
    """Run the network over all sequences in eval mode, those of like lengths together.

    Args:
        model: that is read.
        sequences: that it reads.
        collect: some of "probabilities", "states", "cells".
        layer: of which layer.
        batch: sequences at once.
    """
    wanted = tuple(collect)
    check_layer(model, layer, centroids="probabilities" in wanted)
    check_symbols(model, sequences)
    if batch < 1:
        raise ArgumentError(where="batch", got=batch, wanted="at least 1 sequence at once")
    device = next(model.parameters()).device
    lengths = np.asarray(getattr(sequences, "lengths", np.zeros(len(sequences))))
    order = np.argsort(lengths, kind="stable")
    for begin in range(0, len(order), batch):
        inputs, own, labels = sequences.padded(order[begin : begin + batch])
        inputs = inputs.to(device)
        trace = model.states(inputs, own, collect=wanted)
        yield see(trace, inputs, labels.to(device), layer)


def see(trace: Trace, inputs: Tensor, labels: Int[Tensor, " batch"], layer: int) -> Seen:
    """The part of a trace that belongs to the sequences themselves.

    Args:
        trace: of a batch.
        inputs: of that batch.
        labels: of that batch.
        layer: of which layer.
    """
    first = int(trace.has_start)
    inside = trace.mask[:, first:]
    probabilities, states, cells = (
        parts[layer] if parts else None for parts in (trace.probabilities, trace.states, trace.cells)
    )
    before = None
    if cells is not None:
        before = cells[:, :-1] if first else torch.cat([torch.zeros_like(cells[:, :1]), cells[:, :-1]], 1)
    probabilities, states, cells = (
        None if part is None else part[:, first:] for part in (probabilities, states, cells)
    )
    return Seen(
        inputs=inputs[:, : inside.shape[1]],
        labels=labels,
        inside=inside,
        probabilities=probabilities,
        states=states,
        cells=cells,
        before=before,
    )


def check_symbols(model: Network, sequences: Any) -> None:
    """Refuse sequences that number their symbols otherwise than the model does: it would read other words.

    Args:
        model: any.
        sequences: that may have ``symbols``.
    """
    known, held = model.symbols, getattr(sequences, "symbols", None)
    if known is None or held is None or tuple(held) == tuple(known):
        return
    differing = (place for place, pair in enumerate(zip_longest(held, known)) if pair[0] != pair[1])
    at = next(differing)
    raise ArgumentError(
        where="sequences.symbols",
        got=f"{held[at]!r} as symbol {at}" if at < len(held) else f"only {len(held)} symbols",
        wanted=f"the model's {len(known)} symbols in their order"
        + (f", {known[at]!r} at that place" if at < len(known) else ""),
        remedy="Number the words as the model does: Sequences.from_words(words, labels, symbols=model.symbols).",
    )


def check_layer(model: Network, layer: int, *, centroids: bool) -> None:
    """Refuse a layer that the model does not have, or one without centroids where they are needed.

    Args:
        model: any.
        layer: counted from 0.
        centroids: whether the layer must have them.
    """
    number = number_of_centroids(model, layer)
    if centroids and number == 0:
        raise ArgumentError(
            where="model", got=f"no centroids in layer {layer}", wanted="a layer whose states move among centroids",
            remedy="Build it with centroids=(k,).",
        )  # fmt: skip


def number_of_centroids(model: Network, layer: int) -> int:
    """How many centroids a layer has; 0 for a plain one.

    Args:
        model: any.
        layer: counted from 0.

    >>> from statewise.models import ClassifierConfig
    >>> number_of_centroids(ClassifierConfig(hidden=4, centroids=(3,)).build(tokens=2, classes=2), 0)
    3
    """
    if not 0 <= layer < model.config.layers:
        raise ArgumentError(where="layer", got=layer, wanted=f"a layer from 0 to {model.config.layers - 1}")
    found = model.centroids_of(layer)
    return 0 if found is None else len(found[1])


def symbols_of(model: Network, sequences: Any) -> tuple[str, ...]:
    """The texts of the tokens: the data's, else the model's, else their numbers.

    Args:
        model: of tokens.
        sequences: that may have ``symbols``.
    """
    if model.tokens is None:
        raise DtypeError(where="model", got="a model of numbers", wanted="a model of tokens")
    symbols: Sequence[str] = (
        getattr(sequences, "symbols", None) or model.symbols or tuple(map(str, range(model.tokens)))
    )
    if len(symbols) > model.tokens:
        raise ArgumentError(
            where="sequences.symbols", got=len(symbols), wanted=f"at most the model's {model.tokens} tokens"
        )
    return tuple(symbols)
