"""Vectors of tokens in their sentences, made by the package flair, which is imported only here and only when asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float32

from statewise.data.tagged import TaggedSentences
from statewise.errors import MissingExtraError


def context_vectors_by_flair(
    sentences: TaggedSentences | Sequence[Sequence[str]],
    names: Sequence[str] = ("news-forward", "news-backward"),
    *,
    batch: int = 32,
) -> Iterator[Float32[np.ndarray, "steps width"]]:
    """Contextual string embeddings (Akbik, Blythe & Vollgraf 2018) of each sentence, for `write_context_vectors`.

    Args:
        sentences: with their tags or without.
        names: of flair's models, whose vectors are put side by side; they are fetched when they are not there.
        batch: how many sentences run at once.

    Raises:
        MissingExtraError: the package flair is not installed.
    """
    try:
        data, embeddings = import_module("flair.data"), import_module("flair.embeddings")
    except ImportError as error:
        remedy = "Install it: pip install flair; then try again."
        where = "context_vectors_by_flair"
        raise MissingExtraError(where=where, got="no flair", wanted="the package flair", remedy=remedy) from error
    rows = sentences.sentences if isinstance(sentences, TaggedSentences) else sentences
    stack = embeddings.StackedEmbeddings([embeddings.FlairEmbeddings(name) for name in names])
    groups = (rows[start : start + batch] for start in range(0, len(rows), batch))
    return (vectors for group in groups for vectors in _embedded(data, stack, group))


def _embedded(data: Any, stack: Any, group: Sequence[Sequence[str]]) -> Iterator[npt.NDArray[np.float32]]:
    made = [data.Sentence(list(tokens)) for tokens in group]
    stack.embed(made)
    for sentence in made:
        yield np.stack([token.embedding.detach().cpu().numpy().astype(np.float32) for token in sentence])
