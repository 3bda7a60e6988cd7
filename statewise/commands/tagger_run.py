"""A tagger that was trained, and what it is asked: sentences, and what it needs to know of their words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from statewise.commands.compare import COMPARED
from statewise.commands.tagged import Context, find_context, find_vectors
from statewise.errors import ArgumentError, RunFolderError
from statewise.models import Tagger
from statewise.models.encoded import Encoded
from statewise.train import RunFolder, load_tagger

Sentences = Sequence[Sequence[str]]


def task_of(folder: str) -> str:
    """What the run in a folder is of: "language model", "classifier", "tagger".

    Args:
        folder: of the run.
    """
    if (Path(folder) / COMPARED).exists():
        inside = sorted(str(place.parent) for place in Path(folder).glob("*/config.json"))
        raise RunFolderError(
            where=folder,
            got="a comparison of several runs",
            wanted="one of them",
            remedy=f"Name it: {' or '.join(inside)}." if inside else "",
        )
    if not (Path(folder) / "config.json").exists():
        raise RunFolderError(
            where=folder,
            got="no config.json",
            wanted="the folder of a run",
            remedy="statewise train lm, classify or tag makes one.",
        )
    return str(RunFolder(folder).config().get("task"))


def load_for(
    folder: str, sentences: Sentences, *, vectors: str | None, device: torch.device
) -> tuple[Tagger, dict[str, Any]]:
    """The tagger of a run, with vectors of the words that it is asked and does not know; and what the run was told.

    Args:
        folder: of the run.
        sentences: what it is asked.
        vectors: a file with the vectors; None for those that the run has.
        device: where the model goes.
    """
    tagger, told = load_tagger(folder, device=device)
    if vectors is None:
        return tagger, told
    if told["lexicon"]["vectors"] is None:
        raise ArgumentError(
            where="--vectors",
            got="vectors for a run that has learnt its own",
            wanted="a run that was trained with --vectors",
            remedy="Leave them out.",
        )
    found = find_vectors(vectors, sentences)
    assert found is not None
    width = told["lexicon"]["vectors"]
    if found.width != width:
        raise ArgumentError(where="--vectors", got=f"vectors of width {found.width}", wanted=f"{width}, as the run has")
    return tagger.extended(found.words, torch.from_numpy(found.vectors)), told


def encode_for(tagger: Tagger, sentences: Sentences, *, context: str | None) -> Encoded:
    """Sentences as a tagger reads them, with vectors from outside where it was trained with such.

    Args:
        tagger: who reads them.
        sentences: words in their order.
        context: a file with the vectors; None for none.
    """
    check_context(tagger, given=context is not None)
    rows = None if context is None else find_context(context, sentences)
    check_width(tagger, rows)
    return Encoded(tagger.lexicon, sentences, context=rows)


def check_context(tagger: Tagger, *, given: bool) -> None:
    """Refuse sentences without the vectors from outside that a tagger needs, and with such as it does not know.

    Args:
        tagger: who reads the sentences.
        given: whether there are vectors.
    """
    if given != (tagger.context > 0):
        raise ArgumentError(
            where="--context",
            got="vectors for a run without such" if given else "nothing",
            wanted=f"the run's vectors from outside, of width {tagger.context}" if tagger.context else "nothing",
            remedy="Leave them out." if given else "Name a file with one for each word.",
        )


def check_width(tagger: Tagger, rows: Context | None) -> None:
    """Refuse vectors from outside that are wider or narrower than those of a tagger's training.

    Args:
        tagger: who reads them.
        rows: the vectors; None for none.
    """
    if rows is not None and rows.shape[1] != tagger.context:
        wanted = f"{tagger.context}, as the run has"
        raise ArgumentError(where="--context", got=f"vectors of width {rows.shape[1]}", wanted=wanted)
