"""What the tests of taggers' commands share: a small model, and files of tagged sentences."""

from __future__ import annotations

import json
from pathlib import Path

from statewise.data import TaggedSentences, hidden_markov_sentences

SMALL = ["--hidden", "6", "--characters", "4", "--character-hidden", "3", "--words", "6", "--epochs", "2"]
SMALL += ["--device", "cpu"]


def write_columns(path: Path, data: TaggedSentences) -> Path:
    """As CoNLL-2003 has them: four columns, in IOB1."""
    sentences = (
        "\n".join(f"{word} X X {tag}" for word, tag in zip(*row, strict=True)) for row in data.converted("iob1")
    )
    path.write_text("-DOCSTART- X X O\n\n" + "\n\n".join(sentences) + "\n", encoding="utf-8")
    return path


def write_objects(path: Path, data: TaggedSentences) -> Path:
    rows = (json.dumps({"tokens": words, "tags": tags}) for words, tags in data)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def names(count: int = 40, seed: int = 0) -> TaggedSentences:
    return hidden_markov_sentences(train=count, seed=seed).train
