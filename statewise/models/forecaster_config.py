"""A forecaster as a handful of numbers and words, which a file or a command line can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from statewise.models.forecaster import AROUND, Forecaster
from statewise.models.recurrent_config import RecurrentConfig
from statewise.transforms.base import choice


@dataclass(frozen=True, kw_only=True)
class ForecastConfig(RecurrentConfig):
    """Everything that makes a forecaster, but its weights, its features and their scale.

    Args:
        cell: "gru", "lstm", "peephole", "rnn", "mgu", "rac" or "multiplicative".
        hidden: the width of each layer.
        layers: how many lie on each other.
        embedding: idle: numbers are read as they are.
        centroids: how many each layer has: none at all (empty), one number for all layers, or one a layer, where 0
            leaves a layer plain.
        temperature: of the centroids; small means nearly one-hot.
        similarity: "dot", "euclidean" or "sqeuclidean".
        transition: "mixture", "sample", "argmax", "st_argmax", "gumbel_hard" or "noisy"; see
            :class:`~statewise.Centroids`.
        noise: the factor of the noise of transition "noisy".
        forget_bias: the forget gate's bias at the start, for cells that have the gate; all other biases start at 0.
        input_gain: the weights of the input start uniform within ``+-input_gain / sqrt(features)``; None for the other
            weights' ``+-1 / sqrt(hidden)``.
        input_mean: idle here: features are standardised by the training set.
        input_deviation: idle here, likewise.
        embedding_dropout: of tokens, hence 0.
        dropout: the probability with which an entry of what the head reads is dropped in training.
        orthogonal: whether recurrent matrices start orthogonal, gate by gate, rather than uniform.
        nonlinearity: of the "rnn" cell.
        reset_before: whether the "gru" cell resets the state before the product.
        around: what the head adds its mean to: "last", the last value, so that an untrained network forecasts that; or
            "mean", the mean of the training set, which long forecasts then return to.

    >>> ForecastConfig(hidden=8).build(features=2)(torch.zeros(3, 5, 2)).mean.shape
    torch.Size([3, 5, 2])
    """

    around: str = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self._where("around"), self.around, AROUND)

    def build(
        self,
        *,
        features: int,
        mean: Sequence[float] | None = None,
        deviation: Sequence[float] | None = None,
        generator: torch.Generator | None = None,
    ) -> Forecaster:
        """The forecaster with fresh weights.

        Args:
            features: how many numbers a step has.
            mean: of each feature of the training set; None for 0.
            deviation: of each, above 0; None for 1.
            generator: source of all weights; None means torch's global one.
        """
        return Forecaster(self, features=features, mean=mean, deviation=deviation, generator=generator)
