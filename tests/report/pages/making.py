"""Tiny runs of every kind, trained in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from commands.tagging import names, write_columns
from commands.typing_commands import SMALL
from statewise.cli import main
from statewise.data import Sequences, copying
from statewise.models import ClassifierConfig, StepConfig
from statewise.train import ClassifierSettings, Judged, Measured, save_classifier, train_steps

HOSTILE = "<script>alert('x')</script>"
_FEW = ["--hidden", "8", "--epochs", "2", "--quiet", "--device", "cpu"]


def classifier(folder: Path, *options: str) -> Path:
    """A classifier of the words of a regular language."""
    main(["train", "classify", "--data", "tomita:1", *_FEW, *options, "--out", str(folder)])
    return folder


def automaton(folder: Path) -> Path:
    """An exact automaton of a few words, whose symbols and classes somebody hostile named."""
    labels = {0: "even & fine", 1: HOSTILE}
    rows = [f"{labels[word.count('b') % 2]}\t{' '.join(word).replace('b', '</svg>')}" for word in _words(7)]
    data = folder.parent / f"{folder.name}.tsv"
    data.write_text("\n".join(["label\ttext", *rows]) + "\n", encoding="utf-8")
    options = ["--data", str(data), "--unit", "symbols", "--automaton", "--quiet"]
    main(["train", "classify", *options, "--out", str(folder)])
    return folder


def reviews(folder: Path) -> Path:
    """A classifier of short texts, with a hostile word among them."""
    data = folder.parent / "reviews.tsv"
    rows = [f"{kind}\tthe {noun} was {word} {HOSTILE}" for noun in ("film", "plot", "cast", "song") * 3
            for kind, word in (("good", "fine"), ("good", "great"), ("bad", "dull"), ("bad", "poor"))]  # fmt: skip
    data.write_text("\n".join(["label\ttext", *rows]) + "\n", encoding="utf-8")
    main(["train", "classify", "--data", str(data), "--centroids", "3", *_FEW, "--out", str(folder)])
    return folder


def untrained(folder: Path) -> Path:
    """A soft network that nothing was taught, and that does not do what its automaton does."""
    words = ["0", "1", "01", "10"] * 5
    examples = Sequences.from_words(words, [word.count("1") % 2 for word in words], symbols="01")
    model = ClassifierConfig(hidden=8, centroids=(4,)).build(
        tokens=2, classes=2, symbols="01", generator=torch.Generator().manual_seed(6)
    )
    soft, hard = Measured(0.7, 0.25, 20, ((10, 0), (5, 5))), Measured(0.7, 0.5, 20, ((10, 0), (10, 0)))
    save_classifier(folder, model, examples, training={"seed": 0}, judged={"test": Judged(soft, hard)})
    return folder


def language_model(folder: Path, *options: str) -> Path:
    """A language model of the embedded text."""
    main(["train", "lm", *SMALL, "--epochs", "2", "--quiet", *options, "--out", str(folder)])
    return folder


def tagger(folder: Path, *options: str) -> Path:
    """A tagger of a few sentences."""
    place = folder.parent
    write_columns(place / "names.conll", names(80))
    write_columns(place / "test.conll", names(30, seed=1))
    data = ["--data", str(place / "names.conll"), "--test", str(place / "test.conll"), "--characters", "0"]
    main(["train", "tag", *data, *_FEW, *options, "--out", str(folder)])
    return folder


def step_classifier(folder: Path) -> Path:
    """A classifier of every step of a copying task."""
    settings = ClassifierSettings(epochs=1, batch=20)
    train, valid = (copying(2, n=2, count=40, seed=seed) for seed in (0, 1))
    train_steps(StepConfig(hidden=8), settings, train, valid, {"test": valid}, folder)
    return folder


def lineup(folder: Path, result: dict[str, Any] | None) -> Path:
    """What ``statewise compare`` leaves, with as much of it as a page reads."""
    folder.mkdir()
    (folder / "lineup.json").write_text(json.dumps({"task": "line-up", "result": result}), encoding="utf-8")
    return folder


RESULT: dict[str, Any] = {
    "kind": "lm",
    "metrics": [{"name": "perplexity", "higher": False, "unit": ""}],
    "says": [f"Noise helps on this text: {HOSTILE}."],
    "lines": [
        {"name": HOSTILE, "says": "helps", "scores": {"perplexity": {"value": 98.2, "low": 96.0, "high": 100.1}},
         "p_holm": 0.01, "cost": 1.2},
        {"name": "plain", "says": None, "scores": {"perplexity": {"value": 109.0, "low": 107.0, "high": 111.0}},
         "p_holm": None, "cost": 1.0},
    ],
    "failed": {"zoneout": "the loss is not a number"},
    "unavailable": {},
}  # fmt: skip


def _words(longest: int) -> list[str]:
    words, found = [""], list[str]()
    for _ in range(longest):
        words = [word + letter for word in words for letter in "ab"]
        found += words
    return found
