"""The words that may follow texts, as lines to print or to write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from statewise.commands.predict_classes import DIGITS, read_texts
from statewise.commands.shared import column
from statewise.commands.texts import load_run, made_lower
from statewise.errors import ArgumentError, DataError
from statewise.models.text import in_mode

TOP = 5


def predict_words(asked: Any, *, device: torch.device) -> Iterator[str]:
    """A line for each text of a file: the words that are most probable to follow it, how probable each is, the text.

    A text is read after the end of a sentence; an empty one asks how a sentence begins.

    Args:
        asked: the options.
        device: where to compute.
    """
    model, vocabulary, told = load_run(asked.run, device)
    top = TOP if asked.top is None else asked.top
    if not 1 <= top <= len(vocabulary):
        raise ArgumentError(where="--top", got=top, wanted=f"a whole number from 1 to {len(vocabulary)}, all words")
    path, lower = Path(asked.file).expanduser(), made_lower(told)
    texts = list(read_texts(path, asked.kind, column(asked.text)))
    if not texts:
        raise DataError(where=str(path), got="no texts", wanted="one or more")
    for text in texts:
        words = (text.text.lower() if lower else text.text).split()
        ids = torch.tensor([vocabulary.end_id, *vocabulary.encode(words)], device=device).unsqueeze(1)
        with in_mode(model, training=False), torch.no_grad():
            features = model.features(ids, None)[0]
            shares, found = model.head.log_prob(features[-1:])[0, 0].double().exp().topk(top)
        pairs = list(zip(vocabulary.decode(found.cpu()), (round(one, DIGITS) for one in shares.tolist()), strict=True))
        if asked.format == "jsonl":
            following = [{"word": word, "probability": share} for word, share in pairs]
            yield json.dumps({"text": text.text, "next": following}, ensure_ascii=False) + "\n"
        else:
            yield "\t".join(f"{word}\t{share:.{DIGITS}f}" for word, share in pairs) + f"\t{text.text}\n"
