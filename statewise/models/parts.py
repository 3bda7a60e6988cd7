"""What the classifiers of sequences and of steps have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from statewise.errors import ArgumentError
from statewise.heads import apply_outside
from statewise.layers import RecurrentLayer
from statewise.models.recurrent_config import RecurrentConfig
from statewise.models.saved import Saved
from statewise.models.sequences import Laid, sequences_of
from statewise.transforms import Centroids, LockedDropout, OutputDropout, Zoneout, embedding_dropout

SETTINGS = ("temperature", "similarity", "transition", "noise")


class Parts(Saved):
    """An embedding (for tokens), a recurrent stack and a linear head; the classes of models put them to work."""

    config: RecurrentConfig
    tokens: int | None
    features: int | None
    classes: int
    symbols: tuple[str, ...] | None
    embedding: nn.Embedding | None
    layer: RecurrentLayer
    head: nn.Linear
    scale_mean: Tensor
    scale_deviation: Tensor

    @property
    def memoryless(self) -> bool:
        """Whether the centroids are all that is carried from step to step, so that the model has finitely many states.

        Wang & Niepert 2019, theorems 3.1 and 3.2.
        """
        return not self.why_not_memoryless

    @property
    def why_not_memoryless(self) -> str:
        """What else is carried from step to step; empty if nothing is."""
        if self.layer.cell.has_memory:
            return f"the {self.layer.cell.name} carries a memory c besides its state"
        if any(isinstance(transform, Zoneout) for transform in self.layer.transforms):
            return "Zoneout carries a share of the old state past the cell"
        bare = [str(index) for index in range(self.layer.num_layers) if self.centroids_of(index) is None]
        if len(bare) == self.layer.num_layers:
            return "no layer has centroids"
        return f"layer {', '.join(bare)} (counted from 0) has no centroids" if bare else ""

    def centroids_of(self, layer: int) -> tuple[Centroids, Tensor] | None:
        """The centroids of a layer, (k, hidden), and how the state is drawn to them; None for a plain layer.

        Args:
            layer: from the bottom, counted from 0.
        """
        kinds = [transform for transform in self.layer.transforms if isinstance(transform, Centroids)]
        for earlier, transform in enumerate(kinds):
            if transform.acts_on(layer, self.layer.num_layers):
                # The layer numbers the parameters of a second transform of a kind.
                return transform, getattr(self.layer, f"centroids{earlier + 1 if earlier else ''}_l{layer}")
        return None

    @property
    def _known_tokens(self) -> int:
        if self.tokens is None:
            raise ArgumentError(
                where=type(self).__name__, got="a model of features", wanted="a model of tokens: this has no alphabet"
            )
        return self.tokens

    @property
    def outside(self) -> tuple[Any, ...]:
        """What acts in training outside the layers: noise on what the head reads, dropout before and after the layers.

        Transforms, and the function :func:`~statewise.transforms.embedding_dropout`.
        """
        noise, p = self.config.output_noise(), self.config.dropout
        dropout = LockedDropout if self.config.locked else OutputDropout
        found = (*(() if noise is None else (noise,)), *((dropout(p),) if p > 0.0 else ()))
        return (*found, embedding_dropout) if self.config.embedding_dropout > 0.0 else found

    def _entering(self, laid: Laid, generator: torch.Generator | None = None) -> Tensor | PackedSequence:
        """What the layer reads."""
        if self.embedding is None:
            return laid.map(self.standardised) if self.has_scale else laid.source
        return laid.map(partial(self._embedded, laid, generator=generator))

    @property
    def has_scale(self) -> bool:
        """Whether features are standardised before they are read."""
        return "scale_mean" in self._buffers

    def standardise(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        """Let the model take the mean of its training set off each feature, and divide it by the deviation.

        Both become part of the model's state. What it reads are then values as they are.

        Args:
            mean: of each feature.
            deviation: of each feature, above 0.
        """
        width = self.features
        if (
            width is None
            or not len(mean) == len(deviation) == width
            or not all(0 < each < math.inf for each in deviation)
        ):
            raise ArgumentError(
                where=f"{type(self).__name__}.standardise",
                got=f"{len(mean)} means and the deviations {tuple(deviation)}",
                wanted=f"a mean and a deviation above 0 for each of {width} features",
            )
        weight = self.head.weight
        for name, values in (("scale_mean", mean), ("scale_deviation", deviation)):
            self.register_buffer(name, torch.tensor(values, dtype=weight.dtype, device=weight.device))

    def standardised(self, values: Tensor) -> Tensor:
        """Values of features as the layer reads them.

        Args:
            values: (..., features).
        """
        return (values - self.scale_mean) / self.scale_deviation if self.has_scale else values

    def _embedded(self, laid: Laid, tokens: Tensor, *, generator: torch.Generator | None) -> Tensor:
        """The embeddings of tokens, in training with dropout."""
        looked_up = self._looked_up(tokens, generator)
        if self.training and self.config.locked and isinstance(laid.source, PackedSequence):
            mask = self._dropped(looked_up.new_ones(1, laid.batch, looked_up.shape[1]), generator)
            return looked_up * mask[0].index_select(0, sequences_of(laid.source))
        return self._dropped(looked_up, generator)

    def _looked_up(self, tokens: Tensor, generator: torch.Generator | None) -> Tensor:
        """The rows of tokens; in training types fall out, but no mark of a begin or an end ever does."""
        assert self.embedding is not None
        return embedding_dropout(
            self.embedding,
            tokens,
            p=self.config.embedding_dropout,
            training=self.training,
            kept=self.embedding.num_embeddings - self._known_tokens,
            generator=generator,
        )

    def _logits(self, features: Tensor, generator: torch.Generator | None = None) -> Tensor:
        logits: Tensor = self.head(self._disturbed(features, generator))
        return logits

    def _disturbed(self, features: Tensor, generator: torch.Generator | None) -> Tensor:
        """What is read out, in training with noise and dropout; (rows, width), or with the steps before."""
        noise = self.config.output_noise() if self.training else None
        if noise is not None and features.numel():
            rows = features if features.ndim == 3 else features.unsqueeze(0)
            features = apply_outside((noise,), rows, training=True, generator=generator).view_as(features)
        return self._dropped(features, generator)

    def _dropped(self, values: Tensor, generator: torch.Generator | None) -> Tensor:
        """The values, in training some of them at 0 and the others larger; locked, the same ones at all steps."""
        p = self.config.dropout
        if not self.training or p == 0.0:
            return values
        if self.config.locked and values.ndim == 3:
            return apply_outside((LockedDropout(p),), values, training=True, generator=generator)
        # Out of place, so that replicas under vmap can draw masks of their own.
        return values * torch.bernoulli(torch.full_like(values, 1 - p), generator=generator) / (1 - p)

    def _retune_layer(self, settings: dict[str, Any]) -> None:
        where = f"{type(self).__name__}.retune"
        if unknown := sorted(settings.keys() - set(SETTINGS)):
            raise ArgumentError(where=where, got=f"settings {unknown}", wanted=f"some of {', '.join(SETTINGS)}")
        if not any(isinstance(transform, Centroids) for transform in self.layer.transforms):
            raise ArgumentError(where=where, got="a model without centroids", wanted="one with centroids")
        self.layer.retune(Centroids, **settings)


def make_embedding(rows: int, width: int, generator: torch.Generator | None) -> nn.Embedding:
    """An embedding with entries from N(0, 1), without a draw from torch's global generator if another is given."""
    embedding: nn.Embedding = nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)
    nn.init.normal_(embedding.weight, generator=generator)
    return embedding


