"""The text that ``--data`` names, and the language model of a run, for the commands about language models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from statewise.data import Corpus, TokenStream, Vocabulary, corpus, find_data_set, read_corpus, sample_corpus
from statewise.errors import ArgumentError, RunFolderError
from statewise.models import LanguageModel
from statewise.train import load_language_model

DATA_SETS = ("ptb", "wikitext-2")
SAMPLE = "sample"


def read_text(data: str, *, limit: int | None = None, min_count: int = 1, lower: bool = False) -> Corpus:
    """The corpus that ``--data`` names: a folder, a file, "ptb", "wikitext-2" or "sample".

    Args:
        data: what was typed.
        limit: the most words of the vocabulary.
        min_count: words that occur less often are unknown.
        lower: whether letters are made lower case.
    """
    if data != SAMPLE:
        return read_corpus(_place(data), limit=limit, min_count=min_count, lower=lower)
    given = {"--limit": limit is not None, "--min-count": min_count != 1, "--lower": lower}
    idle = [option for option, there in given.items() if there]
    if idle:
        raise ArgumentError(
            where="--data sample",
            got=f"{' and '.join(idle)} with it",
            wanted="the embedded text as it is",
            remedy=f"Leave {'it' if len(idle) == 1 else 'them'} out, or name a text of yours.",
        )
    return sample_corpus()


def read_part(data: str, split: str, vocabulary: Vocabulary, *, lower: bool = False) -> tuple[str, TokenStream]:
    """The name of the corpus that ``--data`` names, and one part of it in the words of a model.

    Args:
        data: what was typed.
        split: which part.
        vocabulary: of the model.
        lower: whether letters are made lower case.
    """
    if data != SAMPLE:
        return corpus.read_part(_place(data), split, vocabulary, lower=lower)
    sample = sample_corpus()
    words = sample.vocabulary.decode(getattr(sample, split)[:])
    return sample.name, TokenStream(np.array(vocabulary.encode(words)))


def made_lower(told: Mapping[str, Any]) -> bool:
    """Whether a run read its text in lower case, so that its model knows no other letters.

    Args:
        told: what the run was told.
    """
    return bool(told.get("source", {}).get("lower", False))


def _place(data: str) -> Path:
    named = data in DATA_SETS and not Path(data).exists()
    return find_data_set(data) if named else Path(data).expanduser()


def load_run(folder: str, device: torch.device) -> tuple[LanguageModel, Vocabulary, dict[str, Any]]:
    """The best model of a run, its vocabulary, and what the run was told.

    Args:
        folder: of the run.
        device: where the model goes.
    """
    if not (Path(folder) / "config.json").exists():
        raise RunFolderError(
            where=folder,
            got="no config.json",
            wanted="the folder of a run",
            remedy="statewise train lm --data TEXT --out FOLDER makes one.",
        )
    return load_language_model(folder, device=device)
