"""Embedding dropout: whole words fall out of the vocabulary for one forward pass."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

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
    looked_up: Tensor = embedding(tokens)
    if not training or p == 0.0:
        return looked_up
    weight = embedding.weight
    mask = torch.ones(embedding.num_embeddings, dtype=weight.dtype, device=weight.device)
    mask[: embedding.num_embeddings - kept].bernoulli_(1 - p, generator=generator).div_(1 - p)
    return looked_up * mask[tokens].unsqueeze(-1)