def make_head(width: int, classes: int, generator: torch.Generator | None) -> nn.Linear:
    """A linear head with weights from U(-1/sqrt(width), 1/sqrt(width)) and no bias at first."""
    head = nn.Linear(width, classes, device="meta").to_empty(device=torch.get_default_device())
    nn.init.uniform_(head.weight, -(width**-0.5), width**-0.5, generator=generator)
    nn.init.zeros_(head.bias)
    return head


def check_inputs(
    where: str, tokens: int | None, features: int | None, classes: int, symbols: Sequence[str] | None
) -> tuple[str, ...] | None:
    """Refuse sizes that make no model; gives the symbols as a tuple.

    Args:
        where: the model's name.
        tokens: how many tokens there are, or None.
        features: width of a step, or None; exactly one of the two is given.
        classes: how many there are.
        symbols: the text of each token, or None.
    """
    if (tokens is None) == (features is None):
        raise ArgumentError(
            where=f"{where}.tokens",
            got="tokens and features" if tokens is not None else "neither tokens nor features",
            wanted="one of them",
        )
    for name, value, least in (("tokens", tokens, 1), ("features", features, 1), ("classes", classes, 2)):
        if value is not None and (type(value) is not int or value < least):
            raise ArgumentError(where=f"{where}.{name}", got=value, wanted=f"a whole number of at least {least}")
    if symbols is None:
        return None
    known = tuple(symbols)
    if len(known) != tokens or len(set(known)) != len(known) or not all(isinstance(each, str) for each in known):
        raise ArgumentError(where=f"{where}.symbols", got=known, wanted=f"{tokens} different texts, one a token")
    return known
