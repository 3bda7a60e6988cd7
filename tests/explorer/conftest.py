"""Small runs of every kind, trained in seconds, and explorers of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.tagging import names, write_columns
from explorer.serving import Served, served
from statewise.cli import main
from statewise.commands.explored import explored
from statewise.data import Corpus, sample_corpus
from statewise.explorer import Explorer
from support import made_once

GOOD, BAD = ("wonderful", "lovely", "bright", "warm", "clever"), ("dull", "boring", "cold", "clumsy", "awful")
REST = ("the", "a", "film", "play", "story", "and", "scene", "with", "of", "very", "was", "is")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of an automaton, an LSTM, a classifier of texts, a language model and a tagger."""
    place = made_once(tmp_path_factory, "explored", train_all)
    return {name: place / name for name in ("automaton", "lstm", "texts", "speaker", "tagger")}


def train_all(place: Path) -> None:
    write_reviews(place / "reviews.tsv")
    write_words(place / "words.tsv")
    write_columns(place / "names.conll", names(90))
    brief = write_corpus(place / "corpus", sample_corpus(), sentences=80)
    quick = ["--quiet", "--device", "cpu"]
    words, texts, tagged = (str(place / name) for name in ("words.tsv", "reviews.tsv", "names.conll"))
    kinds = {
        "automaton": f"classify --data {words} --automaton --seed 3",
        "lstm": f"classify --data {words} --cell lstm --hidden 6 --epochs 3 --centroids 4",
        "texts": f"classify --data {texts} --hidden 10 --centroids 4 --epochs 4",
        "speaker": f"lm --data {brief} --hidden 12 --batch 10 --bptt 20 --epochs 1",
        "tagger": f"tag --data {tagged} --hidden 6 --words 6 --characters 4 --character-hidden 3 --epochs 1",
    }
    for name, options in kinds.items():
        main(["train", *options.split(), *quick, "--out", str(place / name)])


def write_reviews(path: Path) -> None:
    """Texts whose class is that of one word in them."""
    draws, rows = random.Random(0), []
    for _ in range(300):
        label = draws.random() < 0.5
        words = [draws.choice(REST) for _ in range(draws.randint(4, 9))]
        words[draws.randrange(len(words))] = draws.choice(GOOD if label else BAD)
        rows.append(f"{'good' if label else 'bad'}\t{' '.join(words)}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_words(path: Path) -> None:
    """Words over 0 and 1 that are accepted unless three zeros follow each other."""
    draws = random.Random(1)
    words = ["".join(draws.choice("01") for _ in range(draws.randint(1, 12))) for _ in range(240)]
    path.write_text("".join(f"{'reject' if '000' in word else 'accept'}\t{word}\n" for word in words), encoding="utf-8")


def write_corpus(folder: Path, corpus: Corpus, *, sentences: int) -> Path:
    """Some sentences of each part of a corpus."""
    folder.mkdir()
    for split in ("train", "valid", "test"):
        words = " ".join(corpus.vocabulary.decode(getattr(corpus, split)[:])).split(" <eos> ")[:sentences]
        (folder / f"{split}.txt").write_text("\n".join([*words, ""]), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def explorers(runs: dict[str, Path]) -> dict[str, Explorer]:
    """An explorer for each run, with some examples."""
    return {name: Explorer([explored(str(folder), most=60)]) for name, folder in runs.items()}


@pytest.fixture(scope="session")
def server(runs: dict[str, Path]) -> Iterator[Served]:
    """The automaton and the LSTM, served as the command serves them."""
    with served([runs["automaton"], runs["lstm"]], "--examples", "120") as found:
        yield found
