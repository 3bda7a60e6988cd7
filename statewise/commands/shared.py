"""What several commands take: devices, lists, texts."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, Action, HelpFormatter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.data import Corpus, TokenStream, Vocabulary, corpus, find_data_set, read_corpus, sample_corpus
from statewise.engine.threads import one_thread as one_thread
from statewise.errors import ArgumentError, RunFolderError
from statewise.models import LanguageModel
from statewise.train.fit import load_language_model

DATA_SETS = ("ptb", "wikitext-2")
SAMPLE = "sample"
WIDE = 160
#: The option --device.
DEVICE: dict[str, Any] = {"type": str, "default": "auto", "help": "auto, cpu, cuda or cuda:1"}


#: The option --json.
JSON: dict[str, Any] = {
    "action": "store_true",
    "help": "print the result as one JSON object on standard output, and all else on standard error",
}
_FEW = 6  # options that a line of usage has room for
_EXAMPLES = "examples:"


class PlainHelp(HelpFormatter):
    """Says of an option what its sentence says, and its default where it has one; leaves examples as they are."""

    def _get_help_string(self, action: Action) -> str:
        told = action.help or ""
        absent = any(action.default is nothing for nothing in (SUPPRESS, None, "", False))
        return told if absent or not action.option_strings else f"{told} (default: %(default)s)"

    def _format_usage(self, usage: str | None, actions: Iterable[Action], groups: Any, prefix: str | None) -> str:
        """One line: dozens of options are listed below it."""
        options = [action for action in actions if action.option_strings]
        if usage is not None or len(options) <= _FEW:
            return super()._format_usage(usage, actions, groups, prefix)
        words = [self._format_args(action, action.dest) for action in actions if not action.option_strings]
        return f"{'usage: ' if prefix is None else prefix}{' '.join([self._prog, *words, '[OPTIONS]'])}\n\n"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)


class Parser(ArgumentParser):
    """A parser that says in one paragraph what is wrong, and where the help is; the usage is not repeated."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """End with exit code 2.

        Args:
            message: what is wrong.
            ex: the exception that says it.
        """
        sys.stderr.write(f"{self.prog}: error: {message}\nHelp: {self.prog} --help\n")
        self.exit(2)


def command_parser(description: str, *examples: str) -> ArgumentParser:
    """A parser without abbreviations, which a new option could make ambiguous.

    Args:
        description: of the command.
        examples: that can be typed.
    """
    shown = "\n  ".join([_EXAMPLES, *examples]) if examples else None
    return Parser(description=description, epilog=shown, formatter_class=PlainHelp, allow_abbrev=False)


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
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ArgumentError(where="--device", got=name, wanted="auto, cpu, cuda or cuda:0")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ArgumentError(
            where="--device", got=name, wanted="a device that is here", remedy="Use --device cpu, or auto."
        )
    return device


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


def require_classifier_run(folder: str) -> None:
    """Refuse what is no folder of a run, and say how to make one.

    Args:
        folder: as it was typed.
    """
    if not (Path(folder) / "config.json").exists():
        raise RunFolderError(
            where=folder,
            got="no config.json",
            wanted="the folder of a run",
            remedy="statewise train classify --data EXAMPLES --out FOLDER makes one.",
        )


def check_new(folder: Path, resume: bool, *, within: Sequence[str] = (".",)) -> None:
    """Refuse a folder with a run that nobody wants to go on with; under torchrun, in the first process.

    The others may come when the first has begun.

    Args:
        folder: that was named.
        resume: whether a run in it goes on.
        within: where in it the runs are.
    """
    taken = [name for name in within if (folder / name / "config.json").exists()]
    if taken and not resume and first_process():
        runs = "a run" if taken == ["."] else f"runs of {', '.join(taken)}"
        raise RunFolderError(
            where=str(folder),
            got=f"a folder with {runs}",
            wanted="a new or empty one",
            remedy=f"Go on (--resume --out {folder}), or name another folder (--out).",
        )


def first_process() -> bool:
    """Whether this is the first of the processes that torchrun has started, or the only one."""
    return int(os.environ.get("RANK", "0")) == 0


def own_console(*, stderr: bool = False) -> Console:
    """Standard output; quiet in all but the first of the processes that torchrun has started.

    What is no terminal, such as a file, gets lines long enough for a table.

    Args:
        stderr: standard error instead.
    """
    quiet = not first_process()
    console = Console(quiet=quiet, stderr=stderr)
    wide = console.is_terminal or "COLUMNS" in os.environ
    return console if wide else Console(quiet=quiet, stderr=stderr, width=WIDE)


def absolute(named: Any) -> Any:
    """Names of files, wherever they are read again; all else, such as the name of a task, as it is.

    Args:
        named: a name, or a list of them.

    >>> absolute("tomita:4"), absolute(["sample"])
    ('tomita:4', ['sample'])
    """
    if isinstance(named, list):
        return [absolute(each) for each in named]
    place = Path(named).expanduser()
    return str(place.resolve()) if place.is_file() else named
