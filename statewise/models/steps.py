"""A classifier of every step of a sequence, whose state may move among centroids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.models.parts import Parts, check_inputs, make_embedding, make_head
from statewise.models.recurrent_config import RecurrentConfig
from statewise.models.sequences import check_shape, lay_out, steps_inside
from statewise.transforms import Place
from statewise.transforms.base import choice

READOUTS = ("h", "u")


@dataclass(frozen=True, kw_only=True)
class StepConfig(RecurrentConfig):
    """Everything that makes a classifier of steps, but its weights, its tokens and its classes.

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
        readout: what the head reads at every step: "h", the state, or "u", what the cell gave before the centroids. For
            a cell with a memory "u" runs on the slow reference engine; it needs a single layer.

    >>> StepConfig(cell="peephole", hidden=8, centroids=(5,)).build(tokens=10, classes=10).layer.hidden_size
    8
    """

    readout: str = "h"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self._where("readout"), self.readout, READOUTS)
        if self.readout == "u" and self.layers > 1:
            raise ArgumentError(
                where=self._where("readout"),
                got=f'"u" with {self.layers} layers',
                wanted="one layer with it",
                remedy='Give readout="h".',
            )

    def build(
        self,
        *,
        tokens: int | None = None,
        features: int | None = None,
        classes: int,
        generator: torch.Generator | None = None,
    ) -> StepClassifier:
        """The classifier with fresh weights.

        Args:
            tokens: how many tokens there are, for sequences of tokens.
            features: how many numbers a step has, for sequences of numbers; one of the two is given.
            classes: how many there are.
            generator: source of all weights; None means torch's global one.
        """
        return StepClassifier(self, tokens=tokens, features=features, classes=classes, generator=generator)


class StepClassifier(Parts):
    """A recurrent classifier of every step, without start and end tokens, as for copying memory.

    ``logits_t = head(h_t)``, or ``head(u_t)`` (Wang & Niepert 2019, section 5.3 and supplement).

    Args:
        config: everything but what follows.
        tokens: how many tokens there are, for sequences of tokens.
        features: how many numbers a step has, for sequences of numbers.
        classes: how many there are.
        generator: source of all weights; None means torch's global one.

    >>> model = StepConfig(hidden=8).build(tokens=10, classes=10)
    >>> model(torch.zeros(2, 7, dtype=torch.long)).shape
    torch.Size([2, 7, 10])
    """

    config: StepConfig

    def __init__(
        self,
        config: StepConfig,
        *,
        tokens: int | None = None,
        features: int | None = None,
        classes: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.symbols = check_inputs("StepClassifier", tokens, features, classes, None)
        config.refuse_inputs(tokens=tokens is not None)
        self.config, self.tokens, self.features, self.classes = config, tokens, features, classes
        width = config.embedding or config.hidden
        self.embedding = None if tokens is None else make_embedding(tokens, width, generator)
        self.layer = config.build_layer(width if features is None else features, generator=generator)
        self.head = make_head(config.hidden, classes, generator)

    def forward(
        self,
        inputs: Tensor,
        lengths: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch steps classes"]:
        """The logits of the classes at every step; those beyond a sequence's end are zero.

        Args:
            inputs: token ids (batch, steps), or numbers (batch, steps, features); what stands beyond a sequence's end
                is never looked at.
            lengths: of each sequence; None where all are full.
            generator: source of everything drawn; None means torch's global one.
        """
        where, inside = "StepClassifier", None
        check_shape(inputs, where=where, tokens=self.tokens, features=self.features)
        if 0 in inputs.shape[:2]:
            return self._logits(self.head.weight.new_zeros(*inputs.shape[:2], self.head.in_features))
        if lengths is not None:
            # No step looks ahead, so a dense batch will do, if what lies beyond the ends is a legal token.
            inside = steps_inside(inputs, lengths, where=where)
            inputs = torch.where(inside if self.features is None else inside.unsqueeze(2), inputs, 0)
        laid = lay_out(inputs, None, where=where, tokens=self.tokens, features=self.features, start=None)
        entering = self._entering(laid, generator)
        assert isinstance(entering, Tensor)
        logits = self._logits(self._read_out(entering, generator), generator).transpose(0, 1)
        return logits if inside is None else torch.where(inside.unsqueeze(2), logits, 0)

    def _read_out(
        self, entering: Float[Tensor, "steps batch input"], generator: torch.Generator | None
    ) -> Float[Tensor, "steps batch hidden"]:
        if self.config.readout == "h" or not any(each.place is Place.STATE for each in self.layer.transforms):
            output: Tensor = self.layer(entering, generator=generator)[0]
            return output
        # u_t is one bare step from h_{t-1}, for all steps at once; the first starts where the layer does.
        previous = [part[:-1].flatten(0, 1).unsqueeze(0) for part in self._carried(entering, generator)]
        first, _ = self.layer.plain_step(entering[0])
        if len(entering) == 1:
            return first.unsqueeze(0)
        hx = (previous[0], previous[1]) if len(previous) > 1 else previous[0]
        later, _ = self.layer.plain_step(entering[1:].flatten(0, 1), hx)
        return torch.cat([first.unsqueeze(0), later.unflatten(0, (-1, len(first)))])

    def _carried(self, entering: Tensor, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """What each step hands on: the states, and the memories where there are some; with gradients."""
        if not self.layer.cell.has_memory:
            return (self.layer(entering, generator=generator)[0],)
        states, _, seen = self.layer(entering, collect=("cells",), collect_grad=True, generator=generator)
        return states, seen.cells[0]

    def retune(self, **settings: Any) -> None:
        """Change settings of the centroids of all layers, such as ``temperature=0.5``; ``config`` changes with them.

        Args:
            **settings: some of "temperature", "similarity", "transition", "noise".
        """
        self._retune_layer(settings)
        self.config = replace(self.config, **settings)
