"""A classifier of sequences as a handful of numbers and words, which a file or a command line can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from statewise.models.classifier import READOUTS, SequenceClassifier
from statewise.models.recurrent_config import RecurrentConfig
from statewise.transforms.base import choice


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig(RecurrentConfig):
    """Everything that makes a classifier of sequences, but its weights, its alphabet and its classes.

    The defaults are those of Wang & Niepert 2019, section 5 and supplement; widths are the user's.

    Args:
        cell: "gru", "lstm", "peephole", "rnn", "mgu", "rac" or "multiplicative".
        hidden: the width of each layer.
        layers: how many lie on each other.
        embedding: the width of token embeddings; None means ``hidden``; idle for features.
        centroids: how many each layer has: none at all (empty), one number for all layers, or one a layer, where 0
            leaves a layer plain.
        temperature: of the centroids; small means nearly one-hot.
        similarity: "dot", "euclidean" or "sqeuclidean".
        transition: "mixture", "sample", "argmax", "st_argmax", "gumbel_hard" or "noisy"; see
            :class:`~statewise.Centroids`.
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
        reset_before: whether the "gru" cell resets the state before the product.
        readout: what the head reads: "u_end" (what the cells make of an end token, past the centroids), or the final
            "h", "c", or "hc" side by side.
        start_token: whether a start token comes before the sequence; tokens only.

    >>> model = ClassifierConfig(hidden=8, centroids=(5,)).build(tokens=2, classes=2, symbols="01")
    >>> model.classify(["", "0110"]).shape
    (2,)
    """

    readout: str = "u_end"
    start_token: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self._where("readout"), self.readout, READOUTS)

    def build(
        self,
        *,
        tokens: int | None = None,
        features: int | None = None,
        classes: int,
        symbols: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> SequenceClassifier:
        """The classifier with fresh weights.

        Args:
            tokens: how many tokens there are, for sequences of tokens.
            features: how many numbers a step has, for sequences of numbers; one of the two is given.
            classes: how many there are.
            symbols: the text of each token, so that words can be classified.
            generator: source of all weights; None means torch's global one.
        """
        return SequenceClassifier(
            self, tokens=tokens, features=features, classes=classes, symbols=symbols, generator=generator
        )
