"""A trained run, and a way to type a command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from commands.tagging import names, write_columns
from commands.typing_commands import SMALL, Typed
from statewise.cli import main
from statewise.data import Corpus, sample_corpus
from support import made_once


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Run a command in this process, in an empty folder; gives what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> str:
        capsys.readouterr()
        main(arguments)
        return capsys.readouterr().out

    return call


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Run a command that must fail; gives what it said."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said

    return call


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with noise."""
    arguments = [*SMALL, "--noise", "gaussian", "--gamma", "0.3", "--epochs", "2", "--quiet"]
    made = made_once(
        tmp_path_factory, "small", lambda place: main(["train", "lm", *arguments, "--out", str(place / "small")])
    )
    return made / "small"


@pytest.fixture(scope="session")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tagger's run with given vectors, whose files are in IOB1."""
    return made_once(tmp_path_factory, "tagger", train_tagger) / "run"


def train_tagger(place: Path) -> None:
    write_columns(place / "names.conll", names(150))
    write_columns(place / "test.conll", names(30, seed=1))
    words = sorted({word.lower() for sentence in names(150).sentences for word in sentence})
    numbers = np.random.default_rng(0).normal(size=(len(words) + 1, 12))
    lines = (
        f"{word} {' '.join(f'{x:.4f}' for x in row)}" for word, row in zip([*words, "rotterdam"], numbers, strict=True)
    )
    (place / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--vectors", str(place / "vectors.txt"), "--test", str(place / "test.conll"), "--quiet", "--lr", "0.02"]
    options += ["--hidden", "16", "--characters", "0", "--dropout", "0.1", "--epochs", "10", "--device", "cpu"]
    main(["train", "tag", "--data", str(place / "names.conll"), *options, "--out", str(place / "run")])


@pytest.fixture(scope="session")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has read its text in lower case, with words that it does not know."""
    return made_once(tmp_path_factory, "lower", train_lowered) / "run"


def train_lowered(place: Path) -> None:
    write_corpus(place / "texts", sample_corpus(), sentences=60, upper=True)
    options = ["--hidden", "12", "--batch", "5", "--epochs", "1", "--lower", "--min-count", "2", "--device", "cpu"]
    main(["train", "lm", "--data", str(place / "texts"), *options, "--quiet", "--out", str(place / "run")])


@pytest.fixture(scope="session")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few sentences of the embedded text."""
    return write_corpus(tmp_path_factory.mktemp("brief") / "few", sample_corpus(), sentences=25)


def write_corpus(folder: Path, corpus: Corpus, *, sentences: int, upper: bool = False) -> Path:
    folder.mkdir()
    for split in ("train", "valid", "test"):
        words = " ".join(corpus.vocabulary.decode(getattr(corpus, split)[:])).split(" <eos> ")[:sentences]
        text = "\n".join([*words, ""])
        (folder / f"{split}.txt").write_text(text.upper() if upper else text, encoding="utf-8")
    return folder
