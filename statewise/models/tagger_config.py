"""A tagger as a handful of numbers and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

import statewise.layers as kinds
from statewise.errors import ArgumentError
from statewise.layers import RecurrentLayer
from statewise.models.config import CELLS
from statewise.models.lexicon import Lexicon
from statewise.models.regularizers import (
    check_law,
    check_temperature,
    drop_recurrent_weights,
    refuse_idle,
    zoneout_of,
)
from statewise.transforms import Centroids, Noise, RecurrentDropout, Transform
from statewise.transforms.base import choice, probability

if TYPE_CHECKING:
    from statewise.models.tagger import Tagger

HEADS = ("crf", "softmax")


@dataclass(frozen=True, kw_only=True)
class TaggerConfig:
    """Everything that makes a tagger, but its words, its tags and its weights.

    The defaults are the strong tagger of Karamzade et al. 2020, section 4.3, with a network over characters in place of
    contextual vectors. With ``head="softmax"``, ``bidirectional=False`` and no characters, dropout or word dropout it
    is the weak one of their sections 4.1 to 4.3.

    Args:
        cell: "lstm", "gru", "rnn", "mgu", "peephole", "rac" or "multiplicative".
        hidden: the width of each layer and direction.
        layers: how many lie on each other.
        bidirectional: whether sentences are also read from behind.
        head: "crf", which looks at neighbouring tags, or "softmax".
        constrained: whether a CRF gives only sequences of tags that their scheme allows; it is trained on all.
        words: the width of word vectors that are learnt from nothing; idle where vectors are given.
        finetune: whether given word vectors are trained further.
        projection: whether a learnt square matrix comes before the layers, so that frozen vectors can be turned.
        characters: the width of the embeddings of characters, which an LSTM in both directions reads; 0 for none.
        character_hidden: the width of that LSTM in each direction.
        dropout: the probability with which a unit of a sentence falls out of what enters and of what leaves the layers,
            at all steps alike if ``locked``.
        locked: one dropout mask for a whole sentence instead of one a word, for ``dropout`` and ``recurrent_dropout``.
        recurrent_dropout: the probability with which a unit of the state that a layer feeds back is dropped.
        word_dropout: the probability with which a word is read as nothing; not scaled.
        noise: a law of noise on the states, see :class:`~statewise.Noise`; None for none.
        gamma: its spread; given with ``noise`` only.
        zoneout: the probability with which a unit of the state, and of the memory of a cell that has one, keeps its
            value for a step; see :class:`~statewise.Zoneout`.
        weight_drop: the probability with which an entry of the recurrent matrices is dropped for a batch.
        centroids: how many each layer and direction draws its state to, or None; see :class:`~statewise.Centroids`.
        temperature: of the centroids.

    >>> lexicon = Lexicon(tags=("O", "B-PER"), words=("anna",), characters=("a", "n"))
    >>> TaggerConfig(hidden=8).build(lexicon).layer.bidirectional
    True
    """

    cell: str = "lstm"
    hidden: int = 256
    layers: int = 1
    bidirectional: bool = True
    head: str = "crf"
    constrained: bool = False
    words: int = 100
    finetune: bool = False
    projection: bool = True
    characters: int = 25
    character_hidden: int = 25
    dropout: float = 0.5
    locked: bool = True
    recurrent_dropout: float = 0.0
    word_dropout: float = 0.05
    noise: str | None = None
    gamma: float | None = None
    zoneout: float = 0.0
    weight_drop: float = 0.0
    centroids: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        choice("TaggerConfig.cell", self.cell, tuple(CELLS))
        choice("TaggerConfig.head", self.head, HEADS)
        for name in ("hidden", "layers", "words", "characters", "character_hidden"):
            value, least = getattr(self, name), 0 if name == "characters" else 1
            if type(value) is not int or value < least:
                raise ArgumentError(
                    where=f"TaggerConfig.{name}", got=value, wanted=f"a whole number of at least {least}"
                )
        for name in ("dropout", "word_dropout", "recurrent_dropout", "weight_drop"):
            probability(f"TaggerConfig.{name}", getattr(self, name))
        if self.constrained and self.head != "crf":
            raise ArgumentError(
                where="TaggerConfig.constrained", got='True with head="softmax"', wanted='head="crf" with it'
            )
        check_law(self.noise, self.gamma, where="TaggerConfig")
        check_temperature(self.centroids, self.temperature, where="TaggerConfig")
        if not self.locked and self.dropout == self.recurrent_dropout == 0.0:
            refuse_idle("TaggerConfig.locked", False, needs="dropout or recurrent_dropout")
        self._transforms()  # checks its own settings

    def build(
        self,
        lexicon: Lexicon,
        *,
        vectors: Float[Tensor, "words width"] | None = None,
        context: int = 0,
        generator: torch.Generator | None = None,
    ) -> Tagger:
        """The tagger with fresh weights.

        Args:
            lexicon: words, characters and tags.
            vectors: a row for each word of the lexicon; None for random ones, which are trained.
            context: the width of vectors from outside that every token has; 0 for none.
            generator: source of all weights; None means torch's global one.
        """
        from statewise.models.tagger import Tagger

        return Tagger(self, lexicon, vectors=vectors, context=context, generator=generator)

    def build_layer(self, input_size: int, *, generator: torch.Generator | None = None) -> RecurrentLayer:
        """The stack with fresh weights, steps first; weights start as torch.nn's do.

        Args:
            input_size: width of what it reads.
            generator: source of the weights; None means torch's global one.
        """
        kind = getattr(kinds, CELLS[self.cell])
        options = {"bidirectional": self.bidirectional, "transforms": self._transforms(), "generator": generator}
        layer = kind(input_size, self.hidden, self.layers, **options)
        assert isinstance(layer, RecurrentLayer)
        drop_recurrent_weights(layer, self.weight_drop)
        return layer

    def _transforms(self) -> list[Transform]:
        """What acts inside the layers, in its order: centroids last, so that what is fed back lies among them."""
        found: list[Transform] = []
        if self.noise is not None and self.gamma is not None:
            found.append(Noise(self.noise, self.gamma))
        found += zoneout_of(self.zoneout, cell=self.cell, where="TaggerConfig")
        if self.centroids is not None:
            found.append(Centroids(self.centroids, temperature=self.temperature))
        if self.recurrent_dropout > 0.0:
            found.append(RecurrentDropout(self.recurrent_dropout, locked=self.locked))
        return found
