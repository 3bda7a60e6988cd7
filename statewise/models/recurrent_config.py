"""A recurrent stack with centroids as a handful of numbers and words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

import statewise.layers as kinds
from statewise.errors import ArgumentError
from statewise.layers import RAC, RecurrentLayer
from statewise.models.config import CELLS
from statewise.models.regularizers import check_law, drop_recurrent_weights, refuse_idle, zoneout_of
from statewise.transforms import Centroids, Noise, RecurrentDropout, Transform
from statewise.transforms.base import choice, finite, probability


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """What makes the recurrent stack of a classifier; see :class:`ClassifierConfig` and :class:`StepConfig`.

    Args:
        cell: "gru", "lstm", "peephole", "rnn", "mgu", "rac" or "multiplicative".
        hidden: the width of each layer.
        layers: how many lie on each other.
        embedding: the width of token embeddings; None means ``hidden``.
        centroids: how many each layer has: none at all (empty), one number for all layers, or one a layer, where 0
            leaves a layer plain.
        temperature: of the centroids.
        similarity: of the centroids.
        transition: of the centroids.
        noise: the factor of the noise of transition "noisy".
        forget_bias: the forget gate's bias at the start, for cells that have the gate; all other biases start at 0,
            before ``input_mean`` is taken off.
        input_gain: the weights of the input start uniform within ``+-input_gain / sqrt(input width)``, so that a single
            number a step is heard as well as a wide embedding; None for the other weights' ``+-1 / sqrt(hidden)``.
        input_mean: of the features, which the biases at the start take off.
        input_deviation: of the features, by which the weights of the input at the start are divided. With both the
            network starts as if what it reads were standardised, and reads it as it is; tokens have neither.
        embedding_dropout: the probability with which a token falls out of the alphabet for one training batch; tokens
            only.
        dropout: the probability with which an entry of the embeddings that the layers walk through, and of what the
            head reads, is dropped in training.
        locked: one dropout mask for a whole sequence instead of one a step, for ``dropout`` and ``recurrent_dropout``.
        recurrent_dropout: the probability with which a unit of the state that a layer feeds back is dropped.
        zoneout: the probability with which a unit of the state, and of the memory of a cell that has one, keeps its
            value for a step; see :class:`~statewise.Zoneout`.
        weight_drop: the probability with which an entry of the recurrent matrices is dropped for a batch.
        state_noise: a law of noise on the states, see :class:`~statewise.Noise`; None for none.
        gamma: its spread; given with ``state_noise`` only.
        orthogonal: whether recurrent matrices start orthogonal, gate by gate, rather than uniform.
        nonlinearity: of the "rnn" cell.
        reset_before: of the "gru" cell.
    """

    cell: str = "gru"
    hidden: int = 32
    layers: int = 1
    embedding: int | None = None
    centroids: tuple[int, ...] = ()
    temperature: float = 1.0
    similarity: str = "dot"
    transition: str = "mixture"
    noise: float = 0.0
    forget_bias: float = 1.0
    input_gain: float | None = None
    input_mean: float = 0.0
    input_deviation: float = 1.0
    embedding_dropout: float = 0.0
    dropout: float = 0.0
    locked: bool = False
    recurrent_dropout: float = 0.0
    zoneout: float = 0.0
    weight_drop: float = 0.0
    state_noise: str | None = None
    gamma: float | None = None
    orthogonal: bool = False
    nonlinearity: str = "tanh"
    reset_before: bool = False

    def __post_init__(self) -> None:
        choice(self._where("cell"), self.cell, tuple(CELLS))
        for name in ("hidden", "layers", "embedding"):
            value = getattr(self, name)
            if (type(value) is not int or value < 1) and (name != "embedding" or value is not None):
                raise ArgumentError(where=self._where(name), got=value, wanted="a whole number of at least 1")
        self._check_centroids()
        finite(self._where("forget_bias"), self.forget_bias)
        self._check_input()
        self._check_regularizers()
        for count in {*self.centroids} - {0} or {1}:
            self._transform(count, layers=None)  # checks its own settings
        for name, cell in (("reset_before", "gru"), ("nonlinearity", "rnn")):
            if getattr(self, name) not in (False, "tanh") and self.cell != cell:
                raise ArgumentError(
                    where=self._where(name), got=f'{getattr(self, name)!r} with cell="{self.cell}"',
                    wanted=f'cell="{cell}" with it',
                )  # fmt: skip

    def _check_regularizers(self) -> None:
        for name in ("embedding_dropout", "dropout", "recurrent_dropout", "weight_drop"):
            probability(self._where(name), getattr(self, name))
        if self.locked and self.dropout == self.recurrent_dropout == 0.0:
            refuse_idle(self._where("locked"), True, needs="dropout or recurrent_dropout")
        check_law(self.state_noise, self.gamma, where=type(self).__name__, name="state_noise")
        zoneout_of(self.zoneout, cell=self.cell, where=type(self).__name__)

    def _where(self, name: str) -> str:
        return f"{type(self).__name__}.{name}"

    def _check_input(self) -> None:
        finite(self._where("input_mean"), self.input_mean)
        factors = {"input_deviation": self.input_deviation}
        factors |= {} if self.input_gain is None else {"input_gain": self.input_gain}
        for name, value in factors.items():
            if finite(self._where(name), value) <= 0:
                raise ArgumentError(where=self._where(name), got=value, wanted="a number above 0")
        if self.input_mean and self.cell == "rac":
            raise ArgumentError(
                where=self._where("input_mean"),
                got=f'{self.input_mean} with cell="rac"',
                wanted="0: that cell has no bias which could take it off",
                remedy="Standardise the features, or take another cell.",
            )

    def refuse_inputs(self, *, tokens: bool) -> None:
        """Refuse settings that mean nothing for what a model reads.

        Args:
            tokens: whether it reads tokens; else features.
        """
        idle = ("input_mean", "input_deviation") if tokens else ("embedding_dropout",)
        for name in idle:
            value, neutral = getattr(self, name), 1.0 if name == "input_deviation" else 0.0
            if value != neutral:
                raise ArgumentError(
                    where=self._where(name),
                    got=f"{value} for {'tokens' if tokens else 'features'}",
                    wanted=f"{neutral}: it is for {'features' if tokens else 'tokens'}",
                    remedy="Embeddings start standardised." if tokens else "dropout is for both.",
                )

    def _check_centroids(self) -> None:
        given = self.centroids
        if not isinstance(given, tuple) or not all(type(count) is int and count >= 0 for count in given):
            raise ArgumentError(
                where=self._where("centroids"),
                got=given,
                wanted="a tuple of whole numbers >= 0",
                remedy="(10,) gives every layer 10 centroids, (10, 0) only the first; () means none.",
            )
        if len(given) not in (0, 1, self.layers):
            raise ArgumentError(
                where=self._where("centroids"),
                got=f"{len(given)} numbers for {self.layers} layer(s)",
                wanted="one number for all layers, or one a layer",
            )

    @property
    def centroids_of_layers(self) -> tuple[int, ...]:
        """How many centroids each layer has, from the bottom; 0 for none.

        >>> RecurrentConfig(layers=2, centroids=(5,)).centroids_of_layers
        (5, 5)
        """
        if not self.centroids:
            return (0,) * self.layers
        return self.centroids if len(self.centroids) == self.layers else self.centroids * self.layers

    def build_layer(self, input_size: int, *, generator: torch.Generator | None = None) -> RecurrentLayer:
        """The stack with fresh weights, steps first.

        Args:
            input_size: width of what it reads.
            generator: source of the weights; None means torch's global one.
        """
        options: dict[str, Any] = {"transforms": self._transforms(), "generator": generator}
        layer = _layer(self.cell, self.nonlinearity, self.reset_before)(input_size, self.hidden, self.layers, **options)
        self._set_weights(layer, generator)
        drop_recurrent_weights(layer, self.weight_drop)
        return layer

    def output_noise(self) -> Noise | None:
        """The noise on what the head reads, where that of the top layer is not fed back; None where there is none.

        Fed back to a cell that passes its state on linearly, noise would compound. Then it acts on what every layer
        gives to the next and, at the top, on what is read out, be that the state or what the cells make of an end.

        >>> RecurrentConfig(cell="gru", state_noise="gaussian", gamma=0.5).output_noise()
        Noise('gaussian', 0.5, placement='last')
        >>> RecurrentConfig(cell="lstm", state_noise="gaussian", gamma=0.5).output_noise() is None
        True
        """
        noise = self._noise()
        return None if noise is None or noise.placement == "recurrent" else replace(noise, placement="last")

    def _noise(self) -> Noise | None:
        """The noise, with its place settled for the cell."""
        if self.state_noise is None or self.gamma is None:
            return None
        linear = _passes_linearly(self.cell, self.nonlinearity, self.reset_before)
        return Noise(self.state_noise, self.gamma).placed_for(linear_path=linear)

    def _transforms(self) -> list[Transform]:
        """What acts inside the layers, in its order: centroids last, so that what is fed back lies among them."""
        found: list[Transform] = []
        noise, lower = self._noise(), tuple(range(self.layers - 1))
        if noise is not None and noise.placement == "recurrent":
            found.append(noise)
        elif noise is not None and lower:
            found.append(replace(noise, layers=lower))
        # After the noise, which would act anew at every step on a unit that is kept.
        found += zoneout_of(self.zoneout, cell=self.cell, where=type(self).__name__)
        found += self._centroids()
        if self.recurrent_dropout > 0.0:
            found.append(RecurrentDropout(self.recurrent_dropout, locked=self.locked))
        return found

    def _centroids(self) -> list[Centroids]:
        """One transform for each number of centroids, on all layers that have so many."""
        counts = self.centroids_of_layers
        found = []
        for count in dict.fromkeys(count for count in counts if count):
            on = tuple(layer for layer, own in enumerate(counts) if own == count)
            found.append(self._transform(count, layers=None if len(on) == self.layers else on))
        return found

    def _transform(self, count: int, *, layers: tuple[int, ...] | None) -> Centroids:
        return Centroids(
            count,
            layers=layers,
            temperature=self.temperature,
            similarity=self.similarity,
            transition=self.transition,
            noise=self.noise,
        )

    def _set_weights(self, layer: RecurrentLayer, generator: torch.Generator | None) -> None:
        blocks, width = layer.cell.blocks, self.hidden
        forget = blocks.index("forget") if "forget" in blocks else None
        layer.zero_biases()
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if name.startswith("bias_ih") and forget is not None:
                    parameter[forget * width : (forget + 1) * width] = self.forget_bias
                if name.startswith("weight_hh") and self.orthogonal and not isinstance(layer, RAC):
                    for block in parameter.chunk(len(blocks)):
                        nn.init.orthogonal_(block, generator=generator)
            self._set_input(dict(layer.named_parameters()), generator)

    def _set_input(self, parameters: Mapping[str, Tensor], generator: torch.Generator | None) -> None:
        """Start as if the input were standardised: ``W (x - mean) / deviation = (W / deviation) x + bias``."""
        weight = parameters["weight_ih_l0"]
        if self.input_gain is not None:
            bound = self.input_gain / math.sqrt(weight.shape[1])
            weight.uniform_(-bound, bound, generator=generator)
        weight /= self.input_deviation
        if self.input_mean:
            parameters["bias_ih_l0"].sub_(self.input_mean * weight.sum(1))


def _layer(cell: str, nonlinearity: str, reset_before: bool) -> Callable[..., RecurrentLayer]:
    """What makes a layer of a cell, given its sizes."""
    options: dict[str, Any] = {"nonlinearity": nonlinearity} if cell == "rnn" else {}
    options |= {"reset_before": True} if reset_before else {}
    return partial(getattr(kinds, CELLS[cell]), **options)


@cache
def _passes_linearly(cell: str, nonlinearity: str, reset_before: bool) -> bool:
    """Whether the old state reaches the new one unsquashed, as a layer without memory for its weights tells."""
    layer = _layer(cell, nonlinearity, reset_before)(1, 1, device="meta", generator=torch.Generator())
    return layer.cell.linear_path
