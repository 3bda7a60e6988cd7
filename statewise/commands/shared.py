"""What several commands take: devices, lists, texts."""

from __future__ import annotations

import os
from argparse import SUPPRESS, Action, HelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.data import Corpus, Vocabulary, find_data_set, read_corpus, sample_corpus
from statewise.errors import ArgumentError, DataError, RunFolderError
from statewise.models import LanguageModel
from statewise.train.fit import load_language_model

DATA_SETS = ("ptb", "wikitext-2")
SAMPLE = "sample"
WIDE = 160


class PlainHelp(HelpFormatter):
    """Says of an option what its sentence says, and its default where it has one."""

    def _get_help_string(self, action: Action) -> str:
        told = action.help or ""
        absent = any(action.default is nothing for nothing in (SUPPRESS, None, "", False))
        return told if absent or not action.option_strings else f"{told} (default: %(default)s)"


def command_parser(description: str) -> ArgumentParser:
    """A parser without abbreviations, which a new option could make ambiguous.

    Args:
        description: of the command.
    """
    return ArgumentParser(description=description, allow_abbrev=False)


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """A region on one thread: networks of a few units gain nothing from more.

    Args:
        wanted: whether it shall be so.
    """
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def split_list(text: str) -> tuple[str, ...]:
    """The entries of a list with commas.

    >>> split_list("gaussian, dropout+gaussian")
    ('gaussian', 'dropout+gaussian')
    """
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def find_device(name: str) -> torch.device:
    """The device of a name; "auto" is the first CUDA device where there is one, else the CPU.

    >>> find_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ArgumentError(where="--device", got=name, wanted="auto, cpu, cuda or cuda:0") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ArgumentError(
            where="--device", got=name, wanted="a device that is here", remedy="Use --device cpu, or auto."
        )
    return device


def read_text(
    data: str,
    *,
    limit: int | None = None,
    min_count: int = 1,
    lower: bool = False,
    vocabulary: Vocabulary | None = None,
) -> Corpus:
    """The corpus that ``--data`` names: a folder, a file, "ptb", "wikitext-2" or "sample".

    Args:
        data: what was typed.
        limit: the most words of the vocabulary.
        min_count: words that occur less often are unknown.
        lower: whether letters are made lower case.
        vocabulary: that the corpus must have, such as a model's; None for its own.
    """
    corpus = _read(data, limit=limit, min_count=min_count, lower=lower)
    if vocabulary is not None and corpus.vocabulary != vocabulary:
        raise DataError(
            where=data,
            got=f"a corpus of {len(corpus.vocabulary)} words",
            wanted=f"the {len(vocabulary)} words that the model was trained with",
            remedy="Score another text line by line: --text FILE.",
        )
    return corpus


def _read(data: str, *, limit: int | None, min_count: int, lower: bool) -> Corpus:
    if data == SAMPLE:
        return sample_corpus()
    named = data in DATA_SETS and not Path(data).exists()
    place = find_data_set(data) if named else Path(data).expanduser()
    return read_corpus(place, limit=limit, min_count=min_count, lower=lower)


def say(console: Console | None, text: str) -> None:
    """Print a text as it is, without wrapping or colours, so that it can be copied.

    Args:
        console: where; None for nowhere.
        text: what.
    """
    if console is not None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


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


def first_process() -> bool:
    """Whether this is the first of the processes that torchrun has started, or the only one."""
    return int(os.environ.get("RANK", "0")) == 0


def own_console() -> Console:
    """Standard output; quiet in all but the first of the processes that torchrun has started.

    What is no terminal, such as a file, gets lines long enough for a table.
    """
    quiet = not first_process()
    console = Console(quiet=quiet)
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(quiet=quiet, width=WIDE)
