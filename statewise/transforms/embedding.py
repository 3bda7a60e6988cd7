"""Embedding dropout: whole words fall out of the vocabulary for one forward pass."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from statewise.errors import ArgumentError
from statewise.transforms.base import probability


def embedding_dropout(
    embedding: nn.Embedding,
    tokens: Int[Tensor, "*shape"],
    *,
    p: float,
    training: bool,
    kept: int = 0,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "*shape width"]:
    """Look tokens up in an embedding from which whole word types are dropped.

    Row v of the matrix is multiplied by ``Bernoulli(1 - p) / (1 - p)``, drawn once, so a dropped word is zero
    wherever it occurs (Gal & Ghahramani 2016; Merity et al. 2018, section 4.4). A tied softmax uses the matrix itself.

    Args:
        embedding: the embedding layer.
        tokens: word indices, any shape.
        p: probability of dropping a word type.
        training: whether to drop at all.
        kept: so many of the last rows are never dropped, such as marks of a sequence's begin and end.
        generator: source of the mask; None means torch's global one.

    >>> table = nn.Embedding(10, 3)
    >>> words = torch.tensor([[1, 2], [1, 4]])
    >>> bool((embedding_dropout(table, words, p=0.5, training=False) == table(words)).all())
    True
    """
    p = probability("embedding_dropout.p", p)
    if type(kept) is not int or not 0 <= kept <= embedding.num_embeddings:
        raise ArgumentError(
            where="embedding_dropout.kept",
            got=kept,
            wanted=f"a whole number from 0 to {embedding.num_embeddings}, the rows of the embedding",
        )
    looked_up: Tensor = embedding(tokens)
    if not training or p == 0.0:
        return looked_up
    weight = embedding.weight
    # Out of place, so that replicas under vmap can draw masks of their own.
    drawn = torch.bernoulli(weight.new_full((embedding.num_embeddings - kept,), 1 - p), generator=generator)
    mask = torch.cat((drawn / (1 - p), weight.new_ones(kept)))
    return looked_up * mask[tokens].unsqueeze(-1)
