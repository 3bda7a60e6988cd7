"""A language model as a handful of numbers and words, which a file or a command line can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import statewise.layers as kinds
from statewise.errors import ArgumentError
from statewise.layers import RecurrentLayer
from statewise.models.language import HEADS, LanguageModel
from statewise.models.regularizers import check_law, check_temperature, drop_recurrent_weights, zoneout_of
from statewise.transforms import (
    Centroids,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    OutputDropout,
    RecurrentDropout,
    SequenceTransform,
    Transform,
    Zoneout,
)
from statewise.transforms.base import choice, finite, probability
from statewise.transforms.noise import PLACEMENTS

CELLS = {
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn": "RNN",
    "mgu": "MGU",
    "multiplicative": "MultiplicativeRNN",
    "peephole": "PeepholeLSTM",
    "rac": "RAC",
}
PENALTY = "penalty"
DROPOUTS = (
    *("input_dropout", "hidden_dropout", "recurrent_dropout", "output_dropout", "latent_dropout"),
    *("embedding_dropout", "weight_drop"),
)


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Everything that makes a language model, but its weights and the size of its vocabulary.

    Args:
        cell: "lstm", "gru", "rnn", "mgu", "peephole", "rac" or "multiplicative".
        nonlinearity: of the "rnn" cell.
        hidden: the width of each layer, from the bottom.
        embedding: the width of the embedding; None means that of the top layer.
        tied: whether the softmax uses the embedding's matrix.
        head: "softmax", "mixture" or "adaptive".
        experts: of the mixture.
        noise: the law of Noisin's noise, or None; see :class:`~statewise.Noise`.
        gamma: its spread, in the law's own meaning; needed with noise.
        alpha: its first shape, for "gamma" and "beta".
        noise_mode: "multiplicative" or "additive".
        placement: "recurrent", "outputs", "last", or "penalty": noise on the last layer's output that is not drawn, but
            stood in for by its second-order penalty.
        centroids: how many each layer draws its state to, or None; see :class:`~statewise.Centroids`.
        temperature: of the centroids.
        input_dropout: of the embeddings.
        hidden_dropout: of what goes from one layer to the next.
        recurrent_dropout: of the state that a layer feeds back.
        output_dropout: of the top layer's output.
        latent_dropout: of the mixture's vectors.
        locked: one dropout mask for a whole segment instead of one a step.
        embedding_dropout: of whole word types.
        weight_drop: of entries of the recurrent matrices.
        zoneout: the probability with which a unit of the state keeps its value for a step; see
            :class:`~statewise.Zoneout`.
        zoneout_memory: the same for the memory of a cell that has one; None for as much as ``zoneout``.
        activation: the factor of AR.
        temporal: the factor of TAR.
        zero_biases: whether biases start at 0.

    >>> model = LanguageModelConfig(hidden=(650, 650)).build(10_000)
    >>> sum(parameter.numel() for parameter in model.parameters())
    13280400
    """

    cell: str = "lstm"
    nonlinearity: str = "tanh"
    hidden: tuple[int, ...] = (200, 200)
    embedding: int | None = None
    tied: bool = True
    head: str = "softmax"
    experts: int = 15
    noise: str | None = None
    gamma: float | None = None
    alpha: float = 2.0
    noise_mode: str = "multiplicative"
    placement: str = "recurrent"
    centroids: int | None = None
    temperature: float = 1.0
    input_dropout: float = 0.0
    hidden_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    output_dropout: float = 0.0
    latent_dropout: float = 0.0
    locked: bool = False
    embedding_dropout: float = 0.0
    weight_drop: float = 0.0
    zoneout: float = 0.0
    zoneout_memory: float | None = None
    activation: float = 0.0
    temporal: float = 0.0
    zero_biases: bool = True

    def __post_init__(self) -> None:
        if self.cell not in CELLS:
            raise ArgumentError(where="LanguageModelConfig.cell", got=self.cell, wanted=f"one of {', '.join(CELLS)}")
        if not self.hidden or not all(type(width) is int and width > 0 for width in self.hidden):
            raise ArgumentError(
                where="LanguageModelConfig.hidden",
                got=self.hidden,
                wanted="the width of each layer, such as (200, 200)",
            )
        check_law(self.noise, self.gamma, where="LanguageModelConfig")
        choice("LanguageModelConfig.head", self.head, HEADS)
        choice("LanguageModelConfig.placement", self.placement, (*PLACEMENTS, PENALTY))
        if self.embedding is not None and (type(self.embedding) is not int or self.embedding < 1):
            raise ArgumentError(
                where="LanguageModelConfig.embedding", got=self.embedding, wanted="a whole number >= 1, or None"
            )
        for name in DROPOUTS:
            probability(f"LanguageModelConfig.{name}", getattr(self, name))
        if self.latent_dropout > 0.0 and self.head != "mixture":
            raise ArgumentError(
                where="LanguageModelConfig.latent_dropout",
                got=f'{self.latent_dropout} with head="{self.head}"',
                wanted='head="mixture" with it',
            )
        # Of a law or a head that they are idle for, too: a slip is told where it is made.
        if finite("LanguageModelConfig.alpha", self.alpha) <= 0:
            raise ArgumentError(where="LanguageModelConfig.alpha", got=self.alpha, wanted="a number above 0")
        if type(self.experts) is not int or self.experts < 1:
            wanted = "a whole number >= 1"
            raise ArgumentError(where="LanguageModelConfig.experts", got=self.experts, wanted=wanted)
        self._noise()
        self._zoneout()
        check_temperature(self.centroids, self.temperature, where="LanguageModelConfig")
        if self.centroids is not None:
            if type(self.centroids) is not int or self.centroids < 1:
                wanted = "a whole number >= 1, or None"
                raise ArgumentError(where="LanguageModelConfig.centroids", got=self.centroids, wanted=wanted)
            Centroids(self.centroids, temperature=self.temperature)

    def build(self, words: int, *, generator: torch.Generator | None = None) -> LanguageModel:
        """The model for a vocabulary, with fresh weights.

        Args:
            words: size of the vocabulary.
            generator: source of the initial weights; None means torch's global one.
        """
        layers = self._layers()
        model = LanguageModel(
            words,
            layers,
            head=self.head,
            tied=self.tied,
            outputs=self._outputs(),
            experts=self.experts,
            latent_dropout=self.latent_dropout,
            embedding_dropout=self.embedding_dropout,
            activation=self.activation,
            temporal=self.temporal,
            stand_in=self._noise() if self.placement == PENALTY else None,
        )
        model.config = self
        model.initialise(generator, zero_biases=self.zero_biases)
        for layer in layers:
            drop_recurrent_weights(layer, self.weight_drop)
        return model

    def _layers(self) -> list[RecurrentLayer]:
        """Layers of one width as one stack, which an accelerator runs as a wavefront; else one by one."""
        width = self.embedding or self.hidden[-1]
        if len(set(self.hidden)) == 1:
            return [self._layer(width, self.hidden[0], 0, len(self.hidden))]
        below = (width, *self.hidden)
        return [self._layer(below[i], hidden, i, 1) for i, hidden in enumerate(self.hidden)]

    def _layer(self, input_size: int, hidden_size: int, first: int, count: int) -> RecurrentLayer:
        options: dict[str, Any] = {"nonlinearity": self.nonlinearity} if self.cell == "rnn" else {}
        kind = getattr(kinds, CELLS[self.cell])
        layer = kind(input_size, hidden_size, count, transforms=self._transforms(first, count), **options)
        assert isinstance(layer, RecurrentLayer)
        return layer

    def _transforms(self, first: int, count: int) -> list[Transform]:
        """What acts inside the layers ``first`` to ``first + count``: all but what leaves the top."""
        top = len(self.hidden) - 1
        drop = LockedInputDropout if self.locked else InputDropout
        found: list[Transform] = []
        upper = tuple(i for i in range(count) if first + i > 0)
        lower = tuple(i for i in range(count) if first + i < top)
        if self.input_dropout > 0.0 and first == 0:
            found.append(drop(self.input_dropout, layers=(0,)))
        noise = self._noise()
        if noise is not None and self.placement == "recurrent":
            found.append(noise)
        # After the noise, which would act anew at every step on a unit that is kept.
        found += self._zoneout()
        if self.centroids is not None:
            # After both, so that what is fed back lies among the centroids.
            found.append(Centroids(self.centroids, temperature=self.temperature))
        if noise is not None and self.placement == "outputs" and lower:
            found.append(Noise(noise.law, noise.gamma, noise.alpha, mode=noise.mode, placement="outputs", layers=lower))
        if self.hidden_dropout > 0.0 and upper:
            found.append(drop(self.hidden_dropout, layers=upper))
        if self.recurrent_dropout > 0.0:
            found.append(RecurrentDropout(self.recurrent_dropout, locked=self.locked))
        return found

    def _outputs(self) -> list[SequenceTransform]:
        """What acts on the top layer's output, where the temporal penalty does not see it."""
        noise, found = self._noise(), list[SequenceTransform]()
        if noise is not None and self.placement in ("outputs", "last"):
            found.append(Noise(noise.law, noise.gamma, noise.alpha, mode=noise.mode, placement="last"))
        if self.output_dropout > 0.0:
            found.append((LockedDropout if self.locked else OutputDropout)(self.output_dropout))
        return found

    def _noise(self) -> Noise | None:
        if self.noise is None or self.gamma is None:
            return None
        placement = "last" if self.placement == PENALTY else self.placement
        return Noise(self.noise, self.gamma, self.alpha, mode=self.noise_mode, placement=placement)

    def _zoneout(self) -> list[Zoneout]:
        return zoneout_of(self.zoneout, cell=self.cell, memory=self.zoneout_memory, where="LanguageModelConfig")
